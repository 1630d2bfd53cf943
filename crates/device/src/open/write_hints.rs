//! Tells the kernel how long the data of a target is expected to stay, and restores what it
//! expected before. The kernel keeps that on the file, where it would hold for the writes of every
//! program after the run.

use crate::kernel::syscalls::{WriteHint, set_write_hint, write_hint};
use diskproof_model::shape::WriteLife;
use rustix::io::Errno;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// The hints that the files of a target had before this program changed them. All descriptions of
/// the target share them, and the last one restores them.
#[derive(Debug, Default)]
pub(crate) struct EarlierWriteHints {
    hints: Mutex<Vec<EarlierHint>>,
}

/// The hint that a file had before this program changed it.
#[derive(Debug)]
struct EarlierHint {
    file: Arc<OwnedFd>,
    hint: WriteHint,
}

impl EarlierWriteHints {
    /// Tells the kernel what to expect of these files, which are all files of the target. The first
    /// call keeps the hints of all of them before it changes one.
    pub(crate) fn replace(&self, files: &[Arc<OwnedFd>], life: WriteLife) -> Result<(), Errno> {
        let mut hints = self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        if hints.is_empty() {
            *hints = hints_of_files(files)?;
        }
        for file in files {
            set_write_hint(file.as_fd(), life.into())?;
        }
        Ok(())
    }
}

fn hints_of_files(files: &[Arc<OwnedFd>]) -> Result<Vec<EarlierHint>, Errno> {
    let mut hints = Vec::new();
    for file in files {
        hints.push(EarlierHint {
            file: Arc::clone(file),
            hint: write_hint(file.as_fd())?,
        });
    }
    Ok(hints)
}

impl Drop for EarlierWriteHints {
    fn drop(&mut self) {
        let hints = self.hints.get_mut().unwrap_or_else(PoisonError::into_inner);
        for EarlierHint { file, hint } in hints {
            // Advice only: nothing that was measured depends on it.
            let _ = set_write_hint(file.as_fd(), *hint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, open};

    #[test]
    fn hint_of_a_file_is_put_back_at_the_end() {
        let own = tempfile::NamedTempFile::new().unwrap();
        let file: OwnedFd = own.reopen().unwrap().into();
        let foreign = own.as_file().as_fd();
        for before in [write_hint(foreign).unwrap(), WriteLife::Medium.into()] {
            set_write_hint(foreign, before).unwrap();
            let hints = EarlierWriteHints::default();
            let files = [Arc::new(file.try_clone().unwrap())];
            for life in [WriteLife::Long, WriteLife::Short] {
                hints.replace(&files, life).unwrap();
                assert_eq!(write_hint(foreign), Ok(life.into()));
            }
            drop(hints);
            assert_eq!(write_hint(foreign), Ok(before));
        }
    }

    /// A descriptor with O_PATH has no hint, so the first call ends at it.
    #[test]
    fn call_that_fails_changes_no_hint_and_loses_none() {
        let own = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
        let [first, last] = own.each_ref().map(|own| {
            let file: OwnedFd = own.reopen().unwrap().into();
            Arc::new(file)
        });
        let before = WriteLife::Medium.into();
        for file in &own {
            set_write_hint(file.as_file().as_fd(), before).unwrap();
        }
        let unreadable = open(own[0].path(), OFlags::PATH, Mode::empty()).unwrap();
        let hints = EarlierWriteHints::default();
        let files = [Arc::clone(&first), Arc::new(unreadable), Arc::clone(&last)];
        assert!(hints.replace(&files, WriteLife::Long).is_err());
        assert_eq!(write_hint(first.as_fd()), Ok(before));
        hints.replace(&[first, last], WriteLife::Short).unwrap();
        drop(hints);
        for file in &own {
            assert_eq!(write_hint(file.as_file().as_fd()), Ok(before));
        }
    }
}
