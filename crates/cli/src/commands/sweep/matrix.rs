//! Plans the cells of a sweep: which workload each is, which belong to the coarse matrix, and which
//! the target cannot do. Pure.

use crate::flags::WriteBan;
use diskproof_model::plan::{Access, BlockShare, EngineChoice, Skipped, Span, Stop, Workload};
use diskproof_model::sweep::{SweepOperation, SweepPlan, SweepView, mixed_name, span_name};
use diskproof_model::units::format_bytes;

/// Buffers of all requests in flight take at most a quarter of the free memory.
const MEMORY_DIVISOR: u64 = 4;
/// Buffers of all requests in flight take at most this much, however much memory is free. Chosen,
/// not measured.
const MEMORY_BYTES_MAX: u64 = 4 << 30;
/// A span of fewer blocks has hardly any random offsets.
const BLOCKS_MIN: u64 = 16;
/// Distance between the starts of two blocks of a stride, in blocks.
const STRIDE_BLOCKS: u64 = 16;
/// The part that `reread` and `rewrite` repeat: it fits into the cache of any disk.
const REPEATED_BYTES: u64 = 16 << 20;
/// The smallest of mixed sizes, where the disk takes it.
const SECTOR_BYTES_MIN: u32 = 512;
/// The largest of mixed sizes, as in HD Tune.
const MIXED_BYTES_MAX: u32 = 1 << 20;
/// The least that a writing cell may write, in queues of its depth. Chosen, not measured.
const QUEUES_MIN: u64 = 8;
/// The usual warm-up; the campaign decides it for each slice.
const WARMUP_NS: u64 = 30_000_000;

/// The limits of the cells.
#[derive(Debug, Clone)]
pub(super) struct MatrixLimits {
    /// Size of the target, or of the scratch file in it.
    pub target_bytes: u64,
    /// The smallest request that the disk takes.
    pub sector_bytes: u32,
    /// Free memory of the machine, in bytes.
    pub memory_bytes: u64,
    /// The bytes that all writing cells together aim at. A cell writes [`QUEUES_MIN`] queues even
    /// where its share is less.
    pub write_bytes: u64,
    /// Time of all cells together.
    pub time_ns: u64,
    /// The precision that ends a cell.
    pub precision: f64,
    /// The engine that the user named.
    pub engine: Option<EngineChoice>,
    /// Why nothing may be written; `None` where cells may write.
    pub write_ban: Option<WriteBan>,
}

/// The cells of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    /// The workload of each cell, by operation, block size and depth; then the spans.
    pub cells: Vec<Workload>,
    /// The cells that are impossible.
    pub skipped: Vec<Skipped>,
}

impl Matrix {
    /// The cells of this plan, with their shares of the time and of the bytes to write.
    pub(super) fn from_plan(axes: &SweepPlan, limits: &MatrixLimits) -> Self {
        let mut matrix = Self {
            cells: Vec::new(),
            skipped: Vec::new(),
        };
        for operation in &axes.operations {
            for block_bytes in &axes.block_bytes {
                for depth in &axes.depths {
                    let why = why_impossible(*operation, *block_bytes, *depth, limits);
                    matrix.add(cell_workload(*operation, *block_bytes, *depth), why, limits);
                }
            }
        }
        if let Some(block_bytes) = diskproof_analysis::sweep::span_block_bytes(axes) {
            for span_bytes in &axes.span_bytes {
                let why = why_span_impossible(block_bytes, *span_bytes, limits);
                matrix.add(span_workload(block_bytes, *span_bytes), why, limits);
            }
        }
        if axes.view == Some(SweepView::RandomAccess) {
            for operation in &axes.operations {
                let why = why_impossible(*operation, MIXED_BYTES_MAX, 1, limits);
                matrix.add(mixed_workload(*operation, limits), why, limits);
            }
        }
        matrix.set_limits(limits);
        matrix
    }

    /// Adds a cell. Skips one that the target cannot do, and one that writes where nothing may be
    /// written.
    fn add(&mut self, workload: Workload, why_impossible: Option<String>, limits: &MatrixLimits) {
        if let Some(ban) = limits.write_ban
            && workload.writes()
        {
            self.skipped.push(ban.skipped(workload.name, ""));
        } else if let Some(why) = why_impossible {
            self.skipped.push(Skipped::new(workload.name, why));
        } else {
            self.cells.push(workload);
        }
    }

    /// Sets the engine of each cell, and its share of the time and of the bytes to write.
    fn set_limits(&mut self, limits: &MatrixLimits) {
        let cells = self.cells.len() as u64;
        let writers = self.cells.iter().filter(|cell| cell.writes()).count() as u64;
        let write_bytes = limits.write_bytes / writers.max(1);
        let time_ns = limits.time_ns / cells.max(1);
        let warmup_ns = WARMUP_NS.min(time_ns / 2);
        for workload in &mut self.cells {
            workload.warmup_ns = warmup_ns;
            workload.stop = Stop {
                precision: Some(limits.precision),
                time_ns: Some(time_ns - warmup_ns),
                bytes: None,
                ops: None,
            };
            if workload.writes() {
                let block = u64::from(workload.block_bytes);
                let least = block * u64::from(workload.depth) * QUEUES_MIN;
                workload.stop.bytes = Some(write_bytes.max(least) / block * block);
            }
            workload.engine = limits.engine.unwrap_or(EngineChoice::Auto);
        }
    }
}

