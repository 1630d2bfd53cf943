//! Which targets or settings are compared. Opens no target for writing.

use crate::commands::compare::flags::{CompareFlags, LiveFlags};
use crate::failure::Failure;
use crate::saved::names_run;
use crate::stderr::Verbosity;
use crate::targets::resolve_target;
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The targets to measure, as the user named them; `None` where the arguments name saved runs.
pub(crate) fn live_targets(compare: &CompareFlags) -> Result<Option<Vec<String>>, Failure> {
    let usage = |text: String| Err(Failure::Usage(text));
    let commands = &compare.live.prepare;
    if !commands.is_empty() {
        return match (&compare.runs[..], &compare.baseline) {
            (_, Some(_)) => usage("--baseline names saved runs; omit it".to_owned()),
            _ if commands.len() < 2 => usage(
                "a single --prepare gives nothing to compare; use one for each side, such as \
                 --prepare 'CMD A' --prepare 'CMD B'"
                    .to_owned(),
            ),
            ([], _) => Ok(Some(vec![".".to_owned()])),
            ([target], _) => Ok(Some(vec![target.clone()])),
            _ => usage(
                "--prepare compares settings of one target; name one target, or compare the \
                 targets without --prepare"
                    .to_owned(),
            ),
        };
    }
    let history = compare.history_file.history.as_deref();
    let is_live = |name: &String| compare.baseline.is_none() && is_target(name, history);
    let (targets, others): (Vec<String>, Vec<String>) =
        compare.runs.iter().cloned().partition(is_live);
    match (&targets[..], &others[..]) {
        ([], _) => Ok(None),
        ([only], []) => usage(format!(
            "{only} cannot be compared alone; name a second target, or two settings with \
             --prepare 'CMD A' --prepare 'CMD B'"
        )),
        ([target, ..], [other, ..]) => usage(format!(
            "{target} is a target, but {other} is not. Name either saved runs, or directories, \
             files and block devices"
        )),
        (_, []) => Ok(Some(targets)),
    }
}

/// Whether the argument names a target. What names a saved run keeps that meaning.
fn is_target(name: &str, history: Option<&Path>) -> bool {
    let path = resolve_target(Path::new(name), Verbosity::Quiet);
    let Ok(found) = std::fs::metadata(&path) else {
        return false;
    };
    let is_plain = !name.contains('/') && name != "." && name != "..";
    let may_be = found.is_dir()
        || std::os::unix::fs::FileTypeExt::is_block_device(&found.file_type())
        || (found.is_file() && !looks_like_document(&path));
    may_be && !(is_plain && names_run(name, history))
}

/// Records and comparisons are JSON or pages.
fn looks_like_document(path: &Path) -> bool {
    let ends = path
        .extension()
        .is_some_and(|end| end == "json" || end == "html");
    let mut start = String::new();
    // What is no text, or cannot be read, is no document.
    let read = File::open(path).and_then(|file| file.take(64).read_to_string(&mut start));
    let text = start.trim_start_matches('\u{feff}').trim_start();
    ends || (read.is_ok() && text.starts_with(['{', '<']))
}

/// Targets of different kinds do not compare, and a released one cannot be opened twice.
pub(super) fn check_kinds(identities: &[TargetIdentity], live: &LiveFlags) -> Result<(), Failure> {
    let Some((first, others)) = identities.split_first() else {
        return Ok(());
    };
    let kind = |identity: &TargetIdentity| match identity.kind {
        TargetKind::Directory => "a directory",
        TargetKind::File => "a file",
        TargetKind::BlockDevice => "a block device",
    };
    if let Some(other) = others.iter().find(|other| other.kind != first.kind) {
        return Err(Failure::Usage(format!(
            "{} is {} but {} is {}, so their figures are not comparable. Name targets of the same \
             kind",
            first.path,
            kind(first),
            other.path,
            kind(other)
        )));
    }
    let is_released = live.destructive.overwrite || !live.destructive.destroy.is_empty();
    let mut pairs = identities.iter().enumerate().flat_map(|(index, one)| {
        let later = &identities[index + 1..];
        later.iter().map(move |other| (one, other))
    });
    match pairs.find(|(one, other)| one.is_same(other)) {
        Some((one, _)) if is_released && one.kind != TargetKind::Directory => {
            Err(Failure::Usage(format!(
                "{} is named twice, so one side would read the writes of the other; omit --destroy \
                 and --overwrite to compare it with itself",
                one.path
            )))
        }
        _ => Ok(()),
    }
}
