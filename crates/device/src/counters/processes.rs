//! Finds the other processes that use storage, from /proc/PID/io and, where permitted, from the
//! kernel's report on each process that ends. Neither says which disk a process used.

use crate::counters::exits::EndedThread;
use crate::kernel::sysroot::{SysRoot, read_text, value_of};
use diskproof_model::measurement::{ByteCount, LAZY_INIT_THREAD, OtherProcess};
use diskproof_model::watch::BusyProcess;
use std::collections::{BTreeMap, HashMap};

/// `PF_KTHREAD` of linux/sched.h, in the flags of /proc/PID/stat: kernel threads write on behalf of
/// processes that are counted already.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// kthreadd, the parent of all kernel threads.
const KERNEL_PARENT: u32 = 2;
/// Less than this is the noise of a living system: a log line, a page of a library. Chosen, not
/// measured.
const BYTES_MIN: u64 = 64 << 10;
/// At most so many processes are named, because a page shows them in a sentence.
const NAMED_MAX: usize = 10;

/// The bytes that all processes but ourselves have read and written since they started.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessCounters {
    /// By pid and start time: pids are used again.
    seen: HashMap<(u32, u64), Process>,
    hidden: u32,
    /// The pid of [`LAZY_INIT_THREAD`] while it lives.
    initialiser: Option<u32>,
}

/// The processes that moved data in some time.
#[derive(Debug, Default)]
pub(crate) struct OtherProcesses {
    /// The busiest first.
    pub(crate) processes: Vec<OtherProcess>,
    /// The number of processes whose counters this user may not see.
    pub(crate) hidden: u32,
}

#[derive(Debug, Clone, Default)]
struct Process {
    name: String,
    parent: u32,
    bytes: ByteCount,
}

/// The fields of /proc/PID/stat that are used.
#[derive(Debug, PartialEq, Eq)]
struct ProcessStat {
    name: String,
    parent: u32,
    flags: u64,
    start_ticks: u64,
}

impl ProcessCounters {
    pub(crate) fn read(root: &SysRoot) -> Self {
        let mut counters = Self::default();
        for pid in root.other_processes() {
            counters.add(root, pid);
        }
        counters
    }

