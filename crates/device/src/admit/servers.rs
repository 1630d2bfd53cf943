//! Files of database servers other than PostgreSQL: what their directories hold, known by name.
//! Only for what would be overwritten: a scratch file beside them has no name and harms none of
//! them. Looks at names only.

use super::doubts::Doubts;
use std::path::Path;

/// Whose, and a file that stands at the top of every data directory of that server.
const SERVERS: [(&str, &str); 9] = [
    ("MySQL or MariaDB", "ibdata1"),
    ("MySQL or MariaDB", "mysql.ibd"),
    ("MySQL or MariaDB", "aria_log_control"),
    ("MongoDB", "WiredTiger.wt"),
    ("MongoDB", "storage.bson"),
    ("SQL Server", "master.mdf"),
    ("Elasticsearch or OpenSearch", "nodes/0/node.lock"),
    ("etcd", "member/snap/db"),
    ("InfluxDB", "meta/meta.db"),
];

/// Refuses every file in such a directory, at any depth.
pub(super) fn judge_file(file: &Path, doubts: &mut Doubts) {
    for directory in file.ancestors().skip(1) {
        if let Some((whose, name)) = SERVERS
            .iter()
            .find(|(_, name)| directory.join(name).exists())
        {
            return doubts.add(
                format!(
                    "{} is a data directory of {whose}: {name} stands in it",
                    directory.display()
                ),
                "name a file that belongs to no server, or a directory, in which a scratch file \
                 is made",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_servers_are_kept_out_of_at_every_depth() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::create_dir_all(place.path().join("data/shop")).unwrap();
        let refused = |file: &str| {
            let mut doubts = Doubts::default();
            judge_file(&place.path().join(file), &mut doubts);
            !doubts.is_empty()
        };
        assert!(!refused("data/shop/orders.ibd"));
        std::fs::write(place.path().join("data/ibdata1"), "").unwrap();
        assert!(refused("data/shop/orders.ibd") && refused("data/ibdata1") && !refused("file"));
    }
}
