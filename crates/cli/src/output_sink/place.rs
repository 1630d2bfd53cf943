//! Replaces the file that has a name in a directory by a complete new one.

use super::content::{NEW_FILE, OWNER_ONLY, fill};
use super::error::{OutputError, REPLACED_TEXT, foreign_error, input_error, name_length_error};
use super::file_kind::{is_file, is_same, proc_path};
use super::name::{NAME_BYTES_MAX, temporary_name};
use super::race::exchange_point;
use crate::input_files::role_of_file;
use diskproof_device::{ForeignData, judge_output_directory, judge_replaced_file};
use diskproof_report::format::WriteContent;
use diskproof_report::postgresql_conf::SETTINGS_START;
use rustix::fs::{
    AtFlags, Mode, OFlags, Stat, StatxAttributes, StatxFlags, fstat, open, openat, renameat,
    statat, statx, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Bytes that are kept free for the name of a chart, which takes the place of `%`. Chosen: longer
/// than any of them.
const CHART_NAME_BYTES: usize = 64;

/// What a program means that has the file open for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writers {
    /// The file is that program's. Asked before a run, when another name costs nothing.
    Refused,
    /// It opened the file during the run, as a spreadsheet does, and keeps the old one. To refuse
    /// it would lose the result of the run.
    Tolerated,
}

/// A name in a directory that is held open.
#[derive(Debug)]
pub(crate) struct Place {
    pub(super) folder: OwnedFd,
    pub(super) name: OsString,
    /// The directory as it was named, for messages.
    pub(super) shown: PathBuf,
}

