//! Parts of a record in words and as blocks: what every page says. Does not know how a page is laid
//! out. Here the page of a run: its sections in order. The only place that decides what a page
//! contains; a renderer decides how it looks.

pub(crate) mod changes;
pub(crate) mod comparison;
pub(crate) mod figures;
pub(crate) mod files;
pub(crate) mod findings;
pub(crate) mod inserts;
pub(crate) mod layers;
pub(crate) mod method;
pub(crate) mod observed;
pub(crate) mod ping;
pub(crate) mod plan;
pub(crate) mod remarks;
pub(crate) mod run;
pub(crate) mod server;
pub(crate) mod surface;
pub(crate) mod sweep;
mod sweep_view;
pub(crate) mod target;
pub(crate) mod verdict;

use crate::text::{distinct, glue, list};
use diskproof_model::block::{Block, Section, Shown, Tone};
use diskproof_model::health::DiskHealth;
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::postgres::PostgresRecord;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{format_duration, format_percent};
use figures::{Figures, conditions, depth_trials, limited_by_text, shared_conditions, shown_ops};
use findings::{advice, advice_in_short, conf_lines, findings, findings_in_short};
use method::{engines_text, proof_text};
use run::{expectations, not_run, partial_text, request_text, run_id, skipped_facts, start_text};
use target::{disk_name, health_text, host_text, summary};
use verdict::{grades, verdict};

