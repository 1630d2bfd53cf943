//! How closely a run matches the observed load that it repeats (`--like`).

use super::run::short_run_id;
use diskproof_model::block::Block;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Access;
use diskproof_model::record::Record;
use diskproof_model::units::{format_bytes, format_percent, format_rate};

/// The load of all workloads of a run, which ran together: sums over their reads and writes, per
/// second.
#[derive(Default)]
struct MeasuredLoad {
    rate: f64,
    reads: f64,
    seeks: f64,
    bytes: f64,
    queue_depth: f64,
}

impl MeasuredLoad {
    fn from_record(record: &Record) -> Self {
        let mut load = Self::default();
        for measurement in &record.measurements {
            load.queue_depth += measurement.data.achieved_depth;
            let is_random = matches!(measurement.data.workload.access, Access::Random { .. });
            for (kind, op) in measurement.ops() {
                if !matches!(kind, OpKind::Read | OpKind::Write) {
                    continue;
                }
                let rate = op.figures.iops.value;
                load.rate += rate;
                load.bytes += op.figures.throughput.value;
                if kind == OpKind::Read {
                    load.reads += rate;
                }
                if is_random {
                    load.seeks += rate;
                }
            }
        }
        load
    }

    /// Divides a sum by the requests. 0 where nothing was measured, not NaN.
    fn per_request(&self, sum: f64) -> f64 {
        sum / self.rate.max(f64::MIN_POSITIVE)
    }
}

/// Compares a run with the load that it repeats; nothing for other runs.
pub(crate) fn blocks(record: &Record) -> Vec<Block> {
    let Some(like) = record.plan.like() else {
        return Vec::new();
    };
    let load = MeasuredLoad::from_record(record);
    let read_share = load.per_request(load.reads);
    let seek_share = load.per_request(load.seeks);
    let mean_bytes = load.per_request(load.bytes);
    let rows = vec![
        likeness_row("rate", like.rate, load.rate, rate_text),
        likeness_row("reads", like.read_share, read_share, format_percent),
        likeness_row("seeks", like.seek_share, seek_share, format_percent),
        likeness_row("mean size", like.block_mean_bytes, mean_bytes, bytes_text),
        likeness_row("in flight", like.queue_depth, load.queue_depth, depth_text),
    ];
    let run = short_run_id(&like.run_id);
    let heading = format!("compared with the load of {} in run {run}", like.device);
    vec![
        Block::Heading(heading),
        Block::table("Likeness", ["", "observed", "this run"], rows),
    ]
}

fn likeness_row(name: &str, observed: f64, measured: f64, text: fn(f64) -> String) -> Vec<String> {
    vec![name.to_owned(), text(observed), text(measured)]
}

fn rate_text(per_second: f64) -> String {
    format!("{}/s", format_rate(per_second))
}

fn bytes_text(bytes: f64) -> String {
    format_bytes(bytes.round() as u64)
}

fn depth_text(depth: f64) -> String {
    format!("{depth:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::observed::LikePlan;

    #[test]
    fn run_that_measured_nothing_has_no_negative_figures() {
        let mut record = crate::fixture::record();
        record.measurements.clear();
        record.plan.workload_task_mut().unwrap().like = Some(LikePlan {
            run_id: "01234567".to_owned(),
            device: "sda".to_owned(),
            rate: 100.0,
            read_share: 0.5,
            seek_share: 0.5,
            block_mean_bytes: 8192.0,
            queue_depth: 1.0,
        });
        let blocks = super::blocks(&record);
        let Block::Table(table) = &blocks[1] else {
            panic!("{blocks:?}");
        };
        let measured: Vec<&str> = table.rows.iter().map(|row| &*row.cells[2].text).collect();
        assert_eq!(measured, ["0/s", "0 %", "0 %", "0 B", "0.0"]);
    }
}
