//! Carries out any campaign on prepared targets: opened and laid out once, then one cell after the
//! other, as the campaign decides. Also runs the commands that change a setting between two cells.

use super::prepare::{MeasuringJob, ReadyRun, admit_all, prepare};
use super::prepare_command::{self, CommandEnd};
use super::run::{EarlyEnd, TargetRun};
use super::slices::SliceSchedule;
use super::watchdog::EndedRun;
use crate::failure::Failure;
use crate::interrupt;
use crate::live::Live;
use crate::stdio::{Verbosity, eprint_line};
use anyhow::Context as _;
use diskproof_analysis::campaign::{
    Campaign, CampaignCell, CampaignRow, MeasuredCell, planned_campaign,
};
use diskproof_device::{Consent, OpenTarget, probe, same_blocks};
use diskproof_engine::watchdog::Heartbeat;
use diskproof_model::campaign::DroppedSlice;
use diskproof_model::group::Group;
use diskproof_model::measurement::{EngineUse, Measurement, StopReason};
use diskproof_model::plan::{CachePolicy, EngineChoice, Layout, Span, Workload};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Where the cells of a campaign are measured.
pub(super) trait CampaignBench {
    /// Measures a cell, and adds what it gave to the results of its row.
    fn measure(&mut self, cell: &CampaignCell) -> Result<MeasuredCell, EarlyEnd>;

    /// Removes a row from the results, and keeps what its slices moved.
    fn drop_row(&mut self, row: &CampaignRow, slices: Vec<DroppedSlice>);
}

/// Measures what the campaign asks for, until it is over. The error of a cell ends the campaign.
pub(super) fn carry_out(
    campaign: &mut dyn Campaign,
    bench: &mut impl CampaignBench,
) -> Result<(), EarlyEnd> {
    let mut done: Vec<MeasuredCell> = Vec::new();
    // How many cells were done when the row was dropped last.
    let mut counted_from: BTreeMap<CampaignRow, usize> = BTreeMap::new();
    loop {
        let next = campaign.next(&done);
        for row in campaign.take_dropped() {
            let from = counted_from
                .insert(row.clone(), done.len())
                .unwrap_or_default();
            let slices = done[from..]
                .iter()
                .filter(|one| one.is_of(&row))
                .map(MeasuredCell::dropped)
                .collect();
            bench.drop_row(&row, slices);
        }
        let Some(cell) = next else {
            return Ok(());
        };
        done.push(bench.measure(&cell)?);
    }
}

/// Opens the targets and carries out the campaign on them. The job has the workloads with their
/// time on all sides together. The sides are the targets, or the `settings` of the only one: the
/// commands that run before their cells, with the target closed where it is to be reopened.
/// `cleanup` runs after the last cell. The measurements have the number of the side as their
/// target.
pub(crate) fn measure_campaign(
    job: MeasuringJob<'_>,
    prepare_commands: &[String],
    reopens: bool,
    cleanup: Option<&str>,
) -> anyhow::Result<EndedRun> {
    let ready = prepare(&job)?;
    let campaign = planned_campaign(&ready.work.plan);
    let campaign = campaign.context("the plan compares nothing")?;
    let verbosity = ready.work.verbosity;
    let sides = (prepare_commands.to_vec(), reopens);
    let engine_key = |workload: &Workload| workload.name.clone();
    let ended = supervise(ready, sides, engine_key, campaign);
    if let Some(command) = cleanup {
        clean_up(command, verbosity);
    }
    Ok(ended?)
}

/// Carries out a campaign whose sides are the targets. All cells that need a queue have one engine,
/// and all that need none: trying engines takes time.
pub(super) fn supervise_on_targets(
    ready: ReadyRun,
    campaign: Box<dyn Campaign>,
) -> Result<EndedRun, Failure> {
    let engine_key = |workload: &Workload| match workload.depth {
        1 => "single".to_owned(),
        _ => "queue".to_owned(),
    };
    supervise(ready, (Vec::new(), false), engine_key, campaign)
}

/// Carries out a campaign on a separate thread.
fn supervise(
    ready: ReadyRun,
    (prepare_commands, reopens): (Vec<String>, bool),
    engine_key: fn(&Workload) -> String,
    mut campaign: Box<dyn Campaign>,
) -> Result<EndedRun, Failure> {
    let consent = ready.consent.clone();
    ready.run(move |run, live| {
        let mut cells = PreparedCells {
            run,
            prepare_commands: &prepare_commands,
            reopens,
            engine_key,
            consent: &consent,
            live,
            span_bytes: None,
            spans: Vec::new(),
            engines: BTreeMap::new(),
            moved: BTreeMap::new(),
            slices: 0,
        };
        if !reopens {
            cells.lay_out()?;
        }
        carry_out(campaign.as_mut(), &mut cells)?;
        cells.run.results().decisions = campaign.decisions();
        Ok(())
    })
}

