//! Where the jobs of a file work: its files and devices become targets, and files that are not
//! there become parts of one scratch file. Opens nothing.

use super::jobs::FioJob;
use super::numbers::Amount;
use super::remarks::TranslationNotes;
use super::{CliOverrides, Environment, JobFileError, PathKind, quoted};
use crate::workload::Direction;
use diskproof_model::units::format_bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Parts of different jobs begin at multiples of this: every sector, page and flash block does.
const PART_BYTES: u64 = 1 << 20;

/// A part of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePart {
    /// First byte.
    pub start: u64,
    /// Bytes, without what is left over behind the last block of a file of its own.
    pub length: u64,
    /// Bytes as the job has it.
    pub asked_bytes: u64,
    /// Whether it is all of its file.
    pub is_whole_file: bool,
}

/// Where a job works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPlacement {
    /// Which of the targets.
    pub target: usize,
    /// For each copy of the job.
    pub pieces: Vec<FilePart>,
    /// Whether the job would be the first in fio to write to a file that is new.
    pub is_first_to_write: bool,
}

/// Where all of them work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placements {
    /// Targets, unless the command line names them.
    pub targets: Vec<PathBuf>,
    /// What each has, or will have, in bytes; one entry for all that the command line names, 0
    /// where they differ in kind.
    pub total_bytes: Vec<u64>,
    /// Size of the scratch file.
    pub scratch_bytes: Option<u64>,
    /// For each job.
    pub seats: Vec<JobPlacement>,
}

/// What a job's files belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TargetRoot {
    /// It is there.
    Existing { path: PathBuf, bytes: u64 },
    /// A scratch file in this directory; its size, where the command line gives one.
    Scratch {
        directory: PathBuf,
        bytes: Option<u64>,
    },
    /// Whatever the command line names; its size, where that is known, and whether all of it are
    /// scratch files.
    Given {
        bytes: Option<u64>,
        is_scratch: bool,
    },
}

impl TargetRoot {
    fn is_scratch(&self) -> bool {
        matches!(
            self,
            Self::Scratch { .. }
                | Self::Given {
                    is_scratch: true,
                    ..
                }
        )
    }

    fn bytes(&self) -> Option<u64> {
        match self {
            Self::Existing { bytes, .. } => Some(*bytes),
            Self::Scratch { bytes, .. } | Self::Given { bytes, .. } => *bytes,
        }
    }
}

/// The files of a job, one for each copy.
struct Files {
    anchor: TargetRoot,
    paths: Vec<PathBuf>,
    /// Whether each copy has its own.
    is_own: bool,
}

/// Finds the places of all jobs.
pub fn place(
    jobs: &[FioJob],
    beside: CliOverrides<'_>,
    surroundings: &dyn Environment,
    remarks: &mut TranslationNotes,
) -> Result<Placements, JobFileError> {
    let given = (!beside.targets.is_empty()).then(|| given(beside, surroundings));
    let files = jobs
        .iter()
        .map(|job| files(job, given.as_ref(), beside, surroundings))
        .collect::<Result<Vec<_>, _>>()?;
    let mut anchors: Vec<&TargetRoot> = Vec::new();
    for file in &files {
        if !anchors.contains(&&file.anchor) {
            anchors.push(&file.anchor);
        }
    }
    let mut places = Placements {
        targets: Vec::new(),
        total_bytes: Vec::new(),
        scratch_bytes: None,
        seats: Vec::new(),
    };
    let mut seats: Vec<Option<JobPlacement>> = vec![None; jobs.len()];
    for (target, anchor) in anchors.iter().enumerate() {
        let here: Vec<usize> = (0..jobs.len())
            .filter(|job| files[*job].anchor == **anchor)
            .collect();
        let members: Vec<(&FioJob, &Files)> =
            here.iter().map(|job| (&jobs[*job], &files[*job])).collect();
        let (pieces, total) = share_out(&members, anchor.bytes())?;
        for (job, pieces) in here.iter().zip(pieces) {
            let is_used = here
                .iter()
                .take_while(|other| *other != job)
                .any(|other| files[*other].paths.contains(&files[*job].paths[0]));
            let is_first_to_write = anchor.is_scratch()
                && jobs[*job].rw.direction == Direction::Write
                && !jobs[*job].overwrites
                && !is_used;
            seats[*job] = Some(JobPlacement {
                target,
                pieces,
                is_first_to_write,
            });
        }
        places.settle(anchor, anchor.bytes().unwrap_or(total), &members, remarks)?;
    }
    places.seats = seats.into_iter().flatten().collect();
    Ok(places)
}

