//! Notes what becomes of the files of jobs: those that stay, those that a scratch file replaces,
//! and those that are trimmed.

use super::roots::{JobFiles, TargetRoot};
use crate::job_file::environment::PathKind;
use crate::job_file::translation::Translation;
use diskproof_model::op::OpKind;
use diskproof_model::units::format_bytes;
use std::path::{Path, PathBuf};

/// Notes the files that are created or grow, and stay.
pub(super) fn note_kept_files(roots: &[&TargetRoot], translation: &Translation<'_>) {
    let mut changed = Vec::new();
    let mut new_files = 0;
    for root in roots {
        if root.is_complete() {
            continue;
        }
        if !root.grows() {
            new_files += root.kept_names().len();
        }
        changed.push(root);
    }
    if new_files > 1 {
        changed.retain(|root| root.grows());
        translation.note_line(format!(
            "the {new_files} new files of the jobs are filled before their first use, and stay"
        ));
    }
    for root in changed {
        for name in root.kept_names() {
            let directory = root.path().unwrap_or(Path::new(""));
            let path = translation.shown(&directory.join(name));
            let change = if root.grows() { "grows" } else { "is filled" };
            translation.note_line(format!("{path} {change} before its first use, and stays"));
        }
    }
}

/// Notes existing files that fio would remove at the end (`unlink`): nothing that was there before
/// the run is removed.
pub(super) fn note_spared_files(
    root: &TargetRoot,
    members: &[&JobFiles<'_>],
    translation: &Translation<'_>,
) {
    let TargetRoot::File { path, .. } = root else {
        return;
    };
    let is_unlinked = members.iter().any(|member| member.job.file_set.unlinks);
    if is_unlinked && translation.is_as_fio() {
        translation.note_line(format!(
            "{} stays: fio removes the file at the end (unlink=1), and diskproof removes no file \
             that was there before the run",
            translation.shown(path)
        ));
    }
}

/// Notes that a target of `target_bytes` replaces the files of the job file: as parts of a target
/// of the command line, or as a scratch file.
pub(super) fn note_replaced_files(
    root: &TargetRoot,
    target_bytes: u64,
    members: &[&JobFiles<'_>],
    translation: &Translation<'_>,
) {
    let mut paths: Vec<&PathBuf> = members.iter().flat_map(|member| member.paths).collect();
    paths.sort();
    paths.dedup();
    match root.path() {
        None if paths.len() > 1 => translation.note_line(format!(
            "the {} files of the jobs become adjacent parts of the target",
            paths.len()
        )),
        Some(directory) if root.is_scratch() && root.kept_names().is_empty() => {
            let directory = translation.shown(directory);
            translation.note_line(replaced_text(&paths, target_bytes, &directory, translation));
        }
        _ => {}
    }
}

/// The sentence that a scratch file of this size in a directory replaces the files of jobs.
fn replaced_text(
    paths: &[&PathBuf],
    bytes: u64,
    directory: &str,
    translation: &Translation<'_>,
) -> String {
    let size_and_place = format!("{} in {directory}", format_bytes(bytes));
    let replacement = match paths {
        [path] => {
            let state = match translation.path_kind(path) {
                PathKind::Nothing => "does not exist",
                _ => "stays unchanged",
            };
            let shown = translation.shown(path);
            format!("{shown} {state}: a scratch file of {size_and_place} replaces it")
        }
        several => {
            let files = several.len();
            format!(
                "the {files} files of the jobs become parts of one scratch file of {size_and_place}"
            )
        }
    };
    format!(
        "{replacement}. The scratch file is filled before its first use and vanishes at the end"
    )
}

/// Warns of jobs that trim files: fio trims block devices only, and would fail.
pub(super) fn note_trimmed_files(
    root: &TargetRoot,
    members: &[&JobFiles<'_>],
    translation: &Translation<'_>,
) {
    let is_existing_file = matches!(root, TargetRoot::File { .. });
    if !is_existing_file && !root.is_scratch() {
        return;
    }
    for member in members {
        if member.job.rw().makes(OpKind::Trim) {
            translation.note(
                "fio trims block devices only, and fails on files (ENOTTY); here a trim punches a \
                 hole into the file",
                &member.job.section,
            );
        }
    }
}
