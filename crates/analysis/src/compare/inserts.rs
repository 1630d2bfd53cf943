//! Compares INSERTs of temporary PostgreSQL servers: the rate of each load that both sides have.
//! The versions of the servers may differ, as people compare those.

use super::differing::Differing;
use super::earlier::EarlierRuns;
use super::pair::{Pair, PartOnSides};
use super::pending_metric::{ComparedFigure, PendingMetric};
use super::reasons::{Compared, Reasons, add_findings};
use super::sides::{Run, Sides, unmatched_entry};
use diskproof_model::comparison::{Figure, Unmatched};
use diskproof_model::postgres::{LoadRow, PostgresLoad, subject_of_load};
use diskproof_model::record::Record;
use diskproof_model::units::counted;

/// A metric for each load that both sides have. Others are added to `unmatched`.
pub(super) fn insert_metrics(
    sides: &Sides<'_>,
    earlier: &EarlierRuns<'_>,
    unmatched: &mut Vec<Unmatched>,
) -> Vec<PendingMetric> {
    let mut metrics = Vec::new();
    for load in load_names(sides) {
        let subject = subject_of_load(load);
        match Pair::find(sides, earlier, |name, run| {
            InsertsOfRun::find(name, run, load)
        }) {
            PartOnSides::Both(pair) => metrics.extend(insert_metric(&subject, &pair)),
            PartOnSides::OneSide(holder) => unmatched.push(unmatched_entry(&subject, holder)),
            PartOnSides::Neither => {}
        }
    }
    metrics
}

/// The metric of a load: INSERTs per second; `None` where a run has no rate of it.
fn insert_metric(subject: &str, pair: &Pair<InsertsOfRun<'_>>) -> Option<PendingMetric> {
    let estimates = pair.estimates_of_runs(|run| Some(run.row.figures.iops.clone()))?;
    let ratio = estimates.ratio();
    let measured_ns = pair.parts().map(|run| run.wall_ns()).max();
    let figure = Figure::Iops;
    let name = format!("{subject}.{}", figure.as_str());
    let compared = ComparedFigure {
        subject,
        figure,
        estimates,
        ratio,
        measured_ns,
        reasons: &pair.reasons,
    };
    let mut pending = PendingMetric::new(name, compared);
    pending.metric.headline = true;
    Some(pending)
}

/// The names of the loads of both sides, each once, the baseline's first.
fn load_names<'a>(sides: &'a Sides<'a>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for named in sides.runs() {
        let postgres = named.run.record.postgres();
        for row in postgres.iter().flat_map(|postgres| &postgres.loads) {
            let name = row.data.load.name.as_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// A load of INSERTs in one run.
#[derive(Clone, Copy)]
pub(super) struct InsertsOfRun<'a> {
    /// The side, or one of its runs: `A`, `B` or `A2`.
    name: &'a str,
    run: &'a Run<'a>,
    row: &'a LoadRow,
}

impl<'a> InsertsOfRun<'a> {
    /// The load of this name in a run; `None` where the run did not measure it.
    pub(super) fn find(name: &'a str, run: &'a Run<'a>, load: &str) -> Option<Self> {
        let loads = &run.record.postgres()?.loads;
        let row = loads.iter().find(|row| row.data.load.name == load)?;
        Some(Self { name, run, row })
    }

    /// The time of its slices, in nanoseconds.
    fn wall_ns(self) -> u64 {
        match self.run.record.plan.inserts() {
            Some(inserts) => {
                let slices = self.row.data.slices.len() as u64;
                inserts.server.slice_ns.saturating_mul(slices)
            }
            None => 0,
        }
    }
}

impl Compared for InsertsOfRun<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn record(&self) -> &Record {
        self.run.record
    }

    fn add_differences(self, other: Self, reasons: &mut Reasons) {
        let mut pair = reasons.between(self, other);
        pair.add_if_different(Differing::Load, |run| &run.row.data.load, load_text);
    }

    /// The INSERTs run before and after the workloads: what is wrong with these figures may be
    /// wrong with theirs.
    fn add_faults(self, harmless: &[&str], reasons: &mut Reasons) {
        let paths = ["/measurements/", "/results/"];
        add_findings(reasons, self.name, self.run.record, &paths, harmless);
    }
}

/// `4 sessions of pgbench, synchronous_commit off, wal_sync_method fdatasync`.
fn load_text(load: &PostgresLoad) -> String {
    format!(
        "{}{}, synchronous_commit {}, wal_sync_method {}",
        counted(u64::from(load.clients), "session"),
        if load.pgbench { " of pgbench" } else { "" },
        if load.synchronous_commit { "on" } else { "off" },
        load.wal_sync_method
    )
}
