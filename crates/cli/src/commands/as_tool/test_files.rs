//! Finds the directory in which a tool would write its test file, and so the disk that its command
//! line names.

use crate::output_sink::directory_of;
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// As many symlinks as the kernel follows (path_resolution(7)).
const SYMLINKS_MAX: usize = 40;

/// The directory of the file that open(2) would open or create for this path. Fails, as the tool
/// does, where that is a directory: the user meant its disk, and the file's own directory may lie
/// on another one. The reason is the end of a sentence that names the path.
pub(super) fn directory_of_test_file(path: &Path) -> Result<PathBuf, String> {
    let mut file = path.to_owned();
    for _ in 0..SYMLINKS_MAX {
        // The kernel creates no file for such a path (EISDIR).
        if file.as_os_str().as_bytes().ends_with(b"/") {
            return Err(NAMED_DIRECTORY.to_owned());
        }
        match std::fs::symlink_metadata(&file) {
            Ok(found) if found.is_symlink() => {
                let link = std::fs::read_link(&file).map_err(|error| error.to_string())?;
                file = directory_of(&file).join(link);
            }
            Ok(found) if found.is_dir() => return Err(NAMED_DIRECTORY.to_owned()),
            Ok(found) if !found.is_file() => {
                return Err("is no regular file; name a file in a directory of the disk".to_owned());
            }
            Ok(_) if is_mount_point(&file) => {
                return Err(
                    "is mounted alone, and its directory may lie on another disk; name a \
                            file in a directory of the disk"
                        .to_owned(),
                );
            }
            Ok(_) => return Ok(directory_of(&file).to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(directory_of(&file).to_owned());
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(Error::from(rustix::io::Errno::LOOP).to_string())
}

const NAMED_DIRECTORY: &str = "is a directory; name a file in it";

/// True for a file that is a mount of its own, as in a container.
fn is_mount_point(file: &Path) -> bool {
    match statx(CWD, file, AtFlags::empty(), StatxFlags::BASIC_STATS) {
        Ok(found) => found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn test_file_lies_where_the_tool_would_write_it() {
        let here = tempfile::tempdir().unwrap();
        let (near, far) = (here.path().join("near"), here.path().join("far"));
        std::fs::create_dir(&near).unwrap();
        std::fs::create_dir(&far).unwrap();
        std::fs::write(near.join("file"), "").unwrap();
        std::fs::write(far.join("file"), "").unwrap();
        symlink(far.join("file"), near.join("link")).unwrap();
        symlink("../far/new", near.join("dangling")).unwrap();
        symlink("dangling", near.join("twice")).unwrap();
        for (name, directory) in [
            ("new", &near),
            ("file", &near),
            ("link", &far),
            ("dangling", &far),
            ("twice", &far),
        ] {
            let found = directory_of_test_file(&near.join(name)).unwrap();
            let expected = directory.canonicalize().unwrap();
            assert_eq!(found.canonicalize().unwrap(), expected, "{name}");
        }
        assert_eq!(
            directory_of_test_file(Path::new("new")).unwrap(),
            Path::new(".")
        );
        // Probing says that it does not exist.
        let missing = here.path().join("missing");
        assert_eq!(
            directory_of_test_file(&missing.join("new")).unwrap(),
            missing
        );
    }

    /// The disk of a directory is not that of its parent: it may be a mount point.
    #[test]
    fn directory_is_no_test_file() {
        let here = tempfile::tempdir().unwrap();
        let folder = here.path().join("mount");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(here.path().join("file"), "").unwrap();
        symlink("mount", here.path().join("link")).unwrap();
        symlink("loop", here.path().join("loop")).unwrap();
        for name in [
            "mount", "mount/", "mount/.", "mount/..", "link", "link/", "new/", "file/", "file/x",
            "loop",
        ] {
            let found = directory_of_test_file(&here.path().join(name));
            assert!(found.is_err(), "{name}: {found:?}");
        }
        for path in ["/", ".", "..", "/dev/null"] {
            assert!(directory_of_test_file(Path::new(path)).is_err(), "{path}");
        }
    }
}
