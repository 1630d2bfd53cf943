//! Finds the loop devices over a device or a file: what is behind a mounted image is in use.
//!
//! Opens each of them for reading, to query the file behind it. A thread does that, because the
//! disk or the server below such a file may not answer.

use super::family::backing_path;
use super::reasons::{RefusalReasons, Step};
use super::subject::{Node, Subject};
use crate::kernel::file_id::FileId;
use crate::kernel::naming::node;
use crate::kernel::syscalls::file_behind_loop;
use crate::kernel::sysroot::{SysRoot, list, read_text};
use rustix::fs::stat;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The files behind all loop devices together have this long to answer, also on a slow disk.
/// Chosen, not measured; a device that has not answered by then is refused.
const LOOPS_ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A loop device, and the file that its driver names.
struct LoopFile {
    name: String,
    number: Option<String>,
    path: PathBuf,
}

/// The answers of a loop device and of its file. The server of a filesystem, or a disk, may not let
/// them answer.
struct LoopAnswer {
    /// The file that has the path now.
    at_path: Option<Node>,
    /// The file that the loop driver has open.
    by_driver: Option<FileId>,
}

impl LoopFile {
    /// Returns what the kernel says of the file. Does not return while its server or disk hangs.
    fn query(&self) -> LoopAnswer {
        LoopAnswer {
            at_path: stat(&self.path).ok().map(|stat| Node::from(&stat)),
            by_driver: match &self.number {
                Some(number) => file_behind_loop(&node(&self.name), number),
                None => None,
            },
        }
    }
}

/// Adds a reason for each loop device over the subject, or over the file behind it.
pub(super) fn judge(root: &SysRoot, subject: Subject<'_>, reasons: &mut RefusalReasons) {
    let loops = loops_of_others(root, subject);
    judge_loop_files(
        loops,
        LoopFile::query,
        LOOPS_ANSWER_TIMEOUT,
        subject,
        reasons,
    );
}

/// Queries the file behind each loop device, and refuses the subject where it is a part of that.
/// All answers must come within this time: the first device without one is a reason too.
fn judge_loop_files(
    loops: Vec<LoopFile>,
    query: fn(&LoopFile) -> LoopAnswer,
    within: Duration,
    subject: Subject<'_>,
    reasons: &mut RefusalReasons,
) {
    let files = Arc::new(loops);
    let (sender, answers) = channel();
    let queried = Arc::clone(&files);
    // Without a thread there is no answer, which is a reason to refuse.
    let _ = std::thread::Builder::new().spawn(move || {
        for file in queried.iter() {
            if sender.send(query(file)).is_err() {
                return;
            }
        }
    });
    let end = Instant::now() + within;
    for file in files.iter() {
        let device = node(&file.name);
        match answers.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(answer) => {
                if let Some(what) = part_behind_loop(file, &answer, subject) {
                    let reason = format!("{what} is the file behind {device}");
                    reasons.add(reason, Step::clause(format!("losetup --detach {device}")));
                }
            }
            Err(_) => {
                let reason = format!(
                    "whether it is the file behind {device} is unknown: {} does not answer",
                    file.path.display()
                );
                return reasons.add(reason, Step::clause(format!("losetup --detach {device}")));
            }
        }
    }
}

/// The loop devices of the machine that are not a part of the subject's own chain.
fn loops_of_others(root: &SysRoot, subject: Subject<'_>) -> Vec<LoopFile> {
    let mut loops = Vec::new();
    for name in list(&root.sys.join("class/block")) {
        let is_own =
            subject.members().iter().any(|own| own.name == name) || subject.lies_on_loop(&name);
        if !name.starts_with("loop") || is_own {
            continue;
        }
        if let Some(sysfs) = root.named_device(&name)
            && let Some(path) = backing_path(&sysfs)
        {
            let number = read_text(&sysfs.join("dev"));
            loops.push(LoopFile { name, number, path });
        }
    }
    loops
}

/// The part of the subject that a loop device lies on.
fn part_behind_loop(file: &LoopFile, answer: &LoopAnswer, subject: Subject<'_>) -> Option<String> {
    if let Some(node) = &answer.at_path
        && let Some(what) = subject.find_node(node)
    {
        return Some(what);
    }
    if let Some(what) = subject.find_by_node_path(&file.path) {
        return Some(what);
    }
    if let Some(driver_id) = answer.by_driver
        && let Some(what) = subject.find_file(|_, id| id == Some(driver_id))
    {
        return Some(what);
    }
    if let Some(what) = subject.find_file(|path, _| path == file.path) {
        return Some(what);
    }
    let deleted = file.path.to_str()?.strip_suffix(" (deleted)")?;
    subject.find_file(|path, _| path == Path::new(deleted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_device_whose_file_does_not_answer_is_a_reason() {
        let loop_file = |name: &str| LoopFile {
            name: name.to_owned(),
            number: None,
            path: PathBuf::from(format!("/served/{name}")),
        };
        // The third one would not be queried before the second has answered.
        let query = |file: &LoopFile| {
            if file.name == "loop1" {
                loop {
                    std::thread::park();
                }
            }
            LoopAnswer {
                at_path: None,
                by_driver: Some(FileId {
                    device: 1,
                    inode: 2,
                }),
            }
        };
        let subject = Subject::File {
            path: "/data/x",
            id: FileId {
                device: 1,
                inode: 2,
            },
        };
        let mut reasons = RefusalReasons::default();
        let loops = ["loop0", "loop1", "loop2"].map(loop_file).into();
        judge_loop_files(loops, query, Duration::from_secs(1), subject, &mut reasons);
        let refusal = reasons.into_refusal(String::new());
        let steps = "losetup --detach /dev/loop0 losetup --detach /dev/loop1";
        assert_eq!((refusal.reasons.len(), refusal.remedy.as_str()), (2, steps));
    }
}
