//! The links of the Markdown pages: which of them lead nowhere.

use crate::sources::SourceFile;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// A link of a page: the path from the root of the repository, and the anchor after `#`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub path: String,
    pub anchor: String,
}

/// The links of a page that lead to files of the repository, in their order.
pub(crate) fn relative_links(page: &SourceFile) -> Vec<Link> {
    let mut links = Vec::new();
    for line in prose_lines(&page.text) {
        for rest in line.split("](").skip(1) {
            let Some((destination, _)) = rest.split_once(')') else {
                continue;
            };
            if destination.contains("://") {
                continue;
            }
            let (path, anchor) = destination.split_once('#').unwrap_or((destination, ""));
            links.push(Link {
                path: resolved(&page.path, path),
                anchor: anchor.to_owned(),
            });
        }
    }
    links
}

/// A path as a page writes it, from the root of the repository.
fn resolved(page: &str, link: &str) -> String {
    if link.is_empty() {
        return page.to_owned();
    }
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let mut path = PathBuf::new();
    for part in folder.join(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path.display().to_string()
}

/// The lines outside of code blocks, whether fenced or indented.
fn prose_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced && !line.starts_with("    ") {
            lines.push(line);
        }
    }
    lines
}

/// The anchors of a page: GitHub makes one of each heading.
pub(crate) fn anchors(page: &SourceFile) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in prose_lines(&page.text) {
        if line.starts_with('#') {
            anchors.insert(anchor(line.trim_start_matches('#').trim()));
        }
    }
    anchors
}

/// Lower case, spaces as hyphens, punctuation omitted.
fn anchor(heading: &str) -> String {
    let mut anchor = String::new();
    for c in heading.chars() {
        match c {
            ' ' => anchor.push('-'),
            '-' | '_' => anchor.push(c),
            c if c.is_alphanumeric() => anchor.extend(c.to_lowercase()),
            _ => {}
        }
    }
    anchor
}

#[test]
fn links_and_anchors_are_read_as_github_reads_them() {
    let page = SourceFile {
        path: "docs/a/b.md".to_owned(),
        text: "# What's `new`, in 2_0?\n[x](../c.md#d) [y](#e) ![z](f.png)\n    [code](no.md)\n\
               ```\n[code](no.md)\n```\n[w](https://example.invalid/x.md)\n"
            .to_owned(),
    };
    let links = relative_links(&page);
    let found: Vec<(&str, &str)> = links
        .iter()
        .map(|link| (link.path.as_str(), link.anchor.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("docs/c.md", "d"),
            ("docs/a/b.md", "e"),
            ("docs/a/f.png", "")
        ]
    );
    assert!(anchors(&page).contains("whats-new-in-2_0"));
}
