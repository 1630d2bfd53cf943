//! The observed load as a record: judged, printed and saved.

use super::flags::WatchFlags;
use super::server::without_password;
use crate::output_files::save_records;
use crate::provenance::command_line;
use crate::saved::{keep, print_notes};
use crate::session::facts_now;
use crate::stdout::{ignore_closed_pipe, record_page, to_stdout, write_page};
use diskproof_analysis::judge::judge;
use diskproof_model::data::RunData;
use diskproof_model::observed::ObservedRecord;
use diskproof_model::plan::Plan;
use diskproof_model::target::TargetIdentity;
use diskproof_report::json;
use diskproof_report::terminal::Detail;
use std::path::PathBuf;

/// Saves before it prints: a reader that goes away must not cost the record.
pub(super) fn conclude(
    watch: &WatchFlags,
    (observed, targets): (ObservedRecord, Vec<TargetIdentity>),
    outputs: &[PathBuf],
) -> anyhow::Result<()> {
    let data = RunData {
        observed: Some(observed),
        ..RunData::default()
    };
    // The plan has no work: the load is that of others.
    let plan = Plan {
        targets: targets.iter().map(|one| one.path.clone()).collect(),
        ..Plan::of("watch", without_password(command_line()))
    };
    let mut facts = facts_now(plan, targets);
    facts.note.clone_from(&watch.note);
    let record = judge(facts, &data, &[]);
    let saved = save_records(&record, outputs, watch.verbosity());
    let page = record_page(&record, Detail::Whole);
    let notes = if watch.keeps() {
        keep(&record, &page, &watch.history)
    } else {
        Vec::new()
    };
    let printed = to_stdout(|out| {
        if watch.prints_json() {
            json::write_record(&record, out)
        } else {
            writeln!(out)?;
            write_page(&page, watch.color, out)
        }
    });
    print_notes("", &notes, watch.verbosity());
    saved.and(ignore_closed_pipe(printed))
}