/// Runs the command after the last cell, however the run ended: it restores a setting. Only a
/// signal that comes meanwhile ends it.
fn clean_up(command: &str, verbosity: Verbosity) {
    let heeds_signal = interrupt::signal().is_none();
    match prepare_command::run("--cleanup", command, heeds_signal, &Heartbeat::default()) {
        CommandEnd::Done => verbosity.note(&format!("ran --cleanup '{command}'")),
        CommandEnd::Failed(why) => eprint_line(&format!("warning: {why}")),
        CommandEnd::Interrupted => eprint_line(&format!(
            "warning: --cleanup '{command}' was interrupted, and may not have restored the setting"
        )),
    }
}

/// Cells on open targets.
struct PreparedCells<'a> {
    run: &'a mut TargetRun,
    /// The command that runs before each cell of a side, where the sides are settings of a target.
    prepare_commands: &'a [String],
    /// Whether the target is closed before each command and opened again afterwards.
    reopens: bool,
    /// Which cells are measured by the engine that the first of them chose: those with one key.
    engine_key: fn(&Workload) -> String,
    consent: &'a Consent,
    live: &'a mut Live,
    /// The span of all workloads, where the targets differ in what was laid out.
    span_bytes: Option<u64>,
    /// The span of each side, where the sides are layers of one target.
    spans: Vec<Span>,
    /// The engines, as the first cell that each serves chose it.
    engines: BTreeMap<String, EngineUse>,
    /// Bytes that each workload has moved on each target.
    moved: BTreeMap<(usize, String), u64>,
    /// Cells so far.
    slices: u64,
}

impl PreparedCells<'_> {
    /// Index of the target of a side.
    fn target(&self, side: usize) -> usize {
        if self.prepare_commands.is_empty() {
            side
        } else {
            0
        }
    }

    /// Fills all scratch files, and takes the span that all targets have; of layers, that of each.
    fn lay_out(&mut self) -> Result<(), EarlyEnd> {
        let plan = Arc::clone(&self.run.plan);
        let Some(first) = plan.workloads().iter().find(|w| w.layout == Layout::Needed) else {
            return Ok(());
        };
        self.live.begin(Group::alone(first), Some(0));
        self.run.lay_out(first, self.live)?;
        self.run.first_writes.clear();
        let targets = &self.run.targets;
        let is_device = |target: &OpenTarget| target.identity().kind == TargetKind::BlockDevice;
        // Devices are compared as a whole.
        if !targets.iter().all(is_device) {
            self.span_bytes = targets.iter().map(OpenTarget::usable_bytes).min();
        }
        if let Some(layers) = plan.layers() {
            for target in &mut self.run.targets {
                // Content is compared by what the layers hold, not by what the page cache does.
                target.set_cache(CachePolicy::Direct)?;
            }
            let places = same_blocks(&layers.layers, &self.run.targets);
            let places_of = places.iter();
            let spans = places_of.map(|one| Span::new(one.start_bytes, Some(one.length_bytes)));
            self.spans = spans.collect();
            self.run.results().data.layer_places = places;
        }
        Ok(())
    }

    /// Makes the setting of a side effective. The error says why the campaign cannot go on.
    fn switch_to(&mut self, side: usize, command: &str) -> Result<(), EarlyEnd> {
        let path = self.run.plan.targets[0].clone();
        let reopens = self.reopens;
        let before = self.run.targets.first();
        let before = before.map(|target| target.identity().clone());
        if reopens {
            self.run.targets.clear();
        }
        let heartbeat = self.live.heartbeat();
        let begin = Instant::now();
        let end = prepare_command::run("--prepare", command, true, &heartbeat);
        self.live.extend_deadline(begin.elapsed());
        match end {
            CommandEnd::Done => {}
            CommandEnd::Interrupted => return Err(EarlyEnd::interrupted()),
            // What umount says of a filesystem with an open file.
            CommandEnd::Failed(mut why) => {
                if !reopens && why.contains("busy") {
                    why.push_str(
                        ". diskproof keeps the target open while the command runs; --reopen \
                         closes it first",
                    );
                }
                return Err(why.into());
            }
        }
        let failed = |error: Failure| format!("after --prepare '{command}': {error}");
        let identity = probe(Path::new(&path)).map_err(|error| failed(error.into()))?;
        let is_same = before.is_none_or(|before| before.is_same(&identity));
        if reopens {
            // A scratch file overwrites nothing, wherever it is. What the user released is the file
            // or device that the path named at the start.
            if !is_same && self.run.plan.writes() && identity.kind != TargetKind::Directory {
                return Err(EarlyEnd::Reason(format!(
                    "--prepare '{command}' replaced {path} with a file or device that was not \
                     released; nothing was written to it"
                )));
            }
            self.open_again(&identity).map_err(failed)?;
            self.lay_out()?;
        } else if !is_same {
            return Err(EarlyEnd::Reason(format!(
                "--prepare '{command}' replaced {path}; use --reopen to measure the new target"
            )));
        }
        let mut results = self.run.results();
        results.sides.entry(side).or_insert(identity);
        Ok(())
    }

    fn open_again(&mut self, identity: &TargetIdentity) -> Result<(), Failure> {
        let identities = std::slice::from_ref(identity);
        for admission in admit_all(&self.run.plan, identities, &[], self.consent)? {
            self.run.targets.push(OpenTarget::open(admission)?);
        }
        Ok(())
    }

    /// The workload of a cell as it runs here.
    fn prepared(&self, cell: &CampaignCell) -> Workload {
        let mut workload = cell.workload.clone();
        if let Some(span) = self.spans.get(cell.side) {
            workload.span = *span;
        }
        if workload.span.length_bytes.is_none() {
            workload.span.length_bytes = self.span_bytes;
        }
        // Another engine on one side would measure the engine.
        if let Some(engine) = self.engines.get(&(self.engine_key)(&workload)) {
            workload.engine = EngineChoice::Fixed(engine.used);
        }
        workload
    }

    /// Adds what a cell gave to the results of its side.
    fn add(&mut self, cell: &CampaignCell, workload: &Workload, mut measurement: Measurement) {
        let name = workload.name.clone();
        let key = (self.engine_key)(&cell.workload);
        let bytes: u64 = measurement.ops.values().map(|op| op.bytes).sum();
        let warmup = workload.warmup_ns as f64 / measurement.wall_ns.max(1) as f64;
        let target = self.target(cell.side);
        let moved = self.moved.entry((target, name)).or_default();
        *moved += (bytes as f64 * (1.0 + warmup)) as u64;
        measurement.target = cell.side;
        measurement.engine.asked = cell.workload.engine;
        let first = self.engines.entry(key);
        let first = first.or_insert_with(|| measurement.engine.clone());
        if measurement.engine.fallbacks.is_empty() {
            measurement.engine.fallbacks.clone_from(&first.fallbacks);
        }
        let mut planned = self.run.plan.workloads().iter();
        if let Some(asked) = planned.find(|one| one.name == workload.name) {
            measurement.workload = asked.clone();
        }
        self.run.add(vec![measurement]);
    }
}

