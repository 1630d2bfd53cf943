//! The files that this command line reads: targets, jobs, plans, profiles, records, the history.
//! Whoever opens one registers it here, and whoever opens an output asks here: no output replaces
//! an input.

use diskproof_device::{TrustedPath, TrustedPlace, files_behind};
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::{FileType, Stat, fstat, stat};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What an input is to the command line.
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

/// Device and inode.
type FileId = (u64, u64);

/// A file by what it is and by its name: what is created later has only a name.
#[derive(Debug)]
struct Input {
    role: InputRole,
    file: Option<FileId>,
    place: Option<(FileId, OsString)>,
}

static INPUTS: Mutex<Vec<Input>> = Mutex::new(Vec::new());

fn inputs() -> MutexGuard<'static, Vec<Input>> {
    INPUTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on the file of this name is no output.
pub(crate) fn register(path: &Path, role: InputRole) {
    let file = stat(path).ok().filter(has_content).map(id_of);
    let place = match TrustedPath::walk(path) {
        Ok(TrustedPath::Name(place)) => place_of(&place),
        // A name that leads elsewhere is no name of an output either.
        Ok(TrustedPath::Directory(_) | TrustedPath::Object(_)) | Err(_) => None,
    };
    if file.is_some() || place.is_some() {
        inputs().push(Input { role, file, place });
    }
}

/// The same of a target, and of every file in which its blocks lie.
pub(crate) fn register_target(identity: &TargetIdentity) {
    if identity.kind != TargetKind::Directory {
        register(Path::new(&identity.path), InputRole::Target);
    }
    let role = InputRole::BehindTarget;
    for behind in files_behind(identity) {
        register(&behind.path, role);
        if behind.id.is_some() {
            let (file, place) = (behind.id, None);
            inputs().push(Input { role, file, place });
        }
    }
}

/// The same of the file that `<` of a shell opened, as in `show - < r.json`.
pub(crate) fn register_stdin() {
    let file = fstat(std::io::stdin()).ok().filter(has_content).map(id_of);
    if file.is_some() {
        let (role, place) = (InputRole::Document, None);
        inputs().push(Input { role, file, place });
    }
}

/// What the file is to this command line, where it reads the file.
pub(crate) fn role_of_file(found: &Stat) -> Option<InputRole> {
    if !has_content(found) {
        return None;
    }
    let file = Some(id_of(*found));
    let inputs = inputs();
    let input = inputs.iter().find(|input| input.file == file)?;
    Some(input.role)
}

/// The same of a name, which need not exist.
pub(crate) fn role_of_name(folder: impl AsFd, name: &OsStr) -> Option<InputRole> {
    let folder = fstat(folder).ok().map(id_of)?;
    let inputs = inputs();
    let input = inputs.iter().find(|input| match &input.place {
        Some((other_folder, other_name)) => *other_folder == folder && other_name == name,
        None => false,
    })?;
    Some(input.role)
}

fn place_of(place: &TrustedPlace) -> Option<(FileId, OsString)> {
    let folder = fstat(&place.directory.folder).ok()?;
    Some((id_of(folder), place.name.clone()))
}

/// Pipes and terminals are read and written without loss.
fn has_content(found: &Stat) -> bool {
    let kind = FileType::from_raw_mode(found.st_mode);
    matches!(kind, FileType::RegularFile | FileType::BlockDevice)
}

fn id_of(found: Stat) -> FileId {
    (found.st_dev, found.st_ino)
}