impl Placements {
    /// One more target, and what the user should know of it.
    fn settle(
        &mut self,
        anchor: &TargetRoot,
        total: u64,
        members: &[(&FioJob, &Files)],
        remarks: &mut TranslationNotes,
    ) -> Result<(), JobFileError> {
        let mut paths: Vec<&PathBuf> = members.iter().flat_map(|(_, files)| &files.paths).collect();
        paths.sort();
        paths.dedup();
        match anchor {
            TargetRoot::Existing { path, bytes } => {
                self.targets.push(path.clone());
                self.total_bytes.push(*bytes);
            }
            TargetRoot::Given { bytes, is_scratch } => {
                // Where a device stands beside a directory, nothing is all of both.
                self.total_bytes.push(if bytes.is_some() || *is_scratch {
                    total
                } else {
                    0
                });
                self.scratch_bytes = Some(total);
                if paths.len() > 1 {
                    remarks.say(format!(
                        "the {} files of the jobs become parts of the target, side by side",
                        paths.len()
                    ));
                }
            }
            TargetRoot::Scratch { directory, .. } => {
                if self.scratch_bytes.is_some_and(|other| other != total) {
                    let (job, _) = members[0];
                    return Err(job.spot.error(format!("[{}]: {}", job.section, UNLIKE)));
                }
                remarks.say(match paths.as_slice() {
                    [path] => format!(
                        "{} is not there: a scratch file of {} in {} takes its place, filled \
                         before it is needed, and vanishes in the end",
                        path.display(),
                        format_bytes(total),
                        directory.display()
                    ),
                    _ => format!(
                        "the {} files of the jobs become parts of one scratch file of {} in {}, \
                         filled before it is needed, which vanishes in the end",
                        paths.len(),
                        format_bytes(total),
                        directory.display()
                    ),
                });
                self.targets.push(directory.clone());
                self.total_bytes.push(total);
                self.scratch_bytes = Some(total);
            }
        }
        Ok(())
    }
}

/// Why jobs on several targets have no plan.
pub const UNLIKE: &str = "the jobs do different things on different disks or directories, and a \
                          plan does the same on each of its targets: run them one by one \
                          (--section NAME), or name the targets on the command line";

/// What the command line names. Sizes of directories are only known where it gives them.
fn given(beside: CliOverrides<'_>, surroundings: &dyn Environment) -> TargetRoot {
    let found: Vec<PathKind> = beside
        .targets
        .iter()
        .map(|target| surroundings.found(target))
        .collect();
    let bytes = found.iter().map(|found| match found {
        PathKind::File(bytes) | PathKind::Device(bytes) => Some(*bytes),
        // What is wrong with the others is said when they are looked at as targets.
        PathKind::Directory | PathKind::Nothing | PathKind::Other(_) => beside.size,
    });
    let bytes = bytes
        .collect::<Option<Vec<u64>>>()
        .and_then(|all| all.into_iter().min());
    TargetRoot::Given {
        bytes,
        is_scratch: found.iter().all(|found| *found == PathKind::Directory),
    }
}

