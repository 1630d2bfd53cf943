//! Loop devices that lie on what must not be in use. Each is asked for its file, in a thread: the
//! disk or the server below a file may not answer.

use super::family::backing_path;
use super::refusal::RefusalReasons;
use super::subject::{Node, Subject};
use crate::loop_file;
use crate::naming::node;
use crate::sysroot::{SysRoot, list, read_text};
use rustix::fs::stat;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// A file behind a loop device answers by then, also on a slow disk.
const FILES_WITHIN: Duration = Duration::from_secs(60);

/// A loop device, and the file that its driver names.
struct LoopFile {
    name: String,
    number: Option<String>,
    path: PathBuf,
}

/// What a loop device and its file say when they are asked. The server of a filesystem, or a disk,
/// may not let them.
struct AskedFile {
    at_path: Option<Node>,
    by_driver: Option<(u64, u64)>,
}

impl LoopFile {
    fn ask(&self) -> AskedFile {
        let number = self.number.as_deref();
        AskedFile {
            at_path: stat(&self.path).ok().map(|stat| Node::from(&stat)),
            by_driver: number.and_then(|number| loop_file::behind(&node(&self.name), number)),
        }
    }
}

/// Loop devices over the subject, or over the file behind it.
pub(super) fn judge(root: &SysRoot, subject: Subject<'_>, reasons: &mut RefusalReasons) {
    let loops = loops_of_others(root, subject);
    judge_asked(loops, (LoopFile::ask, FILES_WITHIN), subject, reasons);
}

fn judge_asked(
    loops: Vec<LoopFile>,
    (ask, within): (fn(&LoopFile) -> AskedFile, Duration),
    subject: Subject<'_>,
    reasons: &mut RefusalReasons,
) {
    let loops = Arc::new(loops);
    let (sender, answers) = channel();
    let asked = Arc::clone(&loops);
    let ask_all = move || {
        let mut files = asked.iter().map(ask);
        files.all(|file| sender.send(file).is_ok())
    };
    // Without a thread there is no answer.
    let _ = std::thread::Builder::new().spawn(ask_all);
    let end = Instant::now() + within;
    for file in loops.iter() {
        let device = node(&file.name);
        match answers.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(answer) => {
                if let Some(what) = what_is_behind(file, &answer, subject) {
                    let reason = format!("{what} is the file behind {device}");
                    reasons.add(reason, format!("losetup --detach {device}"));
                }
            }
            Err(_) => {
                let reason = format!(
                    "whether it is the file behind {device} is unknown: {} does not answer",
                    file.path.display()
                );
                return reasons.add(reason, format!("losetup --detach {device}"));
            }
        }
    }
}

/// The target's own chain of loops is no other user.
fn loops_of_others(root: &SysRoot, subject: Subject<'_>) -> Vec<LoopFile> {
    let is_own = |name: &String| match subject {
        Subject::Device(family) => family.members.iter().any(|member| member.name == *name),
        Subject::File { .. } => false,
    };
    let names = list(&root.sys.join("class/block")).into_iter();
    names
        .filter(|name| name.starts_with("loop") && !is_own(name))
        .filter_map(|name| {
            let at = root.named_device(&name)?;
            Some(LoopFile {
                path: backing_path(&at)?,
                number: read_text(&at.join("dev")),
                name,
            })
        })
        .collect()
}

/// The part of the subject that a loop device lies on.
fn what_is_behind(file: &LoopFile, asked: &AskedFile, subject: Subject<'_>) -> Option<String> {
    let deleted = file
        .path
        .to_str()
        .and_then(|text| text.strip_suffix(" (deleted)"))
        .map(Path::new);
    let same_path = |file: &Path| match subject {
        Subject::Device(family) => family
            .backing_files
            .iter()
            .find(|behind| behind.path == file)
            .map(|behind| behind.path.display().to_string()),
        Subject::File { path, .. } => (Path::new(path) == file).then(|| path.to_owned()),
    };
    let by_driver = |id| {
        subject.owns(&Node {
            is_block: false,
            device: 0,
            id,
        })
    };
    let at_path = asked.at_path.as_ref();
    at_path
        .and_then(|node| subject.owns(node))
        .or_else(|| subject.owns_node_name(&file.path))
        .or_else(|| asked.by_driver.and_then(by_driver))
        .or_else(|| same_path(&file.path))
        .or_else(|| same_path(deleted?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_device_whose_file_does_not_answer_is_a_reason() {
        let of = |name: &str| LoopFile {
            name: name.to_owned(),
            number: None,
            path: PathBuf::from(format!("/served/{name}")),
        };
        // The third one would not be asked before the second has answered.
        let ask = |file: &LoopFile| {
            if file.name == "loop1" {
                loop {
                    std::thread::park();
                }
            }
            AskedFile {
                at_path: None,
                by_driver: Some((1, 2)),
            }
        };
        let subject = Subject::File {
            path: "/data/x",
            id: (1, 2),
        };
        let mut reasons = RefusalReasons::default();
        let loops = vec![of("loop0"), of("loop1"), of("loop2")];
        judge_asked(loops, (ask, Duration::from_secs(1)), subject, &mut reasons);
        let refusal = reasons.into_refusal(String::new());
        let steps = "losetup --detach /dev/loop0 losetup --detach /dev/loop1";
        assert_eq!((refusal.reasons.len(), refusal.remedy.as_str()), (2, steps));
    }
}
