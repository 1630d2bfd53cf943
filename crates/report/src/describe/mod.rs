//! The content of every page, as blocks; a renderer decides how they look. This file puts the page
//! of a run together: its sections and their order. Each file below describes one part.
//!
//! The last word of a function's name says what it returns: `_text` a part of a sentence, `_fact` a
//! text with its label, `_row` the cells of a table's row, `_table`, `_blocks` and `_sections` what
//! a page consists of.

pub(crate) mod accept;
pub(crate) mod changes;
mod commits;
pub(crate) mod comparison;
pub(crate) mod expectations;
pub(crate) mod figures;
pub(crate) mod files;
pub(crate) mod findings;
pub(crate) mod fleet;
mod fleet_acceptance;
mod fleet_commands;
mod fleet_metrics;
pub(crate) mod fleet_sum;
pub(crate) mod inserts;
pub(crate) mod layers;
mod likeness;
pub(crate) mod load;
pub(crate) mod method;
pub(crate) mod observed;
pub(crate) mod ping;
pub(crate) mod plan;
pub(crate) mod ratio;
mod rays;
pub(crate) mod remarks;
pub(crate) mod run;
pub(crate) mod saved_runs;
pub(crate) mod server;
pub(crate) mod surface;
pub(crate) mod sustain;
pub(crate) mod sweep;
mod sweep_view;
pub(crate) mod target;
pub(crate) mod verdict;

use crate::page::INDENT;
use crate::text::{distinct, glue, list};
use commits::commit_facts;
use diskproof_model::block::{Block, Section, Shown, Tone};
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::record::{Record, TaskResult};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{format_duration, format_percent};
use expectations::expectation_blocks;
use figures::{
    Figures, conditions_text, depth_trial_blocks, limited_by_text, shared_conditions_text,
    shown_ops,
};
use findings::{
    FindingsShown, advice_blocks, advice_fact, conf_blocks, finding_blocks, short_finding_blocks,
};
use method::{engines_text, proof_text};
use run::{
    partial_text, request_text, short_run_id, skipped_facts, start_text, unmeasured_workloads,
};
use target::{disk_name, health_text, host_text, summary_facts};
use verdict::{grades_table, verdict_blocks};

/// A run of at most this time has a brief page: a short page that fits one screen. With a larger
/// value, runs that measure many workloads would hide most of their rows.
const BRIEF_RUN_NS_MAX: u64 = 30_000_000_000;
/// Lines of a brief page. A terminal has 24: two announce the plan, one says where the run was
/// saved, and one is the prompt.
const BRIEF_LINES: usize = 20;
/// Rows of figures that a brief page has even where it then exceeds the screen.
const BRIEF_ROWS_MIN: usize = 3;
/// Columns of a usual terminal.
const COLUMNS: usize = 80;
/// Columns for the text of a fact on such a terminal: those behind its label.
const FACT_COLUMNS: usize = COLUMNS - INDENT;
/// Rows of figures on a short page that is not brief. With its other parts such a page takes at
/// most 45 lines, two screens less their prompts (`tests/pages/short.rs`). The numbers below are
/// chosen for that.
const SHORT_ROWS_MAX: usize = 16;
/// Rows of figures on a short page that also has a table of the server's. The page then has as many
/// lines as one without it.
const ROWS_WITH_SERVER: usize = 7;
/// Remarks below the figures of a short page that is not brief.
const SHORT_NOTES_MAX: usize = 3;
/// Remarks below the figures of a brief page.
const BRIEF_NOTES_MAX: usize = 2;
/// Findings with their remedies on a short page that is not brief.
const SHORT_FINDINGS_MAX: usize = 3;
/// Findings on a short page that also has a table of the server's.
const FINDINGS_WITH_SERVER: usize = 2;