impl CampaignBench for PreparedCells<'_> {
    fn measure(&mut self, cell: &CampaignCell) -> Result<MeasuredCell, EarlyEnd> {
        let index = self.target(cell.side);
        self.run.results().step = Some(cell.workload.name.clone());
        if let Some(command) = self.prepare_commands.get(cell.side) {
            self.switch_to(cell.side, command)?;
        }
        let workload = self.prepared(cell);
        let time_ns = SliceSchedule::time_ns(&workload);
        let mut planned = self.run.plan.workloads().iter();
        let place = planned.position(|w| w.name == workload.name);
        let group = Group::new(place.unwrap_or(0), std::slice::from_ref(&workload));
        self.live.begin(group, Some(time_ns));
        let key = (index, workload.name.clone());
        let moved = self.moved.get(&key).copied().unwrap_or_default();
        let session = self.run.session.for_slice(self.slices, moved);
        self.slices += 1;
        let target = &mut self.run.targets[index..=index];
        let measured = session.run_together(group, target, self.live)?;
        self.live.end_slice(false);
        // A part of a slice has no counterpart on the other side.
        let is_whole = |measured: &Measurement| measured.stopped != StopReason::Interrupted;
        let Some(mut measurement) = measured.into_iter().next().filter(is_whole) else {
            return Err(EarlyEnd::interrupted());
        };
        measurement.target = index;
        let ended = self.run.check(std::slice::from_ref(&measurement));
        let measured = MeasuredCell::new(cell.clone(), &measurement);
        self.add(cell, &workload, measurement);
        ended.map(|()| measured)
    }

    fn drop_row(&mut self, row: &CampaignRow, slices: Vec<DroppedSlice>) {
        let mut results = self.run.results();
        let data = &mut results.data;
        data.measurements
            .retain(|m| m.target != row.side || m.workload.name != row.workload);
        data.dropped.extend(slices);
    }
}

#[cfg(test)]
mod tests;
