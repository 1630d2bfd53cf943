//! Refuses directories of database servers, which it recognises by the names in them. A foreign
//! file may keep a PostgreSQL server from starting, a full pg_wal stops it, and its own files are
//! its data. In a directory of another server a scratch file does no harm, because it has no name:
//! there only existing files are refused. Reads names and metadata only.

use super::ancestry::{Ancestor, Ancestry};
use super::reasons::{RefusalReasons, Step};
use crate::kernel::naming::{errno_name, errno_of};
use std::fmt;
use std::path::{Path, PathBuf};

/// Servers, and files that stand together at the top of every data directory of each. Several rows
/// of one server are alternatives: any of them is enough.
const SERVERS: [(&str, &[&str]); 11] = [
    ("MySQL or MariaDB", &["ibdata1"]),
    ("MySQL or MariaDB", &["mysql.ibd"]),
    ("MySQL or MariaDB", &["aria_log_control"]),
    ("MongoDB", &["WiredTiger.wt"]),
    ("MongoDB", &["storage.bson"]),
    ("SQL Server", &["master.mdf"]),
    ("Elasticsearch or OpenSearch", &["nodes/0/node.lock"]),
    ("etcd", &["member/snap/db"]),
    ("InfluxDB", &["meta/meta.db"]),
    ("Redis or Valkey", &["appendonlydir"]),
    ("RocksDB or LevelDB", &["CURRENT", "LOCK"]),
];

/// Refuses every file in such a directory, at any depth.
pub(super) fn judge_file(above: &Ancestry, reasons: &mut RefusalReasons) {
    // Stricter than for a directory, because PG_VERSION stands in every directory that holds
    // tables.
    judge_postgres(above, &["PG_VERSION"], reasons);
    for directory in &above.nearest_first {
        for (whose, names) in SERVERS {
            if names.iter().all(|name| directory.holds(name)) {
                let (path, names) = (directory.path.display(), names.join(" and "));
                return reasons.add(
                    format!(
                        "{path} is a data directory of {whose}, because it contains, or may \
                         contain, {names}"
                    ),
                    Step::clause("name a file that belongs to no server, or a directory"),
                );
            }
        }
    }
}

/// The database whose files stand in one of these directories, so that no foreign file belongs
/// there, with that directory; `None` where none is recognised. Less strict than [`judge_file`]: a
/// name that cannot be looked at does not count, and neither does the place at which a tablespace
/// begins, where the server has nothing but a directory.
pub(super) fn database_around(above: &Ancestry) -> Option<DatabaseDirectory> {
    for directory in &above.nearest_first {
        let is_tablespace = directory.name().is_some_and(is_tablespace_name);
        if directory.shows("PG_VERSION") || is_tablespace {
            return Some(DatabaseDirectory::at(
                directory,
                "PostgreSQL",
                DatabaseContent::Data,
            ));
        }
        for (whose, names) in SERVERS {
            if names.iter().all(|name| directory.shows(name)) {
                return Some(DatabaseDirectory::at(
                    directory,
                    whose,
                    DatabaseContent::Data,
                ));
            }
        }
    }
    for directory in directories_of_wal(above) {
        let names = directory.names(ENTRIES_MAX).unwrap_or_default();
        if names.iter().any(|name| is_wal_segment_name(name)) {
            return Some(DatabaseDirectory::at(
                directory,
                "PostgreSQL",
                DatabaseContent::WalSegments,
            ));
        }
    }
    None
}

/// A directory of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseDirectory {
    /// Its path.
    pub path: PathBuf,
    /// The server that writes such directories.
    pub whose: String,
    /// What it holds.
    pub content: DatabaseContent,
}

impl DatabaseDirectory {
    fn at(directory: &Ancestor, whose: &str, content: DatabaseContent) -> Self {
        Self {
            path: directory.path.clone(),
            whose: whose.to_owned(),
            content,
        }
    }
}

/// The content of a directory of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseContent {
    /// The data of a server.
    Data,
    /// Segments of a log: pg_wal, which may lie anywhere, or an archive of it.
    WalSegments,
}

impl fmt::Display for DatabaseDirectory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, whose) = (self.path.display(), &self.whose);
        match self.content {
            DatabaseContent::Data => write!(out, "in {path}, a data directory of {whose}"),
            DatabaseContent::WalSegments => write!(
                out,
                "in {path}, which contains files named like {whose}'s WAL segments"
            ),
        }
    }
}

/// The directories that may be a pg_wal, wherever that is: the nearest one, and that around a
/// directory which the server keeps in it.
fn directories_of_wal(above: &Ancestry) -> impl Iterator<Item = &Ancestor> {
    let nearest = above.nearest_first.first();
    let is_inside_wal = match nearest {
        Some(nearest) => matches!(nearest.name(), Some("archive_status" | "summaries")),
        None => false,
    };
    let outer = above.nearest_first.get(1).filter(|_| is_inside_wal);
    nearest.into_iter().chain(outer)
}

/// Directory entries read in search of WAL segments: nearly all entries of a pg_wal are some, and a
/// directory of millions must not take seconds.
const ENTRIES_MAX: usize = 10_000;
/// The step of a user who named a directory of a server, or one that may be.
pub(super) const OTHER_DIRECTORY: &str = "Name another directory on the same filesystem.";

