//! The fitness profiles in the program, and what people call them.

/// The profiles in the program.
pub(crate) const BUILT_IN: [(&str, &str); 5] = [
    ("postgresql", include_str!("../profiles/postgresql.toml")),
    ("etcd", include_str!("../profiles/etcd.toml")),
    ("mysql", include_str!("../profiles/mysql.toml")),
    ("mysql-8.0", include_str!("../profiles/mysql-8.0.toml")),
    ("sqlite", include_str!("../profiles/sqlite.toml")),
];
/// What else people call them.
const ALSO_CALLED: [(&str, &str); 7] = [
    ("pg", "postgresql"),
    ("pgsql", "postgresql"),
    ("postgres", "postgresql"),
    // MariaDB kept the defaults of MySQL 8.0.
    ("mariadb", "mysql-8.0"),
    ("mysql-8.4", "mysql"),
    ("mysql8", "mysql-8.0"),
    ("sqlite3", "sqlite"),
];

/// The name of a profile, by whatever name people call it. A file in the current directory never
/// hides a profile: its name is written with `./`.
pub(crate) fn known_as(profile: &str) -> &str {
    let lower = profile.to_lowercase();
    for (also, name) in ALSO_CALLED {
        if also == lower {
            return name;
        }
    }
    for (name, _) in BUILT_IN {
        if name == lower {
            return name;
        }
    }
    profile
}

/// Whether this program has a profile of this name.
pub(crate) fn is_built_in(profile: &str) -> bool {
    let name = known_as(profile);
    BUILT_IN.iter().any(|(known, _)| *known == name)
}
