//! The capacity of a disk in one direction, from the matrices of a sweep or from the rays of a
//! load: bandwidth, and random and sequential operations of 4 KiB per second. The schedulers of
//! other systems are set by these figures.

use diskproof_model::capacity_workloads::{
    SEQUENTIAL_MIXED, SEQUENTIAL_READ, SEQUENTIAL_READ_PAGES, SEQUENTIAL_WRITE,
    SEQUENTIAL_WRITE_PAGES,
};
use diskproof_model::plan::{Decide, Plan};
use diskproof_model::proof::{FigureSource, Objection};
use diskproof_model::rate::RatePlan;
use diskproof_model::rays::RayFigures;
use diskproof_model::record::{Record, TaskResult};
use diskproof_model::sweep::{CellState, SweepMatrix, SweepOperation};

/// The size for which schedulers state operations per second: `IOC_PAGE_SIZE` of the kernel's
/// blk-iocost.c, and the size of Ceph's `osd bench`.
const PAGE_BYTES: u32 = 4096;

/// The most that a disk can do in one direction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DiskCapacity<'a> {
    /// Bytes per second.
    pub(crate) bytes_per_second: f64,
    /// Random operations of 4 KiB per second.
    pub(crate) random_iops: f64,
    /// Sequential operations of 4 KiB per second; `None` where they were not measured.
    pub(crate) sequential_iops: Option<f64>,
    /// The matrix of the random operations.
    pub(crate) random: &'a SweepMatrix,
}

impl DiskCapacity<'_> {
    /// The 99th percentile of the latency where the disk is busy, in nanoseconds: that of the
    /// smallest depth which is at least twice the depth of the knee. `None` where no such latency
    /// was measured. The factor of two is chosen: at the knee itself the disk is not always busy.
    pub(crate) fn busy_p99_ns(&self) -> Option<u64> {
        let knee = self.random.knee.as_ref()?;
        let busy_depth = knee.depth.saturating_mul(2);
        // The depths of one block size ascend.
        for cell in &self.random.cells {
            if cell.state == CellState::Measured
                && cell.block_bytes == knee.block_bytes
                && cell.depth >= busy_depth
                && cell.latency_p99_ns.is_some()
            {
                return cell.latency_p99_ns;
            }
        }
        None
    }
}

/// Returns what the disk can read at most; `None` where no random reads were swept.
pub(crate) fn reads(record: &Record) -> Option<DiskCapacity<'_>> {
    swept_capacity(record, SweepOperation::RandRead, SweepOperation::Read)
}

/// Returns what the disk can write at most; `None` where no random writes were swept.
pub(crate) fn writes(record: &Record) -> Option<DiskCapacity<'_>> {
    swept_capacity(record, SweepOperation::RandWrite, SweepOperation::Write)
}

/// The capacity in the direction of two swept operations; `None` where the random ones were not
/// swept or have no rate, and where the figures are not the disk's.
fn swept_capacity(
    record: &Record,
    random: SweepOperation,
    sequential: SweepOperation,
) -> Option<DiskCapacity<'_>> {
    if swept_objection(record).is_some() {
        return None;
    }
    let matrices = &record.sweep()?.matrices;
    let random_matrix = matrix_with(matrices, random)?;
    let mut throughputs = Vec::new();
    throughputs.extend(best_throughput(random_matrix));
    let mut sequential_iops = None;
    if let Some(matrix) = matrix_with(matrices, sequential) {
        throughputs.extend(best_throughput(matrix));
        sequential_iops = page_iops(matrix);
    }
    Some(DiskCapacity {
        bytes_per_second: throughputs.into_iter().reduce(f64::max)?,
        random_iops: page_iops(random_matrix)?,
        sequential_iops,
        random: random_matrix,
    })
}

/// The reason why the figures of a sweep are not the disk's; `None` where they may set a scheduler.
pub(crate) fn swept_objection(record: &Record) -> Option<Objection<'_>> {
    let index = record
        .results
        .iter()
        .position(|result| matches!(result, TaskResult::Sweep(_)))?;
    record.objection(FigureSource::Result(index))
}

/// The reason why the figures of a sweep are not final; `None` where they are. Rays have none:
/// where they are in doubt they decide nothing.
pub(crate) fn swept_doubt(record: &Record) -> Option<&'static str> {
    let is_partial = record.partial && record.sweep().is_some();
    is_partial.then_some("The sweep ended early: a later cell may be faster.")
}

fn matrix_with(matrices: &[SweepMatrix], operation: SweepOperation) -> Option<&SweepMatrix> {
    matrices.iter().find(|matrix| matrix.operation == operation)
}

/// The most bytes per second of a matrix.
fn best_throughput(matrix: &SweepMatrix) -> Option<f64> {
    Some(matrix.best_throughput()?.throughput.as_ref()?.value)
}