/// The workload of a cell, without limits.
fn cell_workload(operation: SweepOperation, block_bytes: u32, depth: u32) -> Workload {
    let block = u64::from(block_bytes);
    let span_bytes = match operation {
        SweepOperation::Reread | SweepOperation::Rewrite => {
            Some(REPEATED_BYTES.max(block).next_multiple_of(block))
        }
        _ => None,
    };
    let random = Workload::named(&operation.cell_name(block_bytes, depth));
    Workload {
        streams: operation.streams(),
        access: match operation {
            SweepOperation::RandRead | SweepOperation::RandWrite | SweepOperation::RandRw => {
                random.access
            }
            SweepOperation::Backward => Access::Backward,
            SweepOperation::Stride => Access::Stride {
                stride_bytes: STRIDE_BLOCKS * block,
            },
            SweepOperation::Read
            | SweepOperation::Write
            | SweepOperation::Rw
            | SweepOperation::Reread
            | SweepOperation::Rewrite => Access::Sequential,
        },
        block_bytes,
        depth,
        span: Span::new(0, span_bytes),
        ..random
    }
}

/// Single random reads over the first part of the target.
fn span_workload(block_bytes: u32, span_bytes: u64) -> Workload {
    Workload {
        name: span_name(block_bytes, span_bytes),
        span: Span::new(0, Some(span_bytes)),
        ..cell_workload(SweepOperation::RandRead, block_bytes, 1)
    }
}

/// Single requests of sizes from a sector to 1 MiB, each as often as the others.
fn mixed_workload(operation: SweepOperation, limits: &MatrixLimits) -> Workload {
    let mut block_mix = Vec::new();
    let mut block_bytes = limits.sector_bytes.max(SECTOR_BYTES_MIN);
    while block_bytes <= MIXED_BYTES_MAX {
        block_mix.push(BlockShare::new(block_bytes, 1));
        block_bytes *= 2;
    }
    Workload {
        name: mixed_name(operation),
        block_mix,
        ..cell_workload(operation, MIXED_BYTES_MAX, 1)
    }
}

/// Says why the target cannot do a cell; `None` for one that it can.
fn why_impossible(
    operation: SweepOperation,
    block_bytes: u32,
    depth: u32,
    limits: &MatrixLimits,
) -> Option<String> {
    let block = u64::from(block_bytes);
    let sector = limits.sector_bytes.max(1);
    if !block_bytes.is_multiple_of(sector) {
        return Some(format!("the disk's sectors have {sector} bytes"));
    }
    let blocks = match operation {
        SweepOperation::Stride => BLOCKS_MIN * STRIDE_BLOCKS,
        _ => BLOCKS_MIN,
    };
    if block * blocks > limits.target_bytes {
        return Some(format!(
            "the target has {}, fewer than {blocks} blocks",
            format_bytes(limits.target_bytes)
        ));
    }
    // A mix has its own buffers for reads and for writes.
    let kinds = if operation.streams().is_mix() { 2 } else { 1 };
    let buffers = block * u64::from(depth) * kinds;
    let buffers_max = (limits.memory_bytes / MEMORY_DIVISOR).min(MEMORY_BYTES_MAX);
    if buffers > buffers_max {
        return Some(format!(
            "the requests in flight need {} of memory, more than {}",
            format_bytes(buffers),
            format_bytes(buffers_max)
        ));
    }
    None
}

/// Says why single random reads over a span cannot be measured; `None` where they can.
fn why_span_impossible(block_bytes: u32, span_bytes: u64, limits: &MatrixLimits) -> Option<String> {
    if u64::from(block_bytes) * BLOCKS_MIN > span_bytes {
        return Some(format!(
            "the span has {}, fewer than {BLOCKS_MIN} blocks",
            format_bytes(span_bytes)
        ));
    }
    why_impossible(SweepOperation::RandRead, block_bytes, 1, limits)
}

#[cfg(test)]
mod tests {
    use super::super::{DEFAULT_BLOCK_BYTES, DEFAULT_DEPTHS};
    use super::*;
    use diskproof_analysis::campaign::{SweepPass, SweepSetup};
    use diskproof_model::plan::{Plan, SkipCause};

    fn axes_of(operations: &[SweepOperation]) -> SweepPlan {
        SweepPlan {
            operations: operations.to_vec(),
            block_bytes: DEFAULT_BLOCK_BYTES.to_vec(),
            depths: DEFAULT_DEPTHS.to_vec(),
            span_bytes: vec![1 << 20, 1 << 30],
            view: None,
        }
    }