impl Place {
    /// The file that has the name; `None` where nothing has it. Fails where it is no file any more.
    fn existing_file(&self) -> io::Result<Option<Stat>> {
        match statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_file(&stat) => Ok(Some(stat)),
            Ok(_) => Err(io::Error::other(REPLACED_TEXT)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The attributes of the file; none where they cannot be read.
    fn attributes(&self) -> StatxAttributes {
        let no_follow = AtFlags::SYMLINK_NOFOLLOW;
        match statx(&self.folder, &self.name, no_follow, StatxFlags::BASIC_STATS) {
            Ok(statx) => statx.stx_attributes,
            Err(_) => StatxAttributes::empty(),
        }
    }

    /// A file that is mounted, as into a container, cannot be replaced (rename(2), EBUSY).
    pub(super) fn is_mount_point(&self) -> bool {
        self.attributes().contains(StatxAttributes::MOUNT_ROOT)
    }

    /// Refuses to replace a file that this user may not replace by one with the same owner.
    pub(super) fn check_replaceable(&self) -> Result<(), OutputError> {
        let existing = match self.existing_file() {
            Ok(Some(stat)) => stat,
            Ok(None) => return Ok(()),
            Err(error) => return Err(OutputError::refused(error.to_string())),
        };
        for (attribute, letter) in [
            (StatxAttributes::IMMUTABLE, 'i'),
            (StatxAttributes::APPEND, 'a'),
        ] {
            if self.attributes().contains(attribute) {
                let why = format!(
                    "the file has the attribute {letter} and cannot be replaced (EPERM); name \
                     another file, or run chattr -{letter} on it"
                );
                return Err(OutputError::kernel(Errno::PERM, why));
            }
        }
        if !geteuid().is_root() && existing.st_uid != geteuid().as_raw() {
            let why = "the file belongs to another user, and only its owner or root can replace \
                       it; name another file";
            return Err(OutputError::kernel(Errno::ACCESS, why.to_owned()));
        }
        Ok(())
    }

    /// Refuses what belongs to another program, though this user may write it: an output is no
    /// consent to lose a file of a database.
    pub(super) fn check_foreign(&self, writers: Writers) -> Result<(), OutputError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let existing = openat(&self.folder, &self.name, flags, Mode::empty()).ok();
        if self.is_settings() {
            // The server includes such a file from its own directory.
            if let Some(held) = &existing
                && !is_own_settings(held)
            {
                return Err(OutputError::refused(OTHER_SETTINGS));
            }
        } else {
            judge_output_directory(self.folder.as_fd())
                .map_err(|foreign| foreign_error(&foreign))?;
        }
        let Some(held) = existing else {
            return Ok(());
        };
        match (judge_replaced_file(held.as_fd()), writers) {
            (Ok(()), Writers::Tolerated | Writers::Refused)
            | (Err(ForeignData::Written(_) | ForeignData::PassedOn(_)), Writers::Tolerated) => {
                Ok(())
            }
            (Err(foreign), Writers::Tolerated | Writers::Refused) => Err(foreign_error(&foreign)),
        }
    }

    /// True for a name under which a server reads its settings, such as postgresql.conf.
    fn is_settings(&self) -> bool {
        Path::new(&self.name).extension() == Some(OsStr::new("conf"))
    }

    /// Writes the document under a temporary name and renames it: the file is complete at every
    /// moment.
    pub(super) fn replace(&self, write: &WriteContent<'_>) -> io::Result<u64> {
        self.check_replaceable()?;
        self.check_foreign(Writers::Tolerated)?;
        let replaced = self.existing_file()?;
        if let Some(role) = replaced.as_ref().and_then(role_of_file) {
            return Err(input_error(role).into());
        }
        // The new file gets the mode of the old one before it gets content.
        let mode = if replaced.is_some() {
            OWNER_ONLY
        } else {
            NEW_FILE
        };
        let temporary = self.create_temporary(mode)?;
        let saved = self.fill_and_rename(&temporary, replaced.as_ref(), write);
        if saved.is_err() {
            let _ = self.discard(&temporary);
        }
        saved
    }

    /// Fills the temporary file and renames it. The content is on the disk before the file gets its
    /// name, so that the name never leads to an incomplete file.
    fn fill_and_rename(
        &self,
        temporary: &TemporaryFile,
        replaced: Option<&Stat>,
        write: &WriteContent<'_>,
    ) -> io::Result<u64> {
        let bytes = fill(&temporary.file, replaced, write)?;
        exchange_point();
        self.check_still_named(temporary)?;
        renameat(&self.folder, &temporary.name, &self.folder, &self.name)?;
        Ok(bytes)
    }

    /// Creates a temporary file in the directory, and removes it.
    pub(super) fn try_to_create(&self) -> io::Result<()> {
        let temporary = self.create_temporary(OWNER_ONLY)?;
        self.discard(&temporary)
    }

    /// Removes our file, unless another process has put one in its place.
    fn discard(&self, temporary: &TemporaryFile) -> io::Result<()> {
        self.check_still_named(temporary)?;
        Ok(unlinkat(&self.folder, &temporary.name, AtFlags::empty())?)
    }

    /// Fails where another process has put its file in the place of ours.
    fn check_still_named(&self, temporary: &TemporaryFile) -> io::Result<()> {
        let named = statat(&self.folder, &temporary.name, AtFlags::SYMLINK_NOFOLLOW)?;
        if is_same(&named, &fstat(&temporary.file)?) {
            Ok(())
        } else {
            Err(io::Error::other(REPLACED_TEXT))
        }
    }

    /// Creates a file with a hidden name of this process. Fails where that name exists.
    fn create_temporary(&self, mode: u32) -> io::Result<TemporaryFile> {
        exchange_point();
        let name = temporary_name(&self.name);
        let new =
            OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(&self.folder, &name, new, Mode::from_raw_mode(mode))?;
        Ok(TemporaryFile {
            name,
            file: file.into(),
        })
    }
}

/// A new file beside the one that it is going to replace.
struct TemporaryFile {
    name: OsString,
    file: File,
}

/// The reason to keep settings that are not ours.
const OTHER_SETTINGS: &str = "exists and is not one of diskproof's files of settings, so replacing \
                              it would lose those of a server; name another file, and include it";

/// True if a file of settings was written by an export, or is empty.
fn is_own_settings(held: &OwnedFd) -> bool {
    let mut start = Vec::new();
    // What took the name in between may be a pipe, whose open would wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match open(proc_path(held), flags, Mode::empty()) {
        Ok(readable) => {
            let is_read = File::from(readable)
                .take(SETTINGS_START.len() as u64)
                .read_to_end(&mut start)
                .is_ok();
            is_read && SETTINGS_START.as_bytes().starts_with(&start)
        }
        Err(_) => false,
    }
}

/// Refuses a name that the filesystem, or the name of a chart made of it, has no room for.
pub(super) fn check_name_length(name: &OsStr) -> Result<(), OutputError> {
    let bytes_max = if name.as_bytes().contains(&b'%') {
        NAME_BYTES_MAX - CHART_NAME_BYTES
    } else {
        NAME_BYTES_MAX
    };
    if name.len() > bytes_max {
        Err(name_length_error(bytes_max))
    } else {
        Ok(())
    }
}
