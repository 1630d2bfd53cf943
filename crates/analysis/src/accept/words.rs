//! Writes the answer of an acceptance test: its headline, its fraud or damage, its caveats, in
//! words.

use super::fraud::displaced_example;
use diskproof_model::accept::{
    AcceptMeasurement, AcceptRecord, AcceptVerdict, BadContent, Fraud, Pass, PlacesBefore,
    Procedure, StalledPlace, TestStall, Undecided,
};
use diskproof_model::record::Record;
use diskproof_model::units::{
    SECTOR_BYTES, counted, format_bytes, format_duration, format_percent,
};

/// A capacity in the decimal units that disks are sold in: `123 GB`, `4 TB`.
pub(crate) fn capacity_text(bytes: u64) -> String {
    let (unit, name) = match bytes {
        1_000_000_000_000.. => (1e12, "TB"),
        1_000_000_000.. => (1e9, "GB"),
        _ => (1e6, "MB"),
    };
    let number = format!("{:.2}", bytes as f64 / unit);
    let short = number.trim_end_matches('0').trim_end_matches('.');
    format!("{short} {name}")
}

/// An address as a number of sectors of 512 bytes: `block 0x3b9aca00`.
fn block_text(offset_bytes: u64) -> String {
    format!("block {:#x}", offset_bytes / SECTOR_BYTES)
}

/// The answer in a sentence.
pub(crate) fn accept_headline(accept: &AcceptRecord) -> String {
    let claimed = capacity_text(accept.data.plan.size_bytes);
    match accept.figures.verdict {
        AcceptVerdict::Accept => {
            format!("Accepted: all {claimed} hold what was written to them.")
        }
        AcceptVerdict::NoFraudFound => format!(
            "No fraud found in {} written; only the full pass proves all {claimed}.",
            format_bytes(accept.data.writes.bytes)
        ),
        AcceptVerdict::Undecided => format!("Undecided: {}.", reason_undecided(accept)),
        AcceptVerdict::Reject => format!("Rejected: {}.", reason_rejected(accept)),
    }
}

/// The reason why a disk is not accepted, as a clause; `None` where nothing speaks against it.
pub(crate) fn reason_against(accept: &AcceptRecord) -> Option<String> {
    match accept.figures.verdict {
        AcceptVerdict::Accept | AcceptVerdict::NoFraudFound => None,
        AcceptVerdict::Undecided => Some(reason_undecided(accept)),
        AcceptVerdict::Reject => Some(reason_rejected(accept)),
    }
}

fn reason_rejected(accept: &AcceptRecord) -> String {
    match fraud_text(accept) {
        Some(text) => text,
        None => damage_text(&accept.data),
    }
}

/// The reason why the test is undecided.
fn reason_undecided(accept: &AcceptRecord) -> String {
    let data = &accept.data;
    match accept.figures.undecided {
        None | Some(Undecided::Unfinished) => format!(
            "the test ended after {} of {} were written and {} were read; nothing was wrong so far",
            capacity_text(data.writes.bytes),
            capacity_text(data.plan.size_bytes),
            capacity_text(data.reads.bytes)
        ),
        Some(Undecided::NotDirect) => "reads may have come from the memory of this machine, not \
                                       from the disk; use a device that takes direct I/O (losetup \
                                       --direct-io=on)"
            .to_owned(),
        Some(Undecided::Unproven) => "the counters of the disk do not confirm that it was read; \
                                      name the disk itself"
            .to_owned(),
        Some(Undecided::RateFell) => "the rate of writing fell by five or more while the filler \
                                      was written, as it does when real flash is full: run the \
                                      full pass (without --probe)"
            .to_owned(),
        Some(Undecided::Remapped) => "every block came back, and the disk replaced or lost \
                                      sectors meanwhile: run the test again, and reject the disk \
                                      if the count rises again"
            .to_owned(),
        Some(Undecided::HealthLost) => "every block came back, but the disk told the counts of \
                                        its sectors before the test and does not tell them now: \
                                        read them with smartctl, and run the test again"
            .to_owned(),
        Some(Undecided::Uneven) => "every block came back, but the rates of the parts vary so \
                                    much that a slow end could hide among them: run the test \
                                    again while the machine is idle"
            .to_owned(),
        Some(Undecided::ChangedWhileStopped) => changed_text(data),
        Some(Undecided::Silent) => match data.stalls.first() {
            Some(longest) => format!(
                "every block came back, but the disk answered nothing {}: look for timeouts and \
                 resets in the kernel log (dmesg), check cable and power, and run the test again; \
                 return the disk if that happens again",
                stall_text(longest)
            ),
            None => "the disk answered nothing for a long time".to_owned(),
        },
    }
}

