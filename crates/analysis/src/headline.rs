//! The headline of a verdict: the answer of a run in a sentence, or its first figures.
//! docs/verdict.md explains it.

use crate::accept::words;
use crate::limiter::words::{amount_text, credit_text, limit_text};
use crate::load::load_clause;
use crate::rays::rays_clause;
use crate::words::{sentence, uncapitalised};
use diskproof_model::digits::{figure_text, rounded};
use diskproof_model::files::{FileOperation, FileStep};
use diskproof_model::finding::{Cause, Meaning};
use diskproof_model::layers::{CostMeaning, LayerCost, LayerDifference, LayersPlan};
use diskproof_model::measurement::{OpKind, VerifyResult};
use diskproof_model::observed::ObservedDevice;
use diskproof_model::ping::PingFigures;
use diskproof_model::proof::{FigureSource, Objection};
use diskproof_model::record::{ExpectationOutcome, Record};
use diskproof_model::row::Row;
use diskproof_model::surface::SeekPattern;
use diskproof_model::sweep::SweepMatrix;
use diskproof_model::target::TargetKind;
use diskproof_model::units::{
    counted, format_bytes, format_duration, format_latency, format_percent,
};
use diskproof_model::verdict::{Grade, UseGrade};

/// The factor of a fall is known to this share.
const FACTOR_KNOWN: f64 = 0.02;
/// Figures in the headline of a run without grades: the table follows.
const CLAUSES_MAX: usize = 3;
/// Operations of a sweep in the headline: the answers of all follow.
const MATRICES_MAX: usize = 2;
/// Operations on files in the headline: the table of all follows.
const HEADLINE_OPERATIONS: [FileOperation; 3] = [
    FileOperation::Create,
    FileOperation::Read,
    FileOperation::Delete,
];

/// Fit, not fit or undecided.
pub(crate) fn fitness_headline(record: &Record) -> Option<String> {
    let profile = record.plan.questions.fit_for.as_ref()?;
    let missed = expressions(record, ExpectationOutcome::Missed);
    if !missed.is_empty() {
        let missed = enumerated(&missed);
        return Some(format!("Not fit for {profile}: missed {missed}."));
    }
    let undecided = expressions(record, ExpectationOutcome::Undecided);
    if !undecided.is_empty() {
        let undecided = enumerated(&undecided);
        return Some(format!(
            "Undecided for {profile}: the intervals do not decide {undecided}."
        ));
    }
    let limits = match record.expectations.len() {
        0 => return Some(format!("Undecided for {profile}: nothing was measured.")),
        1 => "its limit is".to_owned(),
        2 => "both limits are".to_owned(),
        count => format!("all {count} limits are"),
    };
    Some(format!("Fit for {profile}: {limits} met."))
}

/// The thresholds with this outcome, as given.
fn expressions(record: &Record, outcome: ExpectationOutcome) -> Vec<&str> {
    record
        .expectations
        .iter()
        .filter(|one| one.outcome() == outcome)
        .map(|one| one.expression.as_str())
        .collect()
}

/// `Good for scans and commits; limited for look-ups; poor for bulk load.`
pub(crate) fn graded_headline(grades: &[UseGrade]) -> String {
    let mut clauses = Vec::new();
    for grade in [Grade::Good, Grade::Limited, Grade::Poor] {
        let uses = uses_of_grade(grades, Some(grade));
        if !uses.is_empty() {
            clauses.push(format!("{} for {}", grade.as_str(), enumerated(&uses)));
        }
    }
    let ungraded = uses_of_grade(grades, None);
    if !ungraded.is_empty() {
        clauses.push(format!("not graded: {}", enumerated(&ungraded)));
    }
    sentence(&clauses.join("; "))
}

fn uses_of_grade(grades: &[UseGrade], grade: Option<Grade>) -> Vec<&str> {
    grades
        .iter()
        .filter(|one| one.grade == grade)
        .map(|one| one.name.as_str())
        .collect()
}

