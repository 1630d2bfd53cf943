//! What a request costs, in three parameters, fitted to the mean latencies of the measured cells.
//! The sum of the squared logarithms of the ratios is least, so that a cell of 100 µs counts as
//! much as one of a second.

use diskproof_model::sweep::CostModel;

/// Three parameters follow from more cells than three, of more than one size and depth.
const CELLS_MIN: usize = 6;
/// The search ends when its steps are this small: a thousandth.
const STEP_MIN: f64 = 0.001;
/// The first step: a factor of two.
const STEP_FIRST: f64 = std::f64::consts::LN_2;

/// A fitted rate this many times the highest measured one is none: the latencies of these cells do
/// not grow with their size, and the best rate would be endless.
const RATE_TIMES_MAX: f64 = 100.0;

/// A measured cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellLatency {
    pub block_bytes: u32,
    pub depth: u32,
    pub latency_ns: f64,
}

/// The model of these cells; `None` of too few, or where they do not show what a byte costs.
pub(super) fn fitted(cells: &[CellLatency]) -> Option<CostModel> {
    let varies = |of: fn(&CellLatency) -> u32| cells.iter().any(|cell| of(cell) != of(&cells[0]));
    let is_enough =
        cells.len() >= CELLS_MIN && varies(|cell| cell.block_bytes) && varies(|cell| cell.depth);
    if !is_enough {
        return None;
    }
    let first = start(cells);
    let mut logs = first;
    let mut least = squares(cells, logs);
    let mut step = STEP_FIRST;
    while step > STEP_MIN {
        let mut is_better = false;
        for parameter in 0..logs.len() {
            for change in [step, -step] {
                let mut tried = logs;
                tried[parameter] += change;
                let sum = squares(cells, tried);
                if sum < least {
                    (logs, least, is_better) = (tried, sum, true);
                }
            }
        }
        if !is_better {
            step /= 2.0;
        }
    }
    if logs[2] - first[2] > RATE_TIMES_MAX.ln() {
        return None;
    }
    let freedom = (cells.len() - logs.len()) as f64;
    Some(CostModel {
        model_error: (least / freedom).sqrt(),
        cells_fitted: cells.len() as u64,
        ..model(logs)
    })
}

/// The logarithms of base, request and rate as a model.
fn model([base, request, rate]: [f64; 3]) -> CostModel {
    CostModel {
        base_ns: base.exp(),
        request_ns: request.exp(),
        bytes_per_second: rate.exp(),
        model_error: 0.0,
        cells_fitted: 0,
    }
}

/// Where the search begins: the shortest latency, the shortest one for each request in flight, the
/// highest rate.
fn start(cells: &[CellLatency]) -> [f64; 3] {
    let least = |of: &dyn Fn(&CellLatency) -> f64| cells.iter().map(of).fold(f64::MAX, f64::min);
    let per_byte = |cell: &CellLatency| {
        cell.latency_ns / (f64::from(cell.depth.max(1)) * f64::from(cell.block_bytes.max(1)))
    };
    [
        least(&|cell| cell.latency_ns).ln(),
        least(&|cell| cell.latency_ns / f64::from(cell.depth.max(1))).ln(),
        (1e9 / least(&per_byte)).ln(),
    ]
}

fn squares(cells: &[CellLatency], logs: [f64; 3]) -> f64 {
    let model = model(logs);
    let square = |cell: &CellLatency| {
        let predicted = model.latency_ns(cell.block_bytes, cell.depth);
        (predicted / cell.latency_ns).ln().powi(2)
    };
    cells.iter().map(square).sum()
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
            let found = fitted(&cells(&truth, 0.0)).unwrap();
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
        let found = fitted(&cells(&truth(80e3, 2.5e3, 3e9), 0.1)).unwrap();
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
        assert_eq!(fitted(&all[..5]), None);
        assert_eq!(fitted(&all[..7]), None, "one size");
        assert!(fitted(&all[..14]).is_some());
    }

    #[test]
    fn latencies_that_do_not_grow_with_the_size_have_no_model() {
        let mut all = cells(&truth(80e3, 2.5e3, 3e9), 0.0);
        all.iter_mut()
            .for_each(|cell| cell.latency_ns = 80e3 * f64::from(cell.depth));
        assert_eq!(fitted(&all), None);
    }
}
