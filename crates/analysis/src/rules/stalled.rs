//! `stalled`: for a while no request completed, and then the disk continued. A pause that the
//! limiter of a control group makes between its slices is not the disk's.

use super::disturbed::is_disturbed;
use super::rate_limited::{GroupStatement, first_group_limit, limit_of_workload};
use super::rule::*;
use super::starved::{is_any_workload_starved, is_workload_starved};
use crate::accept::words::stall_text;
use crate::mechanics::may_have_slept;
use crate::pause::{LENGTH_NS_MIN, PauseStart, ROTATING_NS, longest_pause};
use diskproof_model::campaign::DroppedSlice;
use diskproof_model::measurement::PAUSE_LATENCIES_MIN;
use diskproof_model::rate::RateTrial;
use diskproof_model::record::TaskResult;
use diskproof_model::surface::{AccessPoint, Scan};

pub(super) const RULE: Rule = Rule {
    code: "stalled",
    title: "The disk paused for a while",
    summary: "For a while no request completed, then the disk continued. Transactions wait that \
              long, however good the average is.",
    remedy: Remedy::Always(
        "Look for timeouts, resets and retries in the kernel log (dmesg). For a virtual disk ask \
         the provider; for a physical disk check smartctl -a. Measure longer (--time) to see \
         whether it pauses again.",
    ),
    check: Check::Run(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// From this length on sessions notice, and timeouts come near. Chosen, not measured.
const LENGTH_NS_WARNING: u64 = 1_000_000_000;

/// A rotating disk, or one of unknown kind, may be silent for so long in an acceptance test, which
/// asks it to flush its cache after each step: shingled ones then write their bands anew. Chosen,
/// not measured.
const TEST_NS_ROTATING: u64 = ROTATING_NS;
/// A solid-state disk is reported from the shortest time on that the record has.
const TEST_NS_SOLID_STATE: u64 = 2_000_000_000;

/// A single request of a survey has paused if it takes so long. A disk may need less to read a weak
/// sector again. Chosen, not measured.
const SINGLE_NS_MIN: u64 = 2_000_000_000;

/// A single request has paused if it takes so many times the median.
const SINGLE_TIMES_MIN: u64 = 10;

/// A limiter explains a pause of up to this many times what it needs for the requests in flight:
/// the kernel counts in slices, and may let the whole queue of one slice wait for the next.
const QUEUE_TIMES_MAX: f64 = 2.0;

/// A target serves a rate if a trial answers this share of it: its requests come at random times.
/// Chosen, not measured.
const SERVED_SHARE: f64 = 0.8;

/// A silence of so many times the waits of the thread that sent the requests is explained by them:
/// it notices an answer late, and sends the next one late. Chosen, not measured.
const OWN_WAITS: f64 = 1.5;

/// The same of a target that threads serve, as those of a loop device or of a file server on this
/// machine: they wait for the same processors, but the kernel counts only our waits. Chosen: a RAM
/// disk behind a loop device was silent for 2 s where we waited for a tenth of 5 s.
const SERVED_WAITS: f64 = 4.0;

/// Threads wait for processors for less than this, however many there are. Chosen, not measured: of
/// 37 on two processors all had their turn within 2 s.
const PROCESSOR_NS_MAX: u64 = 5_000_000_000;

/// A disk that wrote at least this share of the most that it writes in any workload was at work.
/// Chosen, not measured.
const WRITTEN_SHARE_MIN: f64 = 0.5;

/// A disk that wrote far more than the silence could hold wrote while reads completed, too: its
/// writes silence no read. Chosen, not measured.
const WRITTEN_TIMES_MAX: f64 = 3.0;

/// Waits that make one silence come together: so much of a longer row counts. Chosen, not measured.
const AROUND_NS_MAX: u64 = 10_000_000_000;

/// The claim names so many pauses, the longest: with more the sentence is not read, and the
/// evidence has them all.
const PAUSES_NAMED_MAX: usize = 3;

/// The INSERTs in a list of workloads.
const INSERTS: &str = "the INSERTs of PostgreSQL";

/// A pause without a completion.
struct Pause {
    /// The clause about it, such as `for 2.6 s in random-read, 1.1 s after its start`.
    text: String,
    /// The workload of a dropped slice, which may have several.
    dropped_place: Option<String>,
    length_ns: u64,
    /// From this length on it is a warning.
    warning_ns: u64,
    evidence: Evidence,
    /// The limit of a control group that the workload reached; it explains a shorter pause.
    limit: Option<GroupStatement>,
}

impl Pause {
    /// A pause from the first warning's length on, without a limit.
    fn new(text: String, length_ns: u64, evidence: Evidence) -> Self {
        Self {
            text,
            dropped_place: None,
            length_ns,
            warning_ns: LENGTH_NS_WARNING,
            evidence,
            limit: None,
        }
    }

    /// True if it is longer than its kind of measurement may need.
    fn is_serious(&self) -> bool {
        self.length_ns >= self.warning_ns
    }
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut pauses: Vec<Pause> = Vec::new();
    for measured in real_rows(record) {
        pauses.extend(workload_pause(record, measured));
    }
    let of_dropped = dropped_pauses(record);
    pauses.extend(survey_pause(record));
    pauses.extend(scan_pause(record));
    pauses.extend(access_pause(record));
    pauses.extend(search_pause(record));
    pauses.extend(pause_before_survey(record));
    let of_commits = pauses_of_inserts(record);
    pauses.extend(pause_around_inserts(record, &of_commits));
    pauses.extend(of_commits);
    pauses.extend(test_pause(record));
    pauses.extend(files_pause(record));
    // A silence before a slice that is in no row is told once.
    let mut of_preparation = pauses_of_preparation(record);
    of_preparation.retain(|pause| {
        of_dropped
            .iter()
            .all(|known| known.length_ns != pause.length_ns)
    });
    pauses.extend(of_dropped);
    pauses.extend(of_preparation);
    if pauses.is_empty() {
        return None;
    }
    pauses.sort_by_key(|pause| std::cmp::Reverse(pause.length_ns));
    let limit = pauses.iter_mut().find_map(|pause| pause.limit.take());
    let severity = warning_if(pauses.iter().any(Pause::is_serious));
    let named: Vec<&str> = pauses
        .iter()
        .take(PAUSES_NAMED_MAX)
        .map(|pause| pause.text.as_str())
        .collect();
    let unnamed_text = match pauses.len().saturating_sub(PAUSES_NAMED_MAX) {
        0 => String::new(),
        n => format!("; and in {}", counted(n as u64, "more workload")),
    };
    let mut claim = format!(
        "No request completed {}{unnamed_text}. A transaction that commits during such a pause \
         waits as long.",
        named.join("; ")
    );
    let mut observations: Vec<Evidence> = pauses.into_iter().map(|pause| pause.evidence).collect();
    if let Some(limit) = limit {
        claim.push_str(&format!(
            " {} Its limiter may be the cause, and not the disk.",
            limit.sentence
        ));
        observations.push(limit.evidence);
    }
    Some(Diagnosis::new(severity, claim, observations))
}

/// The clause about a pause of a workload, or of the survey, at a place.
fn pause_text(place: &str, start: &PauseStart, length_ns: u64, requests: u64) -> String {
    let length = format_duration(length_ns);
    let start = match start {
        PauseStart::BeforeRequests => return text_before(place, length_ns),
        PauseStart::After(start_ns) => format!("{} after its start", format_duration(*start_ns)),
        PauseStart::AroundMeasuredTime => "around its measured time".to_owned(),
        PauseStart::OverTheEnd => "over the end of a slice".to_owned(),
        PauseStart::InDroppedSlice => "in a slice that no row has".to_owned(),
    };
    format!(
        "for {length} in {place}, {start}, while {} waited",
        counted(requests, "request")
    )
}

/// The clause about a silence before the requests of a workload or survey.
fn text_before(place: &str, length_ns: u64) -> String {
    format!(
        "for {} before the requests of {place}, while it was made ready",
        format_duration(length_ns)
    )
}

/// The longest pause of a workload.
fn workload_pause(record: &Record, measured: Measured<'_>) -> Option<Pause> {
    let row = measured.row;
    // A commit also waits for what other programs have left to be written.
    if row.data.cache.used != CachePolicy::Direct && is_disturbed(record, measured) {
        return None;
    }
    // `slow-after-idle` reports a disk that has to wake up.
    if let Some(ping) = &row.figures.ping
        && !ping.after_idle.is_empty()
    {
        return None;
    }
    let made_ready_ns = match record.targets.get(row.data.target) {
        Some(target) if may_have_slept(record, target) => ROTATING_NS,
        Some(_) | None => 0,
    };
    let seen = longest_pause(&row.data, made_ready_ns)?;
    let length_ns = seen.length_ns;
    if is_wait_for_processor(record, row, length_ns) || is_written_back(record, row, length_ns) {
        return None;
    }
    let mut limit = None;
    if let Some(reached) = limit_of_workload(record, measured) {
        if length_ns as f64 <= QUEUE_TIMES_MAX * reached.queue_ns {
            return None;
        }
        limit = Some(reached.statement);
    }
    let place = workload_name(record, row);
    let text = pause_text(&place, &seen.start, length_ns, seen.requests);
    let longest_ns = seen.longest_ns as f64;
    let evidence = measured.evidence(&seen.path, longest_ns, LENGTH_NS_MIN as f64, "ns");
    Some(Pause {
        limit,
        ..Pause::new(text, length_ns, evidence)
    })
}

/// True if the waits of a row for processors explain a silence of this length: `starved` reports
/// them. Of a silence beside its measured time the same share was waited.
fn is_wait_for_processor(record: &Record, row: &Row, length_ns: u64) -> bool {
    let around_ns = row
        .data
        .wall_ns
        .min(AROUND_NS_MAX)
        .saturating_add(length_ns) as f64;
    let times = if is_served_by_threads(record, row.data.target) {
        SERVED_WAITS
    } else {
        OWN_WAITS
    };
    is_workload_starved(record, row)
        && length_ns <= PROCESSOR_NS_MAX
        && length_ns as f64 <= times * row.data.starved.share * around_ns
}

/// True if programs or threads of this machine may serve a target, or nothing is known of it.
fn is_served_by_threads(record: &Record, target: usize) -> bool {
    let Some(target) = record.targets.get(target) else {
        return true;
    };
    target.unresolved.is_some()
        || target.layers.is_empty()
        || target
            .layers
            .iter()
            .any(|layer| matches!(layer.kind, LayerKind::Loop | LayerKind::Network))
}

/// True if the disk, while a row that only reads had its silence, wrote as usual: what the kernel
/// still held of earlier writes. On a card with one channel each read waits for them. Without
/// counters, or a workload that shows what is usual, nothing explains the silence.
fn is_written_back(record: &Record, row: &Row, length_ns: u64) -> bool {
    if row.data.asked.write_bytes > 0 {
        return false;
    }
    let Some(written) = written_bytes(row) else {
        return false;
    };
    let mut usual_rate: f64 = 0.0;
    for measured in real_rows(record) {
        let writes = measured.row;
        if writes.data.target == row.data.target
            && writes.data.asked.write_bytes > 0
            && let Some(bytes) = written_bytes(writes)
        {
            usual_rate = usual_rate.max(bytes as f64 / writes.data.wall_ns.max(1) as f64);
        }
    }
    let by_others: u64 = row
        .data
        .device
        .others
        .iter()
        .map(|process| process.write_bytes)
        .sum();
    let rate = written.saturating_sub(by_others) as f64 / length_ns.max(1) as f64;
    usual_rate > 0.0
        && (WRITTEN_SHARE_MIN * usual_rate..=WRITTEN_TIMES_MAX * usual_rate).contains(&rate)
}

/// The bytes that the disks of a row counted as written; `None` without counters.
fn written_bytes(row: &Row) -> Option<u64> {
    let device = &row.data.device;
    if device.unresolved.is_some() || device.accounted.is_none() {
        return None;
    }
    Some(device.write_bytes)
}

/// The pauses of a campaign's slices that are in no row, the longest of each workload.
fn dropped_pauses(record: &Record) -> Vec<Pause> {
    let mut pauses: Vec<Pause> = Vec::new();
    for (index, slice) in record.dropped.iter().enumerate() {
        let Some(pause) = slice.pause else {
            continue;
        };
        let length_ns = pause.length_ns as f64;
        let path = format!("/dropped/{index}/pause/length_ns");
        let place = place_of_slice(record, slice);
        let start = PauseStart::InDroppedSlice;
        let text = pause_text(&place, &start, pause.length_ns, pause.requests);
        let evidence = evidence_at(path, length_ns, LENGTH_NS_MIN as f64, "ns");
        let dropped = Pause {
            dropped_place: Some(place),
            limit: first_group_limit(record, slice.target),
            ..Pause::new(text, pause.length_ns, evidence)
        };
        let known = pauses
            .iter_mut()
            .find(|other| other.dropped_place == dropped.dropped_place);
        match known {
            Some(known) if known.length_ns >= dropped.length_ns => {}
            Some(known) => *known = dropped,
            None => pauses.push(dropped),
        }
    }
    pauses
}

/// The workload of a slice, with its target where the run has several.
fn place_of_slice(record: &Record, slice: &DroppedSlice) -> String {
    match record.targets.get(slice.target) {
        Some(target) if record.targets.len() > 1 => {
            format!("{} on {}", slice.workload, target.path)
        }
        Some(_) | None => slice.workload.clone(),
    }
}

/// The longest pause of the survey.
fn survey_pause(record: &Record) -> Option<Pause> {
    let surface = record.surface()?;
    let stalls = surface.data.stalls.iter().enumerate();
    let (index, stall) = stalls.max_by_key(|(_, stall)| stall.lasted_ns)?;
    // A disk may need as long for each request.
    let usual_ns = median_access_ns(&surface.data.access).unwrap_or(0) as f64;
    if (stall.lasted_ns as f64) < PAUSE_LATENCIES_MIN * usual_ns {
        return None;
    }
    let path = first_result_path(&format!("data/stalls/{index}/lasted_ns"));
    let start = PauseStart::After(stall.since_ns.saturating_sub(surface.data.start_ns));
    let text = pause_text(SURVEY, &start, stall.lasted_ns, stall.requests);
    let evidence = evidence_at(path, stall.lasted_ns as f64, LENGTH_NS_MIN as f64, "ns");
    Some(Pause::new(text, stall.lasted_ns, evidence))
}

/// The longest pause in the scan of a survey, which reads one block at a time. A block that is slow
/// again when it is read a second time is reported by `slow-blocks`.
fn scan_pause(record: &Record) -> Option<Pause> {
    let surface = record.surface()?;
    let scan = surface.data.scan.as_ref()?;
    let cells = scan
        .map
        .iter()
        .enumerate()
        .filter(|(index, _)| !has_slow_block(scan, *index));
    let (index, cell) = cells.max_by_key(|(_, cell)| cell.latency_max_ns)?;
    // The thread may have waited for a processor.
    let length_ns = cell.latency_max_ns.saturating_sub(surface.data.starved_ns);
    if !is_single_pause(length_ns, scan.latency_p50_ns?) {
        return None;
    }
    let text = format!(
        "for {} in the scan, behind {}, while 1 request waited",
        format_duration(length_ns),
        gigabytes(cell.offset_bytes)
    );
    let path = first_result_path(&format!("data/scan/map/{index}/latency_max_ns"));
    let longest_ns = cell.latency_max_ns as f64;
    let evidence = evidence_at(path, longest_ns, SINGLE_NS_MIN as f64, "ns");
    Some(Pause::new(text, length_ns, evidence))
}

/// True if a block was found slow within a cell of the map.
fn has_slow_block(scan: &Scan, index: usize) -> bool {
    let start = scan.map[index].offset_bytes;
    let end = match scan.map.get(index + 1) {
        Some(next) => next.offset_bytes,
        None => u64::MAX,
    };
    scan.slow
        .iter()
        .any(|block| (start..end).contains(&block.offset_bytes))
}

/// The longest pause among the accesses of the survey, of which one is made at a time.
fn access_pause(record: &Record) -> Option<Pause> {
    let surface = record.surface()?;
    let access = &surface.data.access;
    let median_ns = median_access_ns(access)?;
    let points = access.iter().enumerate();
    let (index, longest) = points.max_by_key(|(_, point)| point.latency_ns)?;
    let length_ns = longest.latency_ns.saturating_sub(surface.data.starved_ns);
    if !is_single_pause(length_ns, median_ns) {
        return None;
    }
    let text = format!(
        "for {} in the accesses of {SURVEY}, while 1 request waited",
        format_duration(length_ns)
    );
    let path = first_result_path(&format!("data/access/{index}/latency_ns"));
    let longest_ns = longest.latency_ns as f64;
    let evidence = evidence_at(path, longest_ns, SINGLE_NS_MIN as f64, "ns");
    Some(Pause::new(text, length_ns, evidence))
}

/// The median time of the accesses of a survey, in nanoseconds; `None` without any.
fn median_access_ns(access: &[AccessPoint]) -> Option<u64> {
    let mut latencies: Vec<u64> = access.iter().map(|point| point.latency_ns).collect();
    latencies.sort_unstable();
    latencies.get(latencies.len() / 2).copied()
}

/// True if a request that was alone in flight took far longer than the others.
fn is_single_pause(length_ns: u64, median_ns: u64) -> bool {
    length_ns >= SINGLE_NS_MIN && length_ns >= SINGLE_TIMES_MIN.saturating_mul(median_ns)
}

/// The stalls that a search for a rate has met, most of them in trials that no row has. They are
/// known once the search has seen how lateness grows with the rate; before, a trial shows one.
fn search_pause(record: &Record) -> Option<Pause> {
    let index = record
        .results
        .iter()
        .position(|result| matches!(result, TaskResult::Load(_)))?;
    let load = record.load()?;
    let stalls = &load.figures.stalls;
    if stalls.met == 0 {
        return trial_pause(record, &load.data.trials, index);
    }
    if stalls.mean_ns < LENGTH_NS_MIN {
        return None;
    }
    let text = match stalls.met {
        1 => format!("for {} in the search", format_duration(stalls.mean_ns)),
        met => format!(
            "in the search {met} times, for {} on average",
            format_duration(stalls.mean_ns)
        ),
    };
    let path = format!("/results/{index}/figures/stalls/mean_ns");
    let evidence = evidence_at(path, stalls.mean_ns as f64, LENGTH_NS_MIN as f64, "ns");
    Some(Pause::new(text, stalls.mean_ns, evidence))
}

/// The longest pause in a trial of a search, whose result has this place in the record. A batch of
/// the trial is empty, or the request outlasted the trial, and a later trial has served as high a
/// rate: so the requests did not only wait for each other. And this program had a processor for at
/// least half of the time.
fn trial_pause(record: &Record, trials: &[RateTrial], result: usize) -> Option<Pause> {
    let mut longest_of_trials: Vec<u64> = trials
        .iter()
        .filter_map(|trial| slowest_batch(trial).map(|batch| trial.batches[batch].longest_ns))
        .collect();
    longest_of_trials.sort_unstable();
    let usual_ns = *longest_of_trials.get(longest_of_trials.len() / 2)?;
    let mut longest: Option<Pause> = None;
    for (index, trial) in trials.iter().enumerate() {
        let Some(batch) = slowest_batch(trial) else {
            continue;
        };
        let length_ns = trial.batches[batch].longest_ns;
        let waited_ns: u64 = trial.batches.iter().map(|batch| batch.waited_ns).sum();
        let is_silent =
            length_ns >= trial.wall_ns || trial.batches.iter().any(|batch| batch.requests == 0);
        let is_served_later = trials[index + 1..].iter().any(|later| {
            later.workload == trial.workload
                && !later.is_over
                && later.rate >= trial.rate
                && later.served >= SERVED_SHARE * later.rate
        });
        let is_known = longest
            .as_ref()
            .is_some_and(|known| known.length_ns >= length_ns);
        // The rows have the others.
        if is_known
            || trial.kind.makes_a_row()
            || !is_silent
            || !is_served_later
            || trial.dispatch_late > 0
            || waited_ns > length_ns / 2
            || !is_single_pause(length_ns, usual_ns)
        {
            continue;
        }
        let target = match record.plan.workloads().get(trial.workload) {
            Some(workload) => workload.target.unwrap_or(0),
            None => 0,
        };
        let text = format!(
            "for {} in a trial of the search, at {} per second",
            format_duration(length_ns),
            trial.rate.round()
        );
        let path = format!("/results/{result}/data/trials/{index}/batches/{batch}/longest_ns");
        let evidence = evidence_at(path, length_ns as f64, SINGLE_NS_MIN as f64, "ns");
        longest = Some(Pause {
            limit: first_group_limit(record, target),
            ..Pause::new(text, length_ns, evidence)
        });
    }
    longest
}

/// The place of the batch with the longest request of a trial; `None` without any.
fn slowest_batch(trial: &RateTrial) -> Option<usize> {
    let batches = trial.batches.iter().enumerate();
    let (place, batch) = batches.max_by_key(|(_, batch)| batch.longest_ns)?;
    if batch.longest_ns > 0 {
        Some(place)
    } else {
        None
    }
}

/// The silence before the requests of the survey. A rotating disk may empty its cache.
fn pause_before_survey(record: &Record) -> Option<Pause> {
    let surface = record.surface()?;
    let silence_ns = surface.data.silence_before_ns;
    // The requests before a survey are as long as those of a scan.
    if silence_ns < SINGLE_NS_MIN || may_have_woken(record, surface.data.target, silence_ns) {
        return None;
    }
    pause_before(
        SURVEY,
        silence_ns,
        first_result_path("data/silence_before_ns"),
    )
}

/// The silence before the server of the INSERTs was started, or while it used the disk: in its
/// start, a checkpoint, or a restart. A commit that waited as long has reported it.
fn pause_around_inserts(record: &Record, of_commits: &[Pause]) -> Option<Pause> {
    for (index, result) in record.results.iter().enumerate() {
        let TaskResult::Inserts(inserts) = result else {
            continue;
        };
        let length_ns = inserts.silence_before_ns;
        let is_known = of_commits.iter().any(|pause| pause.length_ns >= length_ns);
        if length_ns < LENGTH_NS_MIN || is_known || may_have_woken(record, 0, length_ns) {
            return None;
        }
        // A disk that a thread serves, as a loop device, waits for processors as we do.
        if is_any_workload_starved(record) && length_ns <= PROCESSOR_NS_MAX {
            return None;
        }
        let text = format!(
            "for {} before {INSERTS}, or in the start, a checkpoint or a restart of its server",
            format_duration(length_ns)
        );
        let path = format!("/results/{index}/silence_before_ns");
        let evidence = evidence_at(path, length_ns as f64, LENGTH_NS_MIN as f64, "ns");
        return Some(Pause::new(text, length_ns, evidence));
    }
    None
}

/// The longest commit of each load of INSERTs, where it took far longer than the usual ones. The
/// server writes to the disk besides, so that a rotating one may keep a commit waiting for longer.
fn pauses_of_inserts(record: &Record) -> Vec<Pause> {
    let mut pauses = Vec::new();
    // Others that used the disk or the processors beside the workloads did so beside the INSERTs.
    let has_others = is_any_workload_starved(record)
        || real_rows(record).any(|measured| is_disturbed(record, measured));
    if has_others {
        return pauses;
    }
    for (result_index, result) in record.results.iter().enumerate() {
        let TaskResult::Inserts(inserts) = result else {
            continue;
        };
        for (index, row) in inserts.loads.iter().enumerate() {
            let (Some(usual_ns), Some(longest_ns)) =
                (row.figures.latency_p50_ns, row.figures.latency_max_ns)
            else {
                continue;
            };
            if !is_single_pause(longest_ns, usual_ns) {
                continue;
            }
            let place = row.data.load.subject();
            let text = format!("for {} in a commit of {place}", format_duration(longest_ns));
            let path = format!("/results/{result_index}/loads/{index}/figures/latency_max_ns");
            let evidence = evidence_at(path, longest_ns as f64, SINGLE_NS_MIN as f64, "ns");
            pauses.push(Pause {
                warning_ns: warning_of_flushes(record, 0),
                limit: first_group_limit(record, 0),
                ..Pause::new(text, longest_ns, evidence)
            });
        }
    }
    pauses
}

/// True of a silence in which a rotating disk may have started its motor.
fn may_have_woken(record: &Record, target: usize, silence_ns: u64) -> bool {
    match record.targets.get(target) {
        Some(target) => silence_ns < ROTATING_NS && may_have_slept(record, target),
        None => false,
    }
}

/// The silences of targets before workloads that never began.
fn pauses_of_preparation(record: &Record) -> Vec<Pause> {
    let mut pauses = Vec::new();
    for (index, silence) in record.silences.iter().enumerate() {
        if may_have_woken(record, silence.target, silence.length_ns) {
            continue;
        }
        let place = match record.targets.get(silence.target) {
            Some(target) => format!("the next workload on {}", target.path),
            None => "the next workload".to_owned(),
        };
        let path = format!("/silences/{index}/length_ns");
        pauses.extend(pause_before(&place, silence.length_ns, path));
    }
    pauses
}

/// A silence before the requests of a place, which stands at this path.
fn pause_before(place: &str, silence_ns: u64, path: String) -> Option<Pause> {
    if silence_ns < LENGTH_NS_MIN {
        return None;
    }
    let text = text_before(place, silence_ns);
    let evidence = evidence_at(path, silence_ns as f64, LENGTH_NS_MIN as f64, "ns");
    Some(Pause::new(text, silence_ns, evidence))
}

/// The longest pause of an acceptance test.
fn test_pause(record: &Record) -> Option<Pause> {
    let accept = record.accept()?;
    let longest = accept.data.stalls.first()?;
    let mut text = stall_text(longest);
    let count = accept.data.stalls.len();
    if count > 1 {
        text.push_str(&format!(", the longest of {count} times"));
    }
    let warning_ns = warning_of_flushes(record, accept.data.target);
    let path = first_result_path("data/stalls/0/lasted_ns");
    let evidence = evidence_at(path, longest.lasted_ns as f64, warning_ns as f64, "ns");
    Some(Pause {
        warning_ns,
        ..Pause::new(text, longest.lasted_ns, evidence)
    })
}

/// The length from which on a silence is a warning where the disk is asked to flush its cache
/// meanwhile. It asks what the kernel says of the disk, and not whether a motor may have stopped,
/// as `may_sleep` does: a disk that is at work flushes its cache, and does not sleep. Where nothing
/// says that no arm writes the cache back, as in a virtual machine, the longer one counts.
fn warning_of_flushes(record: &Record, target: usize) -> u64 {
    let is_solid_state = match record.targets.get(target) {
        Some(target) => target.rotational() == Some(false),
        None => false,
    };
    if is_solid_state {
        TEST_NS_SOLID_STATE
    } else {
        TEST_NS_ROTATING
    }
}

/// The longest pause of a test of many small files, also of what it does between its steps.
fn files_pause(record: &Record) -> Option<Pause> {
    for (index, result) in record.results.iter().enumerate() {
        let TaskResult::Files(files) = result else {
            continue;
        };
        let longest = files.stalls.first()?;
        let mut text = format!(
            "for {} in {}",
            format_duration(longest.lasted_ns),
            longest.around
        );
        if files.stalls.len() > 1 {
            text.push_str(&format!(", the longest of {} times", files.stalls.len()));
        }
        let warning_ns = warning_of_flushes(record, 0);
        let path = format!("/results/{index}/stalls/0/lasted_ns");
        let evidence = evidence_at(path, longest.lasted_ns as f64, warning_ns as f64, "ns");
        return Some(Pause {
            warning_ns,
            ..Pause::new(text, longest.lasted_ns, evidence)
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::accepted::{self, Fault};
    use crate::fixture::files::{files_plan, files_record};
    use crate::fixture::inserted::inserted;
    use crate::fixture::searched::answer;
    use crate::fixture::surveyed::{self, codes};
    use crate::fixture::{self, states};
    use crate::rules::hung::tests::{hang, reads};
    use diskproof_model::accept::{AcceptVerdict, Pass, StalledPlace, TestStall, Undecided};
    use diskproof_model::campaign::SlicePause;
    use diskproof_model::files::FilesStall;
    use diskproof_model::measurement::{Hang, Measurement, Starvation};
    use diskproof_model::rate::{LoadData, LoadOutcome, LoadRecord, RateBatch, RateCellKind};
    use diskproof_model::record::TargetSilence;
    use diskproof_model::series::{Cell, TimeSeries};
    use diskproof_model::surface::{ScanCell, SlowBlock};
    use diskproof_model::target::IoLimit;

    const MILLISECOND_NS: u64 = 1_000_000;
    const SECOND_NS: u64 = 1000 * MILLISECOND_NS;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || reads(|measurement| pause(measurement, 2600 * MILLISECOND_NS)),
        fixture::record,
    );

    /// Nothing completes from 1.0 s for `ns`, and 32 requests wait.
    fn pause(measurement: &mut Measurement, ns: u64) {
        for op in measurement.ops.values_mut() {
            let cells = (ns / op.series.interval_ns) as usize;
            op.series.cells[100..100 + cells].fill(Cell::default());
            op.series.cells[100 + cells].latency_max_ns = ns;
            op.latency.record_many(ns, 32);
        }
    }

    #[test]
    fn pause_is_reported_with_its_time_length_and_requests() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(
            &finding.claim,
            &["2.6 s in random-read-d32, 1.1 s after", "32 requests"],
        );
        states(&finding.evidence[0].path, &["/data/ops/read/series"]);
        let short = check(&reads(|measurement| {
            pause(measurement, 700 * MILLISECOND_NS)
        }));
        assert_eq!(short.unwrap().severity, Severity::Note);
    }

    #[test]
    fn short_pauses_slow_disks_hangs_and_the_page_cache_are_silent() {
        let silent: [fn(&mut Measurement); 5] = [
            |measurement| pause(measurement, 300 * MILLISECOND_NS),
            |measurement| {
                pause(measurement, 2600 * MILLISECOND_NS);
                let count: u64 = measurement.ops.values().map(|op| op.count).sum();
                measurement
                    .ops
                    .values_mut()
                    .for_each(|op| op.latency.record_many(400 * MILLISECOND_NS, 10 * count));
            },
            |measurement| {
                pause(measurement, 2600 * MILLISECOND_NS);
                measurement.cache.used = CachePolicy::Buffered;
            },
            |measurement| {
                pause(measurement, 2600 * MILLISECOND_NS);
                measurement.hang = hang(0, 50, 1);
            },
            // One slow request while the others go on is a latency.
            |measurement| {
                measurement
                    .ops
                    .values_mut()
                    .for_each(|op| op.latency.record_many(2600 * MILLISECOND_NS, 1));
            },
        ];
        for (index, change) in silent.into_iter().enumerate() {
            assert_eq!(check(&reads(change)), None, "{index}");
        }
    }

    /// A solid-state disk was silent during the write-back. A rotating one may have slept.
    #[test]
    fn silence_between_the_steps_on_files_is_a_pause() {
        let silent = |seconds, rotational| {
            let mut record = files_record("a", files_plan(), Vec::new());
            for layer in &mut record.targets[0].layers {
                layer.rotational = Some(rotational);
            }
            for result in &mut record.results {
                if let TaskResult::Files(files) = result {
                    files.stalls.push(FilesStall {
                        around: "write-back".to_owned(),
                        since_ns: 4 * SECOND_NS,
                        lasted_ns: seconds * SECOND_NS,
                    });
                }
            }
            check(&record).unwrap()
        };
        let finding = silent(70, false);
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["1 min 10 s", "write-back"]);
        assert_eq!(finding.evidence[0].path, "/results/0/stalls/0/lasted_ns");
        assert_eq!(silent(9, true).severity, Severity::Note);
        assert_eq!(silent(70, true).severity, Severity::Warning);
    }

    /// The disk stood still while it was made ready, when no request of the workload was timed.
    #[test]
    fn silence_before_the_requests_is_a_pause() {
        let silent = |ns| {
            check(&reads(move |measurement| {
                measurement.silence_before_ns = ns
            }))
        };
        let finding = silent(4 * SECOND_NS).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["4.0 s", "random-read-d32"]);
        states(&finding.evidence[0].path, &["/data/silence_before_ns"]);
        assert_eq!(silent(499 * MILLISECOND_NS), None);
    }

    /// A rotating disk empties its cache before the requests. The kernel says of a virtual disk
    /// that it rotates, too, which proves nothing.
    #[test]
    fn silence_before_the_requests_of_a_rotating_disk_is_longer() {
        let silent = |ns, hypervisor: Option<&str>| {
            let mut record = reads(|measurement| measurement.silence_before_ns = ns);
            record.host.hypervisor = hypervisor.map(str::to_owned);
            for layer in &mut record.targets[0].layers {
                layer.rotational = Some(true);
                layer.kind = LayerKind::Disk;
            }
            record.health.clear();
            check(&record).map(|finding| finding.severity)
        };
        assert_eq!(silent(6 * SECOND_NS, None), None);
        assert_eq!(silent(16 * SECOND_NS, None), Some(Severity::Warning));
        assert_eq!(silent(6 * SECOND_NS, Some("kvm")), Some(Severity::Warning));
    }

    /// The disk of a file server may have slept, too.
    #[test]
    fn silence_before_the_requests_of_unknown_disks_is_longer() {
        let silent = |ns| {
            let mut record = reads(|measurement| measurement.silence_before_ns = ns);
            record.targets[0].layers.clear();
            check(&record).map(|finding| finding.severity)
        };
        assert_eq!(silent(6 * SECOND_NS), None);
        assert_eq!(silent(16 * SECOND_NS), Some(Severity::Warning));
    }

    /// No cell has what began in the warm-up of a slice, or lasted beyond its end.
    #[test]
    fn silence_around_the_measured_time_is_a_pause() {
        let silent = |ns, cache| {
            check(&reads(|measurement| {
                measurement.silence_around_ns = ns;
                measurement.cache.used = cache;
            }))
        };
        let finding = silent(3 * SECOND_NS, CachePolicy::Direct).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["3.0 s", "random-read-d32", "32 requests"]);
        states(&finding.evidence[0].path, &["/data/silence_around_ns"]);
        assert_eq!(silent(499 * MILLISECOND_NS, CachePolicy::Direct), None);
        assert_eq!(silent(3 * SECOND_NS, CachePolicy::Buffered), None);
    }

    /// All 32 requests in flight at the end of a slice ended two seconds later, in no cell.
    #[test]
    fn pause_over_the_end_of_a_slice_is_one() {
        let waiting = |requests| {
            reads(move |measurement| {
                for op in measurement.ops.values_mut() {
                    op.latency.record_many(2000 * MILLISECOND_NS, requests);
                }
            })
        };
        let finding = check(&waiting(32)).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["in random-read-d32", "32 requests"]);
        states(&finding.evidence[0].path, &["/data/ops/read/latency"]);
        assert_eq!(check(&waiting(31)), None);
        // As many, of which each ended in a cell of its own while the others went on.
        let spread = reads(|measurement| {
            for op in measurement.ops.values_mut() {
                op.latency.record_many(2000 * MILLISECOND_NS, 32);
                for cell in op.series.cells.iter_mut().take(32) {
                    cell.latency_max_ns = 2000 * MILLISECOND_NS;
                }
            }
        });
        assert_eq!(check(&spread), None);
    }

    /// Of a paced row the queue is hardly ever full: 1000/s, of which some wait over the end.
    #[test]
    fn slow_request_of_a_paced_row_whose_others_go_on_is_no_pause() {
        let paced = |slow: u64, quick: u64, silent_cells: usize| {
            check(&reads(move |measurement| {
                measurement.workload.rate = Some(1000.0);
                for op in measurement.ops.values_mut() {
                    op.latency.record_many(2000 * MILLISECOND_NS, slow);
                    op.latency.record_many(MILLISECOND_NS, quick);
                    let cells = op.series.cells.len();
                    for cell in &mut op.series.cells[cells - silent_cells..] {
                        op.latency.record_many(MILLISECOND_NS, cell.ops);
                        *cell = Cell::default();
                    }
                }
            }))
        };
        assert_eq!(paced(1, 4, 0), None);
        assert_eq!(paced(1, 0, 0), None);
        assert!(paced(3, 0, 0).is_some());
        assert!(paced(1, 4, 1).is_some());
        assert!(paced(32, 4, 0).is_some());
    }

    /// As measured on a RAM disk beside 37 programs on two processors, and a disk that paused for
    /// longer than any wait for a processor.
    #[test]
    fn pause_that_waits_for_processors_explain_is_not_the_disks() {
        let starved_on = |kind: LayerKind, share: f64, pause_ns: u64| {
            let mut record = reads(move |measurement| {
                pause(measurement, pause_ns);
                measurement.starved = Starvation {
                    share,
                    mean_wait_ns: 55_000_000.0,
                };
            });
            record.targets[0].layers[0].kind = kind;
            check(&record)
        };
        let starved = |share, pause_ns| starved_on(LayerKind::Disk, share, pause_ns);
        assert_eq!(
            starved_on(LayerKind::Loop, 0.098, 1970 * MILLISECOND_NS),
            None
        );
        assert!(starved(0.098, 1970 * MILLISECOND_NS).is_some());
        assert_eq!(starved(0.8, 3500 * MILLISECOND_NS), None);
        assert!(starved(0.03, 2600 * MILLISECOND_NS).is_some());
        assert!(starved(0.0, 1970 * MILLISECOND_NS).is_some());
        let around = |silence_ns: u64| {
            check(&reads(move |measurement| {
                measurement.silence_around_ns = silence_ns;
                measurement.starved = Starvation {
                    share: 0.8,
                    mean_wait_ns: 55_000_000.0,
                };
            }))
        };
        assert_eq!(around(4 * SECOND_NS), None);
        assert!(around(6 * SECOND_NS).is_some());
    }

    /// A memory card of 300 kB/s wrote back 2 MiB for 7 s, on the one channel that it has.
    #[test]
    fn disk_that_wrote_back_during_the_silence_of_reads_did_not_pause() {
        let silent = |written_bytes: u64, has_counters: bool| {
            let mut record = reads(|measurement| {
                pause(measurement, 3 * SECOND_NS);
                measurement.device.write_bytes = written_bytes;
                if !has_counters {
                    measurement.device.unresolved = Some("nfs".to_owned());
                }
            });
            for row in &mut record.measurements {
                if row.data.asked.write_bytes > 0 {
                    row.data.device.write_bytes = 300 * row.data.wall_ns / 1_000_000;
                }
            }
            check(&record)
        };
        assert_eq!(silent(900_000, true), None);
        assert!(silent(300_000, true).is_some());
        assert!(silent(0, true).is_some());
        assert!(silent(900_000, false).is_some());
    }

    /// Commits go through the page cache, and wait for the disk all the same.
    #[test]
    fn commit_that_waits_for_seconds_is_a_pause() {
        let commits = |pause_ns| {
            fixture::faulty("commit-fdatasync", move |measurement| {
                measurement.cache.used = CachePolicy::Buffered;
                pause(measurement, pause_ns);
            })
        };
        let finding = check(&commits(2000 * MILLISECOND_NS)).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["in commit-fdatasync"]);
        assert_eq!(check(&commits(300 * MILLISECOND_NS)), None);
    }

    /// The fixture reads 10,000/s with 32 in flight.
    #[test]
    fn pause_that_the_limiter_of_a_group_makes_is_not_the_disks() {
        let limited = |pause_ns: u64, read_iops: u64, depth: u32| {
            let mut record = reads(|measurement| pause(measurement, pause_ns));
            let device = record.targets[0].layers[0].device.clone();
            record.host.io_limits = vec![IoLimit {
                group: "/db".to_owned(),
                device,
                read_iops: Some(read_iops),
                ..IoLimit::default()
            }];
            for row in &mut record.measurements {
                row.data.workload.depth = depth;
                if let Some(reads) = row.figures.ops.get_mut(&OpKind::Read) {
                    reads.iops.value = 50.0;
                }
            }
            check(&record)
        };
        // At 50/s, 32 requests take 0.64 s.
        assert_eq!(limited(1200 * MILLISECOND_NS, 50, 32), None);
        let longer = limited(2600 * MILLISECOND_NS, 50, 32).unwrap();
        states(&longer.claim, &["2.6 s", "/db allows only 50"]);
        let unreached = limited(1200 * MILLISECOND_NS, 5000, 32).unwrap();
        assert!(!unreached.claim.contains("/db"), "{}", unreached.claim);
    }

    /// The longest of the slices of a workload that no row covers.
    #[test]
    fn pause_of_a_slice_without_a_row_is_reported() {
        let run = fixture::run();
        let slice = |length_ns| DroppedSlice {
            target: 0,
            workload: "random-read-d32".to_owned(),
            start_ns: 0,
            warmup_ns: 0,
            moved: TimeSeries::new(1),
            pause: Some(SlicePause {
                length_ns,
                requests: 32,
            }),
        };
        let mut record = fixture::judge(run);
        record.dropped = vec![
            slice(700 * MILLISECOND_NS),
            slice(12 * SECOND_NS),
            slice(800 * MILLISECOND_NS),
        ];
        let finding = check(&record).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.evidence.len(), 1);
        assert_eq!(finding.evidence[0].path, "/dropped/1/pause/length_ns");
        states(&finding.claim, &["12 s in random-read-d32", "32 requests"]);
    }

    /// The disk went on each time, and every block came back.
    #[test]
    fn silence_in_an_acceptance_test_is_a_pause_and_a_long_one_decides_nothing() {
        let tested = |seconds: u64, rotational: bool| {
            accepted::changed(Fault::None, |facts, test| {
                for layer in &mut facts.targets[0].layers {
                    layer.rotational = Some(rotational);
                }
                let stall = |lasted_ns| TestStall {
                    lasted_ns,
                    place: Some(StalledPlace {
                        pass: Pass::Write,
                        offset_bytes: 5 << 20,
                    }),
                };
                test.add_stall(stall(2 * SECOND_NS));
                test.add_stall(stall(seconds * SECOND_NS));
            })
        };
        let verdict = |record: &Record| record.accept().unwrap().figures.verdict;
        let hung = tested(70, true);
        let finding = check(&hung).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(
            &finding.claim,
            &["1 min 10 s while the test wrote at block 0x2800"],
        );
        assert_eq!(
            finding.evidence[0].path,
            "/results/0/data/stalls/0/lasted_ns"
        );
        let figures = &hung.accept().unwrap().figures;
        assert_eq!(figures.undecided, Some(Undecided::Silent));
        // A rotating disk writes its bands anew, and a solid-state one collects its garbage.
        for (seconds, rotational, severity) in [
            (8, true, Severity::Note),
            (20, true, Severity::Warning),
            (3, false, Severity::Warning),
        ] {
            let record = tested(seconds, rotational);
            assert_eq!(check(&record).unwrap().severity, severity, "{seconds}");
            assert_eq!(verdict(&record), AcceptVerdict::Accept, "{seconds}");
        }
        assert_eq!(check(&accepted::accepted(Fault::None)), None);
    }

    /// The disk was silent for 20 s while the scratch file was filled, and the run ended then.
    #[test]
    fn silence_before_a_workload_that_never_began_is_a_pause() {
        let record = |length_ns: u64| {
            fixture::changed(|run| {
                run.measurements.clear();
                run.facts.partial = true;
                run.facts.silences = vec![TargetSilence {
                    target: 0,
                    length_ns,
                }];
            })
        };
        let silent = record(20 * SECOND_NS);
        let finding = check(&silent).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.evidence[0].path, "/silences/0/length_ns");
        assert_eq!(check(&record(SECOND_NS / 10)), None);
    }

    /// The disk was silent before the first request of the survey, or before the server started. A
    /// rotating disk may have started its motor.
    #[test]
    fn silence_before_a_survey_and_before_inserts_is_theirs() {
        let starting = surveyed::faulty(|survey| survey.silence_before_ns = 4 * SECOND_NS);
        assert_eq!(check(&starting), None);
        let survey = surveyed::faulty(|survey| survey.silence_before_ns = 16 * SECOND_NS);
        let finding = check(&survey).unwrap();
        states(&finding.claim, &["16 s before the requests of the survey"]);
        let mut inserts = inserted("a", &[100.0, 101.0]);
        let TaskResult::Inserts(server) = &mut inserts.results[0] else {
            panic!("{:?}", inserts.results);
        };
        server.silence_before_ns = 3 * SECOND_NS;
        let finding = check(&inserts).unwrap();
        states(&finding.claim, &["3.0 s before the INSERTs"]);
        assert_eq!(finding.evidence[0].path, "/results/0/silence_before_ns");
    }

    /// The disk was silent while the server wrote a checkpoint; where a commit waited as long, that
    /// is the same silence.
    #[test]
    fn silence_around_inserts_is_told_once_and_of_disks_that_cannot_sleep() {
        let paths = |silent_ns: u64, commit_ns: u64, rotational: Option<bool>| {
            let mut record = inserted("a", &[100.0, 101.0]);
            for layer in &mut record.targets[0].layers {
                layer.rotational = rotational;
            }
            let TaskResult::Inserts(server) = &mut record.results[0] else {
                panic!("{:?}", record.results);
            };
            server.silence_before_ns = silent_ns;
            server.loads[0].figures.latency_p50_ns = Some(MILLISECOND_NS);
            server.loads[0].figures.latency_max_ns = Some(commit_ns);
            let mut paths = Vec::new();
            for evidence in check(&record).into_iter().flat_map(|found| found.evidence) {
                paths.push(evidence.path);
            }
            paths
        };
        let around = "/results/0/silence_before_ns";
        let commit = "/results/0/loads/0/figures/latency_max_ns";
        assert_eq!(
            paths(4 * SECOND_NS, 20 * MILLISECOND_NS, Some(false)),
            [around]
        );
        assert_eq!(
            paths(4 * SECOND_NS, 4100 * MILLISECOND_NS, Some(false)),
            [commit]
        );
        assert_eq!(
            paths(8 * SECOND_NS, 4100 * MILLISECOND_NS, Some(false)),
            [around, commit]
        );
        assert!(paths(8 * SECOND_NS, 20 * MILLISECOND_NS, Some(true)).is_empty());
        assert_eq!(
            paths(16 * SECOND_NS, 20 * MILLISECOND_NS, Some(true)),
            [around]
        );
        assert!(paths(0, 20 * MILLISECOND_NS, Some(false)).is_empty());
    }

    /// A commit of a server waits for the disk, whichever step the disk is silent in.
    #[test]
    fn commit_of_a_server_that_took_far_longer_than_the_others_is_a_pause() {
        let severity = |longest_ns: u64, usual_ns: u64, rotational: bool| {
            let mut record = inserted("a", &[100.0, 101.0]);
            for layer in &mut record.targets[0].layers {
                layer.rotational = Some(rotational);
            }
            let TaskResult::Inserts(server) = &mut record.results[0] else {
                panic!("{:?}", record.results);
            };
            let figures = &mut server.loads[0].figures;
            figures.latency_p50_ns = Some(usual_ns);
            figures.latency_max_ns = Some(longest_ns);
            check(&record).map(|finding| finding.severity)
        };
        let (usual_ns, slow_ns) = (2_000_000, 3 * SECOND_NS);
        assert_eq!(
            severity(5 * SECOND_NS, usual_ns, false),
            Some(Severity::Warning)
        );
        assert_eq!(severity(SECOND_NS, usual_ns, false), None);
        // A disk that is always slow, and one that empties its cache.
        assert_eq!(severity(5 * SECOND_NS, slow_ns, false), None);
        assert_eq!(
            severity(5 * SECOND_NS, usual_ns, true),
            Some(Severity::Note)
        );
        assert_eq!(
            severity(20 * SECOND_NS, usual_ns, true),
            Some(Severity::Warning)
        );
    }

    /// A search that ended early has not seen what lateness is usual. Twice the rate was served
    /// after the disk had answered nothing for five seconds.
    #[test]
    fn trial_of_a_search_with_a_request_of_seconds_is_a_pause_where_more_was_served_later() {
        let trial = |rate: f64, longest_ns: u64, waited_ns: u64, is_over: bool| RateTrial {
            workload: 0,
            kind: RateCellKind::Doubling,
            rate,
            start_ns: 0,
            warmup_ns: 0,
            wall_ns: SECOND_NS,
            served: rate,
            is_over,
            batches: vec![RateBatch {
                requests: 9,
                late: 1,
                longest_ns,
                waited_ns,
            }],
            dispatch_p99_ns: None,
            dispatch_late: 0,
        };
        let paused = |trials: Vec<RateTrial>| {
            let mut record = fixture::record();
            record.results = vec![TaskResult::Load(Box::new(LoadRecord {
                data: LoadData { trials },
                figures: answer(LoadOutcome::Unfinished, 0.0, 0.0),
            }))];
            search_pause(&record).map(|pause| pause.length_ns)
        };
        let (quick, slow) = (30 * MILLISECOND_NS, 5 * SECOND_NS);
        let served = |rate| trial(rate, quick, 0, false);
        let stalled = |waited_ns, is_over| trial(160.0, slow, waited_ns, is_over);
        let after = |pause: RateTrial| vec![served(80.0), pause, served(320.0)];
        assert_eq!(paused(after(stalled(0, false))), Some(slow));
        assert_eq!(paused(after(stalled(0, true))), Some(slow));
        // This program waited for a processor, and the disk did not keep up with the rate.
        assert_eq!(paused(after(stalled(4 * SECOND_NS, false))), None);
        assert_eq!(paused(vec![served(80.0), stalled(0, true)]), None);
        let overloaded = trial(320.0, slow, 0, true);
        assert_eq!(paused(vec![stalled(0, true), overloaded]), None);
        // A disk of seconds a request.
        let slow_disk = vec![stalled(0, false), trial(320.0, slow, 0, false)];
        assert_eq!(paused(slow_disk), None);
    }

    /// A scan reads one block at a time, so that nothing else shows the pause.
    #[test]
    fn block_of_a_scan_that_took_far_longer_than_the_others_is_a_pause() {
        let scanned = |latency_ns: u64, median_ns: u64, starved_ns: u64, is_slow: bool| {
            let record = surveyed::faulty(|survey| {
                survey.starved_ns = starved_ns;
                let scan = survey.scan.insert(surveyed::scan());
                scan.latency_p50_ns = Some(median_ns);
                for index in 0..3 {
                    scan.map.push(ScanCell {
                        offset_bytes: index << 30,
                        blocks: 1024,
                        latency_mean_ns: median_ns,
                        latency_max_ns: if index == 1 { latency_ns } else { median_ns },
                        errors: 0,
                    });
                }
                if is_slow {
                    scan.slow_blocks = 1;
                    scan.slow = vec![SlowBlock {
                        offset_bytes: scan.map[1].offset_bytes,
                        lba: 0,
                        latency_ns,
                    }];
                }
            });
            scan_pause(&record).map(|pause| pause.length_ns)
        };
        assert_eq!(
            scanned(70 * SECOND_NS, 5 * MILLISECOND_NS, 0, false),
            Some(70 * SECOND_NS)
        );
        assert_eq!(
            scanned(1900 * MILLISECOND_NS, 5 * MILLISECOND_NS, 0, false),
            None
        );
        // A slow target, a machine without a processor to spare, a block that is slow each time.
        assert_eq!(scanned(3 * SECOND_NS, 900 * MILLISECOND_NS, 0, false), None);
        assert_eq!(
            scanned(3 * SECOND_NS, 5 * MILLISECOND_NS, 2 * SECOND_NS, false),
            None
        );
        assert_eq!(scanned(70 * SECOND_NS, 5 * MILLISECOND_NS, 0, true), None);
    }

    #[test]
    fn pause_of_a_survey_is_reported() {
        let record = surveyed::faulty(|survey| {
            survey.stalls = vec![Hang {
                since_ns: survey.start_ns + 3 * SECOND_NS,
                lasted_ns: 2600 * MILLISECOND_NS,
                requests: 8,
                late: false,
            }];
        });
        assert_eq!(codes(&record), ["stalled"]);
        // A disk that needs half a second for each request, of which eight end together.
        let slow = surveyed::faulty(|survey| {
            for point in &mut survey.access {
                point.latency_ns = 500 * MILLISECOND_NS;
            }
            survey.stalls = vec![Hang {
                since_ns: survey.start_ns + 3 * SECOND_NS,
                lasted_ns: 516 * MILLISECOND_NS,
                requests: 8,
                late: false,
            }];
        });
        assert_eq!(survey_pause(&slow).map(|pause| pause.length_ns), None);
        let claim = &record.findings[0].claim;
        states(claim, &["2.6 s in the survey, 3.0 s after", "8 requests"]);
    }
}
