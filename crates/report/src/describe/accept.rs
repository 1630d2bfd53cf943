//! An acceptance test in words: the plan, wrong content, the rates, and changes in the disk's
//! health report. Addresses on the disk are numbers of sectors, which texts call blocks, as the
//! kernel's log does.

use crate::text::glue;
use diskproof_model::accept::{
    AcceptFigures, AcceptMeasurement, AcceptPlan, AcceptRecord, BadContent, BadRange,
    HealthCounter, Procedure, RateByPosition,
};
use diskproof_model::block::{Block, Tone};
use diskproof_model::units::{
    SECTOR_BYTES, format_bytes, format_duration, format_percent, format_throughput,
};

/// A page lists at most this many bad ranges. They show the pattern; the record has all.
const RANGES_MAX: usize = 8;
/// Columns of the table of rates. The first one has the direction.
const RATE_COLUMNS: [&str; 4] = ["", "slowest part", "average", "fastest part"];
/// Columns of the table of bad ranges. The first one counts them.
const RANGE_COLUMNS: [&str; 4] = ["wrong", "from block", "bytes", "what came back"];

/// Describes a test that is still to run.
pub(crate) fn plan_text(accept: &AcceptPlan) -> String {
    let size = format_bytes(accept.size_bytes);
    match accept.procedure {
        Procedure::Whole => {
            format!("writes all {size} in random order, then reads and checks all of it")
        }
        Procedure::Probe { .. } => {
            format!("writes and reads a sample of {size}, and filler that empties caches")
        }
    }
}

/// Describes the result of a test: what it did, what came back, the rates, then what is suspicious.
pub(crate) fn blocks(accept: &AcceptRecord) -> Vec<Block> {
    let (data, figures) = (&accept.data, &accept.figures);
    let mut blocks = vec![
        Block::fact("test", test_text(data)),
        Block::fact("content", content_text(data)),
        Block::fact("proof", proof_text(data)),
    ];
    blocks.extend(rates_table(figures));
    blocks.push(Block::Chart("rate-by-position"));
    blocks.extend(suspicion_facts(figures));
    blocks.extend(bad_ranges_table(data));
    blocks
}

/// A fall of the write rate, slow zones, and counters of the disk's health that rose.
fn suspicion_facts(figures: &AcceptFigures) -> Vec<Block> {
    let mut facts = Vec::new();
    if let Some(cliff) = &figures.cliff {
        let text = format!(
            "writes fell from {} to {} after {}",
            format_throughput(cliff.before),
            format_throughput(cliff.behind),
            format_bytes(cliff.after_bytes)
        );
        facts.push(Block::fact("cliff", text));
    }
    for zone in &figures.slow_zones {
        let text = format!(
            "{} from block {} on read {}, their neighbours {}",
            format_bytes(zone.length_bytes),
            sector_text(zone.offset_bytes),
            format_throughput(zone.bytes_per_second),
            format_throughput(zone.usual)
        );
        facts.push(Block::toned_fact(Tone::Warning, "slow zone", text));
    }
    for change in &figures.health_changes {
        let text = format!(
            "{}: {} rose from {} to {} during the test",
            change.disk,
            counter_text(change.counter),
            change.before,
            change.after
        );
        facts.push(Block::toned_fact(Tone::Warning, "health", text));
    }
    facts
}

/// `every chunk of 1 MiB once, in random order; 256 MiB written and 256 MiB read in 3 s`
fn test_text(data: &AcceptMeasurement) -> String {
    let chunk = glue(&format_bytes(data.chunk_bytes));
    let what = match data.plan.procedure {
        Procedure::Whole => format!("every chunk of {chunk} once, in random order"),
        Procedure::Probe { .. } => format!(
            "the first {chunk} whole, two blocks in each further {chunk}, {} of filler",
            glue(&format_bytes(data.filler_bytes))
        ),
    };
    let runs = match data.earlier_runs {
        0 => String::new(),
        1 => ", in two runs".to_owned(),
        earlier => format!(", in {} runs", earlier + 1),
    };
    format!(
        "{what}; {} written and {} read in {}{runs}",
        glue(&format_bytes(data.writes.bytes)),
        glue(&format_bytes(data.reads.bytes)),
        glue(&format_duration(data.wall_ns))
    )
}

