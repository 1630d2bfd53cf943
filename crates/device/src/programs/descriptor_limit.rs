//! Raises the limit on open descriptors (`RLIMIT_NOFILE`) for this process, and restores it for the
//! programs that it starts.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;

/// The limit that the user set, once this process has another one.
static LIMIT_OF_USER: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit on descriptors to the hard limit: every job needs one, and the usual soft
/// limit of 1024 exists only for programs that use select(2). Programs that are started by
/// [`spawn_with_limit_of_user`] keep the limit that the user set.
pub fn raise_descriptor_limit() {
    let of_user = getrlimit(Resource::Nofile);
    if of_user.current == of_user.maximum {
        return;
    }
    let raised = Rlimit {
        current: of_user.maximum,
        maximum: of_user.maximum,
    };
    // On an error the limit stays as it is, and opening a target reports the shortage.
    if setrlimit(Resource::Nofile, raised).is_ok() {
        LIMIT_OF_USER.get_or_init(|| of_user);
    }
}

/// Starts a program with the limit that the user set. A shell command, smartctl or a server must
/// behave as it does without diskproof: programs that use select(2) fail with a higher limit, and
/// others take it for the number of files that they may keep open.
///
/// The limit is lowered from outside, right after the program was executed, and not between fork(2)
/// and execve(2): a `pre_exec` makes the standard library fork, which copies the tables of all
/// buffers. That fails where memory is not overcommitted (vm.overcommit_memory=2), and a child that
/// shares the pages of direct I/O in flight is what open(2) warns of. Until then the program has
/// the raised limit: for microseconds in which it loads its libraries, or longer where this thread
/// does not get a processor. smartctl, PostgreSQL and our own guards do not look at it as they
/// start. A command of the user may: [`shell_with_limit_of_user`] runs it.
pub fn spawn_with_limit_of_user(command: &mut Command) -> io::Result<Child> {
    let child = command.spawn()?;
    if let Some(limit) = LIMIT_OF_USER.get() {
        // It may have ended meanwhile. One of another user keeps the raised limit where this
        // process lacks CAP_SYS_RESOURCE.
        let _ = prlimit(Some(Pid::from_child(&child)), Resource::Nofile, *limit);
    }
    Ok(child)
}

const SHELL: &str = "/bin/sh";

/// A shell that runs this command with the limit that the user set, from its first instruction on:
/// another shell lowers it and then becomes the one that runs the command.
pub fn shell_with_limit_of_user(command: &str) -> Command {
    let mut shell = Command::new(SHELL);
    match LIMIT_OF_USER.get() {
        None => shell.args(["-c", command]),
        Some(limit) => shell
            .args(["-c", "ulimit -S -n \"$1\" && exec \"$0\" -c \"$2\"", SHELL])
            .arg(ulimit_word(limit.current))
            .arg(command),
    };
    shell
}

/// A limit as `ulimit` of a shell takes it.
fn ulimit_word(limit: Option<u64>) -> String {
    match limit {
        Some(limit) => limit.to_string(),
        None => "unlimited".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::process::Stdio;

    /// A shell that waits for a line first: by then the limit is set.
    #[test]
    fn started_program_has_limit_of_user() {
        let before = getrlimit(Resource::Nofile);
        // Where both limits are equal, nothing is raised, and lowering it would hurt other tests.
        raise_descriptor_limit();
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
        let of_user = LIMIT_OF_USER.get().unwrap_or(&before);
        let mut shell = Command::new(SHELL);
        shell
            .args(["-c", "read line; ulimit -Sn"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = spawn_with_limit_of_user(&mut shell).unwrap();
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut text = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut text).unwrap();
        child.wait().unwrap();
        let expected = ulimit_word(of_user.current);
        assert_eq!(text.trim(), expected);
        // The shell of a command has it at once, whatever starts the shell.
        let said = shell_with_limit_of_user("echo \"$0 $# $(ulimit -Sn)\"")
            .output()
            .unwrap();
        let line = String::from_utf8(said.stdout).unwrap();
        assert_eq!(line.trim(), format!("{SHELL} 0 {expected}"));
    }
}
