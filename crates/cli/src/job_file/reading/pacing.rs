//! Reads the start times of requests: rates, pauses, delays, shares of a flow.

use super::operations::{number_part, numbers_of_list};
use super::reader::JobReader;
use super::values::GivenValue;
use crate::job_file::jobs::{BLOCK_BYTES_DEFAULT, FioJob};
use crate::job_file::translation::Translated;
use crate::workload::{Rate, ReadShare, WorkloadFlags};
use diskproof_model::op::OpKind;
use diskproof_model::plan::BlockShare;
use diskproof_model::rw::Rw;
use diskproof_model::shape::{Arrivals, FloorUnit, FlowShare, KindRate, ThinkCount, ThinkTime};

/// A rate may differ from that of the job by this part of it, because shares of reads are whole
/// permille.
const RATE_DEVIATION_MAX: f64 = 0.01;
/// Shares of reads are thousandths.
const PERMILLE: f64 = 1000.0;
/// `flow_sleep` is in microseconds.
const MICROSECOND_NS: u64 = 1000;
/// The values of `rate_process`.
const ARRIVALS: [(&str, Arrivals); 2] =
    [("linear", Arrivals::Even), ("poisson", Arrivals::Poisson)];
/// The values of `thinktime_blocks_type`.
const THINK_COUNTS: [(&str, ThinkCount); 2] = [
    ("complete", ThinkCount::Completed),
    ("issue", ThinkCount::Started),
];

/// A list of rates, one for each direction.
#[derive(Clone, Copy)]
struct GivenRates<'a> {
    value: GivenValue<'a>,
    unit: FloorUnit,
    arrivals: Arrivals,
}

impl GivenRates<'_> {
    /// The rate of a kind of operation; 0 without one.
    fn rate(&self, kind: OpKind) -> Translated<u64> {
        match number_part(self.value.text, kind) {
            "" => Ok(0),
            text => self.value.size(text),
        }
    }

    /// The bytes of a kind per second in a job with these sizes. As in fio, operations count as if
    /// they had the smallest size.
    fn bytes_per_second(&self, kind: OpKind, flags: &WorkloadFlags) -> Translated<f64> {
        let rate = self.rate(kind)? as f64;
        Ok(match self.unit {
            FloorUnit::Bytes => rate,
            FloorUnit::Ops => rate * smallest_block(kind, flags),
        })
    }

    /// The operations of a kind per second in a job with these sizes. As in fio, only even starts
    /// wait longer after larger ones.
    fn ops_per_second(&self, kind: OpKind, flags: &WorkloadFlags) -> Translated<f64> {
        let bytes = self.bytes_per_second(kind, flags)?;
        Ok(match self.arrivals {
            Arrivals::Even => bytes / mean_block(kind, flags),
            Arrivals::Poisson => bytes / smallest_block(kind, flags),
        })
    }
}

/// The smallest size of the operations of a kind.
fn smallest_block(kind: OpKind, flags: &WorkloadFlags) -> f64 {
    let sizes = if kind == OpKind::Write && !flags.other_sizes.is_empty() {
        flags
            .other_sizes
            .iter()
            .map(|share| share.block_bytes)
            .min()
    } else {
        flags.sizes().min()
    };
    f64::from(sizes.unwrap_or(BLOCK_BYTES_DEFAULT))
}

/// The average size of the operations of a kind.
fn mean_block(kind: OpKind, flags: &WorkloadFlags) -> f64 {
    if kind == OpKind::Write && !flags.other_sizes.is_empty() {
        return mean_of_shares(&flags.other_sizes);
    }
    match (&flags.bs, &flags.bssplit) {
        (Some(block), _) => f64::from(block.0),
        (None, Some(split)) => mean_of_shares(&split.0),
        (None, None) => f64::from(BLOCK_BYTES_DEFAULT),
    }
}

fn mean_of_shares(shares: &[BlockShare]) -> f64 {
    let mut bytes = 0.0;
    let mut weights = 0.0;
    for share in shares {
        bytes += f64::from(share.block_bytes) * f64::from(share.weight);
        weights += f64::from(share.weight);
    }
    bytes / weights
}