    fn add(&mut self, root: &SysRoot, pid: u32) {
        let directory = root.proc.join(pid.to_string());
        // A process that has just ended has no stat: nothing to count.
        let Some(stat) = read_text(&directory.join("stat"))
            .as_deref()
            .and_then(parse_stat)
        else {
            return;
        };
        if stat.flags & KERNEL_THREAD != 0 {
            if stat.name == LAZY_INIT_THREAD {
                self.initialiser = Some(pid);
            }
            return;
        }
        match std::fs::read_to_string(directory.join("io")) {
            Ok(text) => {
                if let Some(bytes) = parse_io(&text) {
                    let (name, parent) = (stat.name, stat.parent);
                    let process = Process {
                        name,
                        parent,
                        bytes,
                    };
                    self.seen.insert((pid, stat.start_ticks), process);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => self.hidden += 1,
            Err(_) => {}
        }
    }

    /// Processes that moved 64 KiB or more since `before`, the busiest first. Those that started
    /// meanwhile count from zero. Those that ended count by themselves as far as `ended` reports
    /// them; the others count for the process that waited for them, or are lost. The initialiser of
    /// ext4 comes first, without its bytes, which nothing shows.
    pub(crate) fn since(self, before: &Self, ended: &[EndedThread]) -> OtherProcesses {
        let initialiser = before.initialiser.or(self.initialiser);
        let hidden = self.hidden;
        let ended_processes = self.ended_processes(before, ended);
        // What children that have ended since `before` had moved by then already. The kernel adds a
        // child's whole life to the parent that waits for it (wait_task_zombie in kernel/exit.c);
        // without this, a shell would seem to do in one instant what its child did all day.
        let mut moved_before = Vec::new();
        for (key, process) in &before.seen {
            if !self.seen.contains_key(key) {
                let (pid, _) = *key;
                moved_before.push((pid, process));
            }
        }
        let reported: Vec<(u32, &Process)> = ended_processes
            .iter()
            .map(|(pid, process)| (*pid, process))
            .collect();
        let mut passed_to_parents = HashMap::new();
        pass_to_parents(&moved_before, &mut passed_to_parents);
        pass_to_parents(&reported, &mut passed_to_parents);
        let mut others = Vec::new();
        for ((pid, start), now) in self.seen {
            let bytes_before = match before.seen.get(&(pid, start)) {
                Some(process) => process.bytes,
                None => ByteCount::default(),
            };
            let children_bytes = passed_to_parents.get(&pid).copied().unwrap_or_default();
            let moved = bytes_since(bytes_since(now.bytes, bytes_before), children_bytes);
            others.push(other_process(pid, now.name, moved));
        }
        for (pid, process) in ended_processes {
            others.push(OtherProcess {
                ended: true,
                ..other_process(pid, process.name, process.bytes)
            });
        }
        others.retain(|other| moved(other) >= BYTES_MIN);
        others.sort_by_key(|other| (std::cmp::Reverse(moved(other)), other.pid));
        if let Some(pid) = initialiser {
            let initialiser = other_process(pid, LAZY_INIT_THREAD.to_owned(), ByteCount::default());
            others.insert(0, initialiser);
        }
        others.truncate(NAMED_MAX);
        OtherProcesses {
            processes: others,
            hidden,
        }
    }

    /// By pid: the processes that ended since `before`, by the reports on their threads, with what
    /// they moved since. A report has no start time, so a pid that was used twice in that time
    /// counts as one process.
    fn ended_processes(&self, before: &Self, ended: &[EndedThread]) -> BTreeMap<u32, Process> {
        let mut gone: BTreeMap<u32, Process> = BTreeMap::new();
        for thread in ended {
            let is_own = thread.pid == std::process::id();
            let lives = self.seen.keys().any(|(pid, _)| *pid == thread.pid);
            if thread.parent == KERNEL_PARENT || is_own || lives {
                continue;
            }
            let process = gone.entry(thread.pid).or_insert_with(|| Process {
                name: thread.name.clone(),
                parent: thread.parent,
                bytes: ByteCount::default(),
            });
            if thread.is_first {
                (process.name, process.parent) = (thread.name.clone(), thread.parent);
            }
            process.bytes += thread.bytes;
        }
        // Where a pid was used again, the reports hold all of the earlier process' life, too.
        for ((pid, _), earlier) in &before.seen {
            if let Some(process) = gone.get_mut(pid) {
                process.bytes = bytes_since(process.bytes, earlier.bytes);
            }
        }
        gone
    }
}

/// Adds the bytes of ended processes to those that the kernel has passed to a living process, by
/// the pid of that process: the first one above that has not ended too.
fn pass_to_parents(ended: &[(u32, &Process)], passed_to_parents: &mut HashMap<u32, ByteCount>) {
    let mut parents = HashMap::new();
    for (pid, process) in ended {
        parents.insert(*pid, process.parent);
    }
    for (_, process) in ended {
        let receiver = first_living_parent(&parents, process.parent);
        *passed_to_parents.entry(receiver).or_default() += process.bytes;
    }
}

/// The first process from `parent` upwards that has not ended. Bounded: /proc is not read at one
/// instant, so pids used again could form a circle. `parents` has the parent of each ended process.
fn first_living_parent(parents: &HashMap<u32, u32>, parent: u32) -> u32 {
    std::iter::successors(Some(parent), |pid| parents.get(pid).copied())
        .take(parents.len() + 1)
        .last()
        .unwrap_or(parent)
}

/// The bytes of a counter that is `now` and was `earlier`.
fn bytes_since(now: ByteCount, earlier: ByteCount) -> ByteCount {
    ByteCount {
        read_bytes: now.read_bytes.saturating_sub(earlier.read_bytes),
        write_bytes: now.write_bytes.saturating_sub(earlier.write_bytes),
        ..now
    }
}

fn other_process(pid: u32, name: String, moved: ByteCount) -> OtherProcess {
    OtherProcess {
        pid,
        name,
        read_bytes: moved.read_bytes,
        write_bytes: moved.write_bytes,
        ended: false,
    }
}

/// Reads the counters of all processes repeatedly.
#[derive(Debug)]
pub struct ProcessActivity {
    before: ProcessCounters,
}

/// The processes that moved something in a step.
#[derive(Debug, Default)]
pub struct ActiveProcesses {
    /// The busiest first, at most ten.
    pub busiest: Vec<BusyProcess>,
    /// Processes of other users that this one may not look at.
    pub hidden: u32,
}

impl ProcessActivity {
    /// Counts from now on.
    pub fn start() -> Self {
        Self {
            before: ProcessCounters::read(&SysRoot::default()),
        }
    }

    /// Returns the processes that moved bytes since the last call.
    pub fn step(&mut self) -> ActiveProcesses {
        let now = ProcessCounters::read(&SysRoot::default());
        let before = std::mem::replace(&mut self.before, now.clone());
        let OtherProcesses {
            processes: others,
            hidden,
        } = now.since(&before, &[]);
        ActiveProcesses {
            busiest: processes_that_moved_bytes(others),
            hidden,
        }
    }
}

/// The processes that moved bytes. The initialiser of ext4 has none: only traced requests show what
/// it does.
fn processes_that_moved_bytes(others: Vec<OtherProcess>) -> Vec<BusyProcess> {
    let mut busiest = Vec::new();
    for other in others {
        if moved(&other) > 0 {
            busiest.push(BusyProcess {
                pid: other.pid,
                name: other.name,
                requests: None,
                read_bytes: other.read_bytes,
                write_bytes: other.write_bytes,
            });
        }
    }
    busiest
}

fn moved(other: &OtherProcess) -> u64 {
    other.read_bytes.saturating_add(other.write_bytes)
}

/// `read_bytes` and `write_bytes` of /proc/PID/io (proc_pid_io(5)): what really went to the storage
/// layer.
fn parse_io(text: &str) -> Option<ByteCount> {
    Some(ByteCount {
        read_bytes: value_of(text, "read_bytes", ':')?.parse().ok()?,
        write_bytes: value_of(text, "write_bytes", ':')?.parse().ok()?,
        ..ByteCount::default()
    })
}

/// Fields of /proc/PID/stat (proc_pid_stat(5)). The name stands in parentheses and may hold blanks
/// and parentheses itself.
fn parse_stat(text: &str) -> Option<ProcessStat> {
    let (before, after) = text.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    // Counted from the state, which is field 3: parent 4, flags 9, start time 22.
    let fields: Vec<&str> = after.split_whitespace().collect();
    Some(ProcessStat {
        name: name.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        flags: fields.get(6)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(read_bytes: u64, write_bytes: u64) -> ByteCount {
        ByteCount {
            read_bytes,
            write_bytes,
            ..ByteCount::default()
        }
    }

    /// (pid, start time, name, bytes read, bytes written); the parent of 12 is 1, and so on.
    fn counters(processes: &[(u32, u64, &str, u64, u64)]) -> ProcessCounters {
        let process = |(pid, start, name, read_bytes, write_bytes): &(u32, u64, &str, u64, u64)| {
            let process = Process {
                name: (*name).to_owned(),
                parent: pid / 10,
                bytes: bytes(*read_bytes, *write_bytes),
            };
            ((*pid, *start), process)
        };
        let seen = processes.iter().map(process).collect();
        ProcessCounters {
            seen,
            ..ProcessCounters::default()
        }
    }

    #[test]
    fn stat_lines_read_with_odd_names() {
        let line =
            "42 (tmux: (a) b) S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 13 0 1234 44675072 3412";
        let expected = ProcessStat {
            name: "tmux: (a) b".into(),
            parent: 7,
            flags: 4_194_560,
            start_ticks: 1234,
        };
        assert_eq!(parse_stat(line), Some(expected));
        assert_eq!(parse_stat("42 (x) S 1"), None);
    }

    #[test]
    fn io_reads_what_went_to_storage() {
        let text = "rchar: 9\nwchar: 8\nsyscr: 7\nsyscw: 6\nread_bytes: 4096\nwrite_bytes: \
                    8192\ncancelled_write_bytes: 0\n";
        assert_eq!(parse_io(text), Some(bytes(4096, 8192)));
        assert_eq!(parse_io("rchar: 9\n"), None);
    }

    #[test]
    fn the_busiest_come_first_and_a_reused_pid_counts_from_zero() {
        let before = counters(&[
            (1, 1, "quiet", 1 << 30, 0),
            (2, 1, "old", 1 << 30, 0),
            (3, 1, "writer", 0, 1 << 20),
        ]);
        let after = counters(&[
            (1, 1, "quiet", (1 << 30) + 65535, 0),
            (2, 9, "new", 1 << 20, 0),
            (3, 1, "writer", 0, 9 << 20),
        ]);
        let others = after.since(&before, &[]).processes;
        let moved = others
            .iter()
            .map(|other| (other.name.as_str(), other.read_bytes, other.write_bytes));
        assert!(
            moved.eq([("writer", 0, 8 << 20), ("new", 1 << 20, 0)]),
            "{others:?}"
        );
    }

    #[test]
    fn initialiser_of_ext4_is_told_without_bytes() {
        let mut before = counters(&[(3, 1, "writer", 0, 0)]);
        before.initialiser = Some(77);
        let after = counters(&[(3, 1, "writer", 0, 9 << 20)]);
        let others = after.since(&before, &[]).processes;
        let names: Vec<_> = others.iter().map(|other| other.name.as_str()).collect();
        assert_eq!(names, ["ext4lazyinit", "writer"]);
        assert_eq!((others[0].pid, moved(&others[0])), (77, 0));
        let shown: Vec<u32> = processes_that_moved_bytes(others)
            .iter()
            .map(|other| other.pid)
            .collect();
        assert_eq!(shown, [3]);
    }

    #[test]
    fn what_a_child_did_before_is_not_laid_on_its_parent() {
        let before = counters(&[
            (1, 1, "shell", 0, 0),
            (12, 1, "make", 0, 1 << 20),
            (123, 1, "cc", 1 << 30, 0),
        ]);
        let after = counters(&[(1, 1, "shell", (1 << 30) + (2 << 20), 1 << 20)]);
        let others = after.since(&before, &[]).processes;
        assert_eq!(others.len(), 1);
        assert_eq!(others[0].read_bytes, 2 << 20);
        assert_eq!(others[0].write_bytes, 0);
    }

    #[test]
    fn short_lived_processes_count_by_themselves_and_not_for_their_parents() {
        let thread = |pid, is_first, parent, name: &str, mib: u64| EndedThread {
            pid,
            is_first,
            parent,
            name: name.to_owned(),
            bytes: bytes(mib << 20, 0),
        };
        let before = counters(&[(1, 1, "cron", 0, 0), (12, 1, "tar", 8 << 20, 0)]);
        // cron has waited for a shell, which has waited for gzip; tar has ended, too.
        let after = counters(&[(1, 1, "cron", 42 << 20, 0)]);
        let ended = [
            thread(70, false, 1, "worker", 10),
            thread(70, true, 60, "gzip", 20),
            thread(60, true, 1, "dash", 1),
            thread(12, true, 1, "tar", 11),
            thread(std::process::id(), false, 1, "diskproof", 90),
        ];
        let others = after.since(&before, &ended).processes;
        let moved = others
            .iter()
            .map(|other| (other.name.as_str(), other.read_bytes >> 20, other.ended));
        let expected = [("gzip", 30, true), ("tar", 3, true), ("dash", 1, true)];
        assert!(moved.eq(expected), "{others:?}");
    }

    #[test]
    fn ten_at_most() {
        let many = (1000..1030).map(|pid| (pid, 1, "x", u64::from(pid) << 20, 0));
        let many: Vec<_> = many.collect();
        let none = ProcessCounters::default();
        let others = counters(&many).since(&none, &[]).processes;
        assert_eq!((others.len(), others[0].pid), (10, 1029));
    }

    #[test]
    fn a_child_that_writes_is_named_and_we_are_not() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = SysRoot::default();
        let script = format!(
            "dd if=/dev/zero of={}/x bs=1M count=4 conv=fsync 2>/dev/null; echo; read line",
            place.path().display()
        );
        let mut child = std::process::Command::new("dash")
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // One byte on its output means that dd has ended; its counters have then been added to
        // those of the shell that waited for it.
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let after = ProcessCounters::read(&root);
        child.kill().unwrap();
        child.wait().unwrap();
        let of = |wanted: u32| after.seen.iter().find(|((pid, _), _)| *pid == wanted);
        assert!(of(std::process::id()).is_none());
        let written = of(child.id()).unwrap().1.bytes.write_bytes;
        assert!(written >= 4 << 20, "{written}");
    }
}
