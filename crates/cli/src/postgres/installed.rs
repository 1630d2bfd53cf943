//! Finds the major version of the PostgreSQL server whose settings are advised.

use diskproof_device::read_small_file;
use std::path::Path;

/// Where a distribution installs servers, one directory for each major version.
#[derive(Debug, Clone, Copy)]
struct InstallRoot<'a> {
    folder: &'a str,
    /// What the name of a version's directory begins with; the version follows.
    prefix: &'a str,
}

/// The servers of Debian and Ubuntu.
const DEBIAN: InstallRoot<'_> = InstallRoot {
    folder: "/usr/lib/postgresql",
    prefix: "",
};
/// The servers of the PostgreSQL project for Red Hat and SUSE.
const RED_HAT: InstallRoot<'_> = InstallRoot {
    folder: "/usr",
    prefix: "pgsql-",
};
/// The first version whose numbers have one part, and one that no release will reach soon.
const VERSIONS: std::ops::RangeInclusive<u32> = 10..=99;
/// `17` and a newline, or `9.6`.
const VERSION_BYTES_MAX: u64 = 64;
/// A data directory, its mount point and the directory of a cluster above it.
const ANCESTORS: usize = 3;

/// The major version of the server whose settings are advised: that of the flag, that of the data
/// directory on the target, that of the server that the run starts, or that of the only installed
/// one. `None` where none is found, or several are installed.
pub(crate) fn postgres_version(
    flag: Option<u32>,
    target: &Path,
    started_server: Option<u32>,
) -> Option<u32> {
    flag.or_else(|| data_version(target))
        .or(started_server)
        .or_else(|| only_installed_version(&[DEBIAN, RED_HAT]))
}

/// The version of the server that made the data directory at or above the target.
fn data_version(target: &Path) -> Option<u32> {
    for folder in target.ancestors().take(ANCESTORS) {
        if let Ok(file) = read_small_file(&folder.join("PG_VERSION"), VERSION_BYTES_MAX)
            && let Ok(text) = file.into_text()
            && let Some(version) = parse_version(text.trim())
        {
            return Some(version);
        }
    }
    None
}

/// The version of the only server that is installed in these places; `None` for none or several.
fn only_installed_version(roots: &[InstallRoot<'_>]) -> Option<u32> {
    let mut versions = Vec::new();
    for root in roots {
        for entry in std::fs::read_dir(root.folder)
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(digits) = name.strip_prefix(root.prefix)
                && let Some(version) = parse_version(digits)
                && entry.path().join("bin/postgres").exists()
            {
                versions.push(version);
            }
        }
    }
    match versions.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

fn parse_version(text: &str) -> Option<u32> {
    text.parse()
        .ok()
        .filter(|version| VERSIONS.contains(version))
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
        assert_eq!(data_version(&inner), Some(17));
        assert_eq!(postgres_version(Some(13), &inner, None), Some(13));
        std::fs::write(place.path().join("PG_VERSION"), "9.6\n").unwrap();
        assert_eq!(data_version(&inner), None);
    }

    #[test]
    fn only_installed_server_counts_and_two_are_ambiguous() {
        let place = tempfile::tempdir().unwrap();
        let roots = [InstallRoot {
            folder: place.path().to_str().unwrap(),
            prefix: "",
        }];
        assert_eq!(only_installed_version(&roots), None);
        install(place.path(), "16");
        std::fs::create_dir_all(place.path().join("18/doc")).unwrap();
        assert_eq!(only_installed_version(&roots), Some(16));
        install(place.path(), "18");
        assert_eq!(only_installed_version(&roots), None);
    }
}
