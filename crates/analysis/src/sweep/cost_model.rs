//! Fits the cost model of a sweep: three parameters, by the mean latencies of the measured cells.
//! The fit minimises the sum of the squared logarithms of the ratios, so that a cell of 100 µs
//! counts as much as one of a second.

use diskproof_model::sweep::CostModel;
use std::collections::BTreeSet;

/// The fewest cells for a fit of three parameters: with three, the model would fit any of them.
const CELLS_MIN: usize = 6;
/// The search ends when its steps are this small: a factor of a thousandth.
const STEP_MIN: f64 = 0.001;
/// The first step of the search: a factor of two.
const STEP_FIRST: f64 = std::f64::consts::LN_2;
/// There is no model if its rate is more than this many times the highest measured one. The
/// latencies of such cells do not grow with their size, and the best rate would be infinite.
/// Chosen, not measured.
const RATE_TIMES_MAX: f64 = 100.0;

/// The mean latency of a measured cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellLatency {
    pub(super) block_bytes: u32,
    pub(super) depth: u32,
    pub(super) latency_ns: f64,
}

/// The model of these cells; `None` of too few, or where they do not show the cost of a byte.
pub(super) fn fitted_model(cells: &[CellLatency]) -> Option<CostModel> {
    let sizes: BTreeSet<u32> = cells.iter().map(|cell| cell.block_bytes).collect();
    let depths: BTreeSet<u32> = cells.iter().map(|cell| cell.depth).collect();
    if cells.len() < CELLS_MIN || sizes.len() < 2 || depths.len() < 2 {
        return None;
    }
    let first = first_parameters(cells);
    let best = descend(cells, first);
    if best.logs[RATE] - first[RATE] > RATE_TIMES_MAX.ln() {
        return None;
    }
    let freedom = (cells.len() - best.logs.len()) as f64;
    Some(CostModel {
        model_error: (best.squared_errors / freedom).sqrt(),
        cells_fitted: cells.len() as u64,
        ..model_of_logs(best.logs)
    })
}

/// The place of the rate among the parameters, which are base, request and rate.
const RATE: usize = 2;

/// Parameters of the model as logarithms, and how far they are from the cells.
struct Fit {
    logs: [f64; 3],
    squared_errors: f64,
}

/// Changes one parameter after the other by a step, as long as that brings the model nearer to the
/// cells, and then by half of it.
fn descend(cells: &[CellLatency], first: [f64; 3]) -> Fit {
    let mut best = Fit {
        logs: first,
        squared_errors: squared_errors(cells, first),
    };
    let mut step = STEP_FIRST;
    while step > STEP_MIN {
        let mut is_better = false;
        for parameter in 0..best.logs.len() {
            for change in [step, -step] {
                let mut logs = best.logs;
                logs[parameter] += change;
                let squared_errors = squared_errors(cells, logs);
                if squared_errors < best.squared_errors {
                    best = Fit {
                        logs,
                        squared_errors,
                    };
                    is_better = true;
                }
            }
        }
        if !is_better {
            step /= 2.0;
        }
    }
    best
}

/// The model with these logarithms of base, request and rate. Its error is not known yet.
fn model_of_logs([base, request, rate]: [f64; 3]) -> CostModel {
    CostModel {
        base_ns: base.exp(),
        request_ns: request.exp(),
        bytes_per_second: rate.exp(),
        model_error: 0.0,
        cells_fitted: 0,
    }
}

/// The logarithms with which the search begins: the shortest latency, the shortest one for each
/// request in flight, the highest rate. `cells` is not empty.
fn first_parameters(cells: &[CellLatency]) -> [f64; 3] {
    let mut base_ns = f64::INFINITY;
    let mut request_ns = f64::INFINITY;
    let mut byte_ns = f64::INFINITY;
    for cell in cells {
        let depth = f64::from(cell.depth.max(1));
        base_ns = base_ns.min(cell.latency_ns);
        request_ns = request_ns.min(cell.latency_ns / depth);
        byte_ns = byte_ns.min(cell.latency_ns / (depth * f64::from(cell.block_bytes.max(1))));
    }
    [base_ns.ln(), request_ns.ln(), (1e9 / byte_ns).ln()]
}

/// The sum of the squared logarithms of predicted over measured latencies.
fn squared_errors(cells: &[CellLatency], logs: [f64; 3]) -> f64 {
    let model = model_of_logs(logs);
    cells
        .iter()
        .map(|cell| model.latency_ns(cell.block_bytes, cell.depth) / cell.latency_ns)
        .map(|ratio| ratio.ln().powi(2))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::test_rng::TestRng;

    fn cells(truth: &CostModel, noise: f64) -> Vec<CellLatency> {
        let mut rng = TestRng(3);
        let mut cells = Vec::new();
        for kib in [4, 8, 32, 128, 256, 1024, 4096] {
            for depth in [1, 2, 4, 8, 16, 32, 64] {
                let block_bytes = kib << 10;
                cells.push(CellLatency {
                    block_bytes,
                    depth,
                    latency_ns: truth.latency_ns(block_bytes, depth) * (1.0 + noise * rng.normal()),
                });
            }
        }
        cells
    }

    fn truth(base_ns: f64, request_ns: f64, bytes_per_second: f64) -> CostModel {
        CostModel {
            base_ns,
            request_ns,
            bytes_per_second,
            model_error: 0.0,
            cells_fitted: 49,
        }
    }

    #[test]
    fn model_finds_the_parameters_of_a_disk() {
        // An SSD of 32 channels, a rotating disk, a slow network.
        for truth in [
            truth(80e3, 2.5e3, 3e9),
            truth(8e6, 8e6, 150e6),
            truth(1e6, 300e3, 125e6),
        ] {
            let found = fitted_model(&cells(&truth, 0.0)).unwrap();
            for (found, truth) in [
                (found.base_ns, truth.base_ns),
                (found.request_ns, truth.request_ns),
                (found.bytes_per_second, truth.bytes_per_second),
            ] {
                assert!((found / truth).ln().abs() < 0.05, "{found} of {truth}");
            }
            assert!(found.model_error < 0.02, "{}", found.model_error);
        }
    }

    #[test]
    fn error_of_the_model_is_that_of_the_cells() {
        let found = fitted_model(&cells(&truth(80e3, 2.5e3, 3e9), 0.1)).unwrap();
        assert!(
            (0.07..0.13).contains(&found.model_error),
            "{}",
            found.model_error
        );
        assert_eq!(found.cells_fitted, 49);
    }

    #[test]
    fn too_few_cells_have_no_model() {
        let all = cells(&truth(80e3, 2.5e3, 3e9), 0.0);
        assert_eq!(fitted_model(&all[..5]), None);
        assert_eq!(fitted_model(&all[..7]), None, "one size");
        assert!(fitted_model(&all[..14]).is_some());
    }

    #[test]
    fn latencies_that_do_not_grow_with_the_size_have_no_model() {
        let mut all = cells(&truth(80e3, 2.5e3, 3e9), 0.0);
        all.iter_mut()
            .for_each(|cell| cell.latency_ns = 80e3 * f64::from(cell.depth));
        assert_eq!(fitted_model(&all), None);
    }
}
