//! `diskproof as --link`: creates links that start the program under the names of other tools.

use super::output::tool_names;
use crate::failure::{Exit, Failure};
use crate::stdio::eprint_line;
use anyhow::{Context as _, Result};
use diskproof_compat::drop_ins;
use diskproof_device::TrustedDirectory;
use rustix::fs::symlinkat;
use std::path::Path;

/// Creates a link for each tool, in a directory that is created if it is missing. Ends with an
/// error at the first name that exists; the links before it stay.
pub(super) fn create(directory: &Path) -> Result<Exit> {
    let program = std::env::current_exe().context("cannot find the program's own path")?;
    create_directory_if_missing(directory)?;
    let opened = TrustedDirectory::open(directory).map_err(Failure::Path)?;
    for tool in drop_ins() {
        symlinkat(&program, &opened.folder, tool.name)
            .with_context(|| link_error(&directory.join(tool.name)))?;
    }
    eprint_line(&format!(
        "created links in {}: {}",
        directory.display(),
        tool_names()
    ));
    Ok(Exit::Done)
}

/// Creates a directory and those above it, where they are missing. The path to the closest one that
/// exists must not lead through a link of another user.
fn create_directory_if_missing(directory: &Path) -> Result<()> {
    if directory.exists() {
        return Ok(());
    }
    TrustedDirectory::open(existing_parent(directory)).map_err(Failure::Path)?;
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot create the directory {}", directory.display()))
}

/// The closest ancestor that exists, or `directory` itself; `.` where only names of it are missing.
fn existing_parent(directory: &Path) -> &Path {
    for path in directory.ancestors() {
        // The path is relative, and its first name does not exist.
        if path.as_os_str().is_empty() {
            break;
        }
        if path.exists() {
            return path;
        }
    }
    Path::new(".")
}

fn link_error(path: &Path) -> String {
    let link = path.display();
    if std::fs::symlink_metadata(path).is_ok() {
        return format!("cannot create the link {link}; remove the existing file");
    }
    format!("cannot create the link {link}")
}
