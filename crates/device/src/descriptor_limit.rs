//! The limit on open descriptors (`RLIMIT_NOFILE`): raised for this process, and given back to the
//! programs that it starts.

use crate::syscalls::set_descriptor_limit_at_exec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::process::Command;
use std::sync::OnceLock;

/// The limit that the user set, once this process has another one.
static LIMIT_OF_USER: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit on descriptors to the hard limit: every job needs one, and the usual soft
/// limit of 1024 exists only for programs that use select(2). Programs that are started with
/// [`with_limit_of_user`] keep the limit that the user set.
pub fn raise_descriptor_limit() {
    let of_user = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: of_user.maximum,
        maximum: of_user.maximum,
    };
    // On an error the limit stays as it is, and opening a target reports the shortage.
    if setrlimit(Resource::Nofile, raised).is_ok() {
        LIMIT_OF_USER.get_or_init(|| of_user);
    }
}

/// The program, started with the limit that the user set. A shell command, smartctl or a server
/// must behave as it does without diskproof: programs that use select(2) fail with a higher limit,
/// and others take it for the number of files that they may keep open.
pub fn with_limit_of_user(command: &mut Command) -> &mut Command {
    match LIMIT_OF_USER.get() {
        Some(limit) => set_descriptor_limit_at_exec(command, *limit),
        None => command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::external_program::output_of;
    use std::time::Duration;

    #[test]
    fn started_program_has_limit_of_user() {
        let before = getrlimit(Resource::Nofile);
        // Where both limits are equal, nothing is raised, and lowering it would hurt other tests.
        raise_descriptor_limit();
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
        let of_user = LIMIT_OF_USER.get().copied().unwrap();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "ulimit -Sn"]);
        let text = output_of(shell, Duration::from_secs(20)).unwrap();
        let expected = match of_user.current {
            Some(limit) => limit.to_string(),
            None => "unlimited".to_owned(),
        };
        assert_eq!(text.trim(), expected);
    }
}