/// The first figures themselves, where nothing is graded.
pub(crate) fn plain_headline(record: &Record) -> String {
    if let Some(accept) = record.accept() {
        return words::headline(accept);
    }
    let mut clauses = survey_clauses(record);
    if let Some(sweep) = record.sweep() {
        clauses.extend(
            sweep
                .matrices
                .iter()
                .take(MATRICES_MAX)
                .flat_map(matrix_clause),
        );
    }
    clauses.extend(latency_search_clause(record));
    clauses.extend(sustain_clause(record));
    clauses.extend(load_clause(record));
    clauses.extend(rays_clause(record));
    clauses.extend(files_clause(record));
    clauses.extend(layers_clause(record));
    clauses.extend(observed_clauses(record));
    if clauses.is_empty() {
        for m in trusted_measurements(record) {
            clauses.extend(measurement_clauses(m));
        }
        clauses.truncate(CLAUSES_MAX);
    }
    if clauses.is_empty() {
        "Nothing was measured.".to_owned()
    } else {
        sentence(&clauses.join("; "))
    }
}

/// The measurements whose commits are durable; all where there are no such.
fn trusted_measurements(record: &Record) -> Vec<&Row> {
    let mut trusted = Vec::new();
    for (index, m) in record.measurements.iter().enumerate() {
        if !may_be_lost(record, index) {
            trusted.push(m);
        }
    }
    if trusted.is_empty() {
        trusted.extend(&record.measurements);
    }
    trusted
}

/// Whether commits of a measurement may return before their data is durable.
fn may_be_lost(record: &Record, index: usize) -> bool {
    let lost = Meaning::NotTheDisk {
        cause: Cause::NotDurable,
    };
    record
        .findings
        .iter()
        .any(|finding| finding.says == lost && finding.concerns(index))
}

fn survey_clauses(record: &Record) -> Vec<String> {
    let Some(surface) = record.surface() else {
        return Vec::new();
    };
    let mut clauses = Vec::new();
    if let Some(rate) = &surface.figures.rate {
        let verb = match surface.data.survey.operation {
            OpKind::Write => "writes",
            _ => "reads",
        };
        let half_width = rate.average.half_width_95;
        clauses.push(format!(
            "{verb} {} on average, between {} and {} by position",
            rate.average.value_text(),
            figure_text(rate.min, half_width, "B/s"),
            figure_text(rate.max, half_width, "B/s"),
        ));
    }
    if let Some(seek) = surface.figures.seeks.get(&SeekPattern::Random) {
        let mean = seek.mean.value_text();
        clauses.push(format!("a random access takes {mean} on average"));
    }
    if let Some(scan) = &surface.data.scan {
        let blocks = counted(scan.blocks, "block");
        clauses.push(match (scan.unreadable_bytes, scan.slow_blocks) {
            (0, 0) => format!("the scan read {blocks} without an error"),
            (0, slow) => format!("{slow} of {blocks} read slowly"),
            (bytes, slow) => format!(
                "{} could not be read, and {slow} of {blocks} read slowly",
                format_bytes(bytes)
            ),
        });
    }
    clauses
}

/// `12,300 creates/s, 160,000 stats/s and 21,000 deletes/s of files`, of the first order.
fn files_clause(record: &Record) -> Option<String> {
    let steps = &record.files()?.steps;
    let order = steps.first()?.data.step.order;
    let mut figures = Vec::new();
    for operation in HEADLINE_OPERATIONS {
        let step = FileStep { operation, order };
        if let Some(known) = steps.iter().find(|known| known.data.step == step)
            && known.data.op.count > 0
        {
            let rate = rounded(known.figures.iops.value, known.figures.iops.half_width_95);
            figures.push(format!("{rate} {}s/s", operation.as_str()));
        }
    }
    if figures.is_empty() {
        return None;
    }
    Some(format!("{} of files", enumerated(&figures)))
}

