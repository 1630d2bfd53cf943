//! Fills a new file: its content, and the owner and mode of the file that it replaces.

use diskproof_report::format::WriteContent;
use rustix::fs::{Gid, Mode, Stat, Uid, fchmod, fchown, fstat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};

/// The mode of a file until it has that of the file that it replaces: content that was private
/// stays so.
pub(super) const OWNER_ONLY: u32 = 0o600;
/// The mode of a new file, less the bits of the umask.
pub(super) const NEW_FILE: u32 = 0o666;
/// The bits of a mode that are permissions.
const PERMISSIONS: u32 = 0o777;
/// All permissions but those of the group.
const NO_GROUP: u32 = 0o707;

/// Writes the document into a new file, makes it durable, and returns its size in bytes. The file
/// gets the owner and the mode of the one that it replaces first, so that private content is never
/// readable for others.
pub(super) fn fill(
    file: &File,
    replaced: Option<&Stat>,
    write: &WriteContent<'_>,
) -> io::Result<u64> {
    if let Some(replaced) = replaced {
        keep_owner(file, replaced)?;
    }
    let bytes = write_counted(file, write)?;
    file.sync_all()?;
    Ok(bytes)
}

/// Writes the document, and counts its bytes.
pub(super) fn write_counted(file: &File, write: &WriteContent<'_>) -> io::Result<u64> {
    let counting = CountingWriter { file, bytes: 0 };
    let mut out = BufWriter::new(counting);
    write(&mut out)?;
    out.flush()?;
    Ok(out.get_ref().bytes)
}

/// Counts the bytes that it writes.
struct CountingWriter<'a> {
    file: &'a File,
    bytes: u64,
}

impl io::Write for CountingWriter<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let written = self.file.write(part)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Gives a file the owner, group and mode of another one. A user who may not give it that group
/// gives no group any permission.
fn keep_owner(file: &File, replaced: &Stat) -> io::Result<()> {
    let current = fstat(file)?;
    let mut mode = replaced.st_mode & PERMISSIONS;
    if current.st_uid != replaced.st_uid {
        fchown(file, Some(Uid::from_raw(replaced.st_uid)), None)?;
    }
    if current.st_gid != replaced.st_gid
        && fchown(file, None, Some(Gid::from_raw(replaced.st_gid))).is_err()
    {
        mode &= NO_GROUP;
    }
    // A filesystem without modes refuses those that it cannot store.
    if current.st_mode & PERMISSIONS != mode {
        match fchmod(file, Mode::from_raw_mode(mode)) {
            Err(Errno::PERM | Errno::NOTSUP) if geteuid().as_raw() == replaced.st_uid => {}
            changed => changed?,
        }
    }
    Ok(())
}
