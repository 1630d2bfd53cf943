//! Our latencies against the kernel's own: at depth 1 no request may seem faster than the device
//! was, from block_rq_issue to block_rq_complete. A private tracefs instance on the clock that we
//! use. A relation, not a speed: it holds on any machine.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod support;

use diskproof_device::probe;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{EngineKind, Workload};
use diskproof_model::progress::{Control, Progress, Watch};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{after_ops, run, scratch_in, watched, workload};

/// Notes the threads of this process: another process may read blocks of the same size meanwhile.
#[derive(Default)]
struct OwnThreads(HashSet<String>);

impl Watch for OwnThreads {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        self.0
            .extend(threads.map(|thread| thread.unwrap().file_name().into_string().unwrap()));
        Control::Continue
    }
}

/// Our own tracefs with our own instance; both go away with it.
struct Trace {
    mount: tempfile::TempDir,
    instance: PathBuf,
}

impl Trace {
    fn begin(device: &str) -> Option<Self> {
        let mount = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tracefs", "nodev"])
            .arg(mount.path())
            .output()
            .ok()?
            .status
            .success();
        if !mounted {
            return None;
        }
        let instance = mount
            .path()
            .join("instances")
            .join(format!("diskproof-{}", std::process::id()));
        let trace = Self { mount, instance };
        std::fs::create_dir(&trace.instance).ok()?;
        let (major, minor) = device.split_once(':')?;
        let number = major.parse::<u64>().ok()? << 20 | minor.parse::<u64>().ok()?;
        trace.set("trace_clock", "mono").ok()?;
        trace.set("buffer_size_kb", "8192").ok()?;
        for event in ["block_rq_issue", "block_rq_complete"] {
            let set = |name, value: &str| trace.set(&format!("events/block/{event}/{name}"), value);
            set("filter", &format!("dev == {number}")).ok()?;
            set("enable", "1").ok()?;
        }
        Some(trace)
    }

    fn set(&self, name: &str, value: &str) -> std::io::Result<()> {
        std::fs::write(self.instance.join(name), value)
    }

    /// Nanoseconds from issue to completion of each read of `sectors` that `threads` issued.
    fn read_times(&self, sectors: u64, threads: &OwnThreads) -> Vec<u64> {
        let text = std::fs::read_to_string(self.instance.join("trace")).unwrap();
        let (mut issued, mut times) = (HashMap::new(), Vec::new());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            // `task-pid [cpu] flags seconds.micros: block_rq_issue: 254,0 R 8192 () 123456 + 16
            // none,0,0 [task]`
            let Some((head, tail)) = line.split_once(": block_rq_") else {
                continue;
            };
            let Some(seconds) = head
                .split_whitespace()
                .last()
                .and_then(|t| t.parse::<f64>().ok())
            else {
                continue;
            };
            let words: Vec<&str> = tail.split_whitespace().collect();
            let Some(plus) = words.iter().position(|w| *w == "+") else {
                continue;
            };
            if !words[2].starts_with('R')
                || words.get(plus + 1).and_then(|n| n.parse::<u64>().ok()) != Some(sectors)
            {
                continue;
            }
            let (sector, ns) = (words[plus - 1].to_owned(), (seconds * 1e9) as u64);
            let issuer = head
                .split_whitespace()
                .next()
                .and_then(|task| task.rsplit('-').next());
            match words[0] {
                "issue:" if issuer.is_some_and(|thread| threads.0.contains(thread)) => {
                    issued.insert(sector, ns);
                }
                "issue:" => {
                    issued.remove(&sector);
                }
                _ => times.extend(
                    issued
                        .remove(&sector)
                        .map(|start: u64| ns.saturating_sub(start)),
                ),
            }
        }
        times.sort_unstable();
        times
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        for event in ["block_rq_issue", "block_rq_complete"] {
            let _ = self.set(&format!("events/block/{event}/enable"), "0");
        }
        let _ = std::fs::remove_dir(&self.instance);
        let _ = Command::new("umount").arg(self.mount.path()).status();
    }
}

fn skip(why: &str) {
    eprintln!("SKIPPED: no_request_seems_faster_than_the_device: {why}");
}

#[test]
fn no_request_seems_faster_than_the_device() {
    if !rustix::process::geteuid().is_root() {
        return skip("root, for tracefs");
    }
    let dir = tempfile::tempdir_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let identity = probe(dir.path()).unwrap();
    let Some(disk) = identity.disks().next().map(|disk| disk.device.clone()) else {
        return skip("a directory on a disk");
    };
    let mut target = scratch_in(dir.path(), 64 << 20);
    let truth = |engine| Workload {
        depth: 1,
        stop: after_ops(2000),
        ..workload(engine)
    };
    run(&truth(EngineKind::Sync), &mut target);
    for engine in [EngineKind::Sync, EngineKind::Uring, EngineKind::Aio] {
        let Some(trace) = Trace::begin(&disk) else {
            return skip("a tracefs with block events");
        };
        let mut threads = OwnThreads::default();
        let seen = watched(&truth(engine), &mut target, &mut threads).unwrap();
        let kernel = trace.read_times(8192 / 512, &threads);
        if kernel.len() < 1000 {
            return skip("block_rq events of our own from the disk under the build directory");
        }
        // The trace tells whole microseconds.
        let kernel_p50 = kernel[kernel.len() / 2].saturating_sub(1000);
        let ours = seen.ops[&OpKind::Read].latency.value_at(0.5);
        assert!(
            ours >= kernel_p50,
            "{engine:?}: p50 {ours} ns, but the device alone took {kernel_p50} ns"
        );
        println!(
            "{engine:?}: p50 {ours} ns, device {kernel_p50} ns, {} requests traced",
            kernel.len()
        );
    }
}
