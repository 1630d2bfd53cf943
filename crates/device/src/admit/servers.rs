//! Directories of database servers, recognised by the names in them; postgres.rs knows those of
//! PostgreSQL. Only for files to overwrite: a scratch file in such a directory has no name and does
//! no harm. Reads names only.

use super::ancestry::Ancestry;
use super::postgres;
use super::refusal::RefusalReasons;

/// Whose, and files that stand together at the top of every data directory of that server.
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
    postgres::judge_file(above, reasons);
    for directory in &above.nearest_first {
        for (whose, names) in SERVERS {
            if names.iter().all(|name| directory.holds(name)) {
                return reasons.add(
                    format!(
                        "{} is a data directory of {whose}, because it contains {}",
                        directory.path.display(),
                        names.join(" and ")
                    ),
                    "name a file that belongs to no server, or a directory for a scratch file",
                );
            }
        }
    }
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
}
