//! The files that `-o` names: checked before the run, written after it.

use crate::failure::Failure;
use crate::stderr::Verbosity;
use anyhow::Context as _;
use diskproof_model::record::Record;
use diskproof_report::format::OutputFile;
use diskproof_report::formats::{extensions, format_of};
use rustix::fs::{Access, AtFlags, CWD, StatxAttributes, StatxFlags, accessat, statx};
use std::ffi::OsString;
use std::fs::{File, FileType, Metadata};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// NAME_MAX of every filesystem that Linux writes to.
const NAME_BYTES_MAX: usize = 255;
/// Room for the name of a chart, which takes the place of `%`.
const CHART_NAME_BYTES: usize = 64;
/// As many symlinks as the kernel follows (path_resolution(7)).
const SYMLINKS_MAX: usize = 40;

/// The files that a record is saved to. All are checked before the run, so that a wrong path is an
/// error at once and not after an hour.
#[derive(Debug)]
pub(crate) struct OutputFiles<'a> {
    paths: &'a [PathBuf],
}

impl<'a> OutputFiles<'a> {
    /// Checks each path, and leaves nothing behind.
    pub(crate) fn prepare(paths: &'a [PathBuf]) -> Result<Self, Failure> {
        check_formats(paths)?;
        check_writable(paths, Trial::Create)?;
        Ok(Self { paths })
    }

    /// The same checks as far as they need no file: for a run that only shows its plan.
    pub(crate) fn check(paths: &[PathBuf]) -> Result<(), Failure> {
        check_formats(paths)?;
        check_writable(paths, Trial::Permission)
    }

    /// The paths, as given.
    pub(crate) fn paths(&self) -> &'a [PathBuf] {
        self.paths
    }

    /// Saves the record to every file. A failure does not keep the others from being saved; the
    /// first one is returned.
    pub(crate) fn save(&self, record: &Record, verbosity: Verbosity) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        for path in self.paths {
            outcome = outcome.and(save_record(record, path, verbosity));
        }
        outcome
    }
}

fn check_formats(paths: &[PathBuf]) -> Result<(), Failure> {
    match paths.iter().find(|path| format_of(path).is_none()) {
        None => Ok(()),
        Some(path) => Err(Failure::Usage(format!(
            "-o {}: unknown format. The format follows the extension; use one of {}.",
            path.display(),
            extensions(|_| true)
        ))),
    }
}

/// How it is found out whether a file can be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trial {
    /// By creating one and removing it.
    Create,
    /// By the permissions of its directory.
    Permission,
}

/// Saves the record to one file, in the format of its extension.
pub(crate) fn save_record(
    record: &Record,
    path: &Path,
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    save_as_format(record, path, verbosity)
        .with_context(|| format!("-o {}: cannot save the record", path.display()))
}

fn save_as_format(record: &Record, path: &Path, verbosity: Verbosity) -> anyhow::Result<()> {
    let format = format_of(path).context("unknown format")?;
    let files = format.files(record, path);
    anyhow::ensure!(!files.is_empty(), format.requires.missing_text());
    let mut others = Vec::new();
    for file in &files {
        let saved = save_file(file);
        if file.path == path {
            saved?;
        } else {
            let name = file.path.display().to_string();
            saved.with_context(|| name.clone())?;
            others.push(name);
        }
    }
    if !others.is_empty() {
        verbosity.note(&format!("wrote {}", others.join(", ")));
    }
    Ok(())
}

/// Checks that every path can be written, and that no two of them are the same file.
pub(crate) fn check_writable(paths: &[PathBuf], trial: Trial) -> Result<(), Failure> {
    let mut seen: Vec<(&PathBuf, Sink)> = Vec::new();
    for path in paths {
        let sink = Sink::of(path)
            .and_then(|sink| sink.check(trial).map(|()| sink))
            .map_err(|why| Failure::Usage(format!("-o {}: {why}", path.display())))?;
        if let Some((other, _)) = seen.iter().find(|(_, other)| other.is_same(&sink)) {
            return Err(Failure::Usage(format!(
                "-o {}: this is the same file as -o {}; name each file once",
                path.display(),
                other.display()
            )));
        }
        seen.push((path, sink));
    }
    Ok(())
}

/// What an output path leads to.
#[derive(Debug)]
enum Sink {
    /// A file that a complete one replaces; symlinks resolved.
    Replace(PathBuf),
    /// A pipe, a terminal or a file that is a mount point: it is opened and written.
    Write(PathBuf, Metadata),
}

