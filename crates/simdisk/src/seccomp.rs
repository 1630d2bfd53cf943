//! Forbids system calls to a child process, as containers do (seccomp(2), SECCOMP_MODE_FILTER).
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Lets `command` start its program with these system calls (`libc::SYS_…`) answered by EPERM.
pub fn forbid(command: &mut Command, calls: &[libc::c_long]) {
    let filter = filter(calls);
    // SAFETY: between fork and exec the closure makes two system calls and touches memory that was
    // made before the fork.
    unsafe { command.pre_exec(move || install(&filter)) };
}

/// Loads the number of the call, compares it with each, and answers EPERM or allows the call. The
/// architecture is not checked: tests start no child that uses the numbers of another one.
fn filter(calls: &[libc::c_long]) -> Vec<libc::sock_filter> {
    let load_number = statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0);
    let count = calls.len();
    // Jumps of classic BPF have eight bits.
    assert!(count <= usize::from(u8::MAX), "{count} calls are too many");
    let compare = calls
        .iter()
        .enumerate()
        .map(|(index, call)| libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            // Over the rest of the comparisons and the statement that allows.
            jt: (count - index) as u8,
            jf: 0,
            k: *call as u32,
        });
    let allow = statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);
    let refuse = statement(
        libc::BPF_RET | libc::BPF_K,
        libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
    );
    std::iter::once(load_number)
        .chain(compare)
        .chain([allow, refuse])
        .collect()
}

/// A statement of classic BPF that does not jump; `k` is its operand.
fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

fn os_result(result: i32) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn install(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: takes numbers only. Without it a filter needs CAP_SYS_ADMIN.
    os_result(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    // SAFETY: the kernel reads `len` statements from the pointer during the call; both live over
    // it, and nothing is written.
    os_result(unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seccomp_filter_fails_only_listed_calls() {
        let directory = tempfile::tempdir().unwrap();
        let mkdir = |calls: &[libc::c_long]| {
            let mut command = Command::new("mkdir");
            command
                .arg(directory.path().join(calls.len().to_string()))
                .stderr(std::process::Stdio::null());
            forbid(&mut command, calls);
            command.status().unwrap().success()
        };
        assert!(mkdir(&[libc::SYS_io_uring_setup]));
        // Old and new C libraries use different ones.
        #[cfg(target_arch = "x86_64")]
        assert!(!mkdir(&[
            libc::SYS_io_uring_setup,
            libc::SYS_mkdir,
            libc::SYS_mkdirat
        ]));
        #[cfg(not(target_arch = "x86_64"))]
        assert!(!mkdir(&[libc::SYS_io_uring_setup, libc::SYS_mkdirat]));
    }
}
