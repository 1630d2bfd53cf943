//! Judges a file that an output replaces, and the directory of an output: the files of a database,
//! of a disk image and of a program that writes them at this moment were not given up by naming
//! them for a report. Opens for reading only.

use super::ancestry::Ancestry;
use super::in_use::judge_passed_on;
use super::inspect::{Inspector, read_block};
use super::openers::{Writer, find_writer};
use super::reasons::RefusalReasons;
use super::servers::{DatabaseDirectory, database_around};
use super::subject::Subject;
use crate::file::held::proc_path;
use crate::kernel::file_id::FileId;
use crate::kernel::steps;
use crate::kernel::sysroot::SysRoot;
use rustix::fs::{Mode, OFlags, fstat, open};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Another program's data, which an output would replace or disturb; the text ends a sentence that
/// names the output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForeignData {
    /// The output lies among the files of a database.
    #[error("lies {0}")]
    Database(DatabaseDirectory),
    /// Another process may be writing the file.
    #[error("is open for writing by process {} ({})", .0.pid, .0.name)]
    Written(Writer),
    /// The file holds a known format.
    #[error("holds a signature: {0}")]
    Format(&'static str),
    /// A loop device or an export passes the file on, such as an image without a signature.
    #[error("is in use: {0}")]
    PassedOn(String),
}

/// A program that saves a file closes it within half a second. Chosen, not measured: as for the
/// users of a target.
const WRITER_LOOKS: u32 = 6;
/// The pause between two of these looks.
const WRITER_PAUSE: Duration = Duration::from_millis(100);
/// Every format that is recognised has a zero byte in so many bytes from its start, and no text
/// has one: a text is never taken for a format whose name stands somewhere in it.
const BINARY_BYTES: usize = 64 << 10;

/// Finds the database among whose files an output in this directory would lie.
pub fn judge_output_directory(directory: BorrowedFd<'_>) -> Result<(), ForeignData> {
    // A directory whose parents cannot be held shows no database.
    let Ok(above) = Ancestry::climb(directory) else {
        return Ok(());
    };
    match database_around(&above) {
        Some(database) => Err(ForeignData::Database(database)),
        None => Ok(()),
    }
}

/// Finds what speaks against replacing a file, which may be held for its place alone (O_PATH). An
/// empty one has nothing to lose.
pub fn judge_replaced_file(file: BorrowedFd<'_>) -> Result<(), ForeignData> {
    let Ok(stat) = fstat(file) else {
        return Ok(());
    };
    let size_bytes = u64::try_from(stat.st_size).unwrap_or(0);
    if size_bytes == 0 {
        return Ok(());
    }
    if let Some(readable) = open_binary(file) {
        if let Some(format) = known_format(readable.as_fd(), size_bytes) {
            return Err(ForeignData::Format(format));
        }
        if let Some(use_text) = passed_on(file, FileId::from(&stat)) {
            return Err(ForeignData::PassedOn(use_text));
        }
    }
    match lasting_writer(FileId::from(&stat)) {
        Some(writer) => Err(ForeignData::Written(writer)),
        None => Ok(()),
    }
}

/// The loop device or export behind which the file is, as a clause. No process has such a file
/// open.
fn passed_on(file: BorrowedFd<'_>, id: FileId) -> Option<String> {
    let place = std::fs::read_link(proc_path(file)).unwrap_or_default();
    let subject = Subject::File {
        path: &place.to_string_lossy(),
        id,
    };
    let mut reasons = RefusalReasons::default();
    judge_passed_on(&SysRoot::default(), subject, &mut reasons);
    let refusal = reasons.into_refusal(String::new());
    refusal.reasons.into_iter().next()
}

/// The process that may write the file at every look.
fn lasting_writer(id: FileId) -> Option<Writer> {
    let root = SysRoot::default();
    let mut writer = find_writer(&root, id)?;
    for _ in 1..WRITER_LOOKS {
        steps::pause(WRITER_PAUSE);
        writer = find_writer(&root, id)?;
    }
    Some(writer)
}

/// The file, open for reading, where its first bytes are not those of a text; `None` also where it
/// cannot be read.
fn open_binary(file: BorrowedFd<'_>) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let readable = open(proc_path(file), flags, Mode::empty()).ok()?;
    let start = read_block(readable.as_fd(), 0, BINARY_BYTES).ok()?;
    if start.contains(&0) {
        Some(readable)
    } else {
        None
    }
}

