//! Tells the kernel how long the data of a target is expected to stay, and restores what it
//! expected before. The kernel keeps that on the file, where it would hold for the writes of every
//! program after the run.

use crate::kernel::syscalls::{WriteHint, set_write_hint, write_hint};
use diskproof_model::shape::WriteLife;
use rustix::io::Errno;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// The time that the kernel expected of the files of a target before this program changed it. All
/// descriptions of the target share it, and the last one puts it back.
#[derive(Debug, Default)]
pub(crate) struct WriteHints {
    before: Mutex<Vec<HintBefore>>,
}

/// The hint of a file before the target.
#[derive(Debug)]
struct HintBefore {
    file: Arc<OwnedFd>,
    hint: WriteHint,
}

impl WriteHints {
    /// Tells the kernel what to expect of these files. The first call keeps what it expected.
    pub(crate) fn expect(&self, files: &[Arc<OwnedFd>], life: WriteLife) -> Result<(), Errno> {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = before.is_empty();
        for file in files {
            if is_first {
                before.push(HintBefore {
                    file: Arc::clone(file),
                    hint: write_hint(file.as_fd())?,
                });
            }
            set_write_hint(file.as_fd(), life.into())?;
        }
        Ok(())
    }
}

impl Drop for WriteHints {
    fn drop(&mut self) {
        let before = self
            .before
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for HintBefore { file, hint } in before {
            // Advice only: nothing that was measured depends on it.
            let _ = set_write_hint(file.as_fd(), *hint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_of_a_file_is_put_back_at_the_end() {
        let own = tempfile::NamedTempFile::new().unwrap();
        let file: OwnedFd = own.reopen().unwrap().into();
        let foreign = own.as_file().as_fd();
        for before in [write_hint(foreign).unwrap(), WriteLife::Medium.into()] {
            set_write_hint(foreign, before).unwrap();
            let hints = WriteHints::default();
            let files = [Arc::new(file.try_clone().unwrap())];
            for life in [WriteLife::Long, WriteLife::Short] {
                hints.expect(&files, life).unwrap();
                assert_eq!(write_hint(foreign), Ok(life.into()));
            }
            drop(hints);
            assert_eq!(write_hint(foreign), Ok(before));
        }
    }
}
