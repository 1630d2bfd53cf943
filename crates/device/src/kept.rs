//! A directory of our own that outlives the program, for a test that goes on after a power cut. It
//! is made inside an admitted directory, and every file in it is a new one. Knows no workload.

use crate::admit::{Admission, Grant, Permit};
use crate::failure::OpenError;
use crate::open::{OpenTarget, open_directory};
use crate::scratch;
use diskproof_model::target::TargetIdentity;
use rustix::fs::{AtFlags, Mode, OFlags, fsync, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name under which a file is written before it gets its own.
const UNFINISHED: &str = "unfinished";

/// A directory of our own, and the names that it holds.
#[derive(Debug)]
pub struct KeptDirectory {
    directory: OwnedFd,
    parent: OwnedFd,
    name: String,
    identity: TargetIdentity,
    permit: Arc<Permit>,
}

impl KeptDirectory {
    /// Makes the directory `name` inside a directory that was admitted for a scratch file, and
    /// makes its entry durable. A name that exists is an error: nothing is taken over.
    pub fn create(admission: Admission, name: &str) -> Result<Self, OpenError> {
        let (identity, grant) = admission.into_parts();
        let Grant::Scratch(permit) = grant else {
            return Err(OpenError::NotScratch {
                path: identity.path,
            });
        };
        let failed = |doing| {
            let path = identity.path.clone();
            move |errno: Errno| OpenError::from_errno(&path, doing, errno)
        };
        let held = open_directory(&identity, permit.size_bytes())?;
        let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let parent = openat(&held, ".", folder, Mode::empty()).map_err(failed("open it"))?;
        mkdirat(&parent, name, Mode::RWXU).map_err(failed("make a directory in it"))?;
        let opened = openat(&parent, name, folder, Mode::empty());
        let directory = opened.map_err(failed("open the directory made in it"))?;
        is_new(&directory).map_err(failed("use the directory made in it"))?;
        fsync(&directory)
            .and_then(|()| fsync(&parent))
            .map_err(failed("make a new directory durable"))?;
        Ok(Self {
            directory,
            parent,
            name: name.to_owned(),
            permit: Arc::new(permit),
            identity,
        })
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        Path::new(&self.identity.path).join(&self.name)
    }

    /// A new, empty file in it, to be written like a scratch file, but one that keeps its name.
    pub fn create_target(&self, name: &str) -> Result<OpenTarget, OpenError> {
        let file = self.create_new(name)?;
        Ok(OpenTarget::of_kept_file(file, &self.identity, &self.permit))
    }

    /// Makes the content of a file durable under another name and then renames it to `name`. The
    /// rename is durable after [`Self::sync`].
    pub fn replace_file(&self, name: &str, content: &[u8]) -> Result<(), OpenError> {
        let file = self.create_new(UNFINISHED)?;
        let mut rest = content;
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest).map_err(self.failed("write a file"))?;
            rest = &rest[written..];
        }
        fsync(&file).map_err(self.failed("sync a file"))?;
        renameat(&self.directory, UNFINISHED, &self.directory, name)
            .map_err(self.failed("rename a file"))
    }

    /// A new, empty file. Its entry is durable after [`Self::sync`].
    pub fn create_file(&self, name: &str) -> Result<(), OpenError> {
        self.create_new(name).map(drop)
    }

    /// Removes a file.
    pub fn remove_file(&self, name: &str) -> Result<(), OpenError> {
        unlinkat(&self.directory, name, AtFlags::empty()).map_err(self.failed("remove a file"))
    }

    /// Makes its entries durable.
    pub fn sync(&self) -> Result<(), OpenError> {
        fsync(&self.directory).map_err(self.failed("sync the directory"))
    }

    /// Removes it with everything in it.
    pub fn remove(self) -> Result<(), OpenError> {
        let failed = || self.failed("remove the files of the test");
        let mut entries = rustix::fs::Dir::read_from(&self.directory).map_err(failed())?;
        while let Some(entry) = entries.read() {
            let entry = entry.map_err(failed())?;
            let name: &CStr = entry.file_name();
            if name != c"." && name != c".." {
                unlinkat(&self.directory, name, AtFlags::empty()).map_err(failed())?;
            }
        }
        unlinkat(&self.parent, self.name.as_str(), AtFlags::REMOVEDIR).map_err(failed())
    }

    fn create_new(&self, name: &str) -> Result<OwnedFd, OpenError> {
        let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
        openat(self.directory.as_fd(), name, new, scratch::owner_only())
            .map_err(self.failed("create a file of the test"))
    }

    fn failed(&self, doing: &'static str) -> impl Fn(Errno) -> OpenError + use<> {
        let path = self.path().display().to_string();
        move |errno| OpenError::from_errno(&path, doing, errno)
    }
}

impl OpenTarget {
    /// A new file with this name in a directory that was admitted for a scratch file, to be written
    /// like one; it keeps its name. A name that exists is an error: nothing is taken over.
    pub fn create_named(admission: Admission, name: &str) -> Result<Self, OpenError> {
        let (identity, grant) = admission.into_parts();
        let Grant::Scratch(permit) = grant else {
            return Err(OpenError::NotScratch {
                path: identity.path,
            });
        };
        let held = open_directory(&identity, permit.size_bytes())?;
        let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
        let file = openat(&held, name, new, Mode::from_raw_mode(0o666))
            .map_err(|errno| OpenError::from_errno(&identity.path, "create a file in it", errno))?;
        Ok(Self::of_kept_file(file, &identity, &Arc::new(permit)))
    }
}

/// Whether it is the directory just made. One that another process put in its place between both
/// calls belongs to another user or holds files, which would be removed at the end.
fn is_new(directory: &OwnedFd) -> Result<(), Errno> {
    if rustix::fs::fstat(directory)?.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Errno::PERM);
    }
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            return Err(Errno::NOTEMPTY);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Intent, admit, probe};

    #[test]
    fn kept_directory_takes_nothing_over_and_removes_only_itself() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::write(place.path().join("other"), "data").unwrap();
        let admitted = || {
            let identity = probe(place.path()).unwrap();
            let size_bytes = 1 << 20;
            admit(identity, Intent::Scratch { size_bytes }).unwrap()
        };
        let kept = KeptDirectory::create(admitted(), "kept").unwrap();
        assert!(KeptDirectory::create(admitted(), "kept").is_err());
        kept.replace_file("one", b"first").unwrap();
        kept.replace_file("one", b"second").unwrap();
        kept.create_file("entry").unwrap();
        assert!(kept.create_file("entry").is_err());
        kept.remove_file("entry").unwrap();
        kept.sync().unwrap();
        let target = kept.create_target("pages").unwrap();
        assert!(target.is_writable());
        assert_eq!(std::fs::read(kept.path().join("one")).unwrap(), b"second");
        assert_eq!(is_new(&kept.directory), Err(Errno::NOTEMPTY));
        kept.remove().unwrap();
        let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }
}