/// `observed on sda: 1230 reads/s and 45 writes/s, 83 % of them seeks`, of the busiest devices.
fn observed_clauses(record: &Record) -> Vec<String> {
    let Some(observed) = record.observed() else {
        return Vec::new();
    };
    let mut busy: Vec<&ObservedDevice> = observed
        .devices
        .iter()
        .filter(|device| device.requests() > 0)
        .collect();
    if busy.is_empty() {
        return vec!["no device had a request".to_owned()];
    }
    busy.sort_by(|one, other| other.rate().total_cmp(&one.rate()));
    busy.truncate(CLAUSES_MAX);
    busy.into_iter().map(device_clause).collect()
}

fn device_clause(device: &ObservedDevice) -> String {
    let mut rates = Vec::new();
    for (kind, op) in &device.ops {
        let rate = rounded(op.iops.value, op.iops.half_width_95);
        rates.push(format!("{rate} {}s/s", kind.as_str()));
    }
    let seeks = format_percent(device.seek_share().unwrap_or(0.0));
    let (name, rates) = (&device.name, enumerated(&rates));
    format!("observed on {name}: {rates}, {seeks} of them seeks")
}

/// `random read up to 66,400/s and 3070 MB/s, knee at depth 8, bandwidth limits from 128 KiB`
fn matrix_clause(matrix: &SweepMatrix) -> Option<String> {
    let iops = matrix.best_iops()?.iops.as_ref()?.value_text();
    let throughput = matrix.best_throughput()?.throughput.as_ref()?.value_text();
    let mut clause = format!("{} up to {iops} and {throughput}", matrix.operation.words());
    if let Some(knee) = &matrix.knee {
        let (low, high) = (knee.depth_low, knee.depth_high);
        let depths = match high {
            Some(high) if high == low => knee.depth.to_string(),
            Some(high) => format!("{low} to {high}"),
            None => format!("{low} or more"),
        };
        clause.push_str(&format!(", knee at depth {depths}"));
    }
    if let Some(limit) = &matrix.bandwidth_limit {
        let from = format_bytes(u64::from(limit.block_bytes));
        let low = format_bytes(u64::from(limit.block_bytes_low));
        let range = match limit.block_bytes_high {
            Some(high) if high == limit.block_bytes_low => String::new(),
            Some(high) => format!(" ({low} to {})", format_bytes(u64::from(high))),
            None => format!(" ({low} or more)"),
        };
        clause.push_str(&format!(", bandwidth limits from {from} on{range}"));
    }
    Some(clause)
}

fn measurement_clauses(m: &Row) -> Vec<String> {
    if let Some(ping) = &m.figures.ping {
        return ping_clauses(ping);
    }
    let name = &m.data.workload.name;
    let mut clauses = Vec::new();
    for (kind, op) in m.headline_ops() {
        clauses.push(if op.figures.iops.is_unknown() {
            let (kind, time) = (kind.as_str(), format_duration(m.data.wall_ns));
            format!("{name}: undecided, no {kind} completed within {time}")
        } else {
            format!(
                "{name}: {} at {} ({})",
                kind.plural(),
                op.figures.iops.value_text(),
                op.figures.throughput.value_text()
            )
        });
    }
    clauses
}

/// `a read takes 131 µs ± 4 µs on average`, with idle times `… right after another`.
fn ping_clauses(ping: &PingFigures) -> Vec<String> {
    let has_commits = ping.latency.contains_key(&OpKind::Commit);
    let mut clauses = Vec::new();
    for (kind, latency) in &ping.latency {
        let request = match kind {
            OpKind::Read => "a read",
            // The write alone is a part of the durable one.
            OpKind::Write if has_commits => continue,
            OpKind::Write => "a write",
            OpKind::Commit => "a durable write",
            _ => continue,
        };
        let (mean, when) = match ping.awake() {
            Some(point) => (&point.mean, "right after another"),
            None => (&latency.mean, "on average"),
        };
        clauses.push(match mean.n {
            1 => format!("{request} took {}", format_latency(mean.value as u64)),
            _ => format!("{request} takes {} {when}", mean.text()),
        });
    }
    clauses
}

