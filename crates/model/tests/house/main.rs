//! The house rules of the workspace, checked on its sources: line length, no cycle of modules, the
//! dependencies that the architecture allows, the way of a request that it lists, and links of the
//! documentation. Reads files only; needs nothing of the program.

mod followed;
mod links;
mod modules;
mod sources;

use sources::{crate_names, markdown_pages, repository_root, text_sources};
use std::fs;

/// Columns of the longest line, as in `rustfmt.toml`.
const COLUMNS_MAX: usize = 100;

/// Which crates of ours each crate may depend on. `cli` may know all of them.
const MAY_KNOW: [(&str, &[&str]); 11] = [
    ("samples", &[]),
    ("model", &["samples"]),
    ("device", &["model"]),
    ("engine", &["model", "device"]),
    ("analysis", &["model"]),
    ("report", &["model"]),
    ("history", &["model"]),
    ("powercut", &["model", "device"]),
    ("compat", &["model"]),
    ("postgres", &["model", "device"]),
    ("cluster", &["model"]),
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

/// What a head must not say: whom a file may know is checked by what it imports.
const DENIALS: [&str; 5] = [
    "Does not know",
    "Must not know",
    "Knows no ",
    "Knows neither",
    "Judges nothing",
];

#[test]
fn heads_say_what_a_file_does() {
    let mut found = Vec::new();
    for file in text_sources() {
        for line in file.text.lines() {
            let Some(head) = line.strip_prefix("//!") else {
                break;
            };
            if DENIALS.iter().any(|denial| head.contains(denial)) {
                found.push(format!("{}:{head}", file.path));
            }
        }
    }
    check("heads that say what a file does not know", &found);
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
fn imports_point_upwards_in_tables_of_modules() {
    let mut found = Vec::new();
    for name in crate_names() {
        found.extend(modules::downward_imports(&name));
    }
    check("imports of a module below", &found);
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
fn one_request_takes_the_way_that_the_architecture_lists() {
    check("other ways of a request", &followed::differences());
}

#[test]
fn links_of_pages_lead_somewhere() {
    let pages = markdown_pages();
    let mut dead = Vec::new();
    for page in &pages {
        for link in links::relative_links(page) {
            let is_there = repository_root().join(&link.path).exists();
            let mut same = pages.iter().filter(|other| other.path == link.path);
            let has_anchor = link.anchor.is_empty()
                || same.any(|other| links::anchors(other).contains(&link.anchor));
            if !is_there || !has_anchor {
                dead.push(format!("{}: {}#{}", page.path, link.path, link.anchor));
            }
        }
    }
    check("links that lead nowhere", &dead);
}

#[test]
fn readme_names_every_page_of_the_documentation() {
    let pages = markdown_pages();
    let readme = pages.iter().find(|page| page.path == "README.md");
    let links = links::relative_links(readme.expect("there is a README"));
    let mut lost = Vec::new();
    for page in &pages {
        let is_named = links.iter().any(|link| link.path == page.path);
        if page.path.starts_with("docs/") && !is_named {
            lost.push(page.path.clone());
        }
    }
    check("pages that README does not name", &lost);
}