impl Sink {
    /// Follows symlinks; the error says why nothing can be written there.
    fn of(path: &Path) -> Result<Self, String> {
        let found = match std::fs::metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::Replace(follow_dangling(path)));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                return Err(format!(
                    "the name is longer than {NAME_BYTES_MAX} bytes; use a shorter one"
                ));
            }
            Err(error) => return Err(format!("cannot open the file: {error}")),
        };
        if !found.is_file() {
            check_type(found.file_type(), found.rdev())?;
            return Ok(Self::Write(path.to_owned(), found));
        }
        let real = path.canonicalize().ok().filter(|real| real.is_file());
        match real {
            Some(real) if !is_mount_point(&real) && !is_standard_stream(&found) => {
                Ok(Self::Replace(real))
            }
            // Also a file that was deleted and is still open as /dev/fd/N.
            _ => Ok(Self::Write(path.to_owned(), found)),
        }
    }

    /// Whether it can be written, as far as that can be known without changing anything.
    fn check(&self, trial: Trial) -> Result<(), String> {
        match self {
            Self::Write(path, _) => accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)
                .map_err(|error| format!("cannot write to it: {}", io::Error::from(error))),
            Self::Replace(path) => {
                check_name_length(path)?;
                check_replaceable(path)?;
                let created = match trial {
                    Trial::Create => create_temporary(path)
                        .and_then(|(temporary, _)| std::fs::remove_file(temporary)),
                    Trial::Permission => {
                        let needed = Access::WRITE_OK | Access::EXEC_OK;
                        accessat(CWD, parent(path), needed, AtFlags::EACCESS)
                            .map_err(io::Error::from)
                    }
                };
                created.map_err(|error| {
                    format!(
                        "cannot create a file in {}: {error}; name a writable directory",
                        parent(path).display()
                    )
                })
            }
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Replace(one), Self::Replace(other)) => {
                let folder = |path: &Path| parent(path).canonicalize().ok();
                one.file_name() == other.file_name() && folder(one) == folder(other)
            }
            // What is written to /dev/null is lost twice, without harm.
            (Self::Write(_, one), Self::Write(_, other)) => {
                (one.dev(), one.ino()) == (other.dev(), other.ino()) && !is_null(one.rdev())
            }
            _ => false,
        }
    }
}

/// Refuses what must never be written by a mistyped name, such as a disk behind a symlink.
fn check_type(kind: FileType, rdev: u64) -> Result<(), String> {
    if kind.is_fifo() {
        return Ok(());
    }
    if kind.is_char_device() && (is_null(rdev) || is_standard_terminal(rdev)) {
        return Ok(());
    }
    Err(match () {
        () if kind.is_dir() => "is a directory; name a file",
        () if kind.is_block_device() => "is a block device, and would be overwritten; name a file",
        () if kind.is_char_device() => "is a character device; name a file",
        () => "is a socket; name a file",
    }
    .to_owned())
}

/// /dev/null (Linux, Documentation/admin-guide/devices.txt).
fn is_null(rdev: u64) -> bool {
    (rustix::fs::major(rdev), rustix::fs::minor(rdev)) == (1, 3)
}

fn standard_streams() -> impl Iterator<Item = Metadata> {
    ["/proc/self/fd/1", "/proc/self/fd/2"]
        .into_iter()
        .filter_map(|path| std::fs::metadata(path).ok())
}

/// Whether this is the terminal on stdout or stderr.
fn is_standard_terminal(rdev: u64) -> bool {
    standard_streams().any(|stream| stream.file_type().is_char_device() && stream.rdev() == rdev)
}

/// Whether stdout or stderr goes to this file: replacing it would lose what is printed.
fn is_standard_stream(found: &Metadata) -> bool {
    standard_streams().any(|stream| (stream.dev(), stream.ino()) == (found.dev(), found.ino()))
}

/// A file that is mounted, as into a container, cannot be replaced (rename(2), EBUSY).
fn is_mount_point(path: &Path) -> bool {
    attributes(path).contains(StatxAttributes::MOUNT_ROOT)
}

fn attributes(path: &Path) -> StatxAttributes {
    statx(
        CWD,
        path,
        AtFlags::SYMLINK_NOFOLLOW,
        StatxFlags::BASIC_STATS,
    )
    .map_or(StatxAttributes::empty(), |found| found.stx_attributes)
}

/// Where a symlink leads whose target does not exist yet.
fn follow_dangling(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..SYMLINKS_MAX {
        match std::fs::read_link(&path) {
            Ok(target) => path = parent(&path).join(target),
            Err(_) => break,
        }
    }
    path
}