/// The most operations of 4 KiB per second: as measured, else as the cost model predicts. `None`
/// without either. A larger block shows as much only at a depth that was not measured at 4 KiB.
fn page_iops(matrix: &SweepMatrix) -> Option<f64> {
    let mut deepest = 0;
    for cell in &matrix.cells {
        if cell.block_bytes == PAGE_BYTES && cell.state == CellState::Measured {
            deepest = cell.depth.max(deepest);
        }
    }
    let measured = matrix
        .cells
        .iter()
        .filter(|cell| cell.state == CellState::Measured)
        .filter(|cell| {
            cell.block_bytes == PAGE_BYTES
                || (cell.block_bytes > PAGE_BYTES && cell.depth > deepest)
        })
        .flat_map(|cell| &cell.iops)
        .max_by(|a, b| a.cmp_certain(b));
    let iops = match measured {
        Some(rate) => rate.value,
        None => predicted_page_iops(matrix)?,
    };
    if iops.is_finite() && iops > 0.0 {
        Some(iops)
    } else {
        None
    }
}

fn predicted_page_iops(matrix: &SweepMatrix) -> Option<f64> {
    let occupancy_ns = matrix.cost_model?.occupancy_ns(PAGE_BYTES);
    if occupancy_ns > 0.0 {
        Some(1e9 / occupancy_ns)
    } else {
        None
    }
}

/// The capacity of a disk from the rays of a load: while it keeps a promise, and at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RayCapacity {
    /// The promise.
    pub(crate) promise: RatePlan,
    /// The capacity for reads alone.
    pub(crate) reads: RayDirection,
    /// The capacity for writes alone.
    pub(crate) writes: RayDirection,
    /// What large sequential reads and writes move together, in bytes per second.
    pub(crate) mixed_bytes_per_second: f64,
}

impl RayCapacity {
    /// True if both directions were offered more than they serve.
    pub(crate) fn is_saturated(&self) -> bool {
        self.reads.saturated_iops.is_some() && self.writes.saturated_iops.is_some()
    }
}

/// The capacity in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RayDirection {
    /// Random operations per second at which the promise was held.
    pub(crate) held_iops: f64,
    /// Random operations per second that are served when more are offered; `None` where the search
    /// never offered more.
    pub(crate) saturated_iops: Option<f64>,
    /// Bytes per second of large sequential operations.
    pub(crate) bytes_per_second: f64,
    /// Sequential operations of 4 KiB per second.
    pub(crate) sequential_iops: f64,
}

/// True if a plan searches rays with requests of the size by which schedulers count.
pub(crate) fn plans_rays_of_pages(plan: &Plan) -> bool {
    let Some(task) = plan.workload_task() else {
        return false;
    };
    plans_rays(plan)
        && task
            .searched()
            .all(|(_, ray)| ray.block_bytes == PAGE_BYTES)
}

/// True if a plan searches the boundary of reads and writes.
pub(crate) fn plans_rays(plan: &Plan) -> bool {
    match plan.workload_task() {
        Some(task) => {
            let is_search = matches!(task.decide, Decide::Rate(_));
            is_search && task.searched().count() > 1
        }
        None => false,
    }
}

/// Returns the capacity from rays of 4 KiB; `None` where they do not decide it.
pub(crate) fn rays_of_pages(record: &Record) -> Option<RayCapacity> {
    if plans_rays_of_pages(&record.plan) {
        rays(record)
    } else {
        None
    }
}

/// Returns the capacity from rays of 4 KiB, where both directions were saturated as well: the most
/// that a disk serves.
pub(crate) fn saturated_rays_of_pages(record: &Record) -> Option<RayCapacity> {
    let capacity = rays_of_pages(record)?;
    if capacity.is_saturated() {
        Some(capacity)
    } else {
        None
    }
}

/// Returns the capacity from rays of any size; `None` without a boundary, where reads or writes
/// alone are undecided, and where a sequential workload is missing or is not the disk's figure.
pub(crate) fn rays(record: &Record) -> Option<RayCapacity> {
    let Decide::Rate(promise) = &record.plan.workload_task()?.decide else {
        return None;
    };
    let figures = &record.rays()?.figures;
    if record.partial || figures.boundary.is_none() {
        return None;
    }
    let reads = figures.rays.iter().find(|ray| ray.read_share == 1.0)?;
    let writes = figures.rays.iter().find(|ray| ray.read_share == 0.0)?;
    Some(RayCapacity {
        promise: *promise,
        reads: ray_direction(record, reads, SEQUENTIAL_READ, SEQUENTIAL_READ_PAGES)?,
        writes: ray_direction(record, writes, SEQUENTIAL_WRITE, SEQUENTIAL_WRITE_PAGES)?,
        mixed_bytes_per_second: moved_per_second(record, SEQUENTIAL_MIXED)?.bytes_per_second,
    })
}

fn ray_direction(
    record: &Record,
    ray: &RayFigures,
    large: &str,
    pages: &str,
) -> Option<RayDirection> {
    if !ray.is_decided() {
        return None;
    }
    Some(RayDirection {
        held_iops: ray.load.low,
        saturated_iops: ray.load.served_when_saturated(),
        bytes_per_second: moved_per_second(record, large)?.bytes_per_second,
        sequential_iops: moved_per_second(record, pages)?.iops,
    })
}

/// The rates of a workload, its reads and writes together.
struct MovedPerSecond {
    iops: f64,
    bytes_per_second: f64,
}

