//! Lists the fitness profiles in the program, and the names by which people call them.

/// A profile in the program.
pub(crate) struct BuiltInProfile {
    /// The name by which `--for` and records know it.
    pub name: &'static str,
    /// Other names that people use.
    aliases: &'static [&'static str],
    /// The content of its file.
    pub text: &'static str,
}

/// The profiles in the program.
pub(crate) static BUILT_IN: [BuiltInProfile; 5] = [
    BuiltInProfile {
        name: "postgresql",
        aliases: &["pg", "pgsql", "postgres"],
        text: include_str!("../profiles/postgresql.toml"),
    },
    BuiltInProfile {
        name: "etcd",
        aliases: &[],
        text: include_str!("../profiles/etcd.toml"),
    },
    BuiltInProfile {
        name: "mysql",
        aliases: &["mysql-8.4"],
        text: include_str!("../profiles/mysql.toml"),
    },
    BuiltInProfile {
        name: "mysql-8.0",
        // MariaDB kept the defaults of MySQL 8.0.
        aliases: &["mariadb", "mysql8"],
        text: include_str!("../profiles/mysql-8.0.toml"),
    },
    BuiltInProfile {
        name: "sqlite",
        aliases: &["sqlite3"],
        text: include_str!("../profiles/sqlite.toml"),
    },
];

/// The profile in the program that people call so, in upper or lower case. A file in the current
/// directory never hides a profile: its name is written with `./`.
pub(crate) fn built_in_profile(name: &str) -> Option<&'static BuiltInProfile> {
    let lowercase = name.to_lowercase();
    BUILT_IN
        .iter()
        .find(|profile| profile.name == lowercase || profile.aliases.contains(&lowercase.as_str()))
}

/// The name of a profile in the program for any of its aliases; other names stay as they are.
pub(crate) fn profile_name(name: &str) -> &str {
    match built_in_profile(name) {
        Some(profile) => profile.name,
        None => name,
    }
}

/// True if this program has a profile of this name.
pub(crate) fn is_built_in(profile: &str) -> bool {
    built_in_profile(profile).is_some()
}
