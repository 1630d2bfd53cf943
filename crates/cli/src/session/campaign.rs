//! Measures the cells of a campaign one after the other, as the campaign decides. The targets are
//! opened and laid out once. Also runs the commands that change a setting between two cells.

use super::bench::Bench;
use super::cell_errors::CellErrors;
use super::gate::admit_all;
use super::on_target::OnTarget;
use super::prepare_command::{self, CommandEnd, SignalHandling};
use super::running::{Running, Stepped};
use super::sides::SideTarget;
use super::sink::{EarlyEnd, Sink};
use crate::failure::Failure;
use crate::progress_display::AfterSlice;
use crate::targets::{counted_disks, read_counters, read_health, warn_of_failing};
use crate::tool_lines::ToolLines;
use diskproof_analysis::campaign::{
    Campaign, CampaignCell, CampaignRow, CellPurpose, MeasuredCell,
};
use diskproof_analysis::judge::RunFacts;
use diskproof_device::{CountersOfDisk, OpenTarget, probe, same_blocks};
use diskproof_model::campaign::DroppedSlice;
use diskproof_model::group::Group;
use diskproof_model::health::{CountedDisk, DiskHealth};
use diskproof_model::measurement::{EngineUse, Measurement, StopReason};
use diskproof_model::plan::{Decide, Layout, Plan, Sides, Span, Workload};
use diskproof_model::rate::RateCellKind;
use diskproof_model::slice::{EarlierSlices, SliceSpan};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::window::MovedTotal;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The interval at which a pause looks for Ctrl-C, too short for a user to notice a delay.
const PAUSE_POLL: Duration = Duration::from_millis(50);

/// Measures the cells of a campaign.
pub(super) trait CampaignBench {
    /// Measures a cell, and adds its figures to the results of its row.
    fn measure(&mut self, cell: &CampaignCell) -> Result<MeasuredCell, EarlyEnd>;

    /// Sends nothing for this time.
    fn pause(&mut self, pause_ns: u64) -> Result<(), EarlyEnd>;

    /// Removes a row from the results, but keeps the bytes that its slices moved.
    fn drop_row(&mut self, row: &CampaignRow, slices: Vec<DroppedSlice>);
}

/// A campaign, and the cells that it has measured so far.
pub(super) struct CampaignProgress {
    campaign: Box<dyn Campaign>,
    done: Vec<MeasuredCell>,
    /// The number of cells that were done when a row was dropped last: its slices begin after them.
    counted_from: BTreeMap<CampaignRow, usize>,
}

impl CampaignProgress {
    /// A campaign that has measured nothing yet.
    pub(super) fn new(campaign: Box<dyn Campaign>) -> Self {
        Self {
            campaign,
            done: Vec::new(),
            counted_from: BTreeMap::new(),
        }
    }

    /// Measures the cell that the campaign asks for next. The error of a cell ends the campaign.
    pub(super) fn step(&mut self, bench: &mut impl CampaignBench) -> Result<Stepped, EarlyEnd> {
        let step = self.campaign.next(&self.done);
        for row in step.dropped {
            let first_index = self
                .counted_from
                .insert(row.clone(), self.done.len())
                .unwrap_or_default();
            let slices = self.done[first_index..]
                .iter()
                .filter(|cell| cell.is_of(&row))
                .map(MeasuredCell::dropped)
                .collect();
            bench.drop_row(&row, slices);
        }
        let Some(cell) = step.cell else {
            return Ok(Stepped::Over);
        };
        if cell.pause_ns > 0 {
            bench.pause(cell.pause_ns)?;
        }
        self.done.push(bench.measure(&cell)?);
        Ok(Stepped::More)
    }
}

/// A campaign on the targets of a plan while it is measured: a step is a cell.
pub(super) struct CampaignRun {
    progress: CampaignProgress,
    cells: CellsSoFar,
    /// The tool whose text is printed at the end.
    tool: Option<ToolLines>,
    /// The counters of the disks before a sustained load.
    counters: Vec<CountersOfDisk>,
}