/// The format of a disk image or database in a file.
fn known_format(readable: BorrowedFd<'_>, size_bytes: u64) -> Option<&'static str> {
    let scanned = Inspector::through(readable).scan(size_bytes, &[]);
    scanned.signatures.first().map(|signature| signature.what)
}

#[cfg(test)]
mod tests {
    use super::super::servers::DatabaseContent;
    use super::*;
    use std::fs::File;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    fn judged(file: &Path) -> Result<(), ForeignData> {
        judge_replaced_file(File::open(file).unwrap().as_fd())
    }

    fn directory_judged(directory: &Path) -> Result<(), ForeignData> {
        judge_output_directory(File::open(directory).unwrap().as_fd())
    }

    /// Another process that holds a file in the way of this redirection of the shell.
    fn holder(redirection: &str, file: &Path) -> Child {
        let mut child = Command::new("sh")
            .args(["-c", &format!("exec 5{redirection}\"$0\"; echo; read line")])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        child
    }

    #[test]
    fn file_of_a_writer_is_foreign_and_that_of_a_reader_is_not() {
        let here = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = here.path().join("old.json");
        for (redirection, content, is_foreign) in [
            ("<", "{}", false),
            ("<>", "{}", true),
            (">>", "{}", true),
            // Nothing is lost, as of the temporary file of a script.
            (">>", "", false),
        ] {
            std::fs::write(&file, content).unwrap();
            let mut child = holder(redirection, &file);
            let found = judged(&file);
            drop(child.stdin.take());
            let pid = child.id();
            child.wait().unwrap();
            match found {
                Err(ForeignData::Written(writer)) if is_foreign => assert_eq!(writer.pid, pid),
                found => assert!(!is_foreign && found.is_ok(), "{redirection} {found:?}"),
            }
        }
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(judged(&file), Ok(()));
    }

    #[test]
    fn images_and_databases_are_foreign_and_texts_about_them_are_not() {
        let here = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = here.path().join("x.json");
        let mut image = b"SQLite format 3\0".to_vec();
        image.resize(8192, 0);
        std::fs::write(&file, &image).unwrap();
        assert_eq!(judged(&file), Err(ForeignData::Format("SQLite database")));
        for text in ["SQLite format 3", "{}", "XFSB", "\n"] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(judged(&file), Ok(()), "{text}");
        }
    }

    /// Neither a signature nor an open descriptor shows that the image is in use.
    #[test]
    fn image_without_a_signature_behind_a_loop_device_is_foreign() {
        let here = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = here.path().join("x.json");
        std::fs::write(&file, vec![0; 1 << 20]).unwrap();
        assert_eq!(judged(&file), Ok(()));
        let attached = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&file)
            .output();
        let device = match attached {
            Ok(output) if output.status.success() => {
                String::from_utf8(output.stdout).unwrap().trim().to_owned()
            }
            _ => {
                println!(
                    "SKIPPED: image_without_a_signature_behind_a_loop_device_is_foreign: root and \
                     loop devices"
                );
                return;
            }
        };
        let found = judged(&file);
        let detached = Command::new("losetup").args(["--detach", &device]).status();
        assert!(detached.unwrap().success());
        match found {
            Err(ForeignData::PassedOn(text)) => assert!(text.contains(&device), "{text}"),
            found => panic!("{found:?}"),
        }
    }

    #[test]
    fn directory_of_a_database_takes_no_output_at_any_depth() {
        let here = tempfile::tempdir_in("/var/tmp").unwrap();
        for folder in [
            "pg/base/5",
            "pg/log",
            "wal",
            "space/PG_17_202406281/5",
            "etcd/member/snap",
            "mine",
            "mysql/shop",
            "wal/archive_status",
            "mine/archive_status",
        ] {
            std::fs::create_dir_all(here.path().join(folder)).unwrap();
        }
        for file in [
            "pg/PG_VERSION",
            "wal/0000000100000000000000A1",
            "etcd/member/snap/db",
            "mysql/ibdata1",
        ] {
            std::fs::write(here.path().join(file), "").unwrap();
        }
        for (folder, whose) in [
            ("pg", "PostgreSQL"),
            ("pg/base/5", "PostgreSQL"),
            ("wal", "PostgreSQL"),
            ("wal/archive_status", "PostgreSQL"),
            ("space/PG_17_202406281/5", "PostgreSQL"),
            ("etcd", "etcd"),
            ("mysql/shop", "MySQL or MariaDB"),
        ] {
            match directory_judged(&here.path().join(folder)) {
                Err(ForeignData::Database(found)) => {
                    assert_eq!(found.whose, whose, "{folder}");
                    // An archive of segments is no data directory.
                    let is_wal = found.content == DatabaseContent::WalSegments;
                    assert_eq!(is_wal, folder.starts_with("wal"), "{folder}");
                }
                found => panic!("{folder}: {found:?}"),
            }
        }
        for folder in ["", "mine", "mine/archive_status", "space"] {
            assert_eq!(
                directory_judged(&here.path().join(folder)),
                Ok(()),
                "{folder}"
            );
        }
    }
}
