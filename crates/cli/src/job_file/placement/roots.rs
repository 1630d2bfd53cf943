//! Finds the targets of jobs: an existing file or device that they use, or the directory in which a
//! file is created for them.

use crate::job_file::environment::PathKind;
use crate::job_file::jobs::{FILENAME_FORMAT_DEFAULT, FioJob};
use crate::job_file::spread::kept_names;
use crate::job_file::translation::{Translated, Translation};
use crate::output_sink::directory_of;
use crate::plan_file::quoted;
use diskproof_compat::fio_values::Amount;
use diskproof_model::op::OpKind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Direct I/O takes a page on every filesystem.
pub(super) const PAGE_BYTES: u64 = 4096;

/// The target that holds a job's files. Jobs with the same root share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TargetRoot {
    /// The targets of the command line, in place of those of the job file.
    Given(GivenTargets),
    /// An existing file, which keeps its size.
    File { path: PathBuf, bytes: u64 },
    /// A block device.
    Device { path: PathBuf, bytes: u64 },
    /// A scratch file that has no name, and vanishes.
    ScratchFile(ScratchDirectory),
    /// New files that stay under their names: one, or several of a job that hold an equal part
    /// each.
    KeptFiles {
        directory: ScratchDirectory,
        names: Vec<String>,
        /// True if all of several files are there already, as long as the job needs them.
        is_complete: bool,
    },
    /// An existing file that diskproof made, and that becomes longer.
    GrowingFile {
        directory: PathBuf,
        /// `None` where the name is no text.
        name: Option<String>,
        /// The bytes that the jobs need, where they say so.
        bytes: Option<u64>,
        /// Its bytes before it grows.
        found_bytes: u64,
    },
}

/// The targets of the command line, all of which run the same jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GivenTargets {
    kind: GivenKind,
    /// The bytes of the smallest; `None` where one is unknown.
    bytes: Option<u64>,
}

/// The kind of the targets of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenKind {
    /// All are directories, and get scratch files.
    Directories,
    /// All are block devices.
    Devices,
    /// Files, or targets of several kinds.
    Others,
}

impl GivenTargets {
    /// The targets of the command line; `None` without any.
    pub(super) fn find(translation: &Translation<'_>) -> Option<Self> {
        let targets = translation.overrides.targets;
        if targets.is_empty() {
            return None;
        }
        let kinds: Vec<PathKind> = targets
            .iter()
            .map(|target| translation.path_kind(target))
            .collect();
        let kind = if kinds.iter().all(|kind| *kind == PathKind::Directory) {
            GivenKind::Directories
        } else if kinds.iter().all(|kind| matches!(kind, PathKind::Device(_))) {
            GivenKind::Devices
        } else {
            GivenKind::Others
        };
        let mut smallest_bytes = Some(u64::MAX);
        for kind in &kinds {
            let bytes = match kind {
                PathKind::File(bytes) | PathKind::Device(bytes) => Some(*bytes),
                // The size of a directory is that of --size. The probe of the targets reports what
                // is wrong with the others.
                PathKind::Directory | PathKind::Nothing | PathKind::Other(_) => {
                    translation.overrides.size
                }
            };
            // `None` is less than any size.
            smallest_bytes = smallest_bytes.min(bytes);
        }
        Some(Self {
            kind,
            bytes: smallest_bytes,
        })
    }
}

/// A directory in which a file is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScratchDirectory {
    path: PathBuf,
    /// The size of `--size`.
    size_flag: Option<u64>,
}