/// A time without an answer, such as `for 12 s while the test wrote at block 0x4a`.
pub(crate) fn stall_text(stall: &TestStall) -> String {
    let lasted = format_duration(stall.lasted_ns);
    match stall.place {
        Some(StalledPlace { pass, offset_bytes }) => {
            let did = match pass {
                Pass::Write => "wrote",
                Pass::Read => "read",
            };
            format!(
                "for {lasted} while the test {did} at {}",
                block_text(offset_bytes)
            )
        }
        None => format!("for {lasted} at the start of a run of the test"),
    }
}

/// `4 MiB of what was written before the test was stopped came back with other content, …`
fn changed_text(data: &AcceptMeasurement) -> String {
    let first = data.bad.first().map(|range| range.offset_bytes);
    let proof = match data.places_before {
        Some(PlacesBefore {
            changed_after_right_bytes: Some(offset_bytes),
            ..
        }) => format!(
            "; {} was right when it was read before the stop, and held something else after it",
            block_text(offset_bytes)
        ),
        _ => String::new(),
    };
    format!(
        "{} of what was written before the test was stopped came back with other content{}: \
         others wrote to the device meanwhile, or it lost them{proof}. Nothing else was wrong. \
         Begin a new test with --restart",
        format_bytes(data.bad_bytes.lost),
        first_at_text(first),
    )
}

/// The fraud, such as `real capacity 123 GB of 4 TB: block 0x7 came back with the content of block
/// 0x3b9aca07`; `None` where no fraud was found. A probe knows the capacity to a MiB, and says so.
pub(crate) fn fraud_text(accept: &AcceptRecord) -> Option<String> {
    let fraud = accept.figures.fraud?;
    let real_bytes = accept.figures.real_bytes?;
    let real = capacity_text(real_bytes);
    let claimed = capacity_text(accept.data.plan.size_bytes);
    let end = block_text(accept.figures.real_bytes_max.unwrap_or(real_bytes));
    let symptom = match fraud {
        Fraud::Wraps => match displaced_example(&accept.data) {
            Some(example) => format!(
                "{} came back with the content of {}",
                block_text(example.at_bytes),
                block_text(example.from_bytes)
            ),
            None => "addresses beyond it are those of earlier ones".to_owned(),
        },
        Fraud::Drops => format!("what is written from {end} on is lost"),
        Fraud::Cached => format!(
            "what is written from {end} on is lost, except for the last {} in a cache",
            format_bytes(accept.figures.cache_bytes.unwrap_or(0))
        ),
        Fraud::Fails => format!("requests from {end} on fail{}", errnos_text(&accept.data)),
        Fraud::Flips => format!("bits from {end} on come back wrong"),
        Fraud::Thin => {
            "it stores any address until its flash is full, and loses the rest".to_owned()
        }
        Fraud::Slow => {
            return Some(format!(
                "fast capacity {real} of {claimed}: from {end} on the disk is many times slower"
            ));
        }
    };
    let more = match accept.figures.real_bytes_max {
        Some(bytes) => format!(", or up to {} more", format_bytes(bytes - real_bytes)),
        None => String::new(),
    };
    Some(format!(
        "real capacity {real} of {claimed}{more}: {symptom}"
    ))
}

/// The errors of failed requests in brackets, such as ` (EIO, ENXIO)`; empty without errors.
fn errnos_text(data: &AcceptMeasurement) -> String {
    let names: Vec<&str> = data.errors.keys().map(String::as_str).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(" ({})", names.join(", "))
    }
}

/// The damage of a rejected disk without a fraud, such as `of 4 TB, 24 KiB could not be read (EIO),
/// the first at block 0x4a; 8 KiB came back wrong, the first at block 0x2`.
pub(crate) fn damage_text(data: &AcceptMeasurement) -> String {
    let mut parts = Vec::new();
    let claimed = capacity_text(data.plan.size_bytes);
    if let Some(text) = unreadable_text(data) {
        parts.push(text);
    }
    if let Some(text) = wrong_text(data) {
        parts.push(text);
    }
    if parts.is_empty()
        && let Some(text) = unwritable_text(data)
    {
        parts.push(text);
    }
    format!("of {claimed}, {}", parts.join("; "))
}