impl CampaignRun {
    /// Lays the targets out, unless they are opened again before each cell.
    pub(super) fn start(
        plan: &Plan,
        campaign: Box<dyn Campaign>,
        bench: &mut Bench,
        sink: &mut Sink,
    ) -> Result<Self, EarlyEnd> {
        let mut run = Self {
            progress: CampaignProgress::new(campaign),
            cells: CellsSoFar::new(engine_sharing(plan)),
            tool: sink.progress.tool.take(),
            counters: Vec::new(),
        };
        if plan.sustain().is_some() {
            let facts = &bench.facts;
            run.counters = read_counters(&facts.targets, &facts.health);
        }
        if !bench.commands.reopens {
            run.cells.prepared(bench, sink).lay_out()?;
        }
        if let Some(left_ns) = sink.progress.announced_left_ns() {
            run.progress.campaign.limit_time(left_ns);
        }
        Ok(run)
    }
}

impl Running for CampaignRun {
    fn step(&mut self, bench: &mut Bench, sink: &mut Sink) -> Result<Stepped, EarlyEnd> {
        let mut prepared = self.cells.prepared(bench, sink);
        let stepped = self.progress.step(&mut prepared)?;
        if stepped == Stepped::Over {
            sink.results().decisions = self.progress.campaign.decisions();
        }
        Ok(stepped)
    }

    fn end(
        mut self: Box<Self>,
        ended: Result<(), EarlyEnd>,
        bench: &mut Bench,
        sink: &mut Sink,
    ) -> Result<(), EarlyEnd> {
        if let Some(tool) = self.tool {
            tool.finish(&sink.progress.heartbeat());
        }
        self.cells
            .errors
            .move_remaining(&mut sink.results().data.measurements);
        // After Ctrl-C nothing may delay the end.
        if ended.is_ok() && !self.counters.is_empty() {
            let paused = sink.progress.pause_deadline();
            let counted = counted_since(self.counters, &bench.facts);
            sink.progress.resume_deadline(paused);
            sink.results().data.counted = counted;
        }
        ended
    }
}

/// The difference of the disks' counters since `before`. Links are looked at again, too.
fn counted_since(before: Vec<CountersOfDisk>, facts: &RunFacts) -> Vec<CountedDisk> {
    let mut targets = Vec::new();
    for target in &facts.targets {
        targets.extend(probe(Path::new(&target.path)));
    }
    let health = read_health(&targets);
    counted_disks(before, &read_counters(&targets, &health))
}

/// The cells that are measured by the engine which the first of them has chosen. Trying engines
/// takes time, and another engine on one side would measure the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EngineSharing {
    /// All cells of one workload.
    ByWorkload,
    /// All that need a queue, and all that need none.
    ByQueue,
}

impl EngineSharing {
    /// The name that the cells with one engine share.
    fn key(self, workload: &Workload) -> String {
        match self {
            Self::ByWorkload => workload.name.clone(),
            Self::ByQueue if workload.depth == 1 => "single".to_owned(),
            Self::ByQueue => "queue".to_owned(),
        }
    }
}

/// Targets and settings are compared workload by workload; layers, the cells of a sweep and the
/// depths of a search all together.
fn engine_sharing(plan: &Plan) -> EngineSharing {
    let Some(workloads) = plan.workload_task() else {
        return EngineSharing::ByQueue;
    };
    match &workloads.decide {
        Decide::Compare(live) => match live.sides {
            Sides::Targets { .. } | Sides::Settings { .. } => EngineSharing::ByWorkload,
            Sides::Layers(_) => EngineSharing::ByQueue,
        },
        Decide::AsPlanned
        | Decide::Sweep(_)
        | Decide::Depth
        | Decide::Until(_)
        | Decide::Rate(_) => EngineSharing::ByQueue,
    }
}

/// Facts of the cells so far that those after them need.
struct CellsSoFar {
    engine_sharing: EngineSharing,
    /// What filled the scratch file of a target, until its first cell takes it: it uses up burst
    /// credit and write caches as that does.
    filled: BTreeMap<usize, MovedTotal>,
    /// The span of all workloads, where the targets differ in what was laid out.
    span_bytes: Option<u64>,
    /// The span of each side, where the sides are layers of one target.
    spans: Vec<Span>,
    /// The engines, as the first cell that each serves chose it.
    engines: BTreeMap<String, EngineUse>,
    /// What the cells of each workload have done on each target, by the index of the target.
    earlier: BTreeMap<(usize, String), EarlierSlices>,
    /// The number of the slices so far.
    slices: u64,
    /// The errors of the cells that are in no row.
    errors: CellErrors,
}

impl CellsSoFar {
    fn new(engine_sharing: EngineSharing) -> Self {
        Self {
            engine_sharing,
            filled: BTreeMap::new(),
            span_bytes: None,
            spans: Vec::new(),
            engines: BTreeMap::new(),
            earlier: BTreeMap::new(),
            slices: 0,
            errors: CellErrors::default(),
        }
    }