fn check_name_length(path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let chart = if name.contains(&b'%') {
        CHART_NAME_BYTES
    } else {
        0
    };
    if name.len() + chart > NAME_BYTES_MAX {
        return Err(format!(
            "the name is longer than {} bytes; use a shorter one",
            NAME_BYTES_MAX - chart
        ));
    }
    Ok(())
}

/// Whether rename(2) may replace the file that is there.
fn check_replaceable(path: &Path) -> Result<(), String> {
    let Ok(file) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    for (attribute, letter) in [
        (StatxAttributes::IMMUTABLE, 'i'),
        (StatxAttributes::APPEND, 'a'),
    ] {
        if attributes(path).contains(attribute) {
            return Err(format!(
                "the file has the attribute {letter} and cannot be replaced (EPERM); name another \
                 file, or run chattr -{letter} on it"
            ));
        }
    }
    let user = rustix::process::geteuid().as_raw();
    let Ok(folder) = std::fs::metadata(parent(path)) else {
        return Ok(());
    };
    let is_sticky = folder.mode() & 0o1000 != 0;
    if is_sticky && user != 0 && user != file.uid() && user != folder.uid() {
        return Err(format!(
            "the file belongs to another user, and only its owner may replace it in {} (sticky \
             bit); name another file",
            parent(path).display()
        ));
    }
    Ok(())
}

fn parent(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Whether a document goes to a pipe, whose reader may be late.
pub(crate) fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// Saves a document. A file is written under a temporary name and renamed: it is complete at every
/// moment.
pub(crate) fn save_file(output: &OutputFile<'_>) -> io::Result<()> {
    match Sink::of(&output.path).map_err(io::Error::other)? {
        Sink::Replace(path) => replace(&path, output),
        Sink::Write(path, found) => write_into(&path, &found, output),
    }
}

fn replace(path: &Path, output: &OutputFile<'_>) -> io::Result<()> {
    let (temporary, file) = create_temporary(path)?;
    let mut out = BufWriter::new(&file);
    let written = (output.write)(&mut out)
        .and_then(|()| out.flush())
        .and_then(|()| file.sync_all());
    let saved = written.and_then(|()| std::fs::rename(&temporary, path));
    if saved.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    saved
}

/// Writes into what is there. Opening a pipe waits for its reader.
fn write_into(path: &Path, expected: &Metadata, output: &OutputFile<'_>) -> io::Result<()> {
    let (is_file, is_stream) = (expected.is_file(), is_standard_stream(expected));
    let file = File::options()
        .write(true)
        .append(is_stream)
        .truncate(is_file && !is_stream)
        .open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        check_type(found.file_type(), found.rdev()).map_err(io::Error::other)?;
    }
    let mut out = BufWriter::new(&file);
    (output.write)(&mut out)?;
    out.flush()
}

/// The name under which a file is written before it gets its own. Of a long name only a hash is
/// kept, so that every name that the filesystem takes can be used.
pub(crate) fn temporary_path(path: &Path) -> PathBuf {
    let suffix = format!(".{}.unfinished", std::process::id());
    let name = path.file_name().unwrap_or_default();
    let mut temporary = OsString::from(".");
    if 1 + name.len() + suffix.len() <= NAME_BYTES_MAX {
        temporary.push(name);
    } else {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        temporary.push(format!("{:016x}", hasher.finish()));
    }
    temporary.push(suffix);
    path.with_file_name(temporary)
}

fn create_temporary(path: &Path) -> io::Result<(PathBuf, File)> {
    let temporary = temporary_path(path);
    let file = File::options()
        .write(true)
        .create_new(true)
        .open(&temporary)?;
    Ok((temporary, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_name_fits_beside_the_longest_name() {
        for length in [1, 240, 241, 255] {
            let path = Path::new("/folder").join("n".repeat(length));
            let temporary = temporary_path(&path);
            assert_eq!(temporary.parent(), path.parent());
            assert!(
                temporary.file_name().unwrap().len() <= NAME_BYTES_MAX,
                "{length}"
            );
        }
    }

    #[test]
    fn block_devices_are_refused_as_output() {
        let Some(device) = ["/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0"]
            .map(Path::new)
            .into_iter()
            .find(|path| path.exists())
        else {
            return;
        };
        let why = Sink::of(device).unwrap_err();
        assert!(why.contains("block device"), "{why}");
    }
}