fn content_text(data: &AcceptMeasurement) -> String {
    let bad = data.bad_bytes;
    let mut parts = Vec::new();
    for (bytes, what) in [
        (bad.displaced, "held what was written to another address"),
        (bad.lost, "did not hold what was written"),
        (bad.flipped, "had wrong bits"),
        (bad.failed, "could not be read"),
        (data.failed_writes_bytes, "could not be written"),
    ] {
        if bytes > 0 {
            parts.push(format!("{} {what}", glue(&format_bytes(bytes))));
        }
    }
    if parts.is_empty() && data.reads.bytes == 0 {
        "nothing was read yet".to_owned()
    } else if parts.is_empty() {
        "every sector that was read held its own address, its number and its content".to_owned()
    } else {
        parts.join("; ")
    }
}

/// Says whether the disks' own counters confirm the reads of all runs of the test.
fn proof_text(data: &AcceptMeasurement) -> String {
    if let Some(why) = &data.device.unresolved {
        return format!("no counter of a disk confirms the reads ({why})");
    }
    let reads = data.counted_reads().unwrap_or_default();
    if reads.asked_bytes == 0 {
        return "nothing was read".to_owned();
    }
    let share = reads.counted_bytes as f64 / reads.asked_bytes as f64;
    format!(
        "the disk read {} of the bytes that were asked for, by its counters",
        format_percent(share)
    )
}

fn rates_table(figures: &AcceptFigures) -> Option<Block> {
    let mut rows = Vec::new();
    for (name, rate) in [("write", figures.write_rate), ("read", figures.read_rate)] {
        if let Some(rate) = rate {
            rows.push(rate_row(name, rate));
        }
    }
    if rows.is_empty() {
        return None;
    }
    let caption = "Transfer rate by position";
    Some(Block::table(caption, RATE_COLUMNS, rows))
}

fn rate_row(name: &str, rate: RateByPosition) -> Vec<String> {
    vec![
        name.to_owned(),
        part_rate_text(rate.min),
        format_throughput(rate.average),
        part_rate_text(rate.max),
    ]
}

/// The rate of the slowest or fastest part. Empty where the test was too short for parts.
fn part_rate_text(rate: Option<f64>) -> String {
    match rate {
        Some(rate) => format_throughput(rate),
        None => String::new(),
    }
}

fn counter_text(counter: HealthCounter) -> &'static str {
    match counter {
        HealthCounter::Reallocated => "reallocated sectors",
        HealthCounter::Pending => "pending sectors",
        HealthCounter::Uncorrectable => "uncorrectable sectors",
        HealthCounter::MediaErrors => "media errors",
        HealthCounter::LinkErrors => "errors of the link",
    }
}

fn bad_ranges_table(data: &AcceptMeasurement) -> Option<Block> {
    if data.bad.is_empty() {
        return None;
    }
    let mut rows = Vec::new();
    for (number, range) in data.bad.iter().take(RANGES_MAX).enumerate() {
        rows.push(vec![
            (number + 1).to_string(),
            sector_text(range.offset_bytes),
            format_bytes(range.length_bytes),
            bad_content_text(range),
        ]);
    }
    Some(Block::table(
        "What came back wrong, at the lowest addresses",
        RANGE_COLUMNS,
        rows,
    ))
}

fn bad_content_text(range: &BadRange) -> String {
    match &range.content {
        BadContent::Blank => "zeros or ones".to_owned(),
        BadContent::Foreign => "content of something else".to_owned(),
        BadContent::Stale { .. } => "an earlier write".to_owned(),
        BadContent::Displaced { from_bytes, .. } => {
            format!("content of block {}", sector_text(*from_bytes))
        }
        BadContent::Flipped { bits } => format!("{bits} wrong bits"),
        BadContent::Failed { errno } => errno.clone(),
        BadContent::Unwritten => "not written".to_owned(),
    }
}

/// The address of a sector, in hexadecimal digits.
fn sector_text(offset_bytes: u64) -> String {
    format!("{:#x}", offset_bytes / SECTOR_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad_range(content: BadContent) -> BadRange {
        BadRange {
            offset_bytes: 32 * SECTOR_BYTES,
            length_bytes: SECTOR_BYTES,
            content,
        }
    }

    #[test]
    fn content_that_came_back_wrong_is_named() {
        let displaced = BadContent::Displaced {
            from_bytes: 16 * SECTOR_BYTES,
            order: 1,
        };
        for (content, text) in [
            (BadContent::Blank, "zeros or ones"),
            (displaced, "content of block 0x10"),
            (BadContent::Flipped { bits: 3 }, "3 wrong bits"),
        ] {
            assert_eq!(bad_content_text(&bad_range(content)), text);
        }
    }

    #[test]
    fn addresses_are_those_of_sectors() {
        assert_eq!(sector_text(0), "0x0");
        assert_eq!(sector_text(32 * SECTOR_BYTES), "0x20");
    }
}
