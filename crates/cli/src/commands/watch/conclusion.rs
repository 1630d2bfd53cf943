//! The observed load as a record: judged, printed and saved.

use super::flags::WatchFlags;
use super::server::without_password;
use super::steps::WatchedAll;
use crate::output_files::OutputFiles;
use crate::provenance::{command_line, run_id, timestamp};
use crate::saved::{keep, print_notes};
use crate::stdout::{ignore_closed_pipe, record_page, to_stdout, write_page};
use diskproof_analysis::judge::{RunFacts, RunVariation, judge};
use diskproof_device::host_facts;
use diskproof_engine::measure_clock;
use diskproof_model::data::RunData;
use diskproof_model::plan::Plan;
use diskproof_model::record::Tool;
use diskproof_model::target::TargetIdentity;
use diskproof_report::json;
use diskproof_report::terminal::Detail;

/// Saves before it prints: a reader that goes away must not cost the record.
pub(super) fn conclude(
    watch: &WatchFlags,
    all: WatchedAll,
    files: &OutputFiles<'_>,
) -> anyhow::Result<()> {
    let data = RunData {
        observed: Some(all.observed),
        ..RunData::default()
    };
    let record = judge(facts(watch, all.targets), &data, &[]);
    let saved = files.save(&record, watch.verbosity());
    let page = record_page(&record, Detail::Whole);
    let notes = match watch.keeps() {
        true => keep(&record, &page, &watch.history),
        false => Vec::new(),
    };
    let printed = to_stdout(|out| match watch.prints_json() {
        true => json::write_record(&record, out),
        false => {
            writeln!(out)?;
            write_page(&page, watch.color, out)
        }
    });
    print_notes(&notes, watch.verbosity());
    saved.and(ignore_closed_pipe(printed))
}

fn facts(watch: &WatchFlags, targets: Vec<TargetIdentity>) -> RunFacts {
    RunFacts {
        tool: Tool {
            name: "diskproof".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        run_id: run_id(),
        started: timestamp(),
        partial: false,
        ended_early: None,
        stalled: None,
        note: watch.note.clone(),
        host: host_facts(),
        clock: measure_clock(),
        plan: plan(&targets),
        targets,
        health: Vec::new(),
        variation: RunVariation::Earlier(Vec::new()),
    }
}

/// A plan without work: the load is that of others.
fn plan(targets: &[TargetIdentity]) -> Plan {
    Plan {
        targets: targets.iter().map(|one| one.path.clone()).collect(),
        ..Plan::of("watch", without_password(command_line()))
    }
}