    fn limits() -> MatrixLimits {
        MatrixLimits {
            target_bytes: 1 << 30,
            sector_bytes: 512,
            memory_bytes: 8 << 30,
            write_bytes: 32 << 30,
            time_ns: 160_000_000_000,
            precision: 0.02,
            engine: None,
            write_ban: None,
        }
    }

    #[test]
    fn default_matrix_has_98_cells_and_a_coarse_one_of_24() {
        let operations = [SweepOperation::RandRead, SweepOperation::RandWrite];
        let matrix = Matrix::from_plan(&axes_of(&operations), &limits());
        assert_eq!(matrix.cells.len(), 98 + 2, "two spans");
        assert_eq!(matrix.skipped, []);
        let setup = SweepSetup::planned(&Plan::default(), &matrix.cells, &axes_of(&operations));
        let coarse = setup
            .cells
            .iter()
            .filter(|cell| cell.pass == SweepPass::Coarse)
            .count();
        assert_eq!(coarse, 2 * 3 * 4);
        let written: u64 = matrix
            .cells
            .iter()
            .filter_map(Workload::write_bytes_max)
            .sum();
        assert!((32 << 30..48 << 30).contains(&written), "{written}");
        let spans = &matrix.cells[98..];
        assert_eq!(spans[0].name, "randread-8k-d1-span1M");
        assert_eq!(spans[0].span.length_bytes, Some(1 << 20));
    }

    #[test]
    fn impossible_cells_say_why() {
        let read = SweepOperation::RandRead;
        let native = MatrixLimits {
            sector_bytes: 4096,
            ..limits()
        };
        let small = MatrixLimits {
            target_bytes: 8 << 20,
            ..limits()
        };
        assert_eq!(why_impossible(read, 4096, 1, &native), None);
        let sector = why_impossible(read, 512, 1, &native).unwrap();
        assert!(sector.contains("4096 bytes"), "{sector}");
        let memory = why_impossible(read, 64 << 20, 64, &limits()).unwrap();
        assert!(memory.contains("4 GiB"), "{memory}");
        assert!(memory.contains("2 GiB"), "{memory}");
        let blocks = why_impossible(read, 1 << 20, 1, &small).unwrap();
        assert!(blocks.contains("fewer than 16"), "{blocks}");
        let stride = why_impossible(SweepOperation::Stride, 64 << 10, 1, &small).unwrap();
        assert!(stride.contains("fewer than 256"), "{stride}");
    }

    #[test]
    fn write_ban_skips_what_writes_and_says_who_decided_it() {
        let axes = axes_of(&[SweepOperation::RandRead, SweepOperation::RandRw]);
        let unreleased = "a file is only read unless --overwrite releases it";
        for (ban, cause, why) in [
            (WriteBan::ReadOnlyFlag, SkipCause::User, "--read-only"),
            (
                WriteBan::Unreleased(unreleased),
                SkipCause::Target,
                unreleased,
            ),
        ] {
            let banned = MatrixLimits {
                write_ban: Some(ban),
                ..limits()
            };
            let matrix = Matrix::from_plan(&axes, &banned);
            assert!(matrix.cells.iter().all(|cell| !cell.writes()));
            assert_eq!(
                matrix.skipped.len(),
                DEFAULT_BLOCK_BYTES.len() * DEFAULT_DEPTHS.len()
            );
            for skipped in &matrix.skipped {
                assert_eq!((skipped.cause, skipped.why.as_str()), (cause, why));
            }
        }
    }

    #[test]
    fn span_of_few_blocks_is_skipped() {
        let axes = SweepPlan {
            block_bytes: vec![4 << 20],
            depths: vec![1],
            span_bytes: vec![1 << 20, 63 << 20, 64 << 20, 1 << 30],
            ..axes_of(&[SweepOperation::RandRead])
        };
        let matrix = Matrix::from_plan(&axes, &limits());
        let names: Vec<&str> = matrix.cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "randread-4M-d1",
                "randread-4M-d1-span64M",
                "randread-4M-d1-span1G"
            ]
        );
        let [smaller_than_a_block, too_few_blocks] = matrix.skipped.as_slice() else {
            panic!("{:?}", matrix.skipped);
        };
        assert_eq!(smaller_than_a_block.workload, "randread-4M-d1-span1M");
        assert!(too_few_blocks.why.contains("63 MiB, fewer than 16 blocks"));
    }

    #[test]
    fn repeated_operations_stay_on_one_span() {
        let repeated = cell_workload(SweepOperation::Rewrite, 8192, 4);
        assert_eq!(repeated.span.length_bytes, Some(16 << 20));
        assert!(repeated.writes() && repeated.access == Access::Sequential);
        let stride = cell_workload(SweepOperation::Stride, 8192, 1);
        assert_eq!(
            stride.access,
            Access::Stride {
                stride_bytes: 131_072
            }
        );
    }
}
