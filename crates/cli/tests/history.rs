//! Every run is saved, can be shown again exactly, and no trouble with that ever costs a measurement.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod program;

use diskproof_simdisk::testbed::{TempDir, place};
use program::{Ran, SHORT, program};
use std::path::PathBuf;

/// A place with a history of its own.
struct Here {
    place: TempDir,
}

impl Here {
    fn new() -> Self {
        Self { place: place() }
    }

    fn history(&self) -> PathBuf {
        self.place.path().join("history.db")
    }

    fn run(&self, words: &[&str]) -> Ran {
        program(words).env("DISKPROOF_HISTORY", self.history()).current_dir(self.place.path()).output().unwrap().into()
    }

    /// A short measurement.
    fn measure(&self, flags: &[&str]) -> Ran {
        self.run(&[&["check", "--read-only"], &SHORT[..], flags].concat())
    }
}

/// The id that a run was saved as, in short.
fn saved_id(ran: &Ran) -> String {
    let (_, rest) = ran.err.split_once("saved as ").unwrap_or_else(|| panic!("not saved: {}", ran.err));
    rest[..8].to_owned()
}

#[test]
fn a_run_is_shown_again_as_it_was_printed() {
    let here = Here::new();
    let ran = here.measure(&["--label", "first", "--note", "before"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let id = saved_id(&ran);
    for word in [id.as_str(), "latest", "first", "latest~0"] {
        let shown = here.run(&["show", word]);
        assert_eq!((shown.code, shown.out.as_str(), shown.err.as_str()), (Some(0), ran.out.as_str(), ""), "{word}");
    }
    let record = here.run(&["show", &id, "--json"]).record();
    assert!(record.run_id.starts_with(&id));
    assert_eq!(record.note.as_deref(), Some("before"));
    let listed = here.run(&["history"]);
    assert!(listed.out.contains(&id) && listed.out.contains("first"), "{}", listed.out);
}