fn enumerated<T: AsRef<str>>(names: &[T]) -> String {
    let Some((last, others)) = names.split_last() else {
        return String::new();
    };
    if others.is_empty() {
        return last.as_ref().to_owned();
    }
    let others: Vec<&str> = others.iter().map(AsRef::as_ref).collect();
    format!("{} and {}", others.join(", "), last.as_ref())
}

/// `the median read of 41.5 µs spends 4 µs (10 %) in loop0 and 39 µs (89 %) in the lowest layer,
/// vda`, of the first workload.
fn layers_clause(record: &Record) -> Option<String> {
    let all = &record.layers()?.costs;
    let workload = &all.first()?.workload;
    let plan = record.plan.layers()?;
    let costs: Vec<&LayerCost> = all
        .iter()
        .filter(|cost| cost.workload == *workload)
        .collect();
    let whole_ns: f64 = costs.iter().map(|cost| cost.own_time.difference).sum();
    let mut parts = Vec::new();
    let mut noise_ns: f64 = 0.0;
    for cost in &costs {
        match cost.meaning {
            CostMeaning::Real | CostMeaning::Lowest => parts.push(cost_text(plan, cost)),
            CostMeaning::Noise => {
                noise_ns = noise_ns.max(cost.own_time.bound().unwrap_or(0.0));
            }
            _ => {}
        }
    }
    if parts.is_empty() {
        return None;
    }
    let half = costs.first()?.own_time.half_width_95;
    let whole = figure_text(whole_ns, half.or(Some(whole_ns / 100.0)), "ns");
    let rest = if noise_ns == 0.0 {
        String::new()
    } else if noise_ns >= whole_ns {
        // Wider than the whole latency: nothing is known.
        "; the cost of the others is unclear".to_owned()
    } else {
        let bound = figure_text(noise_ns, None, "ns");
        format!("; no other layer costs more than {bound}")
    };
    let parts = parts.join(" and ");
    Some(format!("the median read of {whole} spends {parts}{rest}"))
}

/// `4 µs (10 %) in loop0`.
fn cost_text(plan: &LayersPlan, cost: &LayerCost) -> String {
    let layer = plan
        .layers
        .iter()
        .find(|layer| layer.target == Some(cost.target));
    let name = match layer {
        Some(layer) => layer.name.as_str(),
        None => "",
    };
    let difference = cost.own_time.difference;
    let time = figure_text(difference.abs(), cost.own_time.half_width_95, "ns");
    let percent = share_text(&cost.share);
    if cost.meaning == CostMeaning::Lowest {
        format!("{time} ({percent}) in the bottom layer, {name}")
    } else if difference < 0.0 {
        format!("{time} ({percent}) less because of {name}")
    } else {
        format!("{time} ({percent}) in {name}")
    }
}

/// With as many digits as its interval allows, as in the table.
fn share_text(share: &LayerDifference) -> String {
    let half = share.half_width_95.map(|half| half * 100.0);
    format!("{} %", rounded(share.difference.abs() * 100.0, half))
}

/// The answer, as a clause.
fn latency_search_clause(record: &Record) -> Option<String> {
    let search = record.latency_search()?;
    let latency = format_latency(search.target.latency_ns);
    let share = match search.target.percent {
        percent if percent < 100.0 => format!("{percent} % of the requests"),
        _ => "all requests".to_owned(),
    };
    let first_miss = search.first_miss().map(|trial| {
        let late = trial.late as f64 / trial.requests.max(1) as f64;
        (trial.depth, format_percent(late))
    });
    let Some(found) = search.found() else {
        return first_miss.map(|(depth, late)| {
            format!("no depth keeps {share} within {latency}: at depth {depth}, {late} take longer")
        });
    };
    let measured = record
        .measurements
        .iter()
        .find(|m| m.data.workload.name == found.workload);
    let rate = match measured {
        Some(m) => rate_text(m),
        None => String::new(),
    };
    let lasting = lasting_text(record, &found.workload);
    let limit = match (first_miss, search.is_settled) {
        (Some((depth, late)), true) => format!("; at {depth}, {late} take longer"),
        (None, true) => "; greater depths were not allowed".to_owned(),
        (Some((depth, late)), false) => {
            format!("; at {depth}, {late} take longer; the depths in between were not measured")
        }
        (None, false) => "; the search ended before greater depths were measured".to_owned(),
    };
    Some(format!(
        "depth {} keeps {share} within {latency}{rate}{lasting}{limit}",
        found.depth
    ))
}

