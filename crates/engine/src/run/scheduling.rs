//! How the kernel schedules the calling thread and its requests: processors, I/O priority, nice.
#![allow(unsafe_code)]

use diskproof_model::shape::ThreadScheduling;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;

/// The calling thread (ioprio_set(2)).
const IOPRIO_WHO_PROCESS: libc::c_int = 1;
/// Where the class begins in a priority (IOPRIO_CLASS_SHIFT).
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
            let (priority, nice) = unsafe {
                (
                    libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0),
                    libc::getpriority(libc::PRIO_PROCESS, 0),
                )
            };
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