impl<'a> JobReader<'a> {
    /// The rates of `rate` or `rate_iops`; fails for both.
    fn given_rates(&self) -> Translated<Option<GivenRates<'a>>> {
        let bytes = self.value("rate")?;
        let ops = self.value("rate_iops")?;
        let arrivals = self.choice("rate_process", &ARRIVALS)?;
        let arrivals = arrivals.unwrap_or(Arrivals::Even);
        if let Some(value) = ops {
            if bytes.is_some() {
                return Err(value.error("rate and rate_iops exclude each other; use one of them"));
            }
            return Ok(Some(GivenRates {
                value,
                unit: FloorUnit::Ops,
                arrivals,
            }));
        }
        Ok(bytes.map(|value| GivenRates {
            value,
            unit: FloorUnit::Bytes,
            arrivals,
        }))
    }

    /// True if a mix of reads and writes has a rate with even starts for each of the two, or for
    /// none.
    pub(super) fn has_even_rates_of_all_kinds(&self, rw: Rw) -> Translated<bool> {
        let Some(rates) = self.given_rates()? else {
            return Ok(true);
        };
        let has_reads = rates.rate(OpKind::Read)? > 0;
        let has_writes = rates.rate(OpKind::Write)? > 0;
        Ok(rates.arrivals == Arrivals::Even && has_reads == has_writes && !rw.makes(OpKind::Trim))
    }

    /// The bytes per second of a kind of operation whose smallest size this is: as in fio,
    /// `rate_iops` counts its operations as if they had that size. 0 without a rate, and where the
    /// starts are not even.
    pub(super) fn paced_bytes_of(&self, kind: OpKind, smallest: u32) -> Translated<u64> {
        let Some(rates) = self.given_rates()? else {
            return Ok(0);
        };
        match (rates.arrivals, rates.unit) {
            (Arrivals::Poisson, _) => Ok(0),
            (Arrivals::Even, FloorUnit::Bytes) => rates.rate(kind),
            (Arrivals::Even, FloorUnit::Ops) => {
                Ok(rates.rate(kind)?.saturating_mul(u64::from(smallest)))
            }
        }
    }
}

/// `rate` and `rate_iops`: the operations per second of one copy. As in fio, each direction has
/// its rate whatever the mix is, so the share of the reads follows from the rates.
pub(super) fn set_rate(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let Some(rates) = reader.given_rates()? else {
        return Ok(());
    };
    // Also the rate of a direction that the job does not have.
    for text in numbers_of_list(rates.value.text).map(str::trim) {
        if !text.is_empty() {
            rates.value.size(text)?;
        }
    }
    let rw = job.rw();
    if job.flags.bssplit.is_some() {
        reader.note(
            "a rate counts bytes, and rate_iops as if all requests had the smallest size, as in \
             fio. Requests of several sizes start at the intervals of their average; fio waits \
             longer after larger ones",
        );
        if !rw.is_mix() && rates.arrivals == Arrivals::Even {
            job.requests.byte_rate = Some(rates.bytes_per_second(rw.first(), &job.flags)?);
        }
    }
    let rate = if rw.is_mix() {
        set_mixed_rates(reader, rates, job)?
    } else {
        rates.ops_per_second(rw.first(), &job.flags)?
    };
    if rate > 0.0 {
        job.flags.rate = Some(Rate(rate));
        reader.note(
            "a rate starts requests on schedule, even while earlier ones are in flight; latency \
             counts from the intended start",
        );
    }
    Ok(())
}

/// Sets the share of the reads of a mix, and returns the sum of its rates.
fn set_mixed_rates(
    reader: &JobReader<'_>,
    rates: GivenRates<'_>,
    job: &mut FioJob,
) -> Translated<f64> {
    let reads = rates.ops_per_second(OpKind::Read, &job.flags)?;
    let writes = rates.ops_per_second(OpKind::Write, &job.flags)?;
    if (reads == 0.0) != (writes == 0.0) {
        set_rate_of_one_kind(reader, rates, reads, writes, job)?;
        return Ok(0.0);
    }
    if reads > 0.0 {
        let Some(share) = share_of_rates(reads, writes) else {
            return Err(rates.value.error(
                "the rates of reads and writes differ too much for one workload; write two \
                 concurrent sections",
            ));
        };
        job.flags.rwmixread = Some(share);
        if reader.has_fio_order()? {
            // The order says which direction is next, and so the mean size of the requests.
            let read_bytes = rates.bytes_per_second(OpKind::Read, &job.flags)?;
            let write_bytes = rates.bytes_per_second(OpKind::Write, &job.flags)?;
            job.requests.byte_rate = Some(read_bytes + write_bytes);
        } else {
            // Each direction has a schedule of its own; the two have a common multiple.
            job.flags.shape.order.even_mix = rates.arrivals == Arrivals::Even;
        }
    }
    Ok(reads + writes)
}