    /// These facts with the targets and the results, to measure the next cell.
    fn prepared<'a>(&'a mut self, bench: &'a mut Bench, sink: &'a mut Sink) -> PreparedCells<'a> {
        PreparedCells {
            cells: self,
            bench,
            sink,
        }
    }
}

/// The facts of the cells so far, the open targets and the results.
struct PreparedCells<'a> {
    cells: &'a mut CellsSoFar,
    bench: &'a mut Bench,
    sink: &'a mut Sink,
}

impl PreparedCells<'_> {
    /// The index of the target of a side. All settings of a target have the first one.
    fn target_index(&self, side: usize) -> usize {
        if self.bench.commands.prepare.is_empty() {
            side
        } else {
            0
        }
    }

    /// Fills all scratch files, and takes the span that all targets have; of layers, that of each.
    fn lay_out(&mut self) -> Result<(), EarlyEnd> {
        let facts = Arc::clone(&self.bench.facts);
        let Some(first) = facts
            .plan
            .workloads()
            .iter()
            .find(|workload| workload.layout == Layout::Needed)
        else {
            return Ok(());
        };
        self.sink.progress.begin(Group::alone(first), Some(0));
        self.bench.lay_out(first, self.sink)?;
        self.cells.filled = self.bench.take_filled();
        let targets = &self.bench.targets;
        // Devices are compared as a whole.
        if targets
            .iter()
            .any(|target| target.identity().kind != TargetKind::BlockDevice)
        {
            self.cells.span_bytes = targets.iter().map(OpenTarget::usable_bytes).min();
        }
        if let Some(layers) = facts.plan.layers() {
            let session = self.bench.session;
            for target in &mut self.bench.targets {
                // Content is compared by what the layers hold, not by what the page cache does.
                session.bypass_cache(target, &mut self.sink.progress)?;
            }
            let places = same_blocks(&layers.layers, &self.bench.targets);
            self.cells.spans = places
                .iter()
                .map(|place| Span::new(place.start_bytes, Some(place.length_bytes)))
                .collect();
            self.sink.results().data.layer_places = places;
        }
        Ok(())
    }

    /// Runs the command that makes the setting of a side effective. The error says why the campaign
    /// cannot go on.
    fn switch_to(&mut self, side: usize, command: &str) -> Result<(), EarlyEnd> {
        let reopens = self.bench.commands.reopens;
        if reopens {
            self.bench.targets.clear();
        }
        self.run_prepare_command(command)?;
        let identity = self.identity_after(command)?;
        let path = &identity.path;
        if let Some(known) = self.sink.results().sides.get(&side) {
            known
                .check_same(&identity)
                .map_err(|why| EarlyEnd::Reason(format!("--prepare '{command}' {why}")))?;
        }
        let is_replaced = match self.bench.facts.targets.first() {
            Some(released) => !released.has_same_storage(&identity),
            None => false,
        };
        if is_replaced && !reopens {
            return Err(EarlyEnd::Reason(format!(
                "--prepare '{command}' replaced {path}; use --reopen to measure the new target"
            )));
        }
        // A scratch file overwrites nothing, wherever it is. What the user released is the file or
        // device that the path named at the start.
        if is_replaced && self.bench.facts.plan.writes() && identity.kind != TargetKind::Directory {
            return Err(EarlyEnd::Reason(format!(
                "--prepare '{command}' replaced {path} with a file or device that was not \
                 released; nothing was written to it"
            )));
        }
        if reopens {
            self.open_again(&identity)
                .map_err(|error| failed_after(command, &error))?;
            self.lay_out()?;
        }
        if !self.sink.results().sides.contains_key(&side) {
            let health = self.health_of_side(&identity);
            let target = SideTarget { identity, health };
            self.sink.results().sides.insert(side, target);
        }
        Ok(())
    }

    /// The target to which the path of the user leads after a command. Its filesystem keeps free
    /// what the user asked for at the start.
    fn identity_after(&self, command: &str) -> Result<TargetIdentity, EarlyEnd> {
        let mut identity = match probe(&self.bench.commands.path) {
            Ok(identity) => identity,
            Err(error) => return Err(failed_after(command, &error.into())),
        };
        if let Some(filesystem) = &mut identity.filesystem
            && let Some(released) = self.bench.facts.targets.first()
            && let Some(at_start) = &released.filesystem
        {
            filesystem.kept_free_bytes = at_start.kept_free_bytes;
        }
        Ok(identity)
    }

    /// The health of disks that only a command brings; that of the others was read at the start.
    fn health_of_side(&mut self, identity: &TargetIdentity) -> Vec<DiskHealth> {
        let brought = match self.bench.facts.targets.first() {
            Some(start) => brought_disks(start, identity),
            None => Vec::new(),
        };
        if brought.is_empty() || !self.bench.commands.reads_health {
            return Vec::new();
        }
        let paused = self.sink.progress.pause_deadline();
        let mut health = read_health(std::slice::from_ref(identity));
        self.sink.progress.resume_deadline(paused);
        health.retain(|health| brought.contains(&health.disk));
        warn_of_failing(&health, self.sink.verbosity);
        health
    }

    /// Runs a command of the user, whose time does not count.
    fn run_prepare_command(&mut self, command: &str) -> Result<(), EarlyEnd> {
        let heartbeat = self.sink.progress.heartbeat();
        let paused = self.sink.progress.pause_deadline();
        let end = prepare_command::run("--prepare", command, SignalHandling::Ends, &heartbeat);
        self.sink.progress.resume_deadline(paused);
        match end {
            CommandEnd::Done => Ok(()),
            CommandEnd::Interrupted => Err(EarlyEnd::interrupted()),
            // umount prints this for a filesystem with an open file.
            CommandEnd::Failed(why) if !self.bench.commands.reopens && why.contains("busy") => {
                Err(EarlyEnd::Reason(format!(
                    "{why}. diskproof keeps the target open while the command runs; --reopen \
                     closes it first"
                )))
            }
            CommandEnd::Failed(why) => Err(why.into()),
        }
    }

    /// Opens the target that the path leads to after a command.
    fn open_again(&mut self, identity: &TargetIdentity) -> Result<(), Failure> {
        let identities = std::slice::from_ref(identity);
        for admission in admit_all(&self.bench.facts.plan, identities, &self.bench.consent)? {
            self.bench.targets.push(OpenTarget::open(admission)?);
        }
        Ok(())
    }

    /// The slice of the plan's workload that a cell is.
    fn slice(&self, cell: &CampaignCell) -> SliceSpan {
        let mut slice = SliceSpan::whole(&cell.workload);
        if let Some(span) = self.cells.spans.get(cell.side) {
            slice.span = *span;
        }
        if slice.span.length_bytes.is_none() {
            slice.span.length_bytes = self.cells.span_bytes;
        }
        slice
    }

    /// What the cells of this workload so far have done on the target with this index, and the
    /// engine of the first cell that shares it.
    fn earlier(&self, cell: &CampaignCell, index: usize) -> EarlierSlices {
        let row = (index, self.shared_row(cell).workload);
        let key = self.cells.engine_sharing.key(&cell.workload);
        EarlierSlices {
            engine: self.cells.engines.get(&key).map(|engine| engine.used),
            ..self.cells.earlier.get(&row).copied().unwrap_or_default()
        }
    }

    /// Keeps what a cell has done on its target, and the engine that it chose. A trial of a rate
    /// goes on behind the trials before it: what these have read is in caches.
    fn add_earlier(&mut self, cell: &CampaignCell, warmup_ns: u64, measurement: &Measurement) {
        let row = (measurement.target, self.shared_row(cell).workload);
        let earlier = self.cells.earlier.entry(row).or_default();
        earlier.add(warmup_ns, measurement);
        let key = self.cells.engine_sharing.key(&cell.workload);
        self.cells
            .engines
            .entry(key)
            .or_insert_with(|| measurement.engine.clone());
    }

    /// The row that a cell belongs to; that of the hold for all trials of a search.
    fn shared_row(&self, cell: &CampaignCell) -> CampaignRow {
        let mut row = row_of(cell);
        let planned = self.bench.facts.plan.workloads();
        if let CellPurpose::Trial(index, _) = cell.purpose
            && let Some(searched) = planned.get(index)
        {
            row.workload = RateCellKind::Hold.row_name(&searched.name);
        }
        row
    }

    /// Keeps the trial of a rate that a cell was.
    fn add_trial(&mut self, measured: &MeasuredCell) {
        let mut results = self.sink.results();
        results.data.trials.extend(measured.trial.clone());
    }

    /// Removes the row of the cell's workload where it was offered at another rate.
    fn drop_other_rate(&mut self, cell: &CampaignCell) {
        let Workload { name, rate, .. } = &cell.workload;
        let mut results = self.sink.results();
        let rows = &mut results.data.measurements;
        let dropped: Vec<Measurement> = rows
            .extract_if(.., |measurement| {
                measurement.workload.name == *name && measurement.workload.rate != *rate
            })
            .collect();
        let target = own_target(self.bench, cell.side);
        for measurement in dropped {
            return_silences(target, &measurement);
            self.cells.errors.add(row_of(cell), &measurement, rows);
        }
    }

    /// True if a cell that was interrupted is a figure all the same: the first round of a load of a
    /// sustained one, whatever was measured before it on this target or another. Other cells are
    /// judged by those that they alternate with, and a later round by those before it, which are
    /// longer.
    fn is_round_by_itself(&self, cell: &CampaignCell, measurement: &Measurement) -> bool {
        let is_first = !self
            .sink
            .results()
            .data
            .measurements
            .iter()
            .any(|known| is_row_of(known, cell));
        let is_round = match &cell.purpose {
            CellPurpose::Row => self.bench.facts.plan.sustain().is_some(),
            CellPurpose::Trial(..) => false,
        };
        is_first && is_round && measurement.ops.values().any(|op| op.latency.count() > 0)
    }

    /// Keeps what is known of a cell that the user or the end of the time cut short: its errors,
    /// the requests without an answer, and a pause of the disk.
    fn keep_interrupted(&mut self, cell: &CampaignCell, measurement: Measurement) {
        if self.is_round_by_itself(cell, &measurement) {
            self.add_row(cell, measurement);
            return;
        }
        let cut = MeasuredCell::new(cell.clone(), &measurement).dropped();
        self.add_faults(cell, &measurement);
        self.sink.results().data.dropped.push(cut);
    }

    /// Counts the errors and the hang of a cell whose figures are in no row, and keeps the silences
    /// before it.
    fn add_faults(&mut self, cell: &CampaignCell, measurement: &Measurement) {
        return_silences(own_target(self.bench, cell.side), measurement);
        let row = self.shared_row(cell);
        let rows = &mut self.sink.results().data.measurements;
        self.cells.errors.add(row, measurement, rows);
    }

    /// Adds the figures of a cell to the results of its side.
    fn add_row(&mut self, cell: &CampaignCell, mut measurement: Measurement) {
        measurement.target = cell.side;
        self.cells.errors.move_errors_to(
            &row_of(cell),
            &mut measurement,
            &mut self.sink.results().data.measurements,
        );
        let key = self.cells.engine_sharing.key(&cell.workload);
        if measurement.engine.fallbacks.is_empty()
            && let Some(first_use) = self.cells.engines.get(&key)
        {
            measurement
                .engine
                .fallbacks
                .clone_from(&first_use.fallbacks);
        }
        self.sink.add(vec![measurement]);
    }
}

