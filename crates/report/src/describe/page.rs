//! The page of a run: its sections in order. The only place that decides what a page contains; a
//! renderer decides how it looks.

use super::figures::{Figures, conditions, limited_by_text, shared_conditions};
use super::findings::{Urgent, advice, advice_in_short, conf_lines, findings, findings_in_short};
use super::health::health_text;
use super::proof::{engines_text, proof_text};
use super::run::{expectations, not_run, partial_text, request_text, skipped_facts, start_text};
use super::runs::run_id;
use super::target::{disk_name, host_text, summary};
use super::verdict::{grades, verdict};
use super::{files, inserts, latency_search, layers, method, observed, ping, surface, sweep};
use crate::text::{glue, list};
use diskproof_model::block::{Block, Section, Shown, Tone};
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{format_duration, format_percent};

/// A run of at most this time has a page of one screen.
const BRIEF_NS: u64 = 30_000_000_000;
/// Rows of a table, notes below it and findings on a short page.
const ROWS_MAX: usize = 16;
/// A server has rows of its own.
const ROWS_WITH_SERVER: usize = 7;
const NOTES_MAX: usize = 3;
const NOTES_BRIEF: usize = 2;
const FINDINGS_MAX: usize = 3;
const FINDINGS_WITH_SERVER: usize = 2;

/// The sections of a page.
pub(crate) fn sections(record: &Record) -> Vec<Section> {
    use Shown::{Always, File, Short, Whole};
    let mut sections = vec![
        Section::new("title", Always, title(record)),
        Section::new("verdict", Always, verdict(record)),
        Section::new("expectations", Always, expectations(&record.expectations)),
    ];
    sections.extend(figures(record));
    let caveats = record.verdict.iter().flat_map(|verdict| &verdict.caveats);
    let caveats = caveats
        .map(|caveat| Block::text(Tone::Dim, caveat))
        .collect();
    let postgres = record.postgres.iter();
    // On one screen, the end follows the figures as their notes do.
    let (caveats_on, end_id) = match is_brief(record) {
        true => (Whole, "notes"),
        false => (Always, "end"),
    };
    sections.extend([
        Section::new("caveats", caveats_on, caveats),
        Section::new("figures", Always, observed::likeness(record)),
        Section::new(
            "figures",
            Whole,
            postgres.clone().flat_map(inserts::blocks).collect(),
        ),
        Section::new(
            "figures",
            Short,
            postgres.flat_map(inserts::digest).collect(),
        ),
        Section::new("findings", Whole, findings(&record.findings)),
        Section::new("advice", Whole, advice(&record.advice)),
        Section::new("advice", File, conf_lines(&record.advice)),
        Section::new("details", Whole, details(record)),
        Section::new("method", File, method::blocks(record)),
        Section::new("end", Whole, end(record)),
        Section::new(end_id, Short, end_in_short(record)),
    ]);
    sections.retain(|section| !section.blocks.is_empty());
    sections
}

