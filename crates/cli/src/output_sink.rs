//! The file that an output path leads to, and the way of a document into it. Everything goes
//! through a descriptor of the directory, so that no exchange of the path leads anywhere else, and
//! a file that is replaced keeps its owner and mode.

mod content;
mod error;
mod file_kind;
mod name;
mod place;
mod race;
#[cfg(test)]
mod tests;

use crate::input_files::{role_of_file, role_of_name};
use content::write_counted;
use diskproof_device::TrustedPath;
use diskproof_report::format::{OutputFile, WriteContent};
pub(crate) use error::OutputError;
use error::{create_error, input_error, open_error, walk_error};
use file_kind::{
    check_type, is_file, is_null_device, is_same_file, is_standard_stream, proc_path,
    standard_streams,
};
pub(crate) use name::{directory_of, temporary_path};
use place::{Place, Writers, check_name_length};
use race::exchange_point;
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, accessat, fstat, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The way to find out whether a file can be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trial {
    /// By creating one and removing it.
    Create,
    /// By the permissions of its directory.
    Permission,
}

/// The file that an output path leads to.
#[derive(Debug)]
pub(crate) enum OutputSink {
    /// A file that a complete one replaces, or a new one.
    Replace(Place),
    /// A pipe, a terminal or a file that is a mount point: it is opened and written. The descriptor
    /// only holds it (O_PATH).
    Write(OwnedFd),
}

impl OutputSink {
    /// Walks to where the path leads. Follows no symlink of another user, and ends at no file that
    /// this command line reads.
    pub(crate) fn find(path: &Path) -> Result<Self, OutputError> {
        exchange_point();
        let place = match TrustedPath::walk(path) {
            Ok(TrustedPath::Name(trusted)) => Place {
                folder: trusted.directory.folder,
                name: trusted.name,
                shown: directory_of(path).to_owned(),
            },
            Ok(TrustedPath::Object(object)) => return Self::as_it_is(object),
            Ok(TrustedPath::Directory(_)) => return Err(OutputError::is_directory()),
            Err(error) => return Err(walk_error(path, &error)),
        };
        if let Some(role) = role_of_name(&place.folder, &place.name) {
            return Err(input_error(role));
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        exchange_point();
        let held = match openat(&place.folder, &place.name, flags, Mode::empty()) {
            Ok(held) => held,
            Err(Errno::NOENT) => return Ok(Self::Replace(place)),
            Err(errno) => return Err(open_error(errno)),
        };
        let stat = fstat(&held).map_err(open_error)?;
        if !is_file(&stat) || is_standard_stream(&stat) {
            return Self::as_it_is(held);
        }
        if place.is_mount_point() {
            place.check_foreign(Writers::Refused)?;
            return Self::as_it_is(held);
        }
        match role_of_file(&stat) {
            Some(role) => Err(input_error(role)),
            None => Ok(Self::Replace(place)),
        }
    }

    /// The sink of something that is written and not replaced, such as a pipe.
    fn as_it_is(held: OwnedFd) -> Result<Self, OutputError> {
        let stat = fstat(&held).map_err(open_error)?;
        if !is_file(&stat) {
            check_type(&stat)?;
        }
        match role_of_file(&stat) {
            Some(role) => Err(input_error(role)),
            None => Ok(Self::Write(held)),
        }
    }

    /// Checks that it can be written, as far as that can be known without changing anything.
    pub(crate) fn check(&self, trial: Trial) -> Result<(), OutputError> {
        match self {
            Self::Write(held) => accessat(CWD, proc_path(held), Access::WRITE_OK, AtFlags::EACCESS)
                .map_err(|errno| {
                    let why = format!("cannot write to it: {}", io::Error::from(errno));
                    OutputError::kernel(errno, why)
                }),
            Self::Replace(place) => {
                check_name_length(&place.name)?;
                place.check_replaceable()?;
                place.check_foreign(Writers::Refused)?;
                let created = match trial {
                    Trial::Create => place.try_to_create(),
                    Trial::Permission => {
                        let needed = Access::WRITE_OK | Access::EXEC_OK;
                        accessat(&place.folder, ".", needed, AtFlags::EACCESS)
                            .map_err(io::Error::from)
                    }
                };
                created.map_err(|error| create_error(&place.shown, &error))
            }
        }
    }

    /// Writes the document, and returns its size in bytes.
    pub(crate) fn save(&self, write: &WriteContent<'_>) -> io::Result<u64> {
        match self {
            Self::Replace(place) => place.replace(write),
            Self::Write(held) => write_into(held, write),
        }
    }

    /// The sink of another name in the same directory.
    pub(crate) fn renamed(&self, name: &str) -> io::Result<Self> {
        match self {
            Self::Replace(place) => Ok(Self::Replace(Place {
                folder: place.folder.try_clone()?,
                name: name.into(),
                shown: place.shown.clone(),
            })),
            Self::Write(_) => Err(OutputError::is_directory().into()),
        }
    }

    /// True for a pipe.
    pub(crate) fn is_pipe(&self) -> bool {
        match self {
            Self::Replace(_) => false,
            Self::Write(held) => match fstat(held) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode) == FileType::Fifo,
                Err(_) => false,
            },
        }
    }

    /// True if both are one file, so that the later document would replace the earlier.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Replace(place), Self::Replace(other_place)) => {
                place.name == other_place.name && is_same_file(&place.folder, &other_place.folder)
            }
            // Text for /dev/null is lost twice, without harm.
            (Self::Write(held), Self::Write(other_held)) => {
                is_same_file(held, other_held) && !is_null_device(held)
            }
            _ => false,
        }
    }
}

/// Saves a document to its path, and returns its size in bytes.
pub(crate) fn save_file(output: &OutputFile<'_>) -> io::Result<u64> {
    let sink = OutputSink::find(&output.path)?;
    sink.save(&output.write)
}

/// Writes the document into a pipe, a terminal or a mounted file, and returns its size in bytes.
/// Opening a pipe waits for its reader.
fn write_into(held: &OwnedFd, write: &WriteContent<'_>) -> io::Result<u64> {
    exchange_point();
    let stat = fstat(held)?;
    let is_stream = is_standard_stream(&stat);
    let path = proc_path(held);
    let file = File::options().write(true).append(is_stream).open(path)?;
    if is_file(&stat) && !is_stream {
        file.set_len(0)?;
    }
    write_counted(&file, write)
}

/// Refuses to print into a file that this command line reads, as `>>data.bin` of a shell would.
pub(crate) fn check_standard_streams() -> Result<(), String> {
    for stream in standard_streams() {
        if let Some(role) = role_of_file(&stream) {
            return Err(format!("stdout or stderr: {}", input_error(role).why));
        }
    }
    Ok(())
}
