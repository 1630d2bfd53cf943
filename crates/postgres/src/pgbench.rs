//! The same INSERTs by pgbench, whose figures every PostgreSQL user knows.

use crate::cluster::Cluster;
use crate::commit_load::{CommitLoad, INSERT};
use crate::error::PostgresError;
use crate::guard::{inherited, path_of};
use crate::known_names::SUPER_USER;
use crate::log::ProgramLog;
use crate::stream::StopCheck;
use diskproof_device::ProgramGroup;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(20);
/// Threads of pgbench; each serves several sessions.
const THREADS_MAX: u32 = 4;

/// Runs pgbench for whole seconds, at least one. Returns the commits and their rate per second.
pub(crate) fn run(
    cluster: &Cluster,
    load: &CommitLoad,
    time: Duration,
    stop: &StopCheck,
    progress: &mut dyn FnMut(u64),
) -> Result<(u64, f64), PostgresError> {
    let path = cluster.programs().path("pgbench");
    let failed = |why: String| PostgresError::Program {
        program: path.display().to_string(),
        why,
    };
    let (out, log) = (ProgramLog::new()?, ProgramLog::new()?);
    let (clients, threads) = (load.clients.to_string(), load.clients.min(THREADS_MAX));
    let synchronous = if load.synchronous { "on" } else { "off" };
    let socket_directory = inherited(cluster.data()).map_err(std::io::Error::from)?;
    let mut command = Command::new(&path);
    command
        .args(["-p", "5432", "-U", SUPER_USER, "-n", "-M", "prepared"])
        .arg("-h")
        .arg(path_of(&socket_directory))
        .current_dir("/")
        .args(["-c", &clients, "-j", &threads.to_string(), "-f", "-"])
        .args(["-T", &time.as_secs().max(1).to_string(), "postgres"])
        .env_clear()
        .env("LC_ALL", "C")
        .env("PGOPTIONS", format!("-c synchronous_commit={synchronous}"))
        .stdin(Stdio::piped())
        .stdout(out.output()?)
        .stderr(log.output()?);
    if let Some(user) = cluster.user() {
        command.uid(user.uid).gid(user.gid);
    }
    let begun = Instant::now();
    let mut program =
        ProgramGroup::start(&mut command).map_err(|error| failed(error.to_string()))?;
    if let Some(mut script) = program.child().stdin.take() {
        script.write_all(format!("{INSERT};\n").as_bytes())?;
    }
    let status = loop {
        if let Some(status) = program.try_wait()? {
            break status;
        }
        if stop() {
            return Err(PostgresError::Stopped);
        }
        // It prints nothing on the way; its whole time counts as progress.
        progress(begun.elapsed().min(time).as_millis() as u64);
        std::thread::sleep(POLL);
    };
    if !status.success() {
        return Err(failed(format!("it failed ({status}){}", log.quoted())));
    }
    let text = out.text();
    parse(&text).ok_or_else(|| failed(format!("it printed no rate: {}", text.trim())))
}

/// Before version 14 it prints the rate twice; the one that counts is the one without the time of
/// connecting.
fn parse(text: &str) -> Option<(u64, f64)> {
    let number = |line: &str| {
        let mut words = line.split_whitespace();
        words.find_map(|word| word.parse::<f64>().ok())
    };
    let is_rate = |line: &&str| {
        line.starts_with("tps =") && (line.contains("without") || line.contains("excluding"))
    };
    let is_count = |line: &&str| line.starts_with("number of transactions actually processed");
    let rate = text.lines().find(is_rate).and_then(number)?;
    let commits = text.lines().find(is_count).and_then(number)? as u64;
    Some((commits, rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_without_connecting_is_read_from_every_version() {
        let of_15 = "number of transactions actually processed: 5210\n\
                     latency average = 0.19 ms\n\
                     tps = 5208.123 (without initial connection time)\n";
        let of_12 = "number of transactions actually processed: 5210\n\
                     tps = 5100.5 (including connections establishing)\n\
                     tps = 5208.123 (excluding connections establishing)\n";
        for text in [of_15, of_12] {
            assert_eq!(parse(text), Some((5210, 5208.123)));
        }
        assert_eq!(parse("nothing"), None);
    }
}
