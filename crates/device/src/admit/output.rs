//! Judges a file that an output replaces, and the directory of an output: the files of a database,
//! of a disk image and of a program that writes them at this moment were not given up by naming
//! them for a report. Opens for reading only.

use super::ancestry::Ancestry;
use super::inspect::{Inspector, read_block};
use super::openers::{Writer, find_writer};
use super::servers::{DatabaseDirectory, database_around};
use crate::file::held::proc_path;
use crate::kernel::file_id::FileId;
use crate::kernel::steps;
use crate::kernel::sysroot::SysRoot;
use rustix::fs::{Mode, OFlags, fstat, open};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

/// Another program's data, which an output would replace or disturb; the text ends a sentence that
/// names the output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForeignData {
    /// The output lies among the files of a database.
    #[error("lies in {}, a data directory of {}", .0.path.display(), .0.whose)]
    Database(DatabaseDirectory),
    /// Another process may be writing the file.
    #[error("is open for writing by process {} ({})", .0.pid, .0.name)]
    Written(Writer),
    /// The file holds a known format.
    #[error("holds a signature: {0}")]
    Format(&'static str),
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
    if let Some(format) = known_format(file, size_bytes) {
        return Err(ForeignData::Format(format));
    }
    match lasting_writer(FileId::from(&stat)) {
        Some(writer) => Err(ForeignData::Written(writer)),
        None => Ok(()),
    }
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

/// The format of a disk image or database in a file; `None` where it cannot be read.
fn known_format(file: BorrowedFd<'_>, size_bytes: u64) -> Option<&'static str> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let readable = open(proc_path(file), flags, Mode::empty()).ok()?;
    let start = read_block(readable.as_fd(), 0, BINARY_BYTES).ok()?;
    if !start.contains(&0) {
        return None;
    }
    let scanned = Inspector::through(readable.as_fd()).scan(size_bytes, &[]);
    scanned.signatures.first().map(|signature| signature.what)
}

#[cfg(test)]
mod tests {
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
            ("space/PG_17_202406281/5", "PostgreSQL"),
            ("etcd", "etcd"),
            ("mysql/shop", "MySQL or MariaDB"),
        ] {
            match directory_judged(&here.path().join(folder)) {
                Err(ForeignData::Database(found)) => assert_eq!(found.whose, whose, "{folder}"),
                found => panic!("{folder}: {found:?}"),
            }
        }
        for folder in ["", "mine", "space"] {
            assert_eq!(
                directory_judged(&here.path().join(folder)),
                Ok(()),
                "{folder}"
            );
        }
    }
}