/// A run of at most this time has a page of one screen.
const BRIEF_NS: u64 = 30_000_000_000;
/// Lines of such a page: what a terminal of 24 lines has left beside the plan in two lines, where
/// the run was saved, and the prompt.
const BRIEF_LINES: usize = 20;
/// Fewer rows of figures are no table.
const BRIEF_ROWS_MIN: usize = 3;
/// Columns of a usual terminal, and those before the text of a fact.
const COLUMNS: usize = 80;
const FACT_COLUMNS: usize = 69;
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
    let caveats = caveats.map(|caveat| Block::text(Tone::Dim, caveat));
    let server = |blocks: fn(&PostgresRecord) -> Vec<Block>| -> Vec<Block> {
        record.postgres().into_iter().flat_map(blocks).collect()
    };
    // On one screen, the end follows the figures as their notes do.
    let (caveats_on, end_id) = if is_brief(record) {
        (Whole, "notes")
    } else {
        (Always, "end")
    };
    sections.extend([
        Section::new("caveats", caveats_on, caveats.collect()),
        Section::new("figures", Always, observed::likeness(record)),
        Section::new("figures", Whole, server(inserts::blocks)),
        Section::new("figures", Short, server(inserts::digest)),
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

/// The answer with its figures once more, for the end of a page that is longer than the screen:
/// the settings that were tried, the verdict, the promises.
pub(crate) fn answer_with_figures(record: &Record) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(server) = record.postgres() {
        blocks.extend(inserts::tried_settings(&server.trials));
    }
    blocks.extend(verdict(record));
    blocks.extend(expectations(&record.expectations));
    blocks
}

/// What was measured.
fn figures(record: &Record) -> Vec<Section> {
    use Shown::{Always, File, Short, Whole};
    let mut sections = Vec::new();
    let mut add = |shown, blocks| sections.push(Section::new("figures", shown, blocks));
    let swept = record.sweep().map(|of| sweep::blocks(record, of));
    let files = || record.files().map(|of| files::blocks(record, of));
    let layers = || record.layers().map(|of| layers::blocks(record, of));
    let observed = || record.observed().map(observed::blocks);
    let own_form = swept.or_else(files).or_else(layers).or_else(observed);
    if let Some(blocks) = own_form {
        add(Always, blocks);
        let rows = (0..targets(record)).filter_map(|target| Figures::of(record, target, |_| true));
        rows.for_each(|rows| add(File, rows.blocks()));
        return sections;
    }
    let searched = record.latency_search().into_iter();
    let searched = searched.flat_map(|of| depth_trials(record, of));
    add(Always, searched.collect());
    for target in 0..targets(record) {
        add(Always, heading(record, target));
        let surveyed = record.surface().filter(|s| s.data.target == target);
        let figures = Figures::of(record, target, |m| m.figures.ping.is_none());
        if let Some(of) = surveyed {
            let mut blocks = surface::blocks(record, of);
            blocks.extend(of.data.scan.as_ref().map(|_| Block::Scan));
            // The answer of a run that measured nothing else.
            add(if figures.is_some() { Whole } else { Always }, blocks);
        }
        let all = record.measurements.iter().enumerate();
        for (index, m) in all.filter(|(_, m)| m.data.target == target) {
            let Some(ping) = &m.figures.ping else {
                continue;
            };
            if ping.after_idle.is_empty() {
                add(Whole, vec![Block::Ping(index)]);
                add(Short, ping::digest(m, ping));
            } else {
                add(Always, vec![Block::Ping(index)]);
            }
        }
        if let Some(pinged) = Figures::of(record, target, |m| m.figures.ping.is_some()) {
            add(File, pinged.blocks());
        }
        if let Some(figures) = figures {
            add(Whole, figures.blocks());
            let notes_max = if is_brief(record) {
                NOTES_BRIEF
            } else {
                NOTES_MAX
            };
            let notes = figures.urgent_notes(notes_max);
            let rows_max = rows_max(record, &notes);
            add(Short, figures.digest(rows_max, notes));
        }
        let missing = not_run(record, target);
        if !missing.is_empty() {
            let text = format!("not run: {}", list(missing));
            add(Always, vec![Block::text(Tone::Error, text)]);
        }
    }
    if record.measurements.is_empty() && record.surface().is_none() {
        let text = "nothing was measured";
        add(Always, vec![Block::text(Tone::Error, text)]);
    }
    add(Always, skipped_facts(&record.plan).collect());
    sections
}

/// Targets with an identity or with figures.
fn targets(record: &Record) -> usize {
    let measured = record.measurements.iter().map(|m| m.data.target);
    let surveyed = record
        .surface()
        .into_iter()
        .map(|surface| surface.data.target);
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
    let mut names = distinct(disks.map(disk_name));
    names.push(format!("host {}", record.host.name));
    names.push(format!("run {}", run_id(&record.run_id)));
    let mut blocks = vec![
        Block::text(Tone::Bold, title.join(" · ")),
        Block::text(Tone::Dim, names.join(" · ")),
    ];
    // With --for the note states each limit with its source, and the table of limits is the answer.
    if record.plan.questions.fit_for.is_none() {
        blocks.extend(note(record));
    }
    blocks.extend(partial_text(record).map(|why| Block::toned_fact(Tone::Error, "PARTIAL", why)));
    blocks
}

fn note(record: &Record) -> Option<Block> {
    let note = record.note.as_ref()?;
    Some(Block::text(Tone::Dim, format!("note: {note}")))
}

/// Machine, disk, filesystem, engine, conditions, and the proof of the figures.
fn details(record: &Record) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading("details".to_owned()),
        Block::fact("host", host_text(&record.host)),
    ];
    // The targets of a run on layers are those of the first one's stack.
    let layers = record.plan.layers();
    let shown = layers.map_or(record.targets.len(), |_| 1);
    let targets = record.targets.iter().enumerate().take(shown);
    blocks.extend(targets.flat_map(|(index, target)| of_target(record, target, index)));
    // Of a sweep the matrix says block sizes and depths, and the span is that of the target. The
    // tables of layers have their conditions in the heading.
    let listed = match (record.sweep(), record.layers()) {
        (None, None) => record.measurements.as_slice(),
        _ => &[],
    };
    let search = record.latency_search();
    let found = search.and_then(LatencySearch::found);
    let is_result = |m: &&Row| found.is_none_or(|found| found.workload == m.data.workload.name);
    let measured = listed.iter().filter(is_result).map(|m| {
        let cpu = glue(&format!("CPU {}", format_percent(m.cpu_share())));
        let mut text = format!("{}; {cpu}", conditions(m));
        let limit = m.figures.limited_by.as_ref().map(limited_by_text);
        text.extend(limit.map(|limit| format!("; {limit}")));
        Block::toned_fact(Tone::Plain, &m.data.workload.name, text)
    });
    blocks.extend(Block::headed("conditions", measured));
    blocks
}

