//! The options of ioping 1.3.

use crate::drop_in::{DropInOption, Treatment, option};

const fn flag(
    short: &'static str,
    long: &'static str,
    help: &'static str,
    treatment: Treatment,
) -> DropInOption {
    option(short, long, "", help, treatment)
}

const DONE: Treatment = Treatment::Carried;

pub(super) const OPTIONS: &[DropInOption] = &[
    flag("-A", "async", "send requests by Linux AIO", DONE),
    flag("-C", "cached", "use the page cache as it is", DONE),
    flag("-D", "direct", "bypass the page cache (O_DIRECT)", DONE),
    flag("-G", "read-write", "read and write in turn", DONE),
    flag("-L", "linear", "request neighbouring blocks in order", DONE),
    flag(
        "-N",
        "nowait",
        "fail instead of waiting (RWF_NOWAIT)",
        Treatment::Refused("the engine always waits for a request; use the real ioping"),
    ),
    flag(
        "-H",
        "hipri",
        "poll for completions (RWF_HIPRI)",
        Treatment::Refused("the engine does not poll the device; use fio --hipri"),
    ),
    flag("-W", "write", "write instead of reading", DONE),
    flag("-Y", "sync", "open with O_SYNC", DONE),
    flag("-y", "dsync", "open with O_DSYNC", DONE),
    flag("-R", "rapid", "no pauses, for 3 s (-q -i 0 -w 3)", DONE),
    flag(
        "-k",
        "keep",
        "keep the working file ioping.tmp",
        Treatment::Ignored("the scratch file has no name; every run writes a new one"),
    ),
    option(
        "-a",
        "warmup",
        "count",
        "do not count the first requests (1)",
        DONE,
    ),
    option(
        "-b",
        "burst",
        "count",
        "send this many requests without a pause (0)",
        DONE,
    ),
    option("-c", "count", "count", "end after this many requests", DONE),
    option(
        "-e",
        "entropy",
        "seed",
        "seed of the random offsets (0: random)",
        DONE,
    ),
    option(
        "-i",
        "interval",
        "time",
        "time from request to request (1s)",
        DONE,
    ),
    option(
        "-s",
        "size",
        "size",
        "bytes of a request (4k; 256k with -L)",
        DONE,
    ),
    option(
        "-S",
        "work-size",
        "size",
        "bytes of the working set (1m; 64m with -R)",
        DONE,
    ),
    option(
        "-o",
        "work-offset",
        "size",
        "start of the working set (0)",
        DONE,
    ),
    option("-w", "work-time", "time", "end after this time", DONE),
    option(
        "-l",
        "speed-limit",
        "size",
        "bytes per second at most",
        DONE,
    ),
    option(
        "-r",
        "rate-limit",
        "count",
        "requests per second at most",
        DONE,
    ),
    option(
        "-t",
        "min-time",
        "time",
        "do not count faster requests (0us)",
        DONE,
    ),
    option(
        "-T",
        "max-time",
        "time",
        "do not count slower requests",
        DONE,
    ),
    flag("-B", "batch", "print the statistics as one raw line", DONE),
    option(
        "-I",
        "time",
        "[format]",
        "print the time of day of each request",
        DONE,
    ),
    flag("-J", "json", "print JSON", DONE),
    option(
        "-p",
        "print-count",
        "count",
        "print a raw line every count requests",
        DONE,
    ),
    option(
        "-P",
        "print-interval",
        "time",
        "print a raw line at this interval",
        DONE,
    ),
    flag("-q", "quiet", "print no line per request", DONE),
    flag("-h", "help", "print this text", DONE),
    flag("-v", "version", "print the version", DONE),
];

pub(super) const DIFFERENCES: &[&str] = &[
    "With -G the first request is a read; ioping starts with a write.",
    "With -Y and -y a write is durable without a sync; ioping adds an fdatasync after it.",
    "-b above 1 is refused, because requests have a constant pace.",
    "Times of -I and -J are in UTC.",
    "After a disk error, requests continue until 100 fail in a row; the exit code is 3.",
    "Percentiles, the histogram and every request are in the history ('diskproof show').",
];
