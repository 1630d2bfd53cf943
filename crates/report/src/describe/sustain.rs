//! A sustained load in words: the rate that lasts, the fall and its cause, the rate after pauses,
//! the steady state.

use crate::text::{glue, list};
use diskproof_model::block::{Block, Tone};
use diskproof_model::digits::{figure_text, rounded};
use diskproof_model::health::CountedDisk;
use diskproof_model::record::Record;
use diskproof_model::sustain::{
    BucketFigures, DropCause, Precondition, RateDrop, Recovery, SteadyState, SustainPlan,
    SustainRecord,
};
use diskproof_model::units::{counted, format_bytes, format_duration, format_percent, format_rate};

/// The cause of a fall that may have another reason than the disk.
const DOUBTFUL: &str = "undecided; it may not be the disk, because other programs used it, the \
                        processors were busy, or memory answered (see the warnings), or because \
                        the load came to slower places of a rotating disk";

/// Describes the load as facts in the order in which it happened.
pub(crate) fn blocks(record: &Record, sustain: &SustainRecord) -> Vec<Block> {
    let mut facts = vec![("sustained", lasting_text(sustain))];
    if let Some(drop) = &sustain.drop {
        facts.push(("fall", drop_text(drop)));
        facts.push(("cause", cause_text(record, sustain, drop)));
    } else if let Some(doubtful) = &sustain.doubtful_drop {
        facts.push(("fall", drop_text(doubtful)));
        facts.push(("cause", DOUBTFUL.to_owned()));
    } else {
        facts.push(("fall", no_drop_text(sustain)));
    }
    if let Some(bucket) = &sustain.bucket {
        facts.push(("bucket", bucket_text(record, bucket)));
    }
    for recovery in &sustain.recoveries {
        facts.push(("recovery", recovery_text(recovery)));
    }
    if sustain.drop.is_some() && sustain.recoveries.is_empty() {
        let text = "not measured: the load ended before its pauses".to_owned();
        facts.push(("recovery", text));
    }
    facts.push(("steady", steady_text(&sustain.steady_state)));
    if let Some(precondition) = &sustain.precondition {
        facts.push(("filled", precondition_text(precondition)));
    }
    for disk in &sustain.counted {
        facts.push(("disk", counted_text(disk)));
    }
    let mut blocks: Vec<Block> = Block::facts(facts).collect();
    if let Some(precondition) = &sustain.precondition
        && !precondition.is_complete()
    {
        let text = "the precondition is incomplete; the load began on a disk that is not full";
        blocks.push(Block::text(Tone::Warning, text));
    }
    blocks
}

fn lasting_text(sustain: &SustainRecord) -> String {
    format!(
        "{}; {} moved in {}",
        sustain.lasting.text(),
        glue(&format_bytes(sustain.moved.bytes)),
        format_duration(sustain.time_ns)
    )
}

fn drop_text(drop: &RateDrop) -> String {
    let factor = match drop.factor() {
        Some(factor) => format!("{} ×", rounded(factor, None)),
        None => "it stopped".to_owned(),
    };
    format!(
        "after {} and {}: from {} to {} ({factor})",
        format_duration(drop.at_ns),
        glue(&format_bytes(drop.moved.bytes)),
        figure_text(drop.before, None, "1/s"),
        figure_text(drop.after, None, "1/s"),
    )
}

fn no_drop_text(sustain: &SustainRecord) -> String {
    let tested = sustain.tested_credit();
    format!(
        "none; a credit of more than {} or {} would not have shown",
        counted(tested.requests, "request"),
        glue(&format_bytes(tested.bytes))
    )
}

