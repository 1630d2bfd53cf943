//! The version of the PostgreSQL server whose settings are advised: as the user says, else of the
//! data directory on the target, else of the only installed server. Reads file names and
//! PG_VERSION; starts nothing.

use std::path::Path;

/// Where Debian and Red Hat install servers, one directory for each major version.
const INSTALLED: [(&str, &str); 2] = [("/usr/lib/postgresql", ""), ("/usr", "pgsql-")];
/// The first version whose numbers have one part, and one that no release will reach soon.
const VERSIONS: std::ops::RangeInclusive<u32> = 10..=99;
/// A data directory, its mount point and the directory of a cluster above it.
const ANCESTORS: usize = 3;

/// The major version; `None` where none is found, or several are.
pub(crate) fn postgres_version(asked: Option<u32>, target: &Path) -> Option<u32> {
    asked
        .or_else(|| of_data_directory(target))
        .or_else(|| installed(&INSTALLED.map(|(folder, prefix)| (Path::new(folder), prefix))))
}

fn of_data_directory(target: &Path) -> Option<u32> {
    target.ancestors().take(ANCESTORS).find_map(|folder| {
        let text = std::fs::read_to_string(folder.join("PG_VERSION")).ok()?;
        parse(text.trim())
    })
}

fn installed(folders: &[(&Path, &str)]) -> Option<u32> {
    let mut found = Vec::new();
    for (folder, prefix) in folders {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let has_server = entry.path().join("bin/postgres").exists();
            let name = entry.file_name().to_string_lossy().into_owned();
            let version = name.strip_prefix(prefix).and_then(parse);
            found.extend(version.filter(|_| has_server));
        }
    }
    match found.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

fn parse(text: &str) -> Option<u32> {
    let version = text.parse().ok();
    version.filter(|version| VERSIONS.contains(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(folder: &Path, version: &str) {
        let bin = folder.join(version).join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("postgres"), "").unwrap();
    }

    #[test]
    fn data_directory_above_the_target_names_its_version() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("base/1");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(place.path().join("PG_VERSION"), "17\n").unwrap();
        assert_eq!(of_data_directory(&inner), Some(17));
        assert_eq!(postgres_version(Some(13), &inner), Some(13));
        std::fs::write(place.path().join("PG_VERSION"), "9.6\n").unwrap();
        assert_eq!(of_data_directory(&inner), None);
    }

    #[test]
    fn only_installed_server_counts_and_two_are_ambiguous() {
        let place = tempfile::tempdir().unwrap();
        let folders = [(place.path(), "")];
        assert_eq!(installed(&folders), None);
        install(place.path(), "16");
        std::fs::create_dir_all(place.path().join("18/doc")).unwrap();
        assert_eq!(installed(&folders), Some(16));
        install(place.path(), "18");
        assert_eq!(installed(&folders), None);
    }
}
