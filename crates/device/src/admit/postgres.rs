//! Places that belong to a PostgreSQL server. A server that finds a file that it did not make may
//! refuse to start, a full pg_wal stops it, and its own files are its data: keep out. Looks at
//! names and metadata only.

use super::doubts::Doubts;
use std::path::Path;

/// Directory entries looked at for WAL segments: nearly all entries of a pg_wal are some, and a
/// directory of millions must not take seconds.
const ENTRIES_LOOKED_AT: usize = 10_000;
const BESIDE: &str = "Name a directory beside it on the same filesystem.";

/// For a scratch file in a directory.
pub(super) fn judge_directory(directory: &Path, doubts: &mut Doubts) {
    if let Some(data) = directory
        .ancestors()
        .find(|ancestor| is_postgres_data(ancestor))
    {
        doubts.add(
            format!("{} is a PostgreSQL data directory", data.display()),
            BESIDE,
        );
    }
    judge_names(directory, doubts);
}

/// For an existing file: stricter, because PG_VERSION stands in every directory that holds tables.
pub(super) fn judge_file(file: &Path, doubts: &mut Doubts) {
    let directory = file.parent().unwrap_or(Path::new("/"));
    if let Some(data) = directory
        .ancestors()
        .find(|ancestor| ancestor.join("PG_VERSION").exists())
    {
        doubts.add(
            format!("{} is a PostgreSQL data directory", data.display()),
            BESIDE,
        );
    }
    judge_names(directory, doubts);
}

fn judge_names(directory: &Path, doubts: &mut Doubts) {
    let names = directory
        .ancestors()
        .filter_map(|ancestor| Some((ancestor, ancestor.file_name()?.to_str()?)));
    if let Some((tablespace, _)) = names.into_iter().find(|(_, name)| is_tablespace_name(name)) {
        doubts.add(
            format!(
                "{} belongs to a PostgreSQL tablespace",
                tablespace.display()
            ),
            BESIDE,
        );
    }
    if holds(directory, is_tablespace_name) {
        doubts.add(
            format!(
                "{} is the place of a PostgreSQL tablespace",
                directory.display()
            ),
            BESIDE,
        );
    }
    // The server keeps directories of its own in pg_wal, wherever that is.
    let of_wal = ["archive_status", "summaries"]
        .iter()
        .any(|name| directory.ends_with(name));
    let wal = [Some(directory), directory.parent().filter(|_| of_wal)]
        .into_iter()
        .flatten()
        .find(|at| holds(at, is_wal_segment_name));
    if let Some(wal) = wal {
        doubts.add(
            format!(
                "{} holds files named like PostgreSQL's WAL segments",
                wal.display()
            ),
            BESIDE,
        );
    }
}

fn is_postgres_data(directory: &Path) -> bool {
    directory.join("PG_VERSION").exists() && directory.join("global/pg_control").exists()
}

/// `PG_16_202307071`: the server's own directory within a tablespace, reached by a symlink from the
/// data directory.
fn is_tablespace_name(name: &str) -> bool {
    let digits =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    name.strip_prefix("PG_")
        .and_then(|rest| rest.split_once('_'))
        .is_some_and(|(version, catalog)| digits(version) && digits(catalog))
}

fn holds(directory: &Path, is_one: impl Fn(&str) -> bool) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return false;
    };
    entries
        .flatten()
        .take(ENTRIES_LOOKED_AT)
        .any(|entry| entry.file_name().to_str().is_some_and(&is_one))
}

/// pg_wal can be a symlink to anywhere; its segments are named by 24 hexadecimal digits.
fn is_wal_segment_name(name: &str) -> bool {
    name.len() == 24
        && name
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wal_names_are_told_from_others() {
        assert!(is_wal_segment_name("000000010000000000000001"));
        for name in [
            "00000001000000000000000",
            "00000001.history",
            "00000001000000000000000g",
            "000000010000000000000001.partial",
        ] {
            assert!(!is_wal_segment_name(name), "{name}");
        }
        assert!(
            is_tablespace_name("PG_9.6_201608131")
                && !is_tablespace_name("PG_VERSION")
                && !is_tablespace_name("PG__")
        );
    }

    #[test]
    fn files_of_a_server_are_kept_out_of_at_every_depth() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        for made in [
            "data/base/5",
            "moved_wal",
            "space/PG_17_202406281/5",
            "beside",
        ] {
            std::fs::create_dir_all(place.path().join(made)).unwrap();
        }
        std::fs::write(place.path().join("data/base/5/PG_VERSION"), "17\n").unwrap();
        std::fs::write(place.path().join("moved_wal/0000000100000000000000A1"), "").unwrap();
        let refused = |file: &str| {
            let mut doubts = Doubts::default();
            judge_file(&place.path().join(file), &mut doubts);
            !doubts.is_empty()
        };
        std::fs::create_dir(place.path().join("moved_wal/archive_status")).unwrap();
        assert!(refused("moved_wal/archive_status/x") && refused("space/file") && !refused("file"));
        assert!(
            refused("data/base/5/16384")
                && refused("moved_wal/0000000100000000000000A1")
                && refused("space/PG_17_202406281/5/1")
        );
        assert!(!refused("beside/file") && !refused("data/base/file"));
    }
}
