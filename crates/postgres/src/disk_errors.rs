//! Finds the errors of a disk in the words of a server, which runs in the locale C.

use diskproof_model::errno;

/// The errors with which a disk, the path to it or a full filesystem answers a server.
const ERRNOS: [&str; 13] = [
    "EIO",
    "ENODATA",
    "ENOLINK",
    "EREMOTEIO",
    "EILSEQ",
    "EBADMSG",
    "ENODEV",
    "ENXIO",
    "EROFS",
    "ENOSPC",
    "EDQUOT",
    "EUCLEAN",
    "ESTALE",
];

/// The severities of lines about something that was not done.
const SEVERITIES: [&str; 3] = ["PANIC:", "FATAL:", "ERROR:"];

/// The name of the first error of a disk that a text tells, such as `EIO` in `PANIC: could not
/// write to file "pg_wal/x": Input/output error`; `None` where it tells none.
pub(crate) fn disk_errno(text: &str) -> Option<&'static str> {
    ERRNOS
        .into_iter()
        .find(|name| text.contains(&format!(": {}", errno::text(name))))
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
        for other in [
            "ERROR:  canceling statement due to statement timeout",
            "FATAL:  could not open file \"pg_hba.conf\": No such file or directory",
            "the connection to PostgreSQL was lost: Broken pipe (os error 32)",
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