/// The unreadable bytes, such as `24 KiB could not be read (EIO), the first at block 0x4a`; `None`
/// where every read succeeded.
pub(crate) fn unreadable_text(data: &AcceptMeasurement) -> Option<String> {
    if data.bad_bytes.failed == 0 {
        return None;
    }
    let first = data
        .bad
        .iter()
        .find(|range| matches!(range.content, BadContent::Failed { .. }));
    Some(format!(
        "{} could not be read{}{}",
        format_bytes(data.bad_bytes.failed),
        errnos_text(data),
        first_at_text(first.map(|range| range.offset_bytes))
    ))
}

/// The bytes whose writes failed, such as `4 KiB could not be written (EIO)`; `None` where every
/// write succeeded.
pub(crate) fn unwritable_text(data: &AcceptMeasurement) -> Option<String> {
    if data.failed_writes_bytes == 0 {
        return None;
    }
    Some(format!(
        "{} could not be written{}",
        format_bytes(data.failed_writes_bytes),
        errnos_text(data)
    ))
}

/// The bytes with wrong content, such as `8 KiB came back wrong, the first at block 0x4a`; `None`
/// where there are none.
pub(crate) fn wrong_text(data: &AcceptMeasurement) -> Option<String> {
    let bytes = data.bad_bytes.wrong();
    if bytes == 0 {
        return None;
    }
    let first = data
        .bad
        .iter()
        .find(|range| !matches!(range.content, BadContent::Failed { .. }));
    Some(format!(
        "{} came back wrong{}",
        format_bytes(bytes),
        first_at_text(first.map(|range| range.offset_bytes))
    ))
}

/// The lowest address of a kind of damage, such as `, the first at block 0x4a`; empty where it is
/// not known.
fn first_at_text(offset_bytes: Option<u64>) -> String {
    match offset_bytes {
        Some(offset_bytes) => format!(", the first at {}", block_text(offset_bytes)),
        None => String::new(),
    }
}

/// Caveats of an acceptance test: what it does not cover, and that it overwrote the device. Empty
/// for other runs.
pub(crate) fn accept_caveats(record: &Record) -> Vec<String> {
    let Some(accept) = record.accept() else {
        return Vec::new();
    };
    let mut caveats = Vec::new();
    if let Procedure::Probe { .. } = accept.data.plan.procedure {
        caveats.push(probe_caveat(accept));
    }
    if accept.data.writes.bytes > 0 {
        let holder = if has_written_all(&accept.data) {
            "The device now holds"
        } else {
            "Parts of the device now hold"
        };
        caveats.push(format!(
            "{holder} the pattern of this test: make a filesystem on it, or write to it what you \
             like."
        ));
    }
    caveats
}

/// True if the pattern of the test reached every place: not of a probe, nor of a test that ended
/// while it wrote.
fn has_written_all(data: &AcceptMeasurement) -> bool {
    let is_whole = match data.plan.procedure {
        Procedure::Whole => true,
        Procedure::Probe { .. } => false,
    };
    is_whole && data.writes.bytes >= data.plan.size_bytes
}

/// The frauds and defects that a probe cannot find.
fn probe_caveat(accept: &AcceptRecord) -> String {
    let data = &accept.data;
    let written = format_bytes(data.writes.bytes);
    let filler = format_bytes(data.filler_bytes);
    let mut text = String::new();
    if let (Some(share), Some(blocks)) = (accept.figures.bad_share_max, accept.figures.blocks) {
        text = format!(
            "{} came back: every wrap and every end below 99.9 % of the claim would have been \
             found if at most {filler} of the last writes are cached, and less than {} of the \
             capacity is bad (99.9 %). ",
            counted(blocks, "piece"),
            format_percent(share)
        );
    }
    text.push_str(&format!(
        "A disk that stores any address until its flash is full passes this probe if that is more \
         than {written}; so do slow or worn parts, and data lost without power. Only the full pass \
         excludes them."
    ));
    text
}
