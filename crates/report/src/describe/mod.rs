//! Parts of a record in words and as blocks: what every page says. Here the page of a run: its
//! sections in order. The only place that decides what a page contains; a renderer decides how it
//! looks.

pub(crate) mod accept;
pub(crate) mod changes;
pub(crate) mod comparison;
pub(crate) mod figures;
pub(crate) mod files;
pub(crate) mod findings;
pub(crate) mod fleet;
pub(crate) mod fleet_sum;
pub(crate) mod inserts;
pub(crate) mod layers;
pub(crate) mod load;
pub(crate) mod method;
pub(crate) mod observed;
pub(crate) mod ping;
pub(crate) mod plan;
pub(crate) mod remarks;
pub(crate) mod run;
pub(crate) mod server;
pub(crate) mod surface;
pub(crate) mod sustain;
pub(crate) mod sweep;
mod sweep_view;
pub(crate) mod target;
pub(crate) mod verdict;

use crate::text::{distinct, glue, list};
use diskproof_model::block::{Block, Section, Shown, Tone};
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::record::{Record, TaskResult};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{format_duration, format_percent};
use figures::{Figures, conditions, depth_trials, limited_by_text, shared_conditions, shown_ops};
use findings::{FindingsShown, advice, advice_in_short, conf_lines, findings, findings_in_short};
use method::{engines_text, proof_text};
use run::{expectations, not_run, partial_text, request_text, run_id, skipped_facts, start_text};
use target::{disk_name, health_text, host_text, summary};
use verdict::{grades, verdict};

/// A run of at most this time has a page of one screen.
const BRIEF_NS: u64 = 30_000_000_000;
/// Lines of such a page: a terminal has 24, and two announce the plan, one says where the run was
/// saved, and one is the prompt.
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

/// Returns the sections of the page of a run, in order; each says on which pages it is shown.
pub(crate) fn sections(record: &Record) -> Vec<Section> {
    use Shown::{Always, File, Short, Whole};
    let promises = expectations(&record.expectations);
    let mut page = vec![
        Section::new("title", Always, title(record)),
        Section::new("verdict", Always, verdict(record)),
        Section::new("expectations", Always, promises),
    ];
    page.extend(figures(record));
    // On one screen, the end follows the figures as their notes do.
    let (caveats_on, end_id) = if is_brief(record) {
        (Whole, "notes")
    } else {
        (Always, "end")
    };
    page.push(Section::new("caveats", caveats_on, caveats(record)));
    page.push(Section::new("figures", Always, observed::likeness(record)));
    if let Some(server) = record.postgres() {
        page.push(Section::new("figures", Whole, inserts::blocks(server)));
        page.push(Section::new("figures", Short, inserts::digest(server)));
    }
    page.extend([
        Section::new("findings", Whole, findings(&record.findings)),
        Section::new("advice", Whole, advice(&record.advice)),
        Section::new("advice", File, conf_lines(&record.advice)),
        Section::new("details", Whole, details(record)),
        Section::new("method", File, method::blocks(record)),
        Section::new("end", Whole, end(record)),
        Section::new(end_id, Short, end_in_short(record)),
    ]);
    page.retain(|section| !section.blocks.is_empty());
    page
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

fn caveats(record: &Record) -> Vec<Block> {
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

/// The figures of all targets, in the form that the task has.
fn figures(record: &Record) -> Vec<Section> {
    use Shown::{Always, File};
    let mut page = Vec::new();
    for result in &record.results {
        match result_blocks(record, result) {
            ResultBlocks::ForTables(blocks) => {
                let mut page = vec![figures_section(Always, blocks)];
                for target in 0..target_count(record) {
                    if let Some(table) = Figures::for_target(record, target, |_| true) {
                        page.push(figures_section(File, table.blocks()));
                    }
                }
                return page;
            }
            ResultBlocks::BeforeTables(blocks) => page.push(figures_section(Always, blocks)),
            ResultBlocks::Elsewhere => {}
        }
    }
    for target in 0..target_count(record) {
        page.extend(target_figures(record, target));
    }
    let has_figures = record
        .results
        .iter()
        .filter_map(|result| result.outcome().own_requests())
        .any(|own| own.has_figures);
    if record.measurements.is_empty() && !has_figures {
        let text = Block::text(Tone::Error, "nothing was measured");
        page.push(figures_section(Always, vec![text]));
    }
    let skipped = skipped_facts(&record.plan).collect();
    page.push(figures_section(Always, skipped));
    page
}

/// Where a result stands on the page of its run.
enum ResultBlocks {
    /// In place of the tables of workloads, which only a page in a file has besides.
    ForTables(Vec<Block>),
    /// Before the tables of workloads.
    BeforeTables(Vec<Block>),
    /// With its target, in a section of its own, or on another page.
    Elsewhere,
}

/// The blocks of a result.
fn result_blocks(record: &Record, result: &TaskResult) -> ResultBlocks {
    use ResultBlocks::{BeforeTables, Elsewhere, ForTables};
    match result {
        TaskResult::Sweep(sweep) => ForTables(sweep::blocks(record, sweep)),
        TaskResult::Files(files) => ForTables(files::blocks(record, files)),
        TaskResult::Accept(accept) => ForTables(accept::blocks(accept)),
        TaskResult::Layers(layers) => ForTables(layers::blocks(record, layers)),
        TaskResult::Load(load) => ForTables(load::blocks(record, load)),
        TaskResult::Rays(rays) => ForTables(load::ray_blocks(record, rays)),
        TaskResult::Observed(observed) => ForTables(observed::blocks(observed)),
        TaskResult::Depth(search) => BeforeTables(depth_trials(record, search)),
        TaskResult::Sustain(sustain) => BeforeTables(sustain::blocks(record, sustain)),
        // `target_figures` shows it with the workloads of its target.
        TaskResult::Survey(_) => Elsewhere,
        // `sections` has sections for it.
        TaskResult::Inserts(_) => Elsewhere,
        // The page of the comparison, or of the sum, says what they were a part of.
        TaskResult::Compared(_) | TaskResult::Together(_) => Elsewhere,
    }
}

/// Shows what was measured of one target: its surface, single requests, workloads.
fn target_figures(record: &Record, target: usize) -> Vec<Section> {
    use Shown::{Always, Short, Whole};
    let mut page = vec![figures_section(Always, heading(record, target))];
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
            table.urgent_notes(NOTES_BRIEF)
        } else {
            table.urgent_notes(NOTES_MAX)
        };
        let rows_max = short_rows(record, &notes);
        page.push(figures_section(Short, table.digest(rows_max, notes)));
    }
    let missing = not_run(record, target);
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
            page.push(figures_section(Short, ping::digest(measurement, ping)));
        } else {
            page.push(figures_section(Always, vec![Block::Ping(index)]));
        }
    }
    if let Some(table) = Figures::for_target(record, target, |m| m.figures.ping.is_some()) {
        page.push(figures_section(File, table.blocks()));
    }
    page
}