/// What was measured.
fn figures(record: &Record) -> Vec<Section> {
    use Shown::{Always, File, Short, Whole};
    let part = |shown, blocks| vec![Section::new("figures", shown, blocks)];
    let own_form = if let Some(of) = &record.sweep {
        Some(sweep::blocks(record, of))
    } else if let Some(of) = &record.files {
        Some(files::blocks(record, of))
    } else if let Some(of) = &record.layers {
        Some(layers::blocks(record, of))
    } else {
        record.observed.as_ref().map(observed::blocks)
    };
    if let Some(blocks) = own_form {
        let mut sections = part(Always, blocks);
        let rows = (0..targets(record)).filter_map(|target| Figures::of(record, target, |_| true));
        sections.extend(rows.flat_map(|rows| part(File, rows.blocks())));
        return sections;
    }
    let searched = record.latency_search.iter();
    let searched = searched.flat_map(|of| latency_search::blocks(record, of));
    let mut sections = part(Always, searched.collect());
    for target in 0..targets(record) {
        sections.extend(part(Always, heading(record, target)));
        let surveyed = record.surface.as_ref().filter(|s| s.target == target);
        let figures = Figures::of(record, target, |m| m.ping.is_none());
        if let Some(of) = surveyed {
            let mut blocks = surface::blocks(record, of);
            blocks.extend(of.scan.as_ref().map(|_| Block::Scan));
            // The answer of a run that measured nothing else.
            let shown = if figures.is_some() { Whole } else { Always };
            sections.extend(part(shown, blocks));
        }
        let pinged = record.measurements.iter().enumerate();
        let pinged = pinged.filter(|(_, m)| m.target == target && m.ping.is_some());
        for (index, m) in pinged {
            let ping = m.ping.iter();
            let after_idle = ping.clone().any(|ping| !ping.after_idle.is_empty());
            sections.extend(part(
                if after_idle { Always } else { Whole },
                vec![Block::Ping(index)],
            ));
            let digest = ping
                .filter(|_| !after_idle)
                .flat_map(|ping| ping::digest(m, ping));
            sections.extend(part(Short, digest.collect()));
        }
        if let Some(pinged) = Figures::of(record, target, |m| m.ping.is_some()) {
            sections.extend(part(File, pinged.blocks()));
        }
        if let Some(figures) = figures {
            sections.extend(part(Whole, figures.blocks()));
            let (rows_max, notes_max) = limits(record);
            sections.extend(part(Short, figures.digest(rows_max, notes_max)));
        }
        let missing = not_run(record, target);
        if !missing.is_empty() {
            let text = format!("not run: {}", list(missing));
            sections.extend(part(Always, vec![Block::text(Tone::Error, text)]));
        }
    }
    if record.measurements.is_empty() && record.surface.is_none() {
        sections.extend(part(
            Always,
            vec![Block::text(Tone::Error, "nothing was measured")],
        ));
    }
    sections.extend(part(Always, skipped_facts(&record.plan).collect()));
    sections
}

/// Targets with an identity or with figures.
fn targets(record: &Record) -> usize {
    let measured = record.measurements.iter().map(|m| m.target);
    let surveyed = record.surface.iter().map(|surface| surface.target);
    let last = measured.chain(surveyed).max();
    last.map_or(0, |last| last + 1).max(record.targets.len())
}

/// Which of several targets the next blocks are about.
fn heading(record: &Record, target: usize) -> Vec<Block> {
    let (count, identity) = (record.targets.len(), record.targets.get(target));
    let Some(identity) = identity.filter(|_| count > 1) else {
        return Vec::new();
    };
    let heading = format!("target {} of {count}: {}", target + 1, identity.path);
    let mut blocks = vec![Block::Heading(heading)];
    blocks.extend(grades(record, |of| of == target));
    blocks
}