/// The target of a side, where no other side has the same: a silence is of its side alone.
fn own_target(bench: &Bench, side: usize) -> Option<&OpenTarget> {
    if bench.commands.prepare.is_empty() {
        bench.targets.get(side)
    } else {
        None
    }
}

/// Gives the silences before a measurement that is in no row back to its target, for the next one;
/// at the end of the run they are in its record.
fn return_silences(target: Option<&OpenTarget>, measurement: &Measurement) {
    if let Some(target) = target {
        target.return_silences(measurement.silence_before_ns, measurement.first_answer_ns);
    }
}

/// The row that a cell belongs to.
fn row_of(cell: &CampaignCell) -> CampaignRow {
    CampaignRow {
        side: cell.side,
        workload: cell.workload.name.clone(),
    }
}

/// True if the cell belongs to the row of a measurement.
fn is_row_of(measurement: &Measurement, cell: &CampaignCell) -> bool {
    measurement.target == cell.side && measurement.workload.name == cell.workload.name
}

/// The early end of a campaign that cannot go on after a command.
fn failed_after(command: &str, error: &Failure) -> EarlyEnd {
    EarlyEnd::Reason(format!("after --prepare '{command}': {error}"))
}

impl CampaignBench for PreparedCells<'_> {
    fn measure(&mut self, cell: &CampaignCell) -> Result<MeasuredCell, EarlyEnd> {
        let index = self.target_index(cell.side);
        let name = &cell.workload.name;
        self.sink.begin_step(name);
        if let Some(command) = self.bench.commands.prepare.get(cell.side).cloned() {
            self.switch_to(cell.side, &command)?;
        }
        let slice = self.slice(cell);
        let facts = Arc::clone(&self.bench.facts);
        let planned = facts.plan.workloads();
        let group = match planned.iter().position(|workload| workload.name == *name) {
            Some(position) => Group::new(position, &planned[position..=position]),
            None => Group::alone(&cell.workload),
        };
        self.sink.progress.begin(group, Some(slice.whole_ns()));
        let earlier = self.earlier(cell, index);
        if cell.workload.writes() {
            self.bench.check_own_target(index)?;
        }
        let session = self.bench.session.for_slice(self.cells.slices);
        self.cells.slices += 1;
        let target = &mut self.bench.targets[index..=index];
        self.sink.set_step_target(Some(index));
        let mut watch = OnTarget::new(index, &mut self.sink.progress);
        let ran = session.run_slices(group, &[slice], &[earlier], target, &mut watch);
        self.sink.set_step_target(None);
        let measured = ran?;
        self.sink.progress.end_slice(AfterSlice::GoesOn);
        let Some(mut measurement) = measured.into_iter().next() else {
            return Err(EarlyEnd::interrupted());
        };
        measurement.target = index;
        measurement.laid_out = self.cells.filled.remove(&index);
        if cell.workload.writes() {
            self.bench.mark_written(index);
        }
        self.add_earlier(cell, slice.warmup_ns, &measurement);
        let ended = self
            .bench
            .check_can_continue(std::slice::from_ref(&measurement));
        if measurement.stopped == StopReason::Interrupted {
            self.keep_interrupted(cell, measurement);
            ended?;
            return Err(EarlyEnd::interrupted());
        }
        let measured_cell = MeasuredCell::new(cell.clone(), &measurement);
        if facts.plan.sustain().is_some() {
            self.sink.progress.end_round(&measured_cell.slice, name);
        }
        match cell.purpose {
            CellPurpose::Row => self.add_row(cell, measurement),
            CellPurpose::Trial(_, kind) => {
                self.add_trial(&measured_cell);
                if kind.makes_a_row() {
                    self.drop_other_rate(cell);
                    self.add_row(cell, measurement);
                } else {
                    self.add_faults(cell, &measurement);
                }
            }
        }
        ended?;
        Ok(measured_cell)
    }

    fn pause(&mut self, pause_ns: u64) -> Result<(), EarlyEnd> {
        let end = Instant::now() + Duration::from_nanos(pause_ns);
        let heartbeat = self.sink.progress.heartbeat();
        self.sink.progress.begin_pause(pause_ns);
        loop {
            heartbeat.beat();
            if self.sink.progress.is_over() {
                // Says that the time was over, and not the user, where that is so.
                self.sink.progress.look_at_end();
                return Err(EarlyEnd::interrupted());
            }
            let time_left = end.saturating_duration_since(Instant::now());
            if time_left.is_zero() {
                return Ok(());
            }
            self.sink.progress.show_pause(time_left);
            std::thread::sleep(time_left.min(PAUSE_POLL));
        }
    }

    fn drop_row(&mut self, row: &CampaignRow, slices: Vec<DroppedSlice>) {
        let target = own_target(self.bench, row.side);
        let mut results = self.sink.results();
        let data = &mut results.data;
        let dropped: Vec<Measurement> = data
            .measurements
            .extract_if(.., |measurement| {
                measurement.target == row.side && measurement.workload.name == row.workload
            })
            .collect();
        for measurement in dropped {
            return_silences(target, &measurement);
            self.cells
                .errors
                .add(row.clone(), &measurement, &mut data.measurements);
        }
        data.dropped.extend(slices);
    }
}

/// The names of the disks that a side has and the start had not: all of another storage, and of the
/// same one those that a command attaches to it, such as a cache.
fn brought_disks(start: &TargetIdentity, side: &TargetIdentity) -> Vec<String> {
    let is_same_storage = start.lies_on_same_storage(side);
    let mut brought = Vec::new();
    for disk in side.disks() {
        let is_of_start = start
            .disks()
            .any(|other| other.name == disk.name && other.serial == disk.serial);
        if !(is_same_storage && is_of_start) {
            brought.push(disk.name.clone());
        }
    }
    brought
}

#[cfg(test)]
mod tests;