/// `sustains 3000/s; 16,000/s for 3 min after a pause (bucket of 2.3 M requests, refilled in 15
/// min)`, `fell by 4 × after 38 GB (write cache), back after 30 s without load: no, 5 min: yes`, or
/// `no fall in 2 h and 1.4 TB …`.
fn sustain_clause(record: &Record) -> Option<String> {
    let found = record.sustain()?;
    let lasting = found.lasting.value_text();
    if let Some(doubtful) = &found.doubtful_drop {
        return Some(format!(
            "undecided: fell by {} × to {lasting} after {}, while the machine or other programs \
             may have slowed it",
            rounded(doubtful.factor(), Some(doubtful.factor() * FACTOR_KNOWN)),
            format_bytes(doubtful.moved.bytes)
        ));
    }
    let Some(drop) = &found.drop else {
        return Some(format!(
            "sustains {lasting}: no fall in {} and {}; a credit of more than that would not have \
             shown",
            format_duration(found.time_ns),
            format_bytes(found.moved.bytes)
        ));
    };
    if let Some(bucket) = &found.bucket
        && let Some(credit) = record
            .burst_credits
            .iter()
            .find(|credit| credit.base == bucket.base.value)
    {
        return Some(format!(
            "sustains {}; {} for {} after a pause (bucket of {}, refilled in {})",
            limit_text(credit.base, &credit.unit),
            limit_text(credit.burst, &credit.unit),
            format_duration(credit.burst_ns),
            amount_text(credit),
            format_duration(credit.refill_ns)
        ));
    }
    let mut recovered = Vec::new();
    for recovery in &found.recoveries {
        let answer = if recovery.is_back { "yes" } else { "no" };
        recovered.push(format!("{}: {answer}", format_duration(recovery.pause_ns)));
    }
    let back = if recovered.is_empty() {
        String::new()
    } else {
        format!("; back after a pause of {}", recovered.join(", "))
    };
    Some(format!(
        "sustains {lasting}; fell by {} × after {} ({}){back}",
        rounded(drop.factor(), Some(drop.factor() * FACTOR_KNOWN)),
        format_bytes(drop.moved.bytes),
        drop.cause.as_str(),
    ))
}

/// ` in a burst (1500/s for ever; …)`, of a workload that was measured in one.
fn lasting_text(record: &Record, workload: &str) -> String {
    for credit in &record.burst_credits {
        let mut rows = credit.in_burst.iter();
        if rows.any(|index| record.measurements[*index].data.workload.name == workload) {
            return format!(" in a burst ({})", credit_text(credit));
        }
    }
    String::new()
}

/// `, at 12,300/s`, of all operations together.
fn rate_text(m: &Row) -> String {
    let ops = m.headline_ops();
    let rates: Vec<String> = ops
        .iter()
        .map(|(_, op)| op.figures.iops.value_text())
        .collect();
    if rates.is_empty() {
        String::new()
    } else {
        format!(", at {}", rates.join(" and "))
    }
}

/// The outcome of `--verify` over all workloads.
struct Verification<'a> {
    results: Vec<&'a VerifyResult>,
    /// Bytes of the blocks that were judged.
    judged_bytes: u64,
    /// Why intact blocks prove nothing about the disk.
    objection: Option<Objection<'a>>,
    /// How much a counterfeit device holds.
    real_size: Option<ClaimedSize>,
}

/// The size of a counterfeit device.
#[derive(Clone, Copy)]
struct ClaimedSize {
    held_bytes: u64,
    claimed_bytes: u64,
}

