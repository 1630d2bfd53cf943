//! Registers the files that this command line reads, so that no output replaces one: targets, jobs,
//! plans, profiles, records, the history. The caller that opens an input registers it, and the
//! caller that opens an output looks it up here.

use diskproof_device::{FileId, TrustedPath, TrustedPlace, files_behind};
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::{FileType, Stat, fstat, stat};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The role of an input of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputRole {
    /// It is measured.
    Target,
    /// The blocks of what is measured lie in it, as those of a loop device do.
    BehindTarget,
    /// It says what is done, or is compared.
    Document,
    /// The history, or a file beside it that belongs to it.
    History,
}

impl InputRole {
    /// Why it is no output, as a sentence.
    pub(crate) fn refusal(self) -> &'static str {
        match self {
            Self::Target => "this is the target itself, which would be overwritten",
            Self::BehindTarget => "the target lies in this file, which would be overwritten",
            Self::Document => "this command reads this file, which would be overwritten",
            Self::History => "this file belongs to the history, which would be overwritten",
        }
    }
}

/// An input, known by its file, its name, or both: what is created later has only a name.
#[derive(Debug)]
struct Input {
    role: InputRole,
    file: Option<FileId>,
    name: Option<NameInFolder>,
}

/// A name in a folder, whichever path leads there.
#[derive(Debug)]
struct NameInFolder {
    folder: FileId,
    name: OsString,
}

/// The files that no output may be.
static INPUTS: Mutex<Vec<Input>> = Mutex::new(Vec::new());

fn inputs() -> MutexGuard<'static, Vec<Input>> {
    INPUTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers an input: from now on the file of this name is no output.
pub(crate) fn register(path: &Path, role: InputRole) {
    let file = match stat(path) {
        Ok(stat) => content_id(&stat),
        Err(_) => None,
    };
    let name = match TrustedPath::walk(path) {
        Ok(TrustedPath::Name(trusted)) => name_in_folder(trusted),
        // A name that leads elsewhere is no name of an output either.
        Ok(TrustedPath::Directory(_) | TrustedPath::Object(_)) | Err(_) => None,
    };
    if file.is_some() || name.is_some() {
        inputs().push(Input { role, file, name });
    }
}

/// From now on the file with this id is no output, whatever its name.
fn register_id(id: FileId, role: InputRole) {
    inputs().push(Input {
        role,
        file: Some(id),
        name: None,
    });
}

/// From now on neither this target nor a file in which its blocks lie is an output.
pub(crate) fn register_target(identity: &TargetIdentity) {
    if identity.kind != TargetKind::Directory {
        register(Path::new(&identity.path), InputRole::Target);
    }
    for behind in files_behind(identity) {
        register(&behind.path, InputRole::BehindTarget);
        if let Some(id) = behind.id {
            register_id(id, InputRole::BehindTarget);
        }
    }
}

/// From now on the file that `<` of a shell opened, as in `show - < r.json`, is no output.
pub(crate) fn register_stdin() {
    if let Ok(stat) = fstat(std::io::stdin())
        && let Some(id) = content_id(&stat)
    {
        register_id(id, InputRole::Document);
    }
}

/// The role of an open file; `None` where this command line does not read it.
pub(crate) fn role_of_file(stat: &Stat) -> Option<InputRole> {
    let id = content_id(stat)?;
    for input in inputs().iter() {
        if input.file == Some(id) {
            return Some(input.role);
        }
    }
    None
}

/// The role of a name, which need not exist.
pub(crate) fn role_of_name(folder: impl AsFd, name: &OsStr) -> Option<InputRole> {
    let folder_id = FileId::from(&fstat(folder).ok()?);
    for input in inputs().iter() {
        if let Some(known) = &input.name
            && known.folder == folder_id
            && known.name == name
        {
            return Some(input.role);
        }
    }
    None
}

fn name_in_folder(trusted: TrustedPlace) -> Option<NameInFolder> {
    let folder = fstat(&trusted.directory.folder).ok()?;
    Some(NameInFolder {
        folder: FileId::from(&folder),
        name: trusted.name,
    })
}

/// The id of a file or device; `None` of pipes and terminals, which are read and written without
/// loss.
fn content_id(stat: &Stat) -> Option<FileId> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::BlockDevice => Some(FileId::from(stat)),
        _ => None,
    }
}
