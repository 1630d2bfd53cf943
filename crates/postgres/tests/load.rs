//! Loads of a real server: what is counted for them.
#![allow(clippy::unwrap_used)] // a failed step fails the test

use diskproof_device::{Intent, admit, probe};
use diskproof_postgres::{
    Cluster, CommitLoad, GUARD_VERB, Programs, StopCheck, find_programs, guard,
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
    let test = "warm_up_of_the_sessions_is_no_part_of_a_load";
    if !is_asked_for(test, &arguments) {
        return ExitCode::SUCCESS;
    }
    match find_programs(None, std::env::var_os("PATH").as_deref()) {
        Ok(programs) => {
            warm_up_of_the_sessions_is_no_part_of_a_load(programs);
            println!("test {test} ... ok");
        }
        Err(_) => println!("SKIPPED: {test}: initdb"),
    }
    // As the harness of other tests, whose lines are counted.
    println!("test result: ok. 1 passed; 0 failed; 0 ignored");
    ExitCode::SUCCESS
}

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
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let size_bytes = SIZE_BYTES;
    let identity = probe(place.path()).unwrap();
    let admission = admit(identity, Intent::Scratch { size_bytes }).unwrap();
    let stop: StopCheck = Arc::new(|| false);
    let cluster = Cluster::start(admission, programs, &stop, None).unwrap();
    cluster.lay_out(&stop).unwrap();
    let load = CommitLoad {
        clients: CLIENTS,
        synchronous: true,
        method: "fdatasync".to_owned(),
        by_pgbench: false,
        commit_delay_us: None,
    };
    let counted = cluster.run_load(&load, Duration::ZERO, &stop, &mut |_| ());
    cluster.end(None).unwrap();
    let counted = counted.unwrap();
    assert_eq!(counted.commits, 0);
    // The server itself may write something at any time, but less than a row for each session.
    let limit = u64::from(CLIENTS);
    assert!(counted.wal_bytes < 60 * limit, "{counted:?}");
    assert!(counted.wal_syncs.unwrap_or(0) < limit, "{counted:?}");
}