impl ClaimedSize {
    fn of(record: &Record, m: &Row, verify: &VerifyResult) -> Option<Self> {
        let target = record.targets.get(m.data.target)?;
        if target.kind != TargetKind::BlockDevice {
            return None;
        }
        Some(Self {
            held_bytes: verify.real_size(target.size_bytes)?.bytes(),
            claimed_bytes: target.size_bytes,
        })
    }
}

impl<'a> Verification<'a> {
    fn of(record: &'a Record) -> Self {
        let mut all = Self {
            results: Vec::new(),
            judged_bytes: 0,
            objection: None,
            real_size: None,
        };
        for (index, m) in record.measurements.iter().enumerate() {
            let Some(verify) = &m.data.verify else {
                continue;
            };
            let judged = verify.wrong_blocks() + verify.good_blocks();
            all.results.push(verify);
            all.real_size = all.real_size.or(ClaimedSize::of(record, m, verify));
            all.judged_bytes += judged * u64::from(m.data.workload.block_bytes);
            match record.objection(FigureSource::Measurement(index)) {
                // What failed to read or came back wrong was counted.
                Some(objection) if objection.cause == Cause::Failed => {}
                objection => all.objection = all.objection.or(objection),
            }
        }
        all
    }

    fn sum(&self, count: fn(&VerifyResult) -> u64) -> u64 {
        self.results.iter().map(|one| count(one)).sum()
    }
}

/// The answer; `None` where nothing was verified with `--verify`.
pub(crate) fn verification_headline(record: &Record) -> Option<String> {
    let all = Verification::of(record);
    let wrong = all.sum(VerifyResult::wrong_blocks);
    let good = all.sum(VerifyResult::good_blocks);
    let unknown = all.sum(|verify| verify.bad_blocks) - wrong;
    let unchecked = all.sum(VerifyResult::unchecked);
    let judged = counted(wrong + good, "block");
    let mut text = match (wrong, good, all.objection) {
        (0, 0, _) if unknown == 0 => return None,
        (0, 0, _) => "Nothing was verified".to_owned(),
        (0, _, Some(objection)) => format!(
            "Nothing is proved: {judged} read back intact, but {} ({})",
            uncapitalised(objection.finding.heading()),
            objection.finding.code
        ),
        (0, _, None) if unchecked > 0 => format!("{judged} intact so far"),
        (0, 1, None) => format!(
            "Verified: the block is intact, {}",
            share_of_target(record, all.judged_bytes)
        ),
        (0, _, None) => format!(
            "Verified: all {judged} are intact, {}",
            share_of_target(record, all.judged_bytes)
        ),
        (wrong, _, _) => {
            let holds = match all.real_size {
                Some(real) => format!(
                    "{} of {} are real, ",
                    format_bytes(real.held_bytes),
                    format_bytes(real.claimed_bytes)
                ),
                None => String::new(),
            };
            format!("DAMAGED: {holds}{wrong} of {judged} read back wrong")
        }
    };
    if unknown > 0 {
        let unknown = counted(unknown, "block");
        text.push_str(&format!(", {unknown} without a signature"));
    }
    if unchecked > 0 {
        text.push_str(&format!(", {} not read back", counted(unchecked, "block")));
    }
    Some(text + ".")
}

