//! Which threads of a process have their own descriptor table. Most processes have one table for
//! all threads, which /proc/PID/fd shows. But a thread may have left it (unshare(2), CLONE_FILES),
//! and the first thread may have ended before the others.
#![allow(unsafe_code)]

use crate::sysroot::list;
use std::path::{Path, PathBuf};

/// `KCMP_FILES` of linux/kcmp.h.
const KCMP_FILES: libc::c_long = 2;

/// The directories that show all descriptors of a process, its own first; `process` is its
/// directory in /proc.
pub(crate) fn tables(process: &Path, pid: u32) -> Vec<PathBuf> {
    let mut owners = vec![pid];
    let tasks = process.join("task");
    let threads = list(&tasks);
    for thread in threads
        .iter()
        .filter_map(|name| name.parse::<u32>().ok())
        .filter(|thread| *thread != pid)
    {
        // Where the kernel cannot compare (no CONFIG_KCMP), all threads are taken to share, as all
        // but a few programs have it.
        if !owners.iter().any(|owner| share_table(*owner, thread)) {
            owners.push(thread);
        }
    }
    let directory = |owner: &u32| {
        if *owner == pid {
            process.join("fd")
        } else {
            tasks.join(owner.to_string()).join("fd")
        }
    };
    owners.iter().map(directory).collect()
}

/// Whether two threads have one table (kcmp(2)); yes where the kernel does not say.
fn share_table(one: u32, other: u32) -> bool {
    // SAFETY: kcmp takes five numbers and touches no memory of ours; the last two are not used for
    // KCMP_FILES.
    let order = unsafe {
        libc::syscall(
            libc::SYS_kcmp,
            libc::c_long::from(one),
            libc::c_long::from(other),
            KCMP_FILES,
            0,
            0,
        )
    };
    order <= 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_that_left_the_table_has_one_of_its_own() {
        let (tell, told) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: unshare takes a number; the thread opens and closes nothing that others know
            // of.
            let (left, own) = unsafe { (libc::unshare(libc::CLONE_FILES), libc::gettid()) };
            tell.send((left, own)).unwrap();
            let _ = ended.recv();
        });
        let (left, own) = told.recv().unwrap();
        assert_eq!(left, 0);
        let found = tables(Path::new("/proc/self"), std::process::id());
        assert_eq!(found[0], Path::new("/proc/self/fd"));
        assert!(
            found.contains(&PathBuf::from(format!("/proc/self/task/{own}/fd"))),
            "{found:?}"
        );
        drop(end);
        thread.join().unwrap();
    }
}
