//! Reads small files that a user or a setting names: plans, jobs, certificates, secrets, logs. Such
//! a name may belong to a pipe without a writer, an endless device or a dead network filesystem,
//! and none of these may hold the program up.

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, FileType, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// A file of some MiB takes milliseconds; a server that receives the request again after a lost
/// packet answers within seconds. Chosen, not measured.
const LIMIT: Duration = Duration::from_secs(5);

/// A file that was read completely.
#[derive(Debug)]
pub struct SmallFile {
    /// The content of the file.
    pub content: Vec<u8>,
    /// Owner, mode and size of what was read.
    pub metadata: Metadata,
}

/// The reason why a file was not read. Each text completes "PATH: ..." and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum SmallFileError {
    /// The kernel refused: a missing file, say, or one without permission.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The name belongs to something else, of which the word is given.
    #[error("it is a {0}; name a regular file")]
    NotRegular(&'static str),
    /// The file is larger than the number of bytes that the caller allows.
    #[error("it has more than {0} bytes; is this the right file?")]
    TooLarge(u64),
    /// The caller asked for text, and the content is none.
    #[error("it is not UTF-8 text; save it as UTF-8")]
    NotText,
    /// Neither content nor error came in time: a dead network filesystem.
    #[error("its filesystem did not answer for {} s", LIMIT.as_secs())]
    NoAnswer,
}

impl SmallFileError {
    /// True if nothing has this name, which a caller may take for an empty file.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl SmallFile {
    /// The content as text.
    pub fn into_text(self) -> Result<String, SmallFileError> {
        String::from_utf8(self.content).map_err(|_| SmallFileError::NotText)
    }
}

/// A regular file, opened for reading without following a symlink or waiting for a writer of a
/// pipe; `None` of anything else, and where nothing has the name.
pub fn open_regular_file(path: &Path) -> io::Result<Option<File>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => return Ok(None),
        Err(error) => return Err(error),
    };
    if file.metadata()?.is_file() {
        Ok(Some(file))
    } else {
        Ok(None)
    }
}

/// Reads a regular file of at most so many bytes, in bounded time.
pub fn read_small_file(path: &Path, bytes_max: u64) -> Result<SmallFile, SmallFileError> {
    let (sender, answer) = channel();
    let name = path.to_owned();
    let reader = std::thread::Builder::new().name("diskproof-read".to_owned());
    let started = reader.spawn(move || {
        // The caller does not wait for an answer that is late.
        let _ = sender.send(read(&name, bytes_max));
    });
    if started.is_err() {
        // Without room for a thread (ulimit -u) an answer without a limit is better than none.
        return read(path, bytes_max);
    }
    match answer.recv_timeout(LIMIT) {
        Ok(read) => read,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            Err(SmallFileError::NoAnswer)
        }
    }
}

fn read(path: &Path, bytes_max: u64) -> Result<SmallFile, SmallFileError> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(SmallFileError::NotRegular(kind_word(metadata.file_type())));
    }
    let mut content = Vec::new();
    // Some files of the kernel report no size and never end.
    file.take(bytes_max + 1).read_to_end(&mut content)?;
    if content.len() as u64 > bytes_max {
        return Err(SmallFileError::TooLarge(bytes_max));
    }
    Ok(SmallFile { content, metadata })
}

fn kind_word(file_type: FileType) -> &'static str {
    if file_type.is_dir() {
        "directory"
    } else if file_type.is_fifo() {
        "pipe"
    } else if file_type.is_socket() {
        "socket"
    } else {
        "device"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_file_is_regular_and_limited() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        let read = |bytes_max| read_small_file(&path, bytes_max);
        assert_eq!(read(5).unwrap().into_text().unwrap(), "12345");
        assert!(matches!(read(4), Err(SmallFileError::TooLarge(4))));
        let missing = read_small_file(&place.path().join("missing"), 5);
        assert!(missing.unwrap_err().is_missing());
        std::fs::write(&path, [0xff]).unwrap();
        let text = read(5).unwrap().into_text();
        assert!(matches!(text, Err(SmallFileError::NotText)));
    }

    #[test]
    fn small_file_is_no_pipe_device_or_directory() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        for path in [pipe.as_path(), Path::new("/dev/zero"), place.path()] {
            let found = read_small_file(path, 5);
            assert!(
                matches!(found, Err(SmallFileError::NotRegular(_))),
                "{path:?}"
            );
        }
    }
}