/// `4 GiB, 0.8 % of /dev/sdb`; of a directory only how much.
fn share_of_target(record: &Record, bytes: u64) -> String {
    let amount = format_bytes(bytes);
    let [target] = record.targets.as_slice() else {
        return amount;
    };
    match target.kind {
        TargetKind::BlockDevice | TargetKind::File if target.size_bytes > 0 => {
            let share = (bytes as f64 / target.size_bytes as f64).min(1.0);
            format!("{amount}, {} of {}", format_percent(share), target.path)
        }
        _ => amount,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use diskproof_model::latency_search::LatencySearch;
    use diskproof_model::measurement::Measurement;
    use diskproof_model::record::TaskResult;
    use diskproof_model::shape::LatencyTarget;

    #[test]
    fn the_outcome_of_a_verification_comes_first() {
        let text = |blocks, bad_blocks, unsigned: Option<u64>, written| {
            let record = fixture::faulty("random-write-d32", |m| {
                m.verify = Some(VerifyResult {
                    blocks,
                    bad_blocks,
                    unsigned_blocks: unsigned,
                    blocks_written: written,
                    ..VerifyResult::default()
                });
            });
            crate::verdict::verdict(&record).headline
        };
        for (shown, part) in [
            (text(1000, 0, None, None), "all 1000 blocks"),
            (text(1000, 3, None, None), "DAMAGED: 3 of 1000 blocks"),
            (
                text(1000, 900, Some(900), None),
                "all 100 blocks are intact, 800 KiB, 900 blocks",
            ),
            (text(1000, 1000, Some(1000), None), "Nothing was verified"),
            (text(1000, 0, None, Some(1500)), "500 blocks"),
        ] {
            states(&shown, &[part]);
        }
        assert_eq!(verification_headline(&fixture::record()), None);
    }

    /// The clause on trials at these depths, with so many late ones of 1000.
    fn told(depth_max: u32, trials: &[(u32, u64)]) -> Option<String> {
        let (facts, measurements) = fixture::run();
        let target = LatencyTarget {
            latency_ns: 1_000_000,
            percent: 99.0,
            window_ns: 1,
        };
        let of = |depth: u32, late: u64| {
            let mut measurement = measurements[0].clone();
            measurement.workload.depth = depth;
            measurement.workload.name = format!("a-d{depth}");
            let kind = *measurement.ops.keys().next().unwrap();
            measurement.ops.retain(|one, _| *one == kind);
            let op = measurement.ops.get_mut(&kind).unwrap();
            op.latency.clear();
            op.latency.record_many(500_000, 1000 - late);
            op.latency.record_many(2_000_000, late);
            measurement
        };
        let all = trials.iter().map(|(depth, late)| of(*depth, *late));
        let all: Vec<Measurement> = all.collect();
        let search = LatencySearch::of(target, &(1..=depth_max).collect::<Vec<u32>>(), &all);
        let mut record = fixture::judge((facts, measurements.clone()));
        record.measurements.clear();
        record.results.push(TaskResult::Depth(search));
        latency_search_clause(&record)
    }

    #[test]
    fn the_clause_says_what_is_known() {
        for (depth_max, trials, parts) in [
            (
                8,
                &[(1, 0), (2, 5), (3, 50)][..],
                ["depth 2 keeps 99 %", "at 3, 5 %"],
            ),
            (2, &[(1, 0), (2, 5)], ["depth 2 keeps 99 %", "not allowed"]),
            (8, &[(1, 0), (2, 5)], ["depth 2 keeps 99 %", "ended before"]),
            (8, &[(1, 0), (2, 5), (8, 50)], ["at 8, 5 %", "in between"]),
            (8, &[(1, 500)], ["no depth keeps 99 %", "at depth 1, 50 %"]),
        ] {
            let clause = told(depth_max, trials).unwrap();
            states(&clause, &["1.00 ms"]);
            states(&clause, &parts);
        }
        assert_eq!(told(8, &[]), None);
    }

    #[test]
    fn ping_with_idle_times_leads_with_the_disk_that_is_awake() {
        const MS: u64 = 1_000_000;
        let samples: Vec<(u64, u64)> = (0..20)
            .flat_map(|_| [(2_000 * MS, 301 * MS), (0, MS)])
            .collect();
        let record = fixture::judge(fixture::ping::ping_run(&samples));
        let ping = record.measurements[0].figures.ping.as_ref().unwrap();
        let [clause] = &ping_clauses(ping)[..] else {
            panic!("one kind")
        };
        states(clause, &["1.00 ms", "right after another"]);
        let paced = PingFigures {
            after_idle: Vec::new(),
            ..ping.clone()
        };
        assert!(ping_clauses(&paced)[0].ends_with("on average"));
    }
}