impl TargetRoot {
    /// The file, the device, or the directory of a file that is created or grows; `None` for the
    /// targets of the command line.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Given(_) => None,
            Self::File { path, .. } | Self::Device { path, .. } => Some(path),
            Self::ScratchFile(directory) | Self::KeptFiles { directory, .. } => {
                Some(&directory.path)
            }
            Self::GrowingFile { directory, .. } => Some(directory),
        }
    }

    /// The bytes of the file or device, or those that a file is to have; `None` where the jobs
    /// decide.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Given(given) => given.bytes,
            Self::File { bytes, .. } | Self::Device { bytes, .. } => Some(*bytes),
            Self::ScratchFile(directory) | Self::KeptFiles { directory, .. } => directory.size_flag,
            Self::GrowingFile { bytes, .. } => *bytes,
        }
    }

    /// The bytes of a file before it grows; `None` for all others.
    pub(super) fn found_bytes(&self) -> Option<u64> {
        match self {
            Self::GrowingFile { found_bytes, .. } => Some(*found_bytes),
            Self::Given(_)
            | Self::File { .. }
            | Self::Device { .. }
            | Self::ScratchFile(_)
            | Self::KeptFiles { .. } => None,
        }
    }

    /// True if diskproof creates the files, or lets its own grow: those of the plan are scratch
    /// files.
    pub(super) fn is_scratch(&self) -> bool {
        match self {
            Self::Given(given) => given.kind == GivenKind::Directories,
            Self::File { .. } | Self::Device { .. } => false,
            Self::ScratchFile(_) | Self::KeptFiles { .. } | Self::GrowingFile { .. } => true,
        }
    }

    /// True if every target ends where a device ends.
    pub(super) fn is_device(&self) -> bool {
        match self {
            Self::Given(given) => given.kind == GivenKind::Devices,
            Self::Device { .. } => true,
            Self::File { .. }
            | Self::ScratchFile(_)
            | Self::KeptFiles { .. }
            | Self::GrowingFile { .. } => false,
        }
    }

    /// True if the file exists and becomes longer.
    pub(super) fn grows(&self) -> bool {
        self.found_bytes().is_some()
    }

    /// The names under which its files stay; none of a file that vanishes, or that is only used.
    pub(super) fn kept_names(&self) -> &[String] {
        match self {
            Self::KeptFiles { names, .. } => names,
            Self::GrowingFile { name, .. } => name.as_slice(),
            Self::Given(_) | Self::File { .. } | Self::Device { .. } | Self::ScratchFile(_) => &[],
        }
    }

    /// True if several files of a job are there already, as long as it needs them.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Self::KeptFiles { is_complete, .. } => *is_complete,
            Self::Given(_)
            | Self::File { .. }
            | Self::Device { .. }
            | Self::ScratchFile(_)
            | Self::GrowingFile { .. } => false,
        }
    }
}

/// A job with its files, one for each copy.
pub(super) struct JobFiles<'a> {
    pub(super) job: &'a FioJob,
    pub(super) root: TargetRoot,
    /// The file of each copy. Copies may share one.
    pub(super) paths: &'a [PathBuf],
    /// True if each copy has a file that fio names, and no other copy uses.
    pub(super) has_file_per_copy: bool,
}

/// Finds the targets that hold the files of jobs.
pub(super) struct RootFinder<'a> {
    /// The targets of the command line; `None` where the job file names them.
    pub(super) given: Option<GivenTargets>,
    /// The files that a job writes or trims.
    pub(super) written: BTreeSet<&'a PathBuf>,
    /// The bytes of each file that its jobs use, as far as they say so.
    pub(super) needed: BTreeMap<&'a PathBuf, u64>,
    /// The files of jobs that leave none behind.
    pub(super) vanishing: BTreeSet<&'a PathBuf>,
    pub(super) translation: &'a Translation<'a>,
}

