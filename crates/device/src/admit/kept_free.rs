//! Decides how much space must stay free on a filesystem in which diskproof writes.

use diskproof_model::target::Filesystem;
use diskproof_model::units::format_bytes;

/// Space is judged in steps of this many bytes: less does not matter beside the space that stays
/// free.
pub(super) const SPACE_STEP_BYTES: u64 = 1 << 20;
/// Free space that a scratch file leaves on the filesystem: room for the database's next WAL
/// segments and its log. Chosen, not measured: 128 segments of PostgreSQL's default 16 MiB.
const FREE_BYTES_KEPT: u64 = 2 << 30;
/// On a small filesystem, one byte in so many is enough. Chosen, not measured.
const FREE_SHARE_KEPT: u64 = 10;

/// The reserve in words, where the user names no other one.
pub(super) const RESERVE_BY_DEFAULT: &str = "10 % of the filesystem, at most 2 GiB";

/// The free space that must stay, in bytes.
pub(super) fn bytes_kept_free(filesystem: &Filesystem) -> u64 {
    let default = FREE_BYTES_KEPT.min(filesystem.size_bytes / FREE_SHARE_KEPT);
    filesystem.kept_free_bytes.unwrap_or(default)
}

/// Says what must stay free and why, as the end of a sentence; empty where the user wants nothing
/// to stay free.
pub(super) fn kept_free_text(filesystem: &Filesystem) -> String {
    let kept = format_bytes(bytes_kept_free(filesystem));
    match filesystem.kept_free_bytes {
        None => {
            format!(", and {kept} must stay free ({RESERVE_BY_DEFAULT}; --keep-free changes it)")
        }
        Some(0) => String::new(),
        Some(_) => format!(", and {kept} must stay free (--keep-free)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn filesystem(size_bytes: u64, kept_free_bytes: Option<u64>) -> Filesystem {
        Filesystem {
            kind: "ext4".to_owned(),
            mount_point: "/mnt".to_owned(),
            source: "/dev/sda1".to_owned(),
            options: Vec::new(),
            size_bytes,
            free_bytes: size_bytes,
            kept_free_bytes,
        }
    }

    #[test]
    fn kept_free_is_a_tenth_of_a_small_filesystem_and_two_gib_of_a_large_one() {
        assert_eq!(bytes_kept_free(&filesystem(5 * GIB, None)), GIB / 2);
        assert_eq!(bytes_kept_free(&filesystem(20 * GIB, None)), 2 * GIB);
        assert_eq!(bytes_kept_free(&filesystem(500 * GIB, None)), 2 * GIB);
    }

    #[test]
    fn kept_free_is_what_the_user_names() {
        assert_eq!(
            bytes_kept_free(&filesystem(5 * GIB, Some(3 * GIB))),
            3 * GIB
        );
        let nothing = filesystem(5 * GIB, Some(0));
        assert_eq!(bytes_kept_free(&nothing), 0);
        assert_eq!(kept_free_text(&nothing), "");
    }
}