/// Sets the rate of the one direction of a mix that has one. As in fio, the other direction goes on
/// where no request of this one is due.
fn set_rate_of_one_kind(
    reader: &JobReader<'_>,
    rates: GivenRates<'_>,
    reads: f64,
    writes: f64,
    job: &mut FioJob,
) -> Translated<()> {
    let rw = job.rw();
    let is_of_reads_and_writes =
        rw.makes(OpKind::Read) && rw.makes(OpKind::Write) && !rw.makes(OpKind::Trim);
    if !is_of_reads_and_writes || job.flags.verify == Some(true) {
        return Err(rates.value.error(
            "a rate for only one direction is supported in mixes of reads and writes without \
             verify; write two concurrent sections",
        ));
    }
    let (kind, per_second) = if reads > 0.0 {
        (OpKind::Read, reads)
    } else {
        (OpKind::Write, writes)
    };
    job.flags.shape.starts.kind_rate = Some(KindRate { kind, per_second });
    reader.note(
        "a rate of one direction limits its requests only; the other direction goes on where none \
         of them is due",
    );
    Ok(())
}

/// The share of the reads with which both rates are kept; `None` where no whole permille keeps
/// them.
fn share_of_rates(reads: f64, writes: f64) -> Option<ReadShare> {
    let sum = reads + writes;
    let permille = (reads / sum * PERMILLE).round();
    let kept_reads = sum * permille / PERMILLE;
    let kept_writes = sum * (PERMILLE - permille) / PERMILLE;
    if is_kept(reads, kept_reads) && is_kept(writes, kept_writes) {
        Some(ReadShare(permille as u16))
    } else {
        None
    }
}

fn is_kept(wanted: f64, kept: f64) -> bool {
    (kept - wanted).abs() <= RATE_DEVIATION_MAX * wanted
}

/// `rate_process`: even or random distances between the starts.
pub(super) fn set_arrivals(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let arrivals = reader.choice("rate_process", &ARRIVALS)?;
    if arrivals == Some(Arrivals::Poisson) && !has_rate(reader) {
        reader
            .translation
            .ignore_option("rate_process", WITHOUT_RATE);
        return Ok(());
    }
    job.flags.shape.starts.arrivals = arrivals.unwrap_or(Arrivals::Even);
    Ok(())
}

/// Why an option about the starts of a rate is ignored in a job without one, as fio does.
const WITHOUT_RATE: &str = "no effect without a rate";

fn has_rate(reader: &JobReader<'_>) -> bool {
    reader.is_set("rate") || reader.is_set("rate_iops")
}

/// `thinktime`: pauses between requests.
pub(super) fn set_think_time(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let pause_ns = reader.short_time("thinktime")?;
    if pause_ns == 0 {
        return Ok(());
    }
    if reader.flag("rate_ignore_thinktime")? && has_rate(reader) {
        return Err(reader.error(
            "rate_ignore_thinktime",
            "requests that are due during a pause always start after it; remove the option",
        ));
    }
    let counted = reader.choice("thinktime_blocks_type", &THINK_COUNTS)?;
    let busy_ns = match reader.time("thinktime_iotime")? {
        0 => None,
        ns => Some(ns),
    };
    let pause_ops = if busy_ns.is_some() && !reader.is_set("thinktime_blocks") {
        0
    } else {
        reader.bytes("thinktime_blocks", 1)?.max(1)
    };
    job.flags.shape.starts.think = Some(ThinkTime {
        pause_ns,
        pause_ops,
        counted: counted.unwrap_or(ThinkCount::Completed),
        busy_ns,
    });
    Ok(())
}

/// `startdelay`.
pub(super) fn set_start_delay(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.flags.shape.starts.delay_ns = reader.time("startdelay")?;
    Ok(())
}

/// `flow`, `flow_id` and `flow_sleep`, which is in microseconds.
pub(super) fn set_flow(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let share = FlowShare {
        number: reader.small_number("flow_id")?,
        weight: reader.small_number("flow")?,
        pause_ns: u64::from(reader.small_number("flow_sleep")?) * MICROSECOND_NS,
    };
    if share.weight > 0 {
        job.flags.shape.starts.flow = Some(share);
    }
    Ok(())
}
