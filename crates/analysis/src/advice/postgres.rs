//! Collects the advice on the settings of PostgreSQL, in the order of their printing.

use super::commit_delay::advise_commit_delay;
use super::io_concurrency::{advise_from_check, advise_from_sweep};
use super::random_page_cost::advise_random_page_cost;
use super::reasons_against::leave_alone;
use super::tried::apply_trials;
use super::wal_sync_method::advise_wal_sync_method;
use diskproof_model::advice::Advice;
use diskproof_model::record::Record;

/// The advice from the figures of the disk, changed to what trials on a server showed.
pub(super) fn advise(record: &Record) -> Vec<Advice> {
    let mut advice = Vec::new();
    advice.extend(advise_random_page_cost(record));
    advice.extend(advise_from_check(record));
    advice.extend(advise_wal_sync_method(record));
    advice.extend(advise_commit_delay(record));
    advice.extend(advise_from_sweep(record));
    let was_tried = match record.postgres() {
        Some(postgres) => !postgres.trials.is_empty(),
        None => false,
    };
    if !advice.is_empty() || was_tried {
        let why =
            "Leave it on: no measurement proves that a disk never tears a page in a power failure.";
        advice.push(leave_alone("full_page_writes", why.to_owned(), &[]));
    }
    // Last, because the trials find their place by the entry on full_page_writes.
    apply_trials(record, &mut advice);
    advice
}

#[cfg(test)]
mod tests {
    use crate::advice::advised_settings;
    use crate::fixture::{self, find_advice, measured, states};
    use diskproof_model::measurement::OpKind;
    use diskproof_model::plan::Workload;
    use diskproof_model::plan::{Access, CachePolicy, SyncPolicy};
    use diskproof_model::stream::Streams;

    /// What gets no grade becomes no setting either.
    #[test]
    fn unwritten_blocks_give_no_setting_however_slow_they_are() {
        let slow = |latency_ns: u64| {
            let mut record = fixture::faulty("random-read-d1", |m| {
                m.unwritten_bytes = Some(m.span_bytes);
            });
            let op = measured(&mut record, "random-read-d1")
                .figures
                .ops
                .get_mut(&OpKind::Read);
            op.unwrap().latency.p50 = Some(latency_ns);
            record.advice = advised_settings(&record);
            find_advice(&record, "random_page_cost")
        };
        assert_eq!(slow(500_000).value, None);
        assert_eq!(slow(15_000_000).value, None);
    }

    #[test]
    fn advice_skips_figures_that_are_hardly_known() {
        let shaky = fixture::faulty("random-read-d1", |m| {
            let cells = &mut m.ops.get_mut(&OpKind::Read).unwrap().series.cells;
            for (i, cell) in cells.iter_mut().enumerate() {
                cell.ops *= if i % 100 < 50 { 3 } else { 0 };
            }
        });
        let advice = find_advice(&shaky, "random_page_cost");
        assert_eq!((advice.value, advice.range), (None, None));
        states(&advice.why, &["random-read-d1"]);
    }

    #[test]
    fn advice_skips_figures_of_a_cache() {
        let cached = fixture::faulty("sequential-read", |m| m.device.read_bytes = 0);
        let advice = find_advice(&cached, "random_page_cost");
        assert_eq!((advice.value, advice.range), (None, None));
        states(&advice.why, &["sequential-read", "(served-from-cache)"]);
        assert!(find_advice(&cached, "commit_delay").range.is_some());
        let buffered = fixture::all_faulty(|m| {
            (m.cache.asked, m.cache.used) = (CachePolicy::Buffered, CachePolicy::Buffered)
        });
        for advice in buffered.advice {
            assert_eq!(
                (advice.value, advice.range),
                (None, None),
                "{}",
                advice.setting
            );
        }
    }

    #[test]
    fn advice_needs_more_than_the_name_of_a_workload() {
        const ALL: [&str; 4] = [
            "random_page_cost",
            "effective_io_concurrency",
            "commit_delay",
            "full_page_writes",
        ];
        /// A workload, its change, and the settings that are not advised then.
        type Case<'a> = (&'a str, fn(&mut Workload), &'a [&'a str]);
        let cases: [Case<'_>; 10] = [
            ("commit-fdatasync", |_| {}, &[]),
            (
                "commit-fdatasync",
                |w| w.block_bytes = 65536,
                &["commit_delay"],
            ),
            (
                "commit-fdatasync",
                |w| w.sync = SyncPolicy::None,
                &["commit_delay"],
            ),
            ("commit-fdatasync", |w| w.depth = 2, &["commit_delay"]),
            (
                "commit-fdatasync",
                |w| w.rate = Some(10.0),
                &["commit_delay"],
            ),
            ("random-read-d1", |w| w.workers = 2, &ALL[..2]),
            (
                "random-read-d1",
                |w| w.access = Access::Sequential,
                &ALL[..2],
            ),
            (
                "random-read-d1",
                |w| w.streams = Streams::with_reads(500),
                &ALL[..2],
            ),
            (
                "sequential-read",
                |w| w.access = Access::Backward,
                &ALL[..1],
            ),
            ("random-read-d32", |w| w.depth = 4, &ALL[1..2]),
        ];
        for (row, (name, change, without)) in cases.into_iter().enumerate() {
            let mut record = fixture::record();
            change(&mut measured(&mut record, name).data.workload);
            let settings: Vec<String> = advised_settings(&record)
                .into_iter()
                .map(|a| a.setting)
                .collect();
            for setting in ALL {
                let expected = !without.contains(&setting);
                let found = settings.iter().any(|s| s == setting);
                assert_eq!(found, expected, "{row}: {name}, {setting}");
            }
        }
    }

    #[test]
    fn advice_is_empty_without_the_workloads() {
        assert_eq!(
            fixture::changed(|run| run.measurements.truncate(1)).advice,
            []
        );
    }
}
