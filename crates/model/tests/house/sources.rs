//! The source files of the workspace, and what a line-based reader can learn from them.

use std::fs;
use std::path::{Path, PathBuf};

/// One file, with its path from the root of the repository.
pub(crate) struct SourceFile {
    pub path: String,
    pub text: String,
}

impl SourceFile {
    fn read(path: &Path) -> Self {
        let relative = path.strip_prefix(repository_root()).unwrap_or(path);
        Self {
            path: relative.display().to_string(),
            text: fs::read_to_string(path).expect("a source file is UTF-8"),
        }
    }
}

/// The text up to the file's test module, which stands last by convention.
pub(crate) fn without_tests(text: &str) -> &str {
    let attribute = "#[cfg(test)]\n";
    for (at, _) in text.match_indices(attribute) {
        let item = text[at + attribute.len()..].lines().next();
        if item.is_some_and(|item| item.ends_with("mod tests {")) {
            return &text[..at];
        }
    }
    text
}

pub(crate) fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the repository")
}

/// Folder names below `crates/`.
pub(crate) fn crate_names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(repository_root().join("crates"))
        .expect("the workspace has crates")
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// Every Rust file under the crates' `src`, without files of tests.
pub(crate) fn rust_sources() -> Vec<SourceFile> {
    let mut files = Vec::new();
    for name in crate_names() {
        let src = repository_root().join("crates").join(name).join("src");
        collect(&src, &["rs"], &mut files);
    }
    files.retain(|file| !file.path.ends_with("/tests.rs") && !file.path.contains("/tests/"));
    files
}

/// Every file of code or prose that people write: all Rust, scripts, docs and pages.
pub(crate) fn text_sources() -> Vec<SourceFile> {
    let root = repository_root();
    let mut files = Vec::new();
    collect(&root.join("crates"), &["rs", "js", "css"], &mut files);
    collect(&root.join("tests"), &["mjs"], &mut files);
    for folder in ["bench", "docs"] {
        collect(&root.join(folder), &["", "py", "toml"], &mut files);
    }
    files.push(SourceFile::read(&root.join("test")));
    files.push(SourceFile::read(&root.join("Cargo.toml")));
    files
}

/// Every Markdown page that people read in the repository.
pub(crate) fn markdown_pages() -> Vec<SourceFile> {
    let root = repository_root();
    let mut files = Vec::new();
    for folder in ["crates", "docs", "tests"] {
        collect(&root.join(folder), &["md"], &mut files);
    }
    // Beginnings of pages, whose links are those of the page that a test writes.
    files.retain(|file| !file.path.ends_with("_head.md"));
    for name in [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "README.md",
    ] {
        files.push(SourceFile::read(&root.join(name)));
    }
    files
}

fn collect(folder: &Path, extensions: &[&str], files: &mut Vec<SourceFile>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder of the repository")
        .map(|entry| entry.expect("readable").path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        // A folder that a link leads to is read where it is.
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            if !["target", "node_modules", "vendor", "snapshots", "fixtures"]
                .contains(&name.as_str())
            {
                collect(&path, extensions, files);
            }
        } else if extensions.contains(
            &path
                .extension()
                .unwrap_or_default()
                .to_string_lossy()
                .as_ref(),
        ) {
            files.push(SourceFile::read(&path));
        }
    }
}