/// Returns the sections of the page of a run, in order; each says on which pages it is shown.
pub(crate) fn sections(record: &Record) -> Vec<Section> {
    use Shown::{Always, File, Short, Whole};
    let promises = expectation_blocks(&record.expectations);
    let mut page = vec![
        Section::new("title", Always, title_blocks(record)),
        Section::new("verdict", Always, verdict_blocks(record)),
        Section::new("expectations", Always, promises),
    ];
    let results = result_sections(record);
    page.extend(results.sections);
    if !results.replaces_tables {
        for target in 0..target_count(record) {
            page.extend(target_sections(record, target));
        }
        page.extend(sections_after_tables(record));
    }
    let is_brief = is_brief(record);
    // A brief page has no room for caveats, but nobody decides on a database, or on the depth that
    // a search has found, without them.
    let is_decided_by =
        record.plan.questions.fit_for.is_some() || record.latency_search().is_some();
    let caveats_on = if is_brief && !is_decided_by {
        Whole
    } else {
        Always
    };
    // The terminal puts no empty line before a section called `notes`.
    let short_end_id = if is_brief { "notes" } else { "end" };
    page.push(Section::new("caveats", caveats_on, caveat_blocks(record)));
    page.push(Section::new("figures", Always, likeness::blocks(record)));
    if let Some(server) = record.postgres() {
        page.push(Section::new("figures", Whole, inserts::blocks(server)));
        page.push(Section::new(
            "figures",
            Short,
            inserts::short_blocks(server),
        ));
    }
    page.extend([
        Section::new("findings", Whole, finding_blocks(&record.findings)),
        Section::new("advice", Whole, advice_blocks(&record.advice)),
        Section::new(
            "advice",
            File,
            conf_blocks(&record.advice, record.plan.questions.postgres_version),
        ),
        Section::new("details", Whole, detail_blocks(record)),
        Section::new("method", File, method::blocks(record)),
        Section::new("end", Whole, end_blocks(record)),
        Section::new(short_end_id, Short, short_end_blocks(record)),
    ]);
    page.retain(|section| !section.blocks.is_empty());
    page
}

/// Repeats the answer of a run for the end of a page that is longer than the screen: the settings
/// that were tried, the verdict, the promises.
pub(crate) fn answer_blocks(record: &Record) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(server) = record.postgres() {
        blocks.extend(inserts::tried_settings_blocks(&server.trials));
    }
    blocks.extend(verdict_blocks(record));
    blocks.extend(expectation_blocks(&record.expectations));
    blocks
}

fn caveat_blocks(record: &Record) -> Vec<Block> {
    let Some(verdict) = &record.verdict else {
        return Vec::new();
    };
    verdict
        .caveats
        .iter()
        .map(|caveat| Block::text(Tone::Dim, caveat))
        .collect()
}

fn figures_section(shown: Shown, blocks: Vec<Block>) -> Section {
    Section::new("figures", shown, blocks)
}

/// The sections of a run's results.
struct ResultSections {
    sections: Vec<Section>,
    /// True if a result has tables of its own, such as a sweep: those of workloads do not follow.
    replaces_tables: bool,
}

/// Describes the results that are more than workloads.
fn result_sections(record: &Record) -> ResultSections {
    let mut sections = Vec::new();
    for result in &record.results {
        match result_blocks(record, result) {
            ResultBlocks::InPlaceOfTables(blocks) => {
                return ResultSections {
                    sections: sections_without_tables(record, blocks),
                    replaces_tables: true,
                };
            }
            ResultBlocks::BeforeTables(blocks) => {
                sections.push(figures_section(Shown::Always, blocks));
            }
            ResultBlocks::Elsewhere => {}
        }
    }
    ResultSections {
        sections,
        replaces_tables: false,
    }
}

/// What follows the tables of all targets: that nothing was measured, and the workloads that the
/// plan skipped.
fn sections_after_tables(record: &Record) -> Vec<Section> {
    use Shown::Always;
    let mut page = Vec::new();
    if record.measurements.is_empty() && !record.has_figures_of_results() {
        let text = Block::text(Tone::Error, "nothing was measured");
        page.push(figures_section(Always, vec![text]));
    }
    let skipped = skipped_facts(&record.plan).collect();
    page.push(figures_section(Always, skipped));
    page
}

/// Describes a result in place of the tables of workloads. Pages in files have both.
fn sections_without_tables(record: &Record, result: Vec<Block>) -> Vec<Section> {
    let mut page = vec![figures_section(Shown::Always, result)];
    for target in 0..target_count(record) {
        if let Some(table) = Figures::for_target(record, target, |_| true) {
            page.push(figures_section(Shown::File, table.blocks()));
        }
    }
    page
}