/// Refuses a scratch file in a directory of PostgreSQL, at any depth. PG_VERSION alone is not
/// enough here, because it stands in every directory that holds tables, and those may lie
/// elsewhere.
pub(super) fn judge_directory(directory: &Ancestry, reasons: &mut RefusalReasons) {
    judge_postgres(directory, &["PG_VERSION", "global/pg_control"], reasons);
}

/// Refuses directories of PostgreSQL; `marks` stand together in a data directory.
fn judge_postgres(above: &Ancestry, marks: &[&str], reasons: &mut RefusalReasons) {
    let data_directory = above
        .nearest_first
        .iter()
        .find(|directory| marks.iter().all(|mark| directory.holds(mark)));
    if let Some(directory) = data_directory {
        add_directory(&directory.path, "is a PostgreSQL data directory", reasons);
    }
    let Some(nearest) = above.nearest_first.first() else {
        return;
    };
    let tablespace = above
        .nearest_first
        .iter()
        .find(|directory| directory.name().is_some_and(is_tablespace_name));
    if let Some(directory) = tablespace {
        add_directory(
            &directory.path,
            "belongs to a PostgreSQL tablespace",
            reasons,
        );
    }
    if let Some(names) = listed_names(nearest, reasons)
        && names.iter().any(|name| is_tablespace_name(name))
    {
        let what = "is the location of a PostgreSQL tablespace";
        add_directory(&nearest.path, what, reasons);
    }
    for directory in directories_of_wal(above) {
        if let Some(names) = listed_names(directory, reasons)
            && names.iter().any(|name| is_wal_segment_name(name))
        {
            let what = "contains files named like PostgreSQL's WAL segments";
            return add_directory(&directory.path, what, reasons);
        }
    }
}

/// The names in a directory. One that cannot be listed may hold the files of a server: `None`, and
/// a reason to refuse.
fn listed_names(directory: &Ancestor, reasons: &mut RefusalReasons) -> Option<Vec<String>> {
    match directory.names(ENTRIES_MAX) {
        Ok(names) => Some(names),
        Err(error) => {
            reasons.add(
                format!(
                    "{} cannot be listed ({}), so it may belong to a PostgreSQL server",
                    directory.path.display(),
                    errno_name(errno_of(&error))
                ),
                Step::sentence(OTHER_DIRECTORY),
            );
            None
        }
    }
}

fn add_directory(directory: &Path, what: &str, reasons: &mut RefusalReasons) {
    reasons.add(
        format!("{} {what}", directory.display()),
        Step::sentence(OTHER_DIRECTORY),
    );
}

/// `PG_16_202307071`: the server's own directory within a tablespace, reached by a symlink from the
/// data directory.
fn is_tablespace_name(name: &str) -> bool {
    let Some(numbers) = name.strip_prefix("PG_") else {
        return false;
    };
    match numbers.split_once('_') {
        Some((version, catalog)) => is_version(version) && is_version(catalog),
        None => false,
    }
}

fn is_version(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Digits of a segment's name: timeline, log and segment have eight each.
const WAL_NAME_DIGITS: usize = 24;

/// pg_wal can be a symlink to anywhere; its segments are named by hexadecimal digits.
fn is_wal_segment_name(name: &str) -> bool {
    name.len() == WAL_NAME_DIGITS
        && name
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::super::ancestry::above;
    use super::*;

    #[test]
    fn gate_refuses_files_of_servers_at_every_depth() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::create_dir_all(place.path().join("data/shop")).unwrap();
        let refused = |directory: &str| {
            let mut reasons = RefusalReasons::default();
            judge_file(&above(&place.path().join(directory)), &mut reasons);
            !reasons.is_empty()
        };
        for names in SERVERS.iter().map(|(_, names)| names) {
            for name in *names {
                assert!(!refused("data/shop"), "{name}");
                let path = place.path().join("data").join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "").unwrap();
            }
            assert!(
                refused("data/shop") && refused("data") && !refused(""),
                "{names:?}"
            );
            for name in *names {
                std::fs::remove_file(place.path().join("data").join(name)).unwrap();
            }
        }
    }

    #[test]
    fn wal_names_differ_from_others() {
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

    /// A directory of tables has PG_VERSION, too, and may lie elsewhere: a scratch file there harms
    /// no server, while an existing file is a table.
    #[test]
    fn scratch_file_is_refused_in_a_whole_data_directory_of_postgresql() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let tables = place.path().join("base/5");
        std::fs::create_dir_all(&tables).unwrap();
        std::fs::create_dir(place.path().join("global")).unwrap();
        let refused = |judge: fn(&Ancestry, &mut RefusalReasons)| {
            let mut reasons = RefusalReasons::default();
            judge(&above(&tables), &mut reasons);
            !reasons.is_empty()
        };
        std::fs::write(place.path().join("PG_VERSION"), "17\n").unwrap();
        assert!(refused(judge_file) && !refused(judge_directory));
        std::fs::write(place.path().join("global/pg_control"), "").unwrap();
        assert!(refused(judge_file) && refused(judge_directory));
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
            let mut reasons = RefusalReasons::default();
            let path = place.path().join(file);
            judge_file(&above(path.parent().unwrap()), &mut reasons);
            !reasons.is_empty()
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
