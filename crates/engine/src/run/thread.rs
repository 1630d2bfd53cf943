//! Gives the calling thread what it has alone: its file descriptors and their table, its
//! processors, I/O priority and nice.
#![allow(unsafe_code)]

use diskproof_model::shape::ThreadScheduling;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// The thread's own descriptors of these files, each given once, in their order. The files must
/// stay open until this has returned. The thread also gets its own descriptor table: in a shared
/// table each system call counts a reference up and down by locked instructions, which costs a fast
/// disk 2 % (fdget() in Linux's fs/file.c). So a thread that is stuck keeps the files open, too.
pub(crate) fn own_descriptors(files: &[RawFd]) -> io::Result<Vec<OwnedFd>> {
    // SAFETY: unsharing the table changes nothing for other threads; this one makes no assumption
    // on theirs.
    if unsafe { libc::unshare(libc::CLONE_FILES) } == 0 {
        close_others(files);
        let mut own = Vec::new();
        for fd in files {
            // SAFETY: the table is this thread's alone now, and so are its entries for these
            // files, which were open when the table was copied.
            own.push(unsafe { OwnedFd::from_raw_fd(*fd) });
        }
        return Ok(own);
    }
    let mut duplicates = Vec::new();
    for fd in files {
        // SAFETY: the owner keeps the files open until this thread has reported ready.
        let shared = unsafe { BorrowedFd::borrow_raw(*fd) };
        duplicates.push(shared.try_clone_to_owned()?);
    }
    Ok(duplicates)
}

/// Empties a table of the thread's own but for these files and standard error: a thread that is
/// stuck in the kernel would keep everything else open, too, other targets and the pipe that a
/// program reads the result from.
fn close_others(files: &[RawFd]) {
    let mut kept: Vec<libc::c_uint> = files.iter().map(|fd| *fd as libc::c_uint).collect();
    kept.push(libc::STDERR_FILENO as libc::c_uint);
    kept.sort_unstable();
    let mut first = 0;
    for fd in kept {
        close_range(first, fd.checked_sub(1));
        first = fd + 1;
    }
    close_range(first, Some(libc::c_uint::MAX));
}

/// Closes the descriptors from `first` to `last` of a table of the thread's own; none where `last`
/// is smaller or absent.
fn close_range(first: libc::c_uint, last: Option<libc::c_uint>) {
    if let Some(last) = last
        && last >= first
    {
        // SAFETY: nothing in this thread uses these descriptors. Before Linux 5.9 there is no such
        // call, and all stay open.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

/// The calling thread (ioprio_set(2)).
const IOPRIO_WHO_PROCESS: libc::c_int = 1;
/// The lowest bit of the class in a priority (IOPRIO_CLASS_SHIFT).
const IOPRIO_CLASS_SHIFT: u32 = 13;

/// Schedules the calling thread.
pub(crate) fn schedule_thread(scheduling: &ThreadScheduling) -> io::Result<()> {
    if !scheduling.cpus.is_empty() {
        let mut set = CpuSet::new();
        for cpu in &scheduling.cpus {
            set.set(usize::from(*cpu));
        }
        sched_setaffinity(None, &set)
            .map_err(|errno| failed("cpus_allowed", &io::Error::from(errno)))?;
    }
    if let Some(priority) = scheduling.io_priority {
        let value = u32::from(priority.class) << IOPRIO_CLASS_SHIFT | u32::from(priority.level);
        // SAFETY: takes three numbers, and concerns the calling thread only.
        let done = unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, value) };
        if done != 0 {
            return Err(failed("prio", &io::Error::last_os_error()));
        }
    }
    if scheduling.nice != 0 {
        // SAFETY: takes three numbers; on Linux 0 is the calling thread (setpriority(2)).
        let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, i32::from(scheduling.nice)) };
        if done != 0 {
            return Err(failed("nice", &io::Error::last_os_error()));
        }
    }
    Ok(())
}

fn failed(option: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot set {option}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::shape::IoPriority;

    /// In a separate thread, so that the test's other threads keep their scheduling.
    fn in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(work).join().unwrap()
    }

    #[test]
    fn thread_gets_its_processors_and_priority() {
        let (cpus, priority, nice) = in_thread(|| {
            let cpu = rustix::thread::sched_getcpu() as u16;
            let scheduling = ThreadScheduling {
                cpus: vec![cpu],
                io_priority: Some(IoPriority { class: 3, level: 0 }),
                nice: 1,
            };
            schedule_thread(&scheduling).unwrap();
            let set = rustix::thread::sched_getaffinity(None).unwrap();
            // SAFETY: both take numbers only.
            let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) };
            // SAFETY: as above.
            let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
            ((set.count(), set.is_set(usize::from(cpu))), priority, nice)
        });
        assert_eq!((cpus, priority >> IOPRIO_CLASS_SHIFT), ((1, true), 3));
        assert!(nice >= 1, "{nice}");
    }

    #[test]
    fn missing_processor_is_an_error_that_names_the_option() {
        let scheduling = ThreadScheduling {
            cpus: vec![1023],
            ..ThreadScheduling::default()
        };
        let error = in_thread(move || schedule_thread(&scheduling)).unwrap_err();
        assert!(error.to_string().contains("cpus_allowed"), "{error}");
    }
}
