//! The house rules of the workspace, checked on its sources: line length, unique type names, no
//! cycle of modules, the dependencies that DESIGN allows, and words that have a plain equivalent.
//! Reads files only; needs nothing of the program.

mod modules;
mod sources;

use sources::{SourceFile, crate_names, repository_root, rust_sources, text_sources};
use std::collections::BTreeMap;
use std::fs;

/// Columns of the longest line, as in `rustfmt.toml`.
const COLUMNS_MAX: usize = 100;

/// Which crates of ours each crate may depend on. `cli` may know all of them.
const MAY_KNOW: [(&str, &[&str]); 9] = [
    ("model", &[]),
    ("device", &["model"]),
    ("engine", &["model", "device"]),
    ("analysis", &["model"]),
    ("report", &["model"]),
    ("history", &["model"]),
    ("powercut", &["model", "device"]),
    ("compat", &["model"]),
    ("postgres", &["model", "device"]),
];

/// Phrases that read as translated or are private to this project, each with the plain wording.
/// In lower case; a word boundary is required at both ends.
const PHRASES: [(&str, &str); 34] = [
    ("asked of", "requested"),
    ("aside", "in a thread of its own, separately"),
    ("bring home", "return"),
    ("brings home", "returns"),
    ("brought home", "returned"),
    ("comes home", "finishes"),
    ("come home", "finish"),
    ("ended without a word", "ended unexpectedly"),
    ("gave up", "timed out, or: released"),
    ("give up", "time out, or: release"),
    ("given up", "timed out, or: released"),
    ("gives up", "times out, or: releases"),
    ("giving up", "timing out, or: releasing"),
    ("has no place", "does not belong"),
    ("have no place", "do not belong"),
    ("held against", "compared with"),
    ("hold against", "compare with"),
    ("in vain", "without success"),
    ("is told", "is reported"),
    ("are told", "are reported"),
    ("leave out", "skip"),
    ("leaves out", "skips"),
    ("left out", "skipped"),
    ("leaving out", "skipping"),
    ("nobody", "no process, no user"),
    ("somebody", "another process, a user"),
    ("spoilt", "faulty"),
    ("takes no end", "never finishes"),
    ("tell of", "report"),
    ("tells of", "reports"),
    ("tells nothing", "shows nothing about"),
    ("trust no figure", "do not rely on"),
    ("who the disk is", "the disk's identity"),
    ("whoever", "the process that, the user who"),
];

/// Fails where there is a breach, and lists them all.
fn check(rule: &str, found: &[String]) {
    let list = found.join("\n");
    assert!(found.is_empty(), "{rule}: {}:\n{list}", found.len());
}

#[test]
fn lines_fit_the_columns() {
    let mut long = Vec::new();
    for file in text_sources() {
        for (number, line) in file.text.lines().enumerate() {
            if line.chars().count() > COLUMNS_MAX {
                long.push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    check("lines over 100 columns", &long);
}

#[test]
fn type_names_are_unique() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in rust_sources() {
        for name in file.type_names() {
            places.entry(name).or_default().push(file.path.clone());
        }
    }
    places.retain(|_, files| files.len() > 1);
    let list: Vec<String> = places
        .iter()
        .map(|(name, files)| format!("{name}: {}", files.join(", ")))
        .collect();
    check("type names with two meanings", &list);
}

#[test]
fn prose_has_no_private_phrases() {
    let mut found = Vec::new();
    for file in text_sources()
        .iter()
        .filter(|file| !file.path.ends_with("house/main.rs"))
    {
        found.extend(phrases_in(file));
    }
    check("phrases to rewrite", &found);
}

fn phrases_in(file: &SourceFile) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let lower = line.to_lowercase();
        for (phrase, plain) in PHRASES {
            if has_phrase(&lower, phrase) {
                let place = format!("{}:{}", file.path, number + 1);
                found.push(format!("{place}: '{phrase}', better: {plain}"));
            }
        }
    }
    found
}

fn has_phrase(line: &str, phrase: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    line.match_indices(phrase).any(|(at, _)| {
        is_edge(line[..at].chars().next_back()) && is_edge(line[at + phrase.len()..].chars().next())
    })
}

#[test]
fn modules_have_no_cycles() {
    let mut found = Vec::new();
    for name in crate_names() {
        found.extend(modules::cycles(&name));
    }
    check("cycles of modules", &found);
}

#[test]
fn crates_know_only_whom_they_may() {
    for (name, allowed) in MAY_KNOW {
        let path = repository_root()
            .join("crates")
            .join(name)
            .join("Cargo.toml");
        let manifest = fs::read_to_string(&path).expect("every crate has a manifest");
        let dependencies = manifest
            .split("[dev-dependencies]")
            .next()
            .unwrap_or(&manifest);
        for line in dependencies.lines() {
            if let Some(rest) = line.strip_prefix("diskproof-") {
                let known = rest.split(['.', ' ', '=']).next().unwrap_or(rest);
                assert!(
                    allowed.contains(&known),
                    "{name} must not depend on {known}"
                );
            }
        }
    }
}

#[test]
fn phrase_search_respects_word_boundaries() {
    assert!(has_phrase("it was given up.", "given up"));
    assert!(!has_phrase("forgiven upon", "given up"));
}
