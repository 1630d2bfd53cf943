//! Removes a cluster, and nothing that another program put into its directory: decides by the names
//! that initdb and a server of PostgreSQL 13 to 18 use there (its documentation, "Database File
//! Layout").

use diskproof_device::{ClaimedDirectory, Entry, OpenError};
use rustix::fs::{FileType, fstat};
use std::os::fd::OwnedFd;

/// Names of the server outside of numbers and of what begins with `pg_`.
#[rustfmt::skip]
const NAMES: [&str; 25] = [
    "PG_VERSION", "base", "global", "global.stat", "pgstat.stat", "pgstat.tmp", "archive_status",
    "summaries", "members", "offsets", "snapshots", "mappings", "replorigin_checkpoint",
    "replorigin_checkpoint.tmp", "backup_label", "tablespace_map", "config_exec_params",
    "config_exec_params.new", "postgresql.conf", "postgresql.auto.conf",
    "postgresql.auto.conf.tmp", "postmaster.pid", "postmaster.opts", "core", "pgsql_tmp",
];
/// Beginnings of names that end with a number: temporary WAL, shared memory, statistics of a
/// database, a dump of a crash, a socket, statistics and catalogs of a process.
const BEFORE_NUMBER: [&str; 6] = [
    "xlogtemp.",
    "mmap.",
    "db_",
    "core.",
    ".s.PGSQL.",
    "pg_internal.init.",
];
/// Ends of names that begin with one of [`BEFORE_NUMBER`], behind the number.
const AFTER_PREFIXED_NUMBER: [&str; 4] = ["", ".stat", ".tmp", ".lock"];
/// Ends of names behind a number: forks of a relation, states of a WAL segment, statistics.
const AFTER_NUMBER: [&str; 9] = [
    "", "_fsm", "_vm", "_init", ".partial", ".history", ".backup", ".ready", ".done",
];
/// Ends of names behind `pg_` and a word.
const AFTER_WORD: [&str; 5] = ["", ".conf", ".map", ".map.tmp", ".init"];

/// Removes the cluster. What neither initdb nor the server makes stays. `data` is its data
/// directory, where the caller has held that since before the server was started.
pub(crate) fn remove(claimed: ClaimedDirectory, data: Option<&OwnedFd>) -> Result<(), OpenError> {
    let named = claimed.open_directory(DATA_NAME).ok();
    let owner = match data.or(named.as_ref()) {
        Some(directory) => fstat(directory).ok().map(|stat| stat.st_uid),
        None => None,
    };
    claimed.remove(&|entry| {
        if entry.depth == 0 {
            is_data_directory(entry, data)
        } else {
            is_of_server(entry, owner)
        }
    })
}

/// True of the data directory: of the one that the caller has held, where it holds one.
fn is_data_directory(entry: &Entry<'_>, held: Option<&OwnedFd>) -> bool {
    if entry.name_bytes() != DATA_NAME.as_bytes() || entry.kind() != FileType::Directory {
        return false;
    }
    match held {
        Some(held) => entry.is_same_as(held),
        None => true,
    }
}

/// True of something in the data directory that the server made.
fn is_of_server(entry: &Entry<'_>, owner: Option<u32>) -> bool {
    let is_kind = matches!(
        entry.kind(),
        FileType::Directory | FileType::RegularFile | FileType::Socket
    );
    let name = entry.name.to_str().unwrap_or_default();
    is_kind && Some(entry.owner()) == owner && is_server_name(name)
}

/// True if a server gives this name to a file or a directory of its data.
fn is_server_name(name: &str) -> bool {
    if NAMES.contains(&name) || is_numbered(name) || is_temporary(name) {
        return true;
    }
    if let Some(word) = name.strip_prefix("pg_")
        && ends_with_one_of(word, &AFTER_WORD, is_word)
    {
        return true;
    }
    if let Some(number) = name.strip_suffix(".summary")
        && is_hexadecimal(number)
    {
        return true;
    }
    for prefix in BEFORE_NUMBER {
        if let Some(rest) = name.strip_prefix(prefix)
            && ends_with_one_of(rest, &AFTER_PREFIXED_NUMBER, is_number)
        {
            return true;
        }
    }
    false
}

/// Temporary files: `pgsql_tmp` with process and number, and relations, `t` with session and
/// number.
fn is_temporary(name: &str) -> bool {
    if let Some(relation) = name.strip_prefix('t')
        && let Some((session, rest)) = relation.split_once('_')
        && is_number(session)
        && is_numbered(rest)
    {
        return true;
    }
    let Some(file) = name.strip_prefix("pgsql_tmp") else {
        return false;
    };
    let unshared = file.strip_suffix(".sharedfileset").unwrap_or(file);
    let numbers = unshared.strip_suffix(".fileset").unwrap_or(unshared);
    match numbers.split_once('.') {
        Some((process, number)) => is_number(process) && is_number(number),
        None => false,
    }
}

/// True of a name that begins with what `is_start` accepts, and ends with one of these.
fn ends_with_one_of(name: &str, ends: &[&str], is_start: fn(&str) -> bool) -> bool {
    for end in ends {
        if let Some(start) = name.strip_suffix(end)
            && is_start(start)
        {
            return true;
        }
    }
    false
}

/// True of a number with what may follow one, and the number of a part of a large relation.
fn is_numbered(name: &str) -> bool {
    let relation = match name.rsplit_once('.') {
        Some((whole, part)) if is_number(part) => whole,
        _ => name,
    };
    ends_with_one_of(relation, &AFTER_NUMBER, is_hexadecimal)
}

/// True if a text consists of small letters and underscores, at least one.
fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// True of the number of a file: those of relations are decimal, those of WAL and transactions
/// hexadecimal, in capitals.
fn is_hexadecimal(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'))
}

/// The directory of the cluster inside the target. A later run finds by this name what another
/// left: a run with a new name would not.
pub(crate) const CLUSTER_NAME: &str = "diskproof-postgres";
/// The data directory in it.
pub(crate) const DATA_NAME: &str = "data";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_servers_are_known_and_no_others() {
        let of_servers = "\
            base 5 16384 16384_fsm 16384.1 16384_vm.2 t3_16390 t3_16390_fsm PG_VERSION \
            pg_filenode.map pg_internal.init pg_internal.init.4711 pg_wal \
            000000010000000000000001 00000001.history 000000010000000000000001.ready \
            xlogtemp.4711 0000 00FF members postgresql.auto.conf postmaster.pid .s.PGSQL.5432 \
            .s.PGSQL.5432.lock pgstat.stat db_5.stat global.stat mmap.123 pgsql_tmp4711.0 \
            pgsql_tmp4711.0.sharedfileset pg_hba.conf pg_logical pg_control \
            pg_filenode.map.tmp config_exec_params.new summaries \
            0000000100000000014E09D00000000001D6FD90.summary core core.4711";
        for name in of_servers.split(' ') {
            assert!(is_server_name(name), "{name}");
        }
        let others = "\
            notes notes.txt 2024.txt 5.sql 5~ a.pg_dump t_5 t3_ dump.5 corefile mmap. FEED.md \
            _fsm .1 5.";
        for name in others.split(' ').chain([""]) {
            assert!(!is_server_name(name), "{name}");
        }
    }
}