/// Targets with an identity or with figures.
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

/// Names the target that the next blocks are about; nothing where the run has only one.
fn heading(record: &Record, target: usize) -> Vec<Block> {
    let count = record.targets.len();
    let Some(identity) = record.targets.get(target) else {
        return Vec::new();
    };
    if count == 1 {
        return Vec::new();
    }
    let heading = format!("target {} of {count}: {}", target + 1, identity.path);
    let mut blocks = vec![Block::Heading(heading)];
    blocks.extend(grades(record, |graded| graded == target));
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
    let disks = record.targets.iter().flat_map(TargetIdentity::disks);
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
    if let Some(why) = partial_text(record) {
        blocks.push(Block::toned_fact(Tone::Error, "PARTIAL", why));
    }
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
    let mut facts = summary(target, &record.plan);
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
        let mut text = format!("{}; {cpu}", conditions(measurement));
        if let Some(limited) = &measurement.figures.limited_by {
            text.push_str(&format!("; {}", limited_by_text(limited)));
        }
        facts.push(Block::toned_fact(Tone::Plain, name, text));
    }
    facts
}

/// The run, and where more is.
fn end(record: &Record) -> Vec<Block> {
    let run = format!(
        "run {} · method {} · seed {}",
        record.run_id, record.method, record.plan.seed
    );
    let more = "commands that reproduce each figure: --commands · all data: --json";
    let mut blocks = vec![Block::text(Tone::Dim, run), Block::text(Tone::Dim, more)];
    if record.plan.questions.fit_for.is_some() {
        blocks.extend(note(record));
    }
    blocks
}

/// Rows of figures on a short page. On one screen they get what the other parts leave.
fn short_rows(record: &Record, notes: &[Block]) -> usize {
    if record.postgres().is_some() {
        return ROWS_WITH_SERVER;
    }
    if !is_brief(record) || record.targets.len() > 1 {
        return ROWS_MAX;
    }
    let room = BRIEF_LINES.saturating_sub(lines_beside_rows(record, notes));
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

/// Lines that a page of one screen needs for everything but rows of figures.
fn lines_beside_rows(record: &Record, notes: &[Block]) -> usize {
    let promises = expectations(&record.expectations);
    let skipped: Vec<Block> = skipped_facts(&record.plan).collect();
    // An empty line before the promises and before the figures, and the names of the columns.
    let spacing = if promises.is_empty() { 2 } else { 3 };
    spacing
        + line_count(&title(record))
        + line_count(&verdict(record))
        + line_count(&promises)
        + line_count(&skipped)
        + line_count(&end_in_short(record))
        + line_count(notes)
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

/// Whether the page is one screen: true for quick runs, for profiles and for pings.
pub(crate) fn is_brief(record: &Record) -> bool {
    let is_quick = matches!(record.plan.time_limit_ns, Some(ns) if ns <= BRIEF_NS);
    let is_profile = record.plan.questions.fit_for.is_some();
    is_quick || is_profile || has_only_pings(record)
}

fn has_only_pings(record: &Record) -> bool {
    let measurements = &record.measurements;
    !measurements.is_empty() && measurements.iter().all(|m| m.figures.ping.is_some())
}

/// Findings, settings to change, and one line of method.
fn end_in_short(record: &Record) -> Vec<Block> {
    let shown = if is_brief(record) {
        FindingsShown::TitleOfWorst
    } else if record.postgres().is_some() {
        FindingsShown::WithRemedies(FINDINGS_WITH_SERVER)
    } else {
        FindingsShown::WithRemedies(FINDINGS_MAX)
    };
    let mut blocks = findings_in_short(&record.findings, shown);
    blocks.extend(advice_in_short(&record.advice));
    let method = match shared_conditions(record) {
        Some(conditions) => format!("{conditions} · all: -v"),
        None => "all: -v".to_owned(),
    };
    blocks.push(Block::text(Tone::Dim, method));
    blocks
}
