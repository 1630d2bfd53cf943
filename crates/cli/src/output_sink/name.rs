//! Gives the names of output files, and of the temporary files that become them.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// NAME_MAX of every filesystem that Linux writes to.
pub(super) const NAME_BYTES_MAX: usize = 255;

/// Tells the files of this process from those that a killed one left: in a container every process
/// may have the same id.
static PROCESS: LazyLock<String> = LazyLock::new(|| {
    let random = RandomState::new().hash_one(std::process::id());
    format!("{}-{random:016x}", std::process::id())
});

/// The directory of a file; `.` for a path that names none.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The path under which a file is written before it gets its own.
pub(crate) fn temporary_path(path: &Path) -> PathBuf {
    path.with_file_name(temporary_name(path.file_name().unwrap_or_default()))
}

/// The temporary name has only a hash of a long name, so that it is no longer than a name may be.
pub(super) fn temporary_name(name: &OsStr) -> OsString {
    let suffix = format!(".{}.unfinished", *PROCESS);
    let mut temporary = OsString::from(".");
    if 1 + name.len() + suffix.len() <= NAME_BYTES_MAX {
        temporary.push(name);
    } else {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        temporary.push(format!("{:016x}", hasher.finish()));
    }
    temporary.push(suffix);
    temporary
}