/// The blocks of a result, by where they stand on the page of its run.
enum ResultBlocks {
    /// In place of the tables of workloads, which only a page in a file has besides.
    InPlaceOfTables(Vec<Block>),
    /// Before the tables of workloads.
    BeforeTables(Vec<Block>),
    /// With its target, in a section of its own, or on another page.
    Elsewhere,
}

fn result_blocks(record: &Record, result: &TaskResult) -> ResultBlocks {
    use ResultBlocks::{BeforeTables, Elsewhere, InPlaceOfTables};
    match result {
        TaskResult::Sweep(sweep) => InPlaceOfTables(sweep::blocks(record, sweep)),
        TaskResult::Files(files) => InPlaceOfTables(files::blocks(record, files)),
        TaskResult::Accept(accept) => InPlaceOfTables(accept::blocks(accept)),
        TaskResult::Layers(layers) => InPlaceOfTables(layers::blocks(record, layers)),
        TaskResult::Load(load) => InPlaceOfTables(load::blocks(record, load)),
        TaskResult::Rays(rays) => InPlaceOfTables(rays::blocks(record, rays)),
        TaskResult::Observed(observed) => InPlaceOfTables(observed::blocks(observed)),
        TaskResult::Depth(search) => BeforeTables(depth_trial_blocks(record, search)),
        TaskResult::Sustain(sustain) => BeforeTables(sustain::blocks(record, sustain)),
        // `target_sections` shows it with the workloads of its target.
        TaskResult::Survey(_) => Elsewhere,
        // `sections` has sections for it.
        TaskResult::Inserts(_) => Elsewhere,
        // The page of the comparison, or of the sum, says what they were a part of.
        TaskResult::Compared(_) | TaskResult::Together(_) => Elsewhere,
    }
}

/// Describes what was measured on one target, in this order: its surface, single requests,
/// workloads, and the planned workloads that did not run.
fn target_sections(record: &Record, target: usize) -> Vec<Section> {
    use Shown::{Always, Short, Whole};
    let mut page = vec![figures_section(Always, target_heading(record, target))];
    let table = Figures::for_target(record, target, |m| m.figures.ping.is_none());
    if let Some(surface) = record.surface()
        && surface.data.target == target
    {
        let mut blocks = surface::blocks(record, surface);
        if surface.data.scan.is_some() {
            blocks.push(Block::Scan);
        }
        // The answer of a run that measured nothing else.
        let shown = if table.is_some() { Whole } else { Always };
        page.push(figures_section(shown, blocks));
    }
    page.extend(ping_sections(record, target));
    if let Some(table) = table {
        page.push(figures_section(Whole, table.blocks()));
        let notes = if is_brief(record) {
            table.urgent_notes(BRIEF_NOTES_MAX)
        } else {
            table.urgent_notes(SHORT_NOTES_MAX)
        };
        let rows_max = short_rows_max(record, &notes);
        page.push(figures_section(
            Short,
            table.first_rows_blocks(rows_max, notes),
        ));
    }
    let missing = unmeasured_workloads(record, target);
    if !missing.is_empty() {
        let text = format!("not run: {}", list(missing));
        let block = Block::text(Tone::Error, text);
        page.push(figures_section(Always, vec![block]));
    }
    page
}

/// The single requests that were sent to a target.
fn ping_sections(record: &Record, target: usize) -> Vec<Section> {
    use Shown::{Always, File, Short, Whole};
    let mut page = Vec::new();
    for (index, measurement) in record.measurements.iter().enumerate() {
        if measurement.data.target != target {
            continue;
        }
        let Some(ping) = &measurement.figures.ping else {
            continue;
        };
        if ping.after_idle.is_empty() {
            page.push(figures_section(Whole, vec![Block::Ping(index)]));
            page.push(figures_section(
                Short,
                ping::digest_blocks(measurement, ping),
            ));
        } else {
            page.push(figures_section(Always, vec![Block::Ping(index)]));
        }
    }
    if let Some(table) = Figures::for_target(record, target, |m| m.figures.ping.is_some()) {
        page.push(figures_section(File, table.blocks()));
    }
    page
}