/// Request, time and disk; emphasised if the run is partial.
fn title(record: &Record) -> Vec<Block> {
    let title = [
        glue(&format!("{} {}", record.tool.name, record.tool.version)),
        request_text(&record.plan),
        glue(&start_text(&record.started)),
        glue(&format_duration(record.elapsed_ns())),
    ];
    let disks = record.targets.iter().flat_map(|target| target.disks());
    let mut names: Vec<String> = Vec::new();
    for name in disks.map(disk_name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.push(format!("host {}", record.host.name));
    names.push(format!("run {}", run_id(&record.run_id)));
    let mut blocks = vec![
        Block::text(Tone::Bold, title.join(" · ")),
        Block::text(Tone::Dim, names.join(" · ")),
    ];
    let note = record.note.as_ref();
    blocks.extend(note.map(|note| Block::text(Tone::Dim, format!("note: {note}"))));
    blocks.extend(partial_text(record).map(|why| Block::toned_fact(Tone::Error, "PARTIAL", why)));
    blocks
}

/// Machine, disk, filesystem, engine, conditions, and the proof of the figures.
fn details(record: &Record) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading("details".to_owned()),
        Block::fact("host", host_text(&record.host)),
    ];
    // The targets of a run on layers are those of the first one's stack.
    let shown = match record.plan.layers {
        Some(_) => 1,
        None => record.targets.len(),
    };
    let targets = record.targets.iter().enumerate().take(shown);
    blocks.extend(targets.flat_map(|(index, target)| of_target(record, target, index)));
    // Of a sweep the matrix says block sizes and depths, and the span is that of the target. The
    // tables of layers have their conditions in the heading.
    let listed = match (&record.sweep, &record.layers) {
        (None, None) => record.measurements.as_slice(),
        _ => &[],
    };
    let search = record.latency_search.as_ref();
    let found = search.and_then(LatencySearch::found);
    let is_result =
        |m: &&MeasurementRecord| found.is_none_or(|found| found.workload == m.workload.name);
    let measured = listed.iter().filter(is_result).map(|m| {
        let cpu = glue(&format!("CPU {}", format_percent(m.cpu_share())));
        let limit = m
            .limited_by
            .as_ref()
            .map(|limit| format!("; {}", limited_by_text(limit)));
        let text = format!(
            "{}; {cpu}{}",
            conditions(&m.workload),
            limit.unwrap_or_default()
        );
        Block::toned_fact(Tone::Plain, &m.workload.name, text)
    });
    let mut measured = measured.peekable();
    if measured.peek().is_some() {
        blocks.push(Block::Heading("conditions".to_owned()));
    }
    blocks.extend(measured);
    blocks
}

fn of_target(record: &Record, target: &TargetIdentity, index: usize) -> Vec<Block> {
    let facts = summary(target, &record.plan).into_iter();
    let facts = facts.filter_map(|(label, value)| Some((label, value?)));
    let health = record.health.iter();
    let health = health.filter(|health| target.disks().any(|disk| disk.name == health.disk));
    let own: Vec<&MeasurementRecord> = record
        .measurements
        .iter()
        .filter(|m| m.target == index)
        .collect();
    let all = facts
        .chain(health.map(|health| ("health", health_text(health))))
        .chain(engines_text(&own).map(|text| ("engine", text)))
        .chain(proof_text(record, index).map(|text| ("proof", text)));
    Block::facts(all).collect()
}

/// The run, and where more is.
fn end(record: &Record) -> Vec<Block> {
    let more = "commands that reproduce each figure: --commands · all data: --json";
    vec![
        Block::text(Tone::Dim, run(record)),
        Block::text(Tone::Dim, more),
    ]
}

fn run(record: &Record) -> String {
    let (run, method, seed) = (&record.run_id, record.method, record.plan.seed);
    format!("run {run} · method {method} · seed {seed}")
}

/// Rows and notes of a table on a short page.
fn limits(record: &Record) -> (usize, usize) {
    let rows_max = match record.postgres {
        Some(_) => ROWS_WITH_SERVER,
        None => ROWS_MAX,
    };
    let notes_max = match is_brief(record) {
        true => NOTES_BRIEF,
        false => NOTES_MAX,
    };
    (rows_max, notes_max)
}

/// Whether the page is one screen: of a quick run, and below the lines of single requests.
fn is_brief(record: &Record) -> bool {
    let mut measured = record.measurements.iter();
    record.plan.time_limit_ns.is_some_and(|ns| ns <= BRIEF_NS)
        || measured.len() > 0 && measured.all(|m| m.ping.is_some())
}

/// Findings, settings to change, and one line of method.
fn end_in_short(record: &Record) -> Vec<Block> {
    let urgent = match is_brief(record) {
        true => Urgent::First,
        false if record.postgres.is_some() => Urgent::WithRemedy(FINDINGS_WITH_SERVER),
        false => Urgent::WithRemedy(FINDINGS_MAX),
    };
    let mut blocks = findings_in_short(&record.findings, urgent);
    blocks.extend(advice_in_short(&record.advice));
    let conditions = shared_conditions(record);
    let method = format!(
        "{}all: -v",
        conditions.map_or(String::new(), |text| text + " · ")
    );
    blocks.push(Block::text(Tone::Dim, method));
    blocks
}