/// The files of a job, and what they belong to.
fn files(
    job: &FioJob,
    given: Option<&TargetRoot>,
    beside: CliOverrides<'_>,
    surroundings: &dyn Environment,
) -> Result<Files, JobFileError> {
    let within = |name: &str| match &job.directory {
        // As fio: the directory stands before any name, be it absolute.
        Some(directory) => PathBuf::from(format!("{}/{name}", directory.trim_end_matches('/'))),
        None => PathBuf::from(name),
    };
    let copies = |path: PathBuf| vec![path; job.numjobs as usize];
    if let Some(file) = &job.filename {
        let path = within(&file.name);
        let anchor = given.map_or_else(
            || anchor_of(&path, job, beside, surroundings).map_err(|why| file.spot.error(why)),
            |given| Ok(given.clone()),
        )?;
        return Ok(Files {
            anchor,
            paths: copies(path),
            is_own: false,
        });
    }
    // fio takes the name of a section for a device where there is one.
    if job.section.contains('/')
        && let path = within(&job.section)
        && let PathKind::Device(bytes) = surroundings.found(&path)
    {
        let anchor = given.cloned().unwrap_or(TargetRoot::Existing {
            path: path.clone(),
            bytes,
        });
        return Ok(Files {
            anchor,
            paths: copies(path),
            is_own: false,
        });
    }
    let name = |copy: u64| {
        let format = job
            .filename_format
            .replace("$jobnum", &copy.to_string())
            .replace("$filenum", "0")
            .replace("$clientuid", "");
        within(&format.replace("$jobname", &job.section))
    };
    let anchor = match given {
        Some(given) => given.clone(),
        None => scratch_in(
            Path::new(job.directory.as_deref().unwrap_or(".")),
            beside,
            surroundings,
        )
        .map_err(|why| job.spot.error(format!("[{}]: {why}", job.section)))?,
    };
    Ok(Files {
        anchor,
        paths: (0..job.numjobs).map(name).collect(),
        is_own: true,
    })
}

fn anchor_of(
    path: &Path,
    job: &FioJob,
    beside: CliOverrides<'_>,
    surroundings: &dyn Environment,
) -> Result<TargetRoot, String> {
    let shown = quoted(&path.display().to_string());
    match surroundings.found(path) {
        PathKind::File(bytes) | PathKind::Device(bytes) => Ok(TargetRoot::Existing {
            path: path.to_path_buf(),
            bytes,
        }),
        PathKind::Directory => Err(format!(
            "filename={shown}: this is a directory: write it as directory, or name it on the \
             command line"
        )),
        PathKind::Other(why) => Err(why),
        // What belongs there is a device: a file would be made of memory.
        PathKind::Nothing if path.starts_with("/dev") && !path.starts_with("/dev/shm") => {
            Err(format!(
                "[{}]: there is no {shown}: write the disk's name here, or name it on the command \
                 line",
                job.section
            ))
        }
        PathKind::Nothing => {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
                .unwrap_or(Path::new("."));
            scratch_in(parent, beside, surroundings)
                .map_err(|why| format!("[{}]: {why}", job.section))
        }
    }
}

fn scratch_in(
    directory: &Path,
    beside: CliOverrides<'_>,
    surroundings: &dyn Environment,
) -> Result<TargetRoot, String> {
    match surroundings.found(directory) {
        PathKind::Directory => Ok(TargetRoot::Scratch {
            directory: directory.to_path_buf(),
            bytes: beside.size,
        }),
        PathKind::Other(why) => Err(why),
        _ => {
            let shown = quoted(&directory.display().to_string());
            Err(format!(
                "there is no directory {shown}: make it first, or name a target on the command \
                 line"
            ))
        }
    }
}