/// Counts the targets. Measurements may name more of them than the record has identities.
fn target_count(record: &Record) -> usize {
    let mut count = record.targets.len();
    for measurement in &record.measurements {
        count = count.max(measurement.data.target + 1);
    }
    if let Some(surface) = record.surface() {
        count = count.max(surface.data.target + 1);
    }
    count
}

/// Names the target that the next blocks are about, with its grades and how its methods of
/// committing compare. Empty where the run has only one target.
fn target_heading(record: &Record, target: usize) -> Vec<Block> {
    let count = record.targets.len();
    let Some(identity) = record.targets.get(target) else {
        return Vec::new();
    };
    if count == 1 {
        return Vec::new();
    }
    let heading = format!("target {} of {count}: {}", target + 1, identity.path);
    let mut blocks = vec![Block::Heading(heading)];
    blocks.extend(grades_table(record, |graded| graded == target));
    if record.verdict.is_some() {
        blocks.extend(commit_facts(record, target));
    }
    blocks
}

/// Names the request, its time and the disks, and says why a partial run is partial.
fn title_blocks(record: &Record) -> Vec<Block> {
    let title = [
        glue(&format!("{} {}", record.tool.name, record.tool.version)),
        request_text(&record.plan),
        glue(&start_text(&record.started)),
        glue(&format_duration(record.elapsed_ns())),
    ];
    let disks = record.targets.iter().flat_map(TargetIdentity::disks);
    let mut names = distinct(disks.map(disk_name));
    names.push(format!("host {}", record.host.name));
    names.push(format!("run {}", short_run_id(&record.run_id)));
    let mut blocks = vec![
        Block::text(Tone::Bold, title.join(" · ")),
        Block::text(Tone::Dim, names.join(" · ")),
    ];
    // With --for the note states each limit with its source, and the table of limits is the answer.
    if record.plan.questions.fit_for.is_none() {
        blocks.extend(note_block(record));
    }
    if let Some(why) = partial_text(record) {
        blocks.push(Block::toned_fact(Tone::Error, "PARTIAL", why));
    }
    blocks
}

fn note_block(record: &Record) -> Option<Block> {
    let note = record.note.as_ref()?;
    Some(Block::text(Tone::Dim, format!("note: {note}")))
}

/// Describes the machine, each target with its disks, engine and proof, and the conditions of each
/// workload.
fn detail_blocks(record: &Record) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading("details".to_owned()),
        Block::fact("host", host_text(&record.host)),
    ];
    // The targets of a run on layers are those of the first one's stack.
    let shown = match record.plan.layers() {
        Some(_) => 1,
        None => record.targets.len(),
    };
    for (index, target) in record.targets.iter().enumerate().take(shown) {
        blocks.extend(target_facts(record, target, index));
    }
    blocks.extend(Block::headed("conditions", condition_facts(record)));
    blocks
}

fn target_facts(record: &Record, target: &TargetIdentity, index: usize) -> Vec<Block> {
    let mut facts = summary_facts(index, target, &record.plan);
    for health in &record.health {
        if target.disks().any(|disk| disk.name == health.disk) {
            facts.push(("health", Some(health_text(health))));
        }
    }
    facts.push(("engine", engines_text(record, index)));
    facts.push(("proof", proof_text(record, index)));
    Block::facts(facts).collect()
}

/// The conditions of each workload, the CPU time that it used, and what limited it.
fn condition_facts(record: &Record) -> Vec<Block> {
    // Of a sweep the matrix says block sizes and depths, and the span is that of the target. The
    // tables of layers have their conditions in the heading.
    if record.sweep().is_some() || record.layers().is_some() {
        return Vec::new();
    }
    let found = record.latency_search().and_then(LatencySearch::found);
    let mut facts = Vec::new();
    for measurement in &record.measurements {
        let name = &measurement.data.workload.name;
        if let Some(found) = found
            && found.workload != *name
        {
            continue;
        }
        let cpu = glue(&format!("CPU {}", format_percent(measurement.cpu_share())));
        let mut text = format!("{}; {cpu}", conditions_text(measurement));
        if let Some(limited) = &measurement.figures.limited_by {
            text.push_str(&format!("; {}", limited_by_text(limited)));
        }
        facts.push(Block::toned_fact(Tone::Plain, name, text));
    }
    facts
}

