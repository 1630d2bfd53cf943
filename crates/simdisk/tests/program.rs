//! The program `simdisk`: it starts, ends on SIGTERM, and loses on `kill -9` exactly what a power
//! cut would.

// As in any test, also in the functions that tests share.
#![allow(clippy::unwrap_used)]

mod root;

use root::{AlignedBuffer, Scratch, open_direct};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Blocks of 4 KiB that are written and flushed, and as many written only.
const BLOCKS: u64 = 64;

/// A running `simdisk`; killed and unmounted when dropped, also by a failed test.
struct ServerProcess {
    child: Child,
    mount_point: PathBuf,
}

impl ServerProcess {
    fn start(scratch: &Scratch, model: &str) -> Self {
        let mount_point = scratch.path("disk");
        let child = Command::new(env!("CARGO_BIN_EXE_simdisk"))
            .args(["--size", "8MiB", "--model", model, "--mount"])
            .arg(&mount_point)
            .arg("--backing")
            .arg(scratch.path("image"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut running = Self { child, mount_point };
        let (mut line, stdout) = (String::new(), running.child.stdout.take().unwrap());
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert!(line.starts_with("ready /"), "{line}");
        running
    }

    fn end(mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Already ended or unmounted is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = unmount(&self.mount_point, UnmountFlags::DETACH);
    }
}

/// Writes ones and flushes, writes twos elsewhere without a flush, ends the server by this signal;
/// how many ones and twos survived.
fn survivors(model: &str, signal: Signal) -> (usize, usize) {
    let scratch = Scratch::new();
    let disk = ServerProcess::start(&scratch, model);
    let file = open_direct(&disk.mount_point).unwrap();
    let mut buffer = AlignedBuffer::new(4096);
    for n in 0..2 * BLOCKS {
        if n == BLOCKS {
            file.sync_data().unwrap();
        }
        buffer.bytes_mut().fill(1 + (n / BLOCKS) as u8);
        file.write_all_at(buffer.bytes_mut(), n * 4096).unwrap();
    }
    drop(file);
    disk.end(signal);
    let image = std::fs::read(scratch.path("image")).unwrap();
    let count = |value| {
        let is_whole = |sector: &&[u8]| sector.iter().all(|b| *b == value);
        image.chunks(512).filter(is_whole).count()
    };
    (count(1), count(2))
}

/// The reader of the help closes its pipe before the program prints.
#[test]
fn help_without_a_reader_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = Command::new(env!("CARGO_BIN_EXE_simdisk"))
        .arg("--help")
        .stdout(writer)
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
}

#[test]
fn power_cut_loses_cached_writes() {
    if root::missing("power_cut_loses_cached_writes") {
        return;
    }
    let all = BLOCKS as usize * 8;
    let survivors = |model| survivors(model, Signal::KILL);
    assert_eq!(survivors("cache=durable"), (all, all));
    assert_eq!(survivors("cache=honest"), (all, 0));
    assert_eq!(survivors("cache=lying"), (0, 0));
    let (flushed, unflushed) = survivors("cache=honest/50%");
    assert_eq!(flushed, all);
    assert!((all / 4..all * 3 / 4).contains(&unflushed), "{unflushed}");
    let (flushed, _) = survivors("cache=lying/50%");
    assert!((all / 4..all * 3 / 4).contains(&flushed), "{flushed}");
}

#[test]
fn orderly_end_empties_an_honest_cache() {
    if root::missing("orderly_end_empties_an_honest_cache") {
        return;
    }
    let all = BLOCKS as usize * 8;
    assert_eq!(survivors("cache=honest", Signal::TERM), (all, all));
    assert_eq!(survivors("cache=lying", Signal::TERM), (0, 0));
}

#[test]
fn program_ends_on_signals_and_replaces_dead_mount() {
    if root::missing("program_ends_on_signals_and_replaces_dead_mount") {
        return;
    }
    let scratch = Scratch::new();
    let mut first = ServerProcess::start(&scratch, "unthrottled");
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let mut next = ServerProcess::start(&scratch, "unthrottled");
        assert_eq!(next.mount_point.metadata().unwrap().len(), 8 << 20);
        kill_process(Pid::from_child(&next.child), signal).unwrap();
        assert!(next.child.wait().unwrap().success(), "{signal:?}");
        let (mut statistics, mut stderr) = (String::new(), next.child.stderr.take().unwrap());
        stderr.read_to_string(&mut statistics).unwrap();
        assert!(statistics.starts_with("reads=0 writes=0"), "{statistics}");
        let left = next.mount_point.metadata().unwrap().len();
        assert_eq!(left, 0, "unmounted after {signal:?}");
    }
}
