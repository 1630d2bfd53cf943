//! Makes the load of INSERTs by pgbench, whose figures every PostgreSQL user knows.

use crate::cluster::Cluster;
use crate::commit_load::{CommitLoad, INSERT};
use crate::error::PostgresError;
use crate::guard::{SUPER_USER, inherited, path_of};
use crate::program_log::ProgramLog;
use crate::stream::StopCheck;
use diskproof_device::ProgramGroup;
use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The pause before a running pgbench is looked at again, for its end and for Ctrl-C: a user does
/// not notice it.
const PGBENCH_POLL: Duration = Duration::from_millis(20);
/// The most threads of pgbench. Each serves several sessions; with more, their processors would
/// compete with the server. Chosen, not measured.
const THREADS_MAX: u32 = 4;

/// The figures that pgbench prints at its end.
#[derive(Debug, PartialEq)]
pub(crate) struct PgbenchResult {
    pub commits: u64,
    /// Commits per second, without the time of connecting.
    pub rate: f64,
}

/// Runs pgbench for whole seconds, at least one. pgbench ends with this process, and where the user
/// stops it. `progress` gets milliseconds instead of commits, because pgbench prints none on the
/// way.
pub(crate) fn run_pgbench(
    cluster: &Cluster,
    load: &CommitLoad,
    time: Duration,
    stop: &StopCheck,
    progress: &mut dyn FnMut(u64),
) -> Result<PgbenchResult, PostgresError> {
    let path = cluster.programs().path("pgbench");
    let (out, log) = (ProgramLog::new()?, ProgramLog::new()?);
    let (clients, threads) = (load.clients.to_string(), load.clients.min(THREADS_MAX));
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
        .env("PGOPTIONS", session_options(load))
        .stdin(Stdio::piped())
        .stdout(out.output()?)
        .stderr(log.output()?);
    if let Some(user) = cluster.user() {
        command.uid(user.uid).gid(user.gid);
    }
    let begun = Instant::now();
    let mut program = ProgramGroup::start(&mut command)
        .map_err(|error| PostgresError::program(path.display(), error))?;
    if let Some(mut script) = program.child().stdin.take() {
        write_script(&mut script)?;
    }
    let status = loop {
        if let Some(status) = program.try_wait()? {
            break status;
        }
        if stop() {
            return Err(PostgresError::Stopped);
        }
        progress(begun.elapsed().min(time).as_millis() as u64);
        std::thread::sleep(PGBENCH_POLL);
    };
    if !status.success() {
        let why = format!("it failed ({status}){}", log.into_quote());
        return Err(PostgresError::program(path.display(), why));
    }
    let text = out.into_text();
    read_pgbench(&text).ok_or_else(|| {
        let why = format!("it printed no rate: {}", text.trim());
        PostgresError::program(path.display(), why)
    })
}

/// The settings of each session of a load, as options of its login.
fn session_options(load: &CommitLoad) -> String {
    let synchronous = if load.synchronous { "on" } else { "off" };
    let mut options = format!("-c synchronous_commit={synchronous}");
    if let Some(delay_us) = load.commit_delay_us {
        options.push_str(&format!(" -c commit_delay={delay_us}"));
    }
    options
}

/// Gives pgbench its script. One that has ended before it has read that has written the reason to
/// its log, which its exit code makes the error.
fn write_script(to: &mut impl Write) -> std::io::Result<()> {
    match to.write_all(format!("{INSERT};\n").as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Reads the figures; `None` of any other text. Before version 14 pgbench prints the rate twice,
/// and the one without the time of connecting counts.
fn read_pgbench(text: &str) -> Option<PgbenchResult> {
    let rate_line = text.lines().find(|line| {
        line.starts_with("tps =") && (line.contains("without") || line.contains("excluding"))
    })?;
    let count_line = text
        .lines()
        .find(|line| line.starts_with("number of transactions actually processed"))?;
    Some(PgbenchResult {
        commits: first_number(count_line)? as u64,
        rate: first_number(rate_line)?,
    })
}

/// The first word of a line that is a number.
fn first_number(line: &str) -> Option<f64> {
    line.split_whitespace().find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_that_has_ended_takes_no_script_and_tells_why_in_its_log() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        drop(reader);
        assert!(write_script(&mut writer).is_ok());
        let mut full = &mut [0; 4][..];
        assert!(write_script(&mut full).is_err());
    }

    #[test]
    fn sessions_of_pgbench_get_the_settings_of_the_load() {
        let load = |synchronous, commit_delay_us| CommitLoad {
            clients: 1,
            synchronous,
            method: "fdatasync".to_owned(),
            by_pgbench: true,
            commit_delay_us,
        };
        assert_eq!(
            session_options(&load(true, Some(200))),
            "-c synchronous_commit=on -c commit_delay=200"
        );
        assert_eq!(
            session_options(&load(false, None)),
            "-c synchronous_commit=off"
        );
    }

    #[test]
    fn rate_without_connecting_is_read_from_every_version() {
        let of_15 = "number of transactions actually processed: 5210\n\
                     latency average = 0.19 ms\n\
                     tps = 5208.123 (without initial connection time)\n";
        let of_12 = "number of transactions actually processed: 5210\n\
                     tps = 5100.5 (including connections establishing)\n\
                     tps = 5208.123 (excluding connections establishing)\n";
        for text in [of_15, of_12] {
            let printed = PgbenchResult {
                commits: 5210,
                rate: 5208.123,
            };
            assert_eq!(read_pgbench(text), Some(printed));
        }
        assert_eq!(read_pgbench("nothing"), None);
    }
}
