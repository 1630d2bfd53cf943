//! Tracks how much of a plan's time is over, by its groups of workloads.

use diskproof_analysis::judge::RunFacts;
use diskproof_model::group::Group;
use diskproof_model::plan::Workload;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// The state of workloads after one of their slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterSlice {
    /// Further slices follow.
    GoesOn,
    /// The slice was the last one.
    Over,
}

/// The workloads of a plan, and how much of their time is over.
pub(super) struct RunSchedule {
    /// The facts of the run, which hold its plan.
    facts: Arc<RunFacts>,
    /// The start of the run.
    started: Instant,
    /// The state of each workload of the plan. Of a group, its first workload has the state.
    states: Vec<WorkloadState>,
    /// The workloads that are measured now, as indexes into the plan.
    current: Range<usize>,
    /// Time of their current slice, warm-up included, in nanoseconds; `None` where they have no
    /// slices.
    slice_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkloadState {
    /// The workload has not begun, or goes on. Its slices so far took this long.
    Open { spent_ns: u64 },
    /// It is measured.
    Over,
}

/// The time of a group, warm-up included, in nanoseconds.
struct GroupTime {
    whole_ns: u64,
    left_ns: u64,
}

impl RunSchedule {
    /// The schedule of a run that starts at `started`.
    pub(super) fn new(facts: Arc<RunFacts>, started: Instant) -> Self {
        Self {
            states: vec![WorkloadState::Open { spent_ns: 0 }; facts.plan.workloads().len()],
            facts,
            started,
            current: 0..0,
            slice_ns: None,
        }
    }

    /// Begins these workloads, or a slice of them that takes `slice_ns`.
    pub(super) fn begin(&mut self, group: Group<'_>, slice_ns: Option<u64>) {
        self.slice_ns = slice_ns;
        self.current = group.first..group.first + group.workloads.len();
    }

    /// Ends the current slice, after which the workloads go on or are over.
    pub(super) fn end_slice(&mut self, next: AfterSlice) {
        let slice_ns = self.slice_ns.unwrap_or(0);
        if let Some(state) = self.states.get_mut(self.current.start) {
            match (next, &mut *state) {
                (AfterSlice::Over, _) => *state = WorkloadState::Over,
                (AfterSlice::GoesOn, WorkloadState::Open { spent_ns }) => {
                    *spent_ns = spent_ns.saturating_add(slice_ns);
                }
                (AfterSlice::GoesOn, WorkloadState::Over) => {}
            }
        }
        self.slice_ns = Some(0);
    }

    /// The workloads that are measured now.
    pub(super) fn current(&self) -> &[Workload] {
        &self.facts.plan.workloads()[self.current.clone()]
    }

    /// The place among the current workloads of the one with this name.
    pub(super) fn index_in_current(&self, name: &str) -> Option<usize> {
        self.current()
            .iter()
            .position(|workload| workload.name == name)
    }

    /// The first workload that is measured now; `None` before the first and without workloads.
    pub(super) fn first_current(&self) -> Option<&Workload> {
        self.facts.plan.workloads().get(self.current.start)
    }

    /// True while the current workloads are measured in slices.
    pub(super) fn is_in_slices(&self) -> bool {
        self.slice_ns.is_some()
    }

    /// The number of workloads that are over. A group counts as one.
    pub(super) fn over_count(&self) -> usize {
        self.states
            .iter()
            .filter(|state| **state == WorkloadState::Over)
            .count()
    }

    /// The most time left in nanoseconds, when `slice_done` of the current slice is done; `None`
    /// where nothing limits it.
    pub(super) fn left_ns(&self, slice_done: f64) -> Option<u64> {
        let plan = &self.facts.plan;
        let mut planned_ns = 0;
        for group in plan.groups() {
            planned_ns += self.group_time(group, slice_done)?.left_ns;
        }
        let Some(limit_ns) = plan.time_limit_ns else {
            return Some(planned_ns);
        };
        let elapsed_ns = self.started.elapsed().as_nanos() as u64;
        Some(planned_ns.min(limit_ns.saturating_sub(elapsed_ns)))
    }

    /// The share of the current group that is done, when `slice_done` of its current slice is.
    pub(super) fn group_done(&self, slice_done: f64) -> f64 {
        let group = Group::new(self.current.start, self.current());
        match self.group_time(group, slice_done) {
            Some(time) if self.is_in_slices() && time.whole_ns > 0 => {
                1.0 - time.left_ns as f64 / time.whole_ns as f64
            }
            _ => slice_done,
        }
    }

    /// The time of a group, when `slice_done` of the current slice is done; `None` where the group
    /// has no limit of time.
    fn group_time(&self, group: Group<'_>, slice_done: f64) -> Option<GroupTime> {
        let whole_ns = group.whole_ns()?;
        let mut left_ns = match self.states.get(group.first) {
            Some(WorkloadState::Over) => 0,
            Some(WorkloadState::Open { spent_ns }) => whole_ns.saturating_sub(*spent_ns),
            None => whole_ns,
        };
        if group.first == self.current.start {
            let slice_ns = self.slice_ns.unwrap_or(whole_ns) as f64;
            let done_ns = (slice_ns * slice_done.clamp(0.0, 1.0)) as u64;
            left_ns = left_ns.saturating_sub(done_ns);
        }
        Some(GroupTime { whole_ns, left_ns })
    }
}