/// Identifies the run, and names the options that print more.
fn end_blocks(record: &Record) -> Vec<Block> {
    let run = format!(
        "run {} · method {} · seed {}",
        record.run_id, record.method, record.plan.seed
    );
    let more = if method::command_blocks(record).is_empty() {
        "all data: --json"
    } else {
        "commands that reproduce each figure: --commands · all data: --json"
    };
    let mut blocks = vec![Block::text(Tone::Dim, run), Block::text(Tone::Dim, more)];
    if record.plan.questions.fit_for.is_some() {
        blocks.extend(note_block(record));
    }
    blocks
}

/// Returns how many rows of figures a short page has. On a brief page they get the lines that the
/// other parts leave.
fn short_rows_max(record: &Record, notes: &[Block]) -> usize {
    if record.postgres().is_some() {
        return ROWS_WITH_SERVER;
    }
    if !is_brief(record) || record.targets.len() > 1 {
        return SHORT_ROWS_MAX;
    }
    let room = BRIEF_LINES.saturating_sub(lines_without_rows(record, notes));
    let rows: usize = record
        .measurements
        .iter()
        .map(|measurement| shown_ops(measurement).len().max(1))
        .sum();
    if rows <= room {
        return room;
    }
    // One line counts the others.
    room.saturating_sub(1).max(BRIEF_ROWS_MIN)
}

/// Counts the lines of a brief page without its rows of figures.
fn lines_without_rows(record: &Record, notes: &[Block]) -> usize {
    let promises = expectation_blocks(&record.expectations);
    let skipped: Vec<Block> = skipped_facts(&record.plan).collect();
    // An empty line before the promises and before the figures, and the names of the columns.
    let spacing = if promises.is_empty() { 2 } else { 3 };
    spacing
        + line_count(&title_blocks(record))
        + line_count(&verdict_blocks(record))
        + line_count(&promises)
        + line_count(&skipped)
        + line_count(&short_end_blocks(record))
        + line_count(notes)
}

/// Estimates the lines that blocks take on a usual terminal: by characters, as if no word were
/// moved to the next line.
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
            Block::Heading(_)
            | Block::Chart(_)
            | Block::Finding(_)
            | Block::Command { .. }
            | Block::Ping(_)
            | Block::Scan => 1,
        };
    }
    lines
}

/// True if the short page is brief, that is one screen: after quick runs, for `--for` and for
/// pings.
pub(crate) fn is_brief(record: &Record) -> bool {
    let is_quick = matches!(record.plan.time_limit_ns, Some(ns) if ns <= BRIEF_RUN_NS_MAX);
    let is_for_profile = record.plan.questions.fit_for.is_some();
    is_quick || is_for_profile || has_only_pings(record)
}

fn has_only_pings(record: &Record) -> bool {
    let measurements = &record.measurements;
    !measurements.is_empty() && measurements.iter().all(|m| m.figures.ping.is_some())
}

/// Describes in short what follows the figures: findings, settings to change, one line of method.
fn short_end_blocks(record: &Record) -> Vec<Block> {
    let shown = if is_brief(record) {
        FindingsShown::TitleOfWorst
    } else if record.postgres().is_some() {
        FindingsShown::WithRemedies(FINDINGS_WITH_SERVER)
    } else {
        FindingsShown::WithRemedies(SHORT_FINDINGS_MAX)
    };
    let mut blocks = short_finding_blocks(&record.findings, shown);
    let version = record.plan.questions.postgres_version;
    blocks.extend(advice_fact(&record.advice, version));
    let method = match shared_conditions_text(record) {
        Some(conditions) => format!("{conditions} · all: -v"),
        None => "all: -v".to_owned(),
    };
    blocks.push(Block::text(Tone::Dim, method));
    blocks
}
