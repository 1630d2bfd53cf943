//! What initdb and a server make in the directory of a cluster, so that its removal leaves what
//! another program puts there. Names are those of PostgreSQL 13 to 18 (its documentation,
//! "Database File Layout"), with prefixes for those that a release adds.

use crate::known_names::DATA_NAME;
use diskproof_device::{ClaimedDirectory, Entry, OpenError};
use rustix::fs::{FileType, fstat};

/// Names of the server outside of numbers.
const NAMES: [&str; 16] = [
    "base",
    "global",
    "archive_status",
    "summaries",
    "members",
    "offsets",
    "snapshots",
    "mappings",
    "replorigin_checkpoint",
    "log",
    "current_logfiles",
    "backup_label",
    "tablespace_map",
    "config_exec_params",
    "global.stat",
    "core",
];
const PREFIXES: [&str; 9] = [
    "pg_",
    "PG_",
    "pgsql_tmp",
    "pgstat",
    "postgresql.",
    "postmaster.",
    ".s.PGSQL.",
    "replorigin_checkpoint.",
    "config_exec_params.",
];
/// Before a number: temporary WAL, shared memory, statistics of a database, a dump of a crash.
const BEFORE_NUMBER: [&str; 4] = ["xlogtemp.", "mmap.", "db_", "core."];
/// After a number: forks of a relation, states of a WAL segment, statistics.
const AFTER_NUMBER: [&str; 9] = [
    "", "_fsm", "_vm", "_init", ".partial", ".history", ".backup", ".ready", ".done",
];

/// Removes the cluster. What neither initdb nor the server makes stays.
pub(crate) fn remove(claimed: ClaimedDirectory) -> Result<(), OpenError> {
    let data = claimed.open_directory(DATA_NAME).ok();
    let owner = data
        .and_then(|data| fstat(data).ok())
        .map(|data| data.st_uid);
    claimed.remove(&|entry| is_of_cluster(entry, owner))
}

/// Whether something below the directory of a cluster belongs to it.
fn is_of_cluster(entry: &Entry<'_>, owner: Option<u32>) -> bool {
    let name = entry.name.to_str().unwrap_or_default();
    let is_kind = matches!(
        entry.kind(),
        FileType::Directory | FileType::RegularFile | FileType::Socket
    );
    match entry.depth {
        0 => name == DATA_NAME && entry.kind() == FileType::Directory,
        _ => is_kind && Some(entry.owner()) == owner && is_server_name(name),
    }
}

fn is_server_name(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let follows = |prefix: &&str| {
        let rest = name.strip_prefix(*prefix);
        rest.is_some_and(|rest| is_number(rest.strip_suffix(".stat").unwrap_or(rest)))
    };
    NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || BEFORE_NUMBER.iter().any(follows)
        || is_numbered(name)
        || name.strip_suffix(".summary").is_some_and(is_hexadecimal)
        // A temporary relation: t, the session, the relation.
        || name
            .strip_prefix('t')
            .and_then(|name| name.split_once('_'))
            .is_some_and(|(session, rest)| is_number(session) && is_numbered(rest))
}

/// Whether it is a number with what may follow one, and the number of a part of a large relation.
fn is_numbered(name: &str) -> bool {
    let (whole, part) = name.rsplit_once('.').unwrap_or((name, ""));
    let name = match !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
        true => whole,
        false => name,
    };
    let ends = |end: &&str| name.strip_suffix(*end).is_some_and(is_hexadecimal);
    AFTER_NUMBER.iter().any(ends)
}

/// Numbers of relations are decimal, those of WAL and transactions hexadecimal.
fn is_hexadecimal(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_servers_are_known_and_no_others() {
        let of_servers = [
            "base",
            "5",
            "16384",
            "16384_fsm",
            "16384.1",
            "16384_vm.2",
            "t3_16390",
            "t3_16390_fsm",
            "PG_VERSION",
            "pg_filenode.map",
            "pg_internal.init",
            "pg_internal.init.4711",
            "pg_wal",
            "000000010000000000000001",
            "00000001.history",
            "000000010000000000000001.ready",
            "xlogtemp.4711",
            "0000",
            "00FF",
            "members",
            "postgresql.auto.conf",
            "postmaster.pid",
            ".s.PGSQL.5432",
            ".s.PGSQL.5432.lock",
            "pgstat.stat",
            "db_5.stat",
            "global.stat",
            "mmap.123",
            "pgsql_tmp4711.0",
            "config_exec_params.new",
            "summaries",
            "0000000100000000014E09D00000000001D6FD90.summary",
            "core",
            "core.4711",
        ];
        for name in of_servers {
            assert!(is_server_name(name), "{name}");
        }
        let others = [
            "",
            "notes",
            "notes.txt",
            "2024.txt",
            "5.sql",
            "5~",
            "a.pg_dump",
            "t_5",
            "t3_",
            "dump.5",
            "corefile",
            "mmap.",
            "FEED.md",
            "_fsm",
            ".1",
            "5.",
        ];
        for name in others {
            assert!(!is_server_name(name), "{name}");
        }
    }
}
