//! Restores the write cache by a process of its own, the guard. It waits until its standard input
//! closes, which happens however the program ends, also by kill -9. Then it restores the state that
//! was found, and reports that. It is the program itself with a hidden verb.

use crate::programs::descriptor_limit::spawn_with_limit_of_user;
use crate::programs::guard_lines::{ending_signals, report_line, reported_lines};
use crate::write_cache::{
    CacheTool, SwitchedDisk, TOOL_TIME_LIMIT, WriteCacheError, WriteCacheSwitch, state_text,
};
use diskproof_model::target::WriteCache;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// The verb of the command line that starts the guard; no help shows it.
pub const WRITE_CACHE_GUARD_VERB: &str = "write-cache-guard";
/// The guard's line once it waits; before that nothing may be switched.
const READY: &str = "ready";
/// The guard's last line where every disk has its state again; any other line says what failed.
const RESTORED: &str = "restored";
/// Words for each disk on the guard's command line ([`to_arguments`]).
const WORDS: usize = 5;
/// The interval at which the guard checks whether it has to end; it is idle between.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The guard starts within milliseconds; a loaded machine takes longer. Chosen, not measured.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest wait for the guard, for each disk: more than its two calls of a tool may take, the
/// change and the query that confirms it. What is added is chosen, not measured.
const RESTORED_TIMEOUT: Duration = Duration::from_secs(2 * TOOL_TIME_LIMIT.as_secs() + 15);

/// Runs the guard with the arguments behind its verb.
pub fn write_cache_guard(arguments: &[OsString]) -> ExitCode {
    let disks: Option<Vec<SwitchedDisk>> = arguments.chunks(WORDS).map(from_arguments).collect();
    let Some(disks) = disks.filter(|disks| !disks.is_empty()) else {
        return ExitCode::from(2);
    };
    let Ok(ending) = ending_signals() else {
        return ExitCode::FAILURE;
    };
    let closed = Arc::clone(&ending);
    let waits = std::thread::Builder::new().spawn(move || {
        // Nothing is ever written to it.
        let _ = std::io::stdin().read(&mut [0]);
        closed.store(true, Ordering::SeqCst);
    });
    if waits.is_err() {
        return ExitCode::FAILURE;
    }
    report_line(READY);
    while !ending.load(Ordering::SeqCst) {
        std::thread::sleep(POLL_INTERVAL);
    }
    match restore(&disks) {
        Ok(()) => {
            report_line(RESTORED);
            ExitCode::SUCCESS
        }
        Err(why) => {
            report_line(&why);
            ExitCode::FAILURE
        }
    }
}

/// Restores the disks; the error names each that has another state now, with the reason.
fn restore(disks: &[SwitchedDisk]) -> Result<(), String> {
    let mut errors = Vec::new();
    for disk in disks {
        let result = disk
            .tool
            .switch(&disk.program, &disk.node, disk.initial_state, Stdio::null());
        if let Err(why) = result {
            errors.push(format!("{}: {why}", disk.name));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors.join("; "))
    }
}

/// A disk on the guard's command line. [`from_arguments`] reads the same words in the same order.
fn to_arguments(disk: &SwitchedDisk) -> [OsString; WORDS] {
    [
        disk.name.clone().into(),
        disk.node.clone().into(),
        disk.tool.program().into(),
        disk.program.clone().into(),
        state_text(disk.initial_state).into(),
    ]
}

fn from_arguments(words: &[OsString]) -> Option<SwitchedDisk> {
    let [name, node, tool, program, initial_state] = words else {
        return None;
    };
    let states = [WriteCache::WriteBack, WriteCache::WriteThrough];
    Some(SwitchedDisk {
        name: name.to_str()?.to_owned(),
        node: PathBuf::from(node),
        tool: CacheTool::ALL
            .into_iter()
            .find(|known| OsStr::new(known.program()) == tool)?,
        program: PathBuf::from(program),
        initial_state: states
            .into_iter()
            .find(|state| OsStr::new(state_text(*state)) == initial_state)?,
    })
}

/// Write caches that may be switched, because a guard restores them. Ends with [`Self::restore`];
/// dropped without it, the guard restores them all the same.
#[derive(Debug)]
pub struct GuardedWriteCache {
    switch: WriteCacheSwitch,
    guard: Child,
    /// The guard restores once this is closed here, and in every tool that runs: one that outlives
    /// a killed diskproof may still switch the disk.
    lifeline: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The state that the disks were last switched to.
    state: Option<WriteCache>,
}

