//! Loads of a real server: what is counted for them.
#![allow(clippy::unwrap_used)] // a failed step fails the test

use diskproof_device::{Intent, admit, probe};
use diskproof_postgres::{
    Cluster, CommitLoad, GUARD_VERB, LoadResult, Programs, StopCheck, find_programs, guard,
};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// As many as the largest load of `commit --postgres` has.
const CLIENTS: u32 = 16;
/// A cluster needs less.
const SIZE_BYTES: u64 = 300 << 20;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let [verb, rest @ ..] = &arguments[..]
        && verb == GUARD_VERB
    {
        return guard(rest);
    }
    let mut passed = 0;
    for (name, test) in TESTS {
        if !is_asked_for(name, &arguments) {
            continue;
        }
        match find_programs(None, std::env::var_os("PATH").as_deref()) {
            Ok(programs) => {
                test(programs);
                println!("test {name} ... ok");
            }
            Err(_) => println!("SKIPPED: {name}: initdb"),
        }
        passed += 1;
    }
    // As the harness of other tests, whose lines are counted.
    println!("test result: ok. {passed} passed; 0 failed; 0 ignored");
    ExitCode::SUCCESS
}

/// A test of a server of these programs.
type ServerTest = fn(Programs);

/// The tests and their names.
const TESTS: [(&str, ServerTest); 2] = [
    (
        "warm_up_of_the_sessions_is_no_part_of_a_load",
        warm_up_of_the_sessions_is_no_part_of_a_load,
    ),
    (
        "warm_up_that_was_reported_early_is_subtracted_once",
        warm_up_that_was_reported_early_is_subtracted_once,
    ),
];

/// True unless the arguments of the test program name other tests only.
fn is_asked_for(test: &str, arguments: &[OsString]) -> bool {
    let mut names = arguments
        .iter()
        .map(|argument| argument.to_string_lossy())
        .filter(|argument| !argument.starts_with('-'))
        .peekable();
    names.peek().is_none() || names.any(|name| test.contains(&*name))
}

/// A load without time makes no commits but those of the warm-up.
fn warm_up_of_the_sessions_is_no_part_of_a_load(programs: Programs) {
    let counted = counted_load(programs, CLIENTS, Duration::ZERO, |_| ());
    assert_eq!(counted.commits, 0);
    // The server itself may write something at any time, but less than a row for each session.
    let limit = u64::from(CLIENTS);
    assert!(counted.wal_bytes < 60 * limit, "{counted:?}");
    assert!(counted.wal_syncs.unwrap_or(0) < limit, "{counted:?}");
}

/// A server reports the counters of a session at the end of a transaction that takes more than a
/// second, as those of the warm-up do on a slow disk. The lock makes each commit wait for the sync
/// of the one before it, so that each has its own.
const SLOW_WARM_UP: &str = "
    CREATE FUNCTION slow_at_first() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(1);
        IF coalesce(current_setting('test.is_warm', true), '') = '' THEN
            PERFORM set_config('test.is_warm', 'yes', false);
            PERFORM pg_sleep(1.2);
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER slow_at_first BEFORE INSERT ON commits
        FOR EACH ROW EXECUTE FUNCTION slow_at_first();";

/// Each session makes one commit: its time is over then.
fn warm_up_that_was_reported_early_is_subtracted_once(programs: Programs) {
    // Enough that the syncs of the server itself do not hide those of the warm-up.
    let clients = 6;
    let counted = counted_load(programs, clients, Duration::from_nanos(1), |cluster| {
        let stop: StopCheck = Arc::new(|| false);
        let mut session = cluster.connect(&stop).unwrap();
        session.query(SLOW_WARM_UP).unwrap();
    });
    assert_eq!(counted.commits, u64::from(clients));
    if let Some(syncs) = counted.wal_syncs {
        assert!(syncs >= counted.commits, "{counted:?}");
    }
}

/// What was counted for a load in a new cluster, which is prepared after its table was made.
fn counted_load(
    programs: Programs,
    clients: u32,
    time: Duration,
    prepare: impl FnOnce(&Cluster),
) -> LoadResult {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let size_bytes = SIZE_BYTES;
    let identity = probe(place.path()).unwrap();
    let admission = admit(identity, Intent::Scratch { size_bytes }).unwrap();
    let stop: StopCheck = Arc::new(|| false);
    let cluster = Cluster::start(admission, programs, &stop, None).unwrap();
    cluster.lay_out(&stop).unwrap();
    prepare(&cluster);
    let load = CommitLoad {
        clients,
        synchronous: true,
        method: "fdatasync".to_owned(),
        by_pgbench: false,
        commit_delay_us: None,
    };
    let counted = cluster.run_load(&load, time, &stop, &mut |_| ());
    cluster.end(None).unwrap();
    counted.unwrap()
}
