//! Reads the list of functions in ARCHITECTURE.md, "One request, followed", and finds where the
//! sources differ: a file without the function, or a function that does not call the next one.

use crate::sources::{SourceFile, markdown_pages, rust_sources};
use std::collections::BTreeSet;

/// The heading of the list.
const HEADING: &str = "## One request, followed\n";
/// The indent of its lines.
const INDENT: &str = "    ";
/// The most functions on the way of a request. A reader who follows more of them loses the first.
/// Chosen, not measured.
const FUNCTIONS_MAX: usize = 40;

/// A function of the list.
struct Listed<'a> {
    /// Its file, from `crates/` on.
    file: &'a str,
    /// Its name, with that of its type where it has one.
    name: &'a str,
    /// True if the function before it calls it.
    is_called: bool,
}

impl Listed<'_> {
    /// The name without that of its type.
    fn own_name(&self) -> &str {
        match self.name.rsplit_once("::") {
            Some((_, name)) => name,
            None => self.name,
        }
    }
}

/// The functions of a list, in its order.
fn listed(page: &str) -> Vec<Listed<'_>> {
    let (_, after) = page.split_once(HEADING).expect("the heading of the list");
    let section = after.split("\n## ").next().unwrap_or(after);
    let mut functions = Vec::new();
    let mut is_called = false;
    for line in section.lines() {
        let Some((file, names)) = line
            .strip_prefix(INDENT)
            .and_then(|line| line.split_once(' '))
        else {
            is_called = false;
            continue;
        };
        for name in names.split(',') {
            functions.push(Listed {
                file,
                name: name.trim(),
                is_called,
            });
            is_called = true;
        }
    }
    functions
}

/// The texts of all functions of this name in a file, each from the line after its name to its end.
fn bodies<'a>(file: &'a SourceFile, name: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (at, declared) in file.text.match_indices(&format!("fn {name}")) {
        let is_whole_name = file.text[at + declared.len()..].starts_with(['(', '<']);
        let line_start = file.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = &file.text[line_start..];
        let indent = line.len() - line.trim_start_matches(' ').len();
        let end = format!("\n{}}}\n", &line[..indent]);
        if is_whole_name
            && let Some(body_start) = line.find('\n')
            && let Some(body_end) = line.find(&end)
        {
            found.push(&line[body_start..body_end]);
        }
    }
    found
}

/// Where the list differs from the sources.
pub(crate) fn differences() -> Vec<String> {
    let pages = markdown_pages();
    let page = pages.iter().find(|page| page.path == "ARCHITECTURE.md");
    let functions = listed(&page.expect("there is an ARCHITECTURE.md").text);
    let distinct: BTreeSet<(&str, &str)> = functions
        .iter()
        .map(|function| (function.file, function.name))
        .collect();
    assert!(distinct.len() > 30, "{} functions", distinct.len());
    let mut found = Vec::new();
    if distinct.len() > FUNCTIONS_MAX {
        found.push(format!(
            "the list has {} functions; at most {FUNCTIONS_MAX} can be followed",
            distinct.len()
        ));
    }
    let sources = rust_sources();
    let mut callers: Vec<&str> = Vec::new();
    for function in &functions {
        let path = format!("crates/{}", function.file);
        let mut own_bodies = Vec::new();
        for source in sources.iter().filter(|source| source.path == path) {
            own_bodies.extend(bodies(source, function.own_name()));
        }
        if own_bodies.is_empty() {
            found.push(format!("{path} has no function {}", function.name));
        }
        let call = format!("{}(", function.own_name());
        let passed = format!("({})", function.own_name());
        let passed_by_path = format!("::{})", function.own_name());
        let has_caller = callers.iter().any(|body| {
            body.contains(&call) || body.contains(&passed) || body.contains(&passed_by_path)
        });
        if function.is_called && !has_caller {
            found.push(format!("{path}: {} has another caller", function.name));
        }
        callers = own_bodies;
    }
    found
}

#[test]
fn a_function_that_calls_another_one_is_found() {
    let file = SourceFile {
        path: String::new(),
        text: "impl A {\n    fn one<T>(t: T) {\n        two(t)\n    }\n}\nfn one_more() {\n}\n"
            .to_owned(),
    };
    assert_eq!(bodies(&file, "one"), ["\n        two(t)"]);
}