impl RootFinder<'_> {
    /// The files of a job, and their target.
    pub(super) fn job_files<'j>(
        &self,
        job: &'j FioJob,
        paths: &'j [PathBuf],
    ) -> Translated<JobFiles<'j>> {
        let is_device = matches!(self.translation.path_kind(&paths[0]), PathKind::Device(_));
        let root = match self.shared_root(job, paths) {
            Ok(root) => root,
            Err(why) => {
                let source = match &job.file_set.filename {
                    Some(given) => &given.source,
                    None => &job.source,
                };
                return Err(source.error(format!("[{}]: {why}", job.section)));
            }
        };
        Ok(JobFiles {
            job,
            root,
            paths,
            has_file_per_copy: job.file_set.filename.is_none() && !is_device,
        })
    }

    /// The target that holds all files of a job.
    fn shared_root(&self, job: &FioJob, paths: &[PathBuf]) -> Result<TargetRoot, String> {
        if let Some(given) = self.given {
            return Ok(TargetRoot::Given(given));
        }
        let root = self.target_root(job, paths, &paths[0])?;
        self.check_creation(job, &root)?;
        for path in paths {
            if *path != paths[0] && self.target_root(job, paths, path)? != root {
                let why = "its copies have files in several places; write a section for each";
                return Err(why.to_owned());
            }
        }
        Ok(root)
    }

    /// Refuses a target for which a file would be made or grow where none may be.
    fn check_creation(&self, job: &FioJob, root: &TargetRoot) -> Result<(), String> {
        if !self.translation.is_as_fio() || !root.is_scratch() || root.is_complete() {
            return Ok(());
        }
        // A job that writes has an error of its own.
        let reads = !job.rw().changes_blocks();
        if self.translation.overrides.is_read_only && reads {
            return Err("refusing extend of file due to read-only".to_owned());
        }
        if job.file_set.makes_none && !root.grows() {
            return Err("file creation disallowed by allow_file_create=0".to_owned());
        }
        if job.file_set.start_empty && job.file_set.only_creates {
            let why = "with create_on_open=1 fio creates no file before the job, and with \
                       create_only=1 none in it; remove one of the two";
            return Err(why.to_owned());
        }
        if job.file_set.start_empty && job.rw().makes(OpKind::Read) {
            return Err(
                "with create_on_open=1 fio makes the file empty, and reads behind its end fail or \
                 are short; remove the option, or let an earlier run write the file"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// The target that holds one of the job's files.
    fn target_root(
        &self,
        job: &FioJob,
        paths: &[PathBuf],
        path: &PathBuf,
    ) -> Result<TargetRoot, String> {
        let shown = quoted(&self.translation.shown(path));
        let kind = self.translation.path_kind(path);
        if job.file_set.are_kept {
            let names = kept_names(job);
            let is_complete = self.are_files_complete(job, directory_of(path), &names);
            return Ok(TargetRoot::KeptFiles {
                directory: self.scratch_directory(path)?,
                names,
                is_complete,
            });
        }
        match kind {
            PathKind::File(bytes) if self.file_grows(path, bytes) => {
                let needed = self.needed.get(path);
                Ok(TargetRoot::GrowingFile {
                    directory: self.scratch_directory(path)?.path,
                    name: file_name(path),
                    bytes: needed.map(|bytes| bytes.next_multiple_of(PAGE_BYTES)),
                    found_bytes: bytes,
                })
            }
            PathKind::File(bytes) if self.is_replaced_by_scratch(job, paths, path, bytes) => {
                Ok(TargetRoot::ScratchFile(self.scratch_directory(path)?))
            }
            PathKind::File(bytes) => Ok(TargetRoot::File {
                path: path.clone(),
                bytes,
            }),
            PathKind::Device(bytes) => Ok(TargetRoot::Device {
                path: path.clone(),
                bytes,
            }),
            PathKind::Directory => Err(format!(
                "{shown} is a directory; write it as directory, or name it on the command line"
            )),
            PathKind::Other(why) => Err(why),
            // A file in /dev would be made of memory.
            PathKind::Nothing if path.starts_with("/dev") && !path.starts_with("/dev/shm") => {
                Err(format!(
                    "{shown} does not exist; write the disk's name here, or name it on the command \
                     line"
                ))
            }
            PathKind::Nothing => {
                let directory = self.scratch_directory(path)?;
                match file_name(path) {
                    Some(name) if self.file_stays(path) => Ok(TargetRoot::KeptFiles {
                        directory,
                        names: vec![name],
                        is_complete: false,
                    }),
                    _ => Ok(TargetRoot::ScratchFile(directory)),
                }
            }
        }
    }

    /// True if the several files of a job are there, as long as it needs them.
    fn are_files_complete(&self, job: &FioJob, directory: &Path, names: &[String]) -> bool {
        let Some(needed_bytes) = job.bytes_of_each_file() else {
            return false;
        };
        names.iter().all(
            |name| match self.translation.path_kind(&directory.join(name)) {
                PathKind::File(bytes) => bytes >= needed_bytes,
                _ => false,
            },
        )
    }

    /// True if a file stays where fio leaves it.
    fn file_stays(&self, path: &PathBuf) -> bool {
        self.translation.is_as_fio() && !self.vanishing.contains(path)
    }

    /// True if an existing file grows: diskproof made it, it stays, and a job goes beyond its end.
    /// fio makes every such file longer; here the files of others keep their size.
    fn file_grows(&self, path: &PathBuf, bytes: u64) -> bool {
        let needed = self.needed.get(path).copied().unwrap_or(0);
        needed > bytes && self.file_stays(path) && self.translation.environment.is_made_by_us(path)
    }

    /// True if a scratch file replaces an existing file. A file that the author of the job names is
    /// used. A file that fio names, and made in an earlier run, stays as it is. So does one that
    /// `filename_format` names, unless the job only reads it.
    fn is_replaced_by_scratch(
        &self,
        job: &FioJob,
        paths: &[PathBuf],
        path: &PathBuf,
        bytes: u64,
    ) -> bool {
        let is_too_small = matches!(job.extent.size, Some(Amount::Bytes(size)) if size > bytes);
        let is_only_file = paths.iter().all(|other| other == path);
        let is_named = job.file_set.filename_format != FILENAME_FORMAT_DEFAULT;
        let stays = self.file_stays(path);
        let is_read_as_it_is =
            (is_named || stays) && is_only_file && !is_too_small && !self.written.contains(path);
        let is_written_again = stays && self.translation.environment.is_made_by_us(path);
        job.file_set.filename.is_none() && !is_read_as_it_is && !is_written_again
    }

    /// The directory of this path, in which a file is created. The error says why none can be.
    fn scratch_directory(&self, path: &Path) -> Result<ScratchDirectory, String> {
        let directory = directory_of(path);
        match self.translation.path_kind(directory) {
            PathKind::Directory => Ok(ScratchDirectory {
                path: directory.to_path_buf(),
                size_flag: self.translation.overrides.size,
            }),
            PathKind::Other(why) => Err(why),
            _ => {
                let shown = quoted(&self.translation.shown(directory));
                Err(format!(
                    "the directory {shown} does not exist; create it, or name a target on the \
                     command line"
                ))
            }
        }
    }
}

/// The name of a file in its directory; `None` where it is no text.
fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}