fn cause_text(record: &Record, sustain: &SustainRecord, drop: &RateDrop) -> String {
    match drop.cause {
        DropCause::BurstCredit => {
            "a limiter with a burst credit: the rate after the fall is even, and all that passed \
             later fits its refill"
                .to_owned()
        }
        DropCause::WriteCache => {
            "a write cache: the load only wrote, and was fast again after a pause. A burst credit \
             can look the same; a load that reads (--rw randread) tells"
                .to_owned()
        }
        DropCause::Heat => {
            "heat: the disk counted that it throttled itself during the run".to_owned()
        }
        DropCause::ControlGroup => "the limit of the control group".to_owned(),
        DropCause::Link => "the link to the disk became slower during the run".to_owned(),
        DropCause::VolumeLimit => "the volume reports that its limit was exceeded".to_owned(),
        DropCause::InstanceLimit => {
            "the volume reports that the limit of the instance was exceeded".to_owned()
        }
        DropCause::Unknown => unknown_text(record, sustain),
    }
}

/// Lists the possible causes of a fall without proof of one.
fn unknown_text(record: &Record, sustain: &SustainRecord) -> String {
    let load = record
        .plan
        .workloads()
        .iter()
        .find(|workload| workload.name == sustain.workload);
    let writes = match load {
        Some(workload) => workload.writes(),
        None => false,
    };
    let mut possible = Vec::new();
    if writes {
        possible.push("a full write cache");
        possible.push("flash without free blocks");
    }
    possible.push("a used-up credit");
    possible.push("heat");
    format!("unknown; nothing proves one of {}", list(possible))
}

fn bucket_text(record: &Record, bucket: &BucketFigures) -> String {
    // The load runs on the first target.
    let unit = match record.only_request_bytes(0) {
        Some(bytes) => format!(
            "; all requests had {}, so it may count requests or bytes",
            glue(&format_bytes(u64::from(bytes)))
        ),
        None => String::new(),
    };
    format!(
        "{} for ever, {} with credit; the credit is {}{}, which refills in {}{unit}",
        bucket.base.text(),
        bucket.burst.text(),
        if bucket.credit_is_lower_bound {
            "at least "
        } else {
            ""
        },
        amount_text(bucket),
        format_duration(bucket.refill.value as u64)
    )
}

/// `2.3 M ± 10 k requests`
fn amount_text(bucket: &BucketFigures) -> String {
    let credit = &bucket.credit;
    if credit.unit == "B" {
        let text = glue(&format_bytes(credit.value as u64));
        return match credit.half_width_95 {
            Some(half_width) => format!("{text} ± {}", glue(&format_bytes(half_width as u64))),
            None => text,
        };
    }
    let text = format_rate(credit.value);
    match credit.half_width_95 {
        Some(half_width) => format!("{text} ± {} requests", format_rate(half_width)),
        None => format!("{text} requests"),
    }
}

fn recovery_text(recovery: &Recovery) -> String {
    let pause = glue(&format_duration(recovery.pause_ns));
    let answer = if recovery.is_back { "back" } else { "not back" };
    let lasted = match &recovery.lasted {
        Some(moved) => format!(", for {}", glue(&format_bytes(moved.bytes))),
        None => String::new(),
    };
    format!(
        "after {pause} without load: {answer}, {}{lasted}",
        figure_text(recovery.iops, None, "1/s")
    )
}

/// Says whether the rate was steady. The five rounds, the 20 % and the 10 % are those of SNIA's
/// Solid State Storage Performance Test Specification, by which `analysis` decides.
fn steady_text(state: &SteadyState) -> String {
    let rounds = format!(
        "{} of {}",
        counted(state.rounds, "round"),
        format_duration(state.round_ns)
    );
    let (Some(range), Some(slope)) = (state.range, state.slope) else {
        let more = format_duration(state.more_ns.unwrap_or(0));
        if state.rounds == 0 {
            let round = format_duration(state.round_ns);
            return format!("not known: no whole round of {round}; five are needed, {more} more");
        }
        return format!("{rounds}; five are needed, {more} more");
    };
    let figures = format!(
        "range {}, slope {} of the last five",
        format_percent(range),
        format_percent(slope.abs())
    );
    if state.is_steady {
        let since = match state.reached_at {
            Some(round) => format!("since round {round}"),
            None => "now".to_owned(),
        };
        format!("yes, {since} ({rounds}; {figures})")
    } else {
        format!(
            "no ({rounds}; {figures}; at most 20 % and 10 %); at least {} and {} more",
            format_duration(state.more_ns.unwrap_or(0)),
            glue(&format_bytes(state.more_bytes.unwrap_or(0)))
        )
    }
}

