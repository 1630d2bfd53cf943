//! Settings that a temporary PostgreSQL server tries, by its version. Starts no server.

use diskproof_model::trial::{PlannedTrial, TrialLoad, TrialPlan};

/// Of these pairs the interval has a width of use; more shrink it slowly.
const PAIRS_MAX: u32 = 8;
/// Four times the server's cache.
const TABLE_BYTES: u64 = 256 << 20;
/// Versions whose defaults or names differ (release notes).
const PREFETCH_FROM: u32 = 14;
const COMBINES_FROM: u32 = 17;
const ASYNCHRONOUS_FROM: u32 = 18;
const GROWING_WORKERS_FROM: u32 = 19;

/// The settings that a server of this version tries, within this time.
pub(crate) fn trial_plan(version: u32, time_ns: u64) -> TrialPlan {
    let trial = |setting: &str, values: (&str, Option<&str>), load, clients| PlannedTrial {
        setting: setting.to_owned(),
        default: values.0.to_owned(),
        candidate: values.1.map(str::to_owned),
        load,
        clients,
    };
    let scan = |setting: &str, default: &str, candidate: &str, load| {
        trial(setting, (default, Some(candidate)), load, 1)
    };
    let bitmap = TrialLoad::BitmapScan;
    let [(reads, more_reads), (others, more_others)] = match version {
        ASYNCHRONOUS_FROM.. => [("16", "64"), ("16", "64")],
        _ => [("1", "16"), ("10", "32")],
    };
    let mut trials = Vec::new();
    // First, while the server's cache is empty, so that ANALYZE finds few pages there.
    if version >= PREFETCH_FROM {
        let setting = "maintenance_io_concurrency";
        trials.push(scan(setting, others, more_others, TrialLoad::Analyze));
    }
    trials.push(scan("effective_io_concurrency", reads, more_reads, bitmap));
    trials.push(scan("random_page_cost", "4", "1.1", TrialLoad::Join));
    let inserts = TrialLoad::Inserts;
    trials.push(trial("wal_sync_method", ("fdatasync", None), inserts, 4));
    trials.push(trial("commit_delay", ("0", None), inserts, 16));
    if version >= COMBINES_FROM {
        let sequential = TrialLoad::SequentialScan;
        trials.push(scan("io_combine_limit", "128kB", "256kB", sequential));
    }
    if version >= ASYNCHRONOUS_FROM {
        trials.push(match version {
            GROWING_WORKERS_FROM.. => scan("io_max_workers", "8", "32", bitmap),
            _ => scan("io_workers", "3", "12", bitmap),
        });
        // The last one: a server that does not start with it has nothing else to try.
        trials.push(scan("io_method", "worker", "io_uring", bitmap));
    }
    TrialPlan {
        trials,
        time_ns,
        pairs_max: PAIRS_MAX,
        table_bytes: TABLE_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_follow_the_version() {
        let names = |version| -> Vec<String> {
            let trials = trial_plan(version, 0).trials;
            trials.into_iter().map(|trial| trial.setting).collect()
        };
        let always = ["wal_sync_method", "commit_delay"];
        assert_eq!(names(13)[2..], always);
        assert_eq!(names(15)[3..], always);
        let of_18 = ["io_combine_limit", "io_workers", "io_method"];
        assert_eq!(names(18)[5..], of_18);
        let of_19 = ["io_combine_limit", "io_max_workers", "io_method"];
        assert_eq!(names(19)[5..], of_19);
        assert_eq!(trial_plan(17, 0).trials[1].default, "1");
        assert_eq!(trial_plan(18, 0).trials[1].default, "16");
        assert_eq!(names(15)[0], "maintenance_io_concurrency");
    }
}
