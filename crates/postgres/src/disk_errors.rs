//! Finds the errors of a disk in the words of a server, which runs in the locale C.

/// What a C library says of an error.
struct Words {
    errno: &'static str,
    text: &'static str,
}

const fn words(errno: &'static str, text: &'static str) -> Words {
    Words { errno, text }
}

/// The errors with which a disk, the path to it or a full filesystem answers a server, in the words
/// of glibc and, where they differ, of musl: the server may have another C library than this
/// program. ENXIO stands before ENODEV, whose text it contains.
const DISK_ERRORS: [Words; 18] = [
    words("EIO", "Input/output error"),
    words("EIO", "I/O error"),
    words("ENODATA", "No data available"),
    words("ENOLINK", "Link has been severed"),
    words("EREMOTEIO", "Remote I/O error"),
    words(
        "EILSEQ",
        "Invalid or incomplete multibyte or wide character",
    ),
    words("EILSEQ", "Illegal byte sequence"),
    words("EBADMSG", "Bad message"),
    words("EBADMSG", "Not a data message"),
    words("ENXIO", "No such device or address"),
    words("ENODEV", "No such device"),
    words("EROFS", "Read-only file system"),
    words("ENOSPC", "No space left on device"),
    words("EDQUOT", "Disk quota exceeded"),
    words("EDQUOT", "Quota exceeded"),
    words("EUCLEAN", "Structure needs cleaning"),
    words("ESTALE", "Stale file handle"),
    words("ESTALE", "Stale NFS file handle"),
];

/// Their errors are those of the kernel's memory, which has limits of its own.
const MEMORY_OBJECTS: [&str; 2] = ["shared memory segment", "semaphores"];

/// The severities of lines about something that was not done.
const SEVERITIES: [&str; 3] = ["PANIC:", "FATAL:", "ERROR:"];

/// The name of the first error of a disk that a text contains, such as `EIO` in `PANIC: could not
/// write to file "pg_wal/x": Input/output error`; `None` where it contains none.
pub(crate) fn disk_errno(text: &str) -> Option<&'static str> {
    if MEMORY_OBJECTS.iter().any(|object| text.contains(object)) {
        return None;
    }
    let found = DISK_ERRORS
        .iter()
        .find(|error| text.contains(&format!(": {}", error.text)))?;
    Some(found.errno)
}

/// The first line of a log that says that the disk failed a request; `None` without one.
pub(crate) fn failed_line(log: &str) -> Option<&str> {
    log.lines().map(str::trim).find(|line| {
        let is_about_failure = SEVERITIES.iter().any(|severity| line.contains(severity));
        is_about_failure && disk_errno(line).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PANIC: &str = "PANIC:  could not fdatasync file \"00000001\": Input/output error";

    #[test]
    fn error_of_the_disk_is_found_in_the_words_of_the_server() {
        assert_eq!(disk_errno(PANIC), Some("EIO"));
        let full = "ERROR:  could not extend file \"base/1\": No space left on device";
        assert_eq!(disk_errno(full), Some("ENOSPC"));
        for (text, errno) in [
            ("PANIC:  could not fdatasync file \"1\": I/O error", "EIO"),
            (
                "PANIC:  could not open file \"1\": No such device or address",
                "ENXIO",
            ),
            (
                "PANIC:  could not open file \"1\": No such device",
                "ENODEV",
            ),
            (
                "PANIC:  could not read file \"1\": Remote I/O error",
                "EREMOTEIO",
            ),
        ] {
            assert_eq!(disk_errno(text), Some(errno), "{text}");
        }
        for other in [
            "ERROR:  canceling statement due to statement timeout",
            "FATAL:  could not open file \"pg_hba.conf\": No such file or directory",
            "the connection to PostgreSQL was lost: Broken pipe (os error 32)",
            "FATAL:  could not create semaphores: No space left on device",
        ] {
            assert_eq!(disk_errno(other), None, "{other}");
        }
    }

    #[test]
    fn line_of_a_log_about_the_disk_is_found() {
        let log = format!("LOG:  database system is ready\n{PANIC}\nLOG:  shutting down\n");
        assert_eq!(failed_line(&log), Some(PANIC));
        // What the server tried again by itself.
        let tried = "LOG:  could not write temporary file: Input/output error\n";
        assert_eq!(failed_line(tried), None);
    }
}
