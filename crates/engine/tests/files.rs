//! Many small files while another program works in their directory.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod support;

use diskproof_device::{FileTree, Intent, OpenError, admit, probe};
use diskproof_engine::{FilesEnding, Session};
use diskproof_model::files::{
    FileCaches, FileOperation, FileOrder, FileSync, FilesMeasurement, FilesPlan,
};
use std::path::Path;
use std::sync::Arc;
use support::Patient;

const COUNT: u64 = 100;
const FILE_BYTES: u64 = 512;

fn plan() -> FilesPlan {
    FilesPlan {
        count: COUNT,
        file_bytes_min: FILE_BYTES,
        file_bytes_max: FILE_BYTES,
        directories: 1,
        threads: 1,
        sync: FileSync::None,
        caches: FileCaches::DropOwnPages,
        orders: vec![FileOrder::Sequential],
        rounds: 1,
        time_ns: 600_000_000_000,
    }
}

fn start(place: &Path) -> FileTree {
    let intent = Intent::Files {
        size_bytes: 1 << 20,
        count: COUNT,
    };
    let admission = admit(probe(place).unwrap(), intent).unwrap();
    FileTree::start(admission, 1, FILE_BYTES).unwrap().tree
}

/// Puts another file in the place of one, as a program that saves a document does.
fn replace(file: &Path) {
    assert!(file.exists(), "{}", file.display());
    let new = file.with_extension("new");
    std::fs::write(&new, "data").unwrap();
    std::fs::rename(new, file).unwrap();
}

#[test]
fn replaced_files_are_neither_renamed_nor_deleted() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let tree = Arc::new(start(place.path()));
    let folder = tree.path().join("d0000000");
    // After which step, which file.
    let acts = [
        (FileOperation::Create, "a0000000000000001"),
        (FileOperation::Read, "a0000000000000002"),
        (FileOperation::Rename, "b0000000000000003"),
    ];
    let mut counts = Vec::new();
    let mut keep = |measured: &FilesMeasurement| {
        let last = measured.steps.last().unwrap();
        counts.push((last.step.operation, last.op.count));
        let due = acts
            .iter()
            .filter(|(after, _)| *after == last.step.operation);
        due.for_each(|(_, name)| replace(&folder.join(name)));
    };
    let session = Session::new(1);
    let ending = session
        .files(&plan(), &tree, &mut Patient, &mut keep)
        .unwrap();
    assert_eq!(ending, FilesEnding::Complete);
    assert_eq!(
        counts[3..],
        [
            (FileOperation::Rename, COUNT - 2),
            (FileOperation::Delete, COUNT - 3)
        ]
    );
    let removed = Arc::into_inner(tree).unwrap().remove();
    assert!(matches!(removed, Err(OpenError::Stays { .. })));
    let mut left: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, acts.map(|(_, name)| name));
    for (_, name) in acts {
        assert_eq!(std::fs::read(folder.join(name)).unwrap(), b"data");
    }
}