fn of_target(record: &Record, target: &TargetIdentity, index: usize) -> Vec<Block> {
    let is_own = |health: &&DiskHealth| target.disks().any(|disk| disk.name == health.disk);
    let health = record.health.iter().filter(is_own);
    let all = summary(target, &record.plan).into_iter();
    let all = all
        .chain(health.map(|health| ("health", Some(health_text(health)))))
        .chain([
            ("engine", engines_text(record, index)),
            ("proof", proof_text(record, index)),
        ]);
    Block::facts(all).collect()
}

/// The run, and where more is.
fn end(record: &Record) -> Vec<Block> {
    let (run, method, seed) = (&record.run_id, record.method, record.plan.seed);
    let run = format!("run {run} · method {method} · seed {seed}");
    let more = "commands that reproduce each figure: --commands · all data: --json";
    let mut blocks = vec![Block::text(Tone::Dim, run), Block::text(Tone::Dim, more)];
    if record.plan.questions.fit_for.is_some() {
        blocks.extend(note(record));
    }
    blocks
}

/// Rows of figures on a short page. On one screen they get what the other parts leave.
fn rows_max(record: &Record, notes: &[Block]) -> usize {
    if record.postgres().is_some() {
        return ROWS_WITH_SERVER;
    }
    if !is_brief(record) || record.targets.len() > 1 {
        return ROWS_MAX;
    }
    let promises = expectations(&record.expectations);
    // An empty line before the promises and before the figures, and the names of the columns.
    let mut lines = if promises.is_empty() { 2 } else { 3 };
    let skipped: Vec<Block> = skipped_facts(&record.plan).collect();
    let end = end_in_short(record);
    for blocks in [
        &title(record),
        &verdict(record),
        &promises,
        &skipped,
        &end,
        notes,
    ] {
        lines += line_count(blocks);
    }
    let rows = BRIEF_LINES.saturating_sub(lines);
    let measured = record
        .measurements
        .iter()
        .map(|m| shown_ops(m).len().max(1));
    if measured.sum::<usize>() <= rows {
        return rows;
    }
    // One line counts the others.
    rows.saturating_sub(1).max(BRIEF_ROWS_MIN)
}

/// Lines that the blocks take on a usual terminal.
fn line_count(blocks: &[Block]) -> usize {
    let mut lines = 0;
    for block in blocks {
        lines += match block {
            Block::Text(_, text) => 1 + text.chars().count() / COLUMNS,
            Block::Fact(fact) => 1 + fact.text.chars().count() / FACT_COLUMNS,
            Block::Table(table) => {
                let has_names = table.columns.iter().any(|column| !column.name.is_empty());
                table.rows.len() + usize::from(has_names)
            }
            _ => 1,
        };
    }
    lines
}

/// Whether the page is one screen: of a quick run, of a profile with its few workloads, and below
/// the lines of single requests.
pub(crate) fn is_brief(record: &Record) -> bool {
    let mut measured = record.measurements.iter();
    record.plan.time_limit_ns.is_some_and(|ns| ns <= BRIEF_NS)
        || record.plan.questions.fit_for.is_some()
        || measured.len() > 0 && measured.all(|m| m.figures.ping.is_some())
}

/// Findings, settings to change, and one line of method.
fn end_in_short(record: &Record) -> Vec<Block> {
    let server = record.postgres();
    let remedies = server.map_or(FINDINGS_MAX, |_| FINDINGS_WITH_SERVER);
    let remedies = (!is_brief(record)).then_some(remedies);
    let mut blocks = findings_in_short(&record.findings, remedies);
    blocks.extend(advice_in_short(&record.advice));
    let conditions = shared_conditions(record).map(|text| text + " · ");
    let method = format!("{}all: -v", conditions.unwrap_or_default());
    blocks.push(Block::text(Tone::Dim, method));
    blocks
}