/// Pieces of each job's copies, and the bytes that all files take side by side. A single file
/// begins at 0 and may be as large as its target.
fn share_out(
    members: &[(&FioJob, &Files)],
    whole: Option<u64>,
) -> Result<(Vec<Vec<FilePart>>, u64), JobFileError> {
    let is_single = members.iter().all(|(_, files)| {
        files
            .paths
            .iter()
            .all(|path| *path == members[0].1.paths[0])
    });
    let whole = whole.filter(|_| is_single);
    let mut inside = Vec::new();
    for (job, files) in members {
        let pieces = (0..job.numjobs)
            .map(|copy| piece(job, copy, whole))
            .collect::<Result<Vec<_>, _>>()?;
        let unit = job.blocks.smallest();
        let is_shared = members
            .iter()
            .filter(|(_, others)| others.paths.contains(&files.paths[0]))
            .count()
            > 1;
        // What is left over of a file behind the last whole block is never met, and nor is what
        // lies before an offset that nobody else goes below.
        let trimmed = |piece: FilePart| match files.is_own {
            true if whole.is_none() && !is_shared => FilePart {
                start: 0,
                length: piece.length / unit * unit,
                ..piece
            },
            true => FilePart {
                length: piece.length / unit * unit,
                ..piece
            },
            false => piece,
        };
        inside.push(pieces.into_iter().map(trimmed).collect::<Vec<_>>());
    }
    let mut extents: BTreeMap<&Path, u64> = BTreeMap::new();
    for ((_, files), pieces) in members.iter().zip(&inside) {
        for (path, piece) in files.paths.iter().zip(pieces) {
            let extent = extents.entry(path).or_default();
            *extent = (*extent).max(piece.start.saturating_add(piece.length));
        }
    }
    let (mut starts, mut end): (BTreeMap<&Path, u64>, u64) = (BTreeMap::new(), 0);
    for (_, files) in members {
        // The copies of a job lie side by side without a gap, so that they can be one workload.
        end = end.checked_next_multiple_of(PART_BYTES).unwrap_or(u64::MAX);
        for path in &files.paths {
            if !starts.contains_key(path.as_path()) {
                starts.insert(path, end);
                end = end.saturating_add(extents[path.as_path()]);
            }
        }
    }
    let moved = |path: &PathBuf, piece: FilePart| {
        let file_bytes = whole.unwrap_or(extents[path.as_path()]);
        let is_whole_file = piece.is_whole_file && piece.length == file_bytes;
        FilePart {
            start: piece.start.saturating_add(starts[path.as_path()]),
            is_whole_file,
            ..piece
        }
    };
    let pieces = members.iter().zip(inside).map(|((_, files), pieces)| {
        files
            .paths
            .iter()
            .zip(pieces)
            .map(|(path, piece)| moved(path, piece))
            .collect()
    });
    Ok((
        pieces.collect(),
        end.checked_next_multiple_of(PART_BYTES).unwrap_or(u64::MAX),
    ))
}

/// The part of its file that a copy of a job uses.
fn piece(job: &FioJob, copy: u64, whole: Option<u64>) -> Result<FilePart, JobFileError> {
    let wrong = |why: &str| job.spot.error(format!("[{}]: {why}", job.section));
    let of = |amount: Amount| match (amount, whole) {
        (Amount::Percent(_), None) => Err(wrong(
            "a share in percent needs a file or device that is there: write it in bytes",
        )),
        (amount, whole) => Ok(amount.of(whole.unwrap_or(0))),
    };
    let start = of(job.extent.offset)?.saturating_add(job.extent.increment.saturating_mul(copy));
    let rest = whole.map(|whole| whole.saturating_sub(start));
    let length = match (job.extent.size, rest) {
        (Some(size @ Amount::Percent(_)), Some(rest)) => of(size)?.min(rest),
        (Some(size), _) => of(size)?,
        (None, Some(rest)) => rest,
        (None, None) => {
            return Err(wrong(
                "without a size: write such as size=1g, or give a directory's scratch file one by \
                 --size",
            ));
        }
    };
    if length < job.blocks.smallest() {
        return Err(wrong(
            "what it works on is smaller than a block, or begins behind the end: use a larger \
             size, or a smaller bs or offset",
        ));
    }
    Ok(FilePart {
        start,
        length,
        asked_bytes: length,
        is_whole_file: start == 0,
    })
}