/// The reads and writes of the workload of this name; `None` where they are not the disk's.
fn moved_per_second(record: &Record, name: &str) -> Option<MovedPerSecond> {
    let index = record
        .measurements
        .iter()
        .position(|row| row.data.workload.name == name)?;
    if record.objection(FigureSource::Measurement(index)).is_some() {
        return None;
    }
    let mut moved = MovedPerSecond {
        iops: 0.0,
        bytes_per_second: 0.0,
    };
    for (_, op) in record.measurements[index].headline_ops() {
        moved.iops += op.figures.iops.value;
        moved.bytes_per_second += op.figures.throughput.value;
    }
    if moved.iops > 0.0 { Some(moved) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::finding::{Cause, Evidence, Finding, Meaning, Severity};
    use diskproof_model::record::Estimate;
    use diskproof_model::sweep::{CostModel, DepthKnee, SweepCell, SweepRecord};

    #[test]
    fn sweep_that_a_cache_answered_decides_nothing_and_one_that_ended_early_is_in_doubt() {
        let mut record = crate::fixture::record();
        record.findings.clear();
        record.partial = false;
        assert_eq!(swept_doubt(&record), None);
        record.results = vec![TaskResult::Sweep(SweepRecord {
            matrices: Vec::new(),
            spans: Vec::new(),
        })];
        assert_eq!(swept_doubt(&record), None);
        record.partial = true;
        assert!(swept_doubt(&record).is_some_and(|doubt| doubt.contains("ended early")));
        assert!(swept_objection(&record).is_none());
        let meaning = Meaning::NotTheDisk {
            cause: Cause::Cache,
        };
        record.findings.push(Finding {
            code: "served-from-cache".to_owned(),
            title: Some("A cache answered".to_owned()),
            severity: Severity::Failure,
            says: meaning,
            claim: "The disk moved fewer bytes than requested.".to_owned(),
            evidence: vec![Evidence {
                path: "/measurements/0/data/device/accounted".to_owned(),
                observed: 0.1,
                threshold: 0.9,
                unit: "1".to_owned(),
            }],
            remedy: String::new(),
            reproduce: None,
        });
        assert_eq!(
            swept_objection(&record).unwrap().finding.code,
            "served-from-cache"
        );
    }

    fn cell(block_bytes: u32, depth: u32, iops: f64, p99_ns: Option<u64>) -> SweepCell {
        SweepCell {
            block_bytes,
            depth,
            state: CellState::Measured,
            why: None,
            iops: Some(Estimate::new(30, iops, Some(1.0), "1/s")),
            throughput: None,
            latency_mean_ns: None,
            latency_p50_ns: None,
            latency_p99_ns: p99_ns,
            latency_max_ns: None,
        }
    }

    fn matrix(cells: Vec<SweepCell>) -> SweepMatrix {
        SweepMatrix {
            operation: SweepOperation::RandRead,
            cells,
            knee: None,
            bandwidth_limit: None,
            cost_model: None,
        }
    }

    fn busy_p99_ns(random: &SweepMatrix) -> Option<u64> {
        let capacity = DiskCapacity {
            bytes_per_second: 1e9,
            random_iops: 4100.0,
            sequential_iops: None,
            random,
        };
        capacity.busy_p99_ns()
    }

    #[test]
    fn latency_of_a_busy_disk_is_that_of_twice_the_knee_or_more() {
        let mut random = matrix(vec![
            cell(4096, 4, 4000.0, Some(400)),
            cell(4096, 8, 4100.0, None),
            cell(4096, 16, 4100.0, Some(1600)),
            cell(4096, 32, 4100.0, Some(3200)),
        ]);
        assert_eq!(busy_p99_ns(&random), None);
        random.knee = Some(DepthKnee {
            block_bytes: 4096,
            depth: 4,
            depth_low: 4,
            depth_high: Some(4),
            iops: Estimate::new(30, 4000.0, None, "1/s"),
            iops_single: None,
        });
        assert_eq!(busy_p99_ns(&random), Some(1600));
    }

    #[test]
    fn larger_block_counts_as_a_page_only_at_a_depth_without_one() {
        let mut random = matrix(vec![
            cell(4096, 1, 1000.0, None),
            cell(4096, 8, 5000.0, None),
            cell(8192, 8, 9000.0, None),
        ]);
        assert_eq!(page_iops(&random), Some(5000.0));
        random.cells.push(cell(8192, 16, 6000.0, None));
        assert_eq!(page_iops(&random), Some(6000.0));
    }

    #[test]
    fn rate_of_pages_that_were_not_measured_is_predicted() {
        let mut random = matrix(Vec::new());
        assert_eq!(page_iops(&random), None);
        // 100 µs for the request, and 100 µs for its 4096 bytes.
        random.cost_model = Some(CostModel {
            base_ns: 0.0,
            request_ns: 100_000.0,
            bytes_per_second: 40.96e6,
            model_error: 0.0,
            cells_fitted: 10,
        });
        assert_eq!(page_iops(&random).map(f64::round), Some(5000.0));
    }
}