impl GuardedWriteCache {
    /// Starts the guard. Changes nothing yet.
    pub fn start(switch: WriteCacheSwitch) -> Result<Self, WriteCacheError> {
        Self::start_as(switch, Command::new("/proc/self/exe"))
    }

    pub(crate) fn start_as(
        switch: WriteCacheSwitch,
        mut program: Command,
    ) -> Result<Self, WriteCacheError> {
        // Its own group keeps Ctrl-C of the terminal away from it.
        program
            .arg(WRITE_CACHE_GUARD_VERB)
            .args(switch.disks.iter().flat_map(to_arguments))
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut guard = spawn_with_limit_of_user(&mut program).map_err(guard_failed)?;
        let lifeline = guard.stdin.take();
        let lines = reported_lines(&mut guard).map_err(guard_failed)?;
        let mut guarded = Self {
            switch,
            guard,
            lifeline,
            lines,
            state: None,
        };
        match guarded.lines.recv_timeout(READY_TIMEOUT) {
            Ok(line) if line == READY => Ok(guarded),
            _ => {
                guarded.lifeline = None;
                Err(WriteCacheError::Guard(
                    "did not start; nothing was changed".to_owned(),
                ))
            }
        }
    }

    /// Switches all disks. Does nothing where that is their state already.
    pub fn set(&mut self, state: WriteCache) -> Result<(), WriteCacheError> {
        if !matches!(self.guard.try_wait(), Ok(None)) {
            return Err(WriteCacheError::Guard(
                "has ended unexpectedly; the cache is not switched without it".to_owned(),
            ));
        }
        if self.state == Some(state) {
            return Ok(());
        }
        self.state = None;
        for disk in &self.switch.disks {
            let lifeline = match &self.lifeline {
                Some(lifeline) => Stdio::from(
                    lifeline
                        .as_fd()
                        .try_clone_to_owned()
                        .map_err(guard_failed)?,
                ),
                None => Stdio::null(),
            };
            let switched = disk.tool.switch(&disk.program, &disk.node, state, lifeline);
            switched.map_err(|why| WriteCacheError::NotSwitched {
                disk: disk.name.clone(),
                state: state_text(state),
                why,
            })?;
        }
        self.state = Some(state);
        Ok(())
    }

    /// Has the guard restore the states that were found, and does it itself where the guard has
    /// died.
    pub fn restore(mut self) -> Result<(), WriteCacheError> {
        self.lifeline = None;
        let within = RESTORED_TIMEOUT * self.switch.disks.len() as u32;
        let said = loop {
            match self.lines.recv_timeout(within) {
                Ok(line) if line == READY => {}
                Ok(line) if line == RESTORED => break Ok(()),
                Ok(line) => break Err(line),
                Err(RecvTimeoutError::Disconnected) => break restore(&self.switch.disks),
                Err(RecvTimeoutError::Timeout) => {
                    break Err("the disk does not answer".to_owned());
                }
            }
        };
        said.map_err(|why| WriteCacheError::NotRestored {
            why,
            commands: self.switch.restoring_commands(),
        })
    }
}

fn guard_failed(error: std::io::Error) -> WriteCacheError {
    WriteCacheError::Guard(format!("failed: {error}"))
}

impl Drop for GuardedWriteCache {
    fn drop(&mut self) {
        self.lifeline = None;
        // It ends by itself; one that is done is reaped.
        let _ = self.guard.try_wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(tool: CacheTool, initial_state: WriteCache) -> SwitchedDisk {
        SwitchedDisk {
            name: "sda".to_owned(),
            node: PathBuf::from("/dev/sda"),
            tool,
            program: PathBuf::from("/opt/my tools/hdparm"),
            initial_state,
        }
    }

    #[test]
    fn guard_is_told_every_disk_with_its_state() {
        for tool in CacheTool::ALL {
            for initial_state in [WriteCache::WriteBack, WriteCache::WriteThrough] {
                let disk = disk(tool, initial_state);
                assert_eq!(from_arguments(&to_arguments(&disk)), Some(disk));
            }
        }
    }

    #[test]
    fn guard_refuses_arguments_that_it_does_not_know() {
        let known = to_arguments(&disk(CacheTool::Nvme, WriteCache::WriteBack));
        assert_eq!(from_arguments(&known[1..]), None);
        // The tool and the state.
        for place in [2, 4] {
            let mut unknown = known.clone();
            unknown[place] = OsString::from("other");
            assert_eq!(from_arguments(&unknown), None, "{place}");
        }
    }
}
