//! The seeds of the fuzz targets, read and printed as those targets do: what the targets share
//! compiles and finds no fault.

use std::path::{Path, PathBuf};

#[path = "../../../../fuzz/lib.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets use it as a crate")]
mod documents;

fn seeds(of: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(of);
    let found = std::fs::read_dir(folder).unwrap();
    let paths: Vec<PathBuf> = found.map(|entry| entry.unwrap().path()).collect();
    assert!(!paths.is_empty());
    paths
}

#[test]
fn every_document_among_the_seeds_is_printed_in_every_format() {
    for path in seeds("record") {
        documents::use_text(&std::fs::read_to_string(path).unwrap());
    }
}