fn precondition_text(precondition: &Precondition) -> String {
    let counted = match precondition.counted_bytes {
        Some(bytes) => format!("; the disk counted {}", glue(&format_bytes(bytes))),
        None => "; the disk does not report what it counted".to_owned(),
    };
    format!(
        "{} of {} written at random before the load{counted}",
        glue(&format_bytes(precondition.written_bytes)),
        glue(&format_bytes(precondition.needed_bytes))
    )
}

/// `nvme0n1: 35 and 41 °C before, 62 and 70 °C after; throttled 3 times; 1.4 TB written; 4 % → 4 %
/// of endurance used`
fn counted_text(disk: &CountedDisk) -> String {
    let (before, after) = (&disk.before, &disk.after);
    let mut parts = Vec::new();
    if !before.temperatures_celsius.is_empty() && !after.temperatures_celsius.is_empty() {
        parts.push(format!(
            "{} °C before, {} °C after",
            degrees(&before.temperatures_celsius),
            degrees(&after.temperatures_celsius)
        ));
    }
    if let (Some(earlier), Some(later)) = (before.throttles, after.throttles) {
        let times = later.saturating_sub(earlier);
        parts.push(format!("throttled {}", counted(times, "time")));
    } else {
        parts.push("no counter of throttling".to_owned());
    }
    if let (Some(earlier), Some(later)) = (before.hot_minutes, after.hot_minutes)
        && later > earlier
    {
        parts.push(format!(
            "{} min above its warning temperature",
            later - earlier
        ));
    }
    if let Some(bytes) = disk.written_bytes() {
        parts.push(format!("{} written", glue(&format_bytes(bytes))));
    }
    if let (Some(earlier), Some(later)) = (before.wear_percent, after.wear_percent) {
        parts.push(format!(
            "endurance used {earlier} % before, {later} % after"
        ));
    }
    if let Some(exceeded) = disk.exceeded() {
        parts.push(format!(
            "limit exceeded for {} (volume) and {} (instance)",
            format_duration(1000 * exceeded.volume_iops_us.max(exceeded.volume_throughput_us)),
            format_duration(
                1000 * exceeded
                    .instance_iops_us
                    .max(exceeded.instance_throughput_us)
            )
        ));
    }
    format!("{}: {}", disk.disk, list(parts))
}

/// `35/41`
fn degrees(sensors: &[i32]) -> String {
    let texts: Vec<String> = sensors.iter().map(i32::to_string).collect();
    texts.join("/")
}

/// Describes what a plan does in addition to its load, in one sentence.
pub(crate) fn planned_text(sustain: &SustainPlan) -> String {
    let pauses: Vec<String> = sustain
        .pauses_ns
        .iter()
        .map(|ns| glue(&format_duration(*ns)))
        .collect();
    let mut text = format!("rounds of {}", glue(&format_duration(sustain.round_ns)));
    if !pauses.is_empty() {
        text.push_str(&format!(
            "; after a fall pauses of {}, each followed by the load",
            list(pauses)
        ));
    }
    if let Some(bytes) = sustain.precondition_bytes {
        text.push_str(&format!(
            "; before it {} are written at random",
            glue(&format_bytes(bytes))
        ));
    }
    if let Some(bytes) = sustain.budget_bytes {
        text.push_str(&format!("; at most {} moved", glue(&format_bytes(bytes))));
    }
    if let Some(share) = sustain.stop_at_drop {
        text.push_str(&format!(
            "; ends once the rate fell by more than {}",
            format_percent(share)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_without_pauses_names_none() {
        let mut plan = SustainPlan {
            round_ns: 2_800_000_000,
            pauses_ns: Vec::new(),
            precondition_bytes: None,
            stop_at_drop: None,
            budget_bytes: None,
        };
        assert!(!planned_text(&plan).contains("pause"));
        plan.pauses_ns.push(30_000_000_000);
        assert!(planned_text(&plan).contains("pause"));
    }
}
