//! The options of sysbench 1.0.20 and its test fileio.

use crate::drop_in::Treatment::{self, Carried, Ignored, Refused};
use crate::drop_in::{DropInOption, long_option as option};

const SWITCH: &str = "[on|off]";
const UNIFORM: Treatment = Ignored("fileio offsets are uniform, as in sysbench");

pub(super) const OPTIONS: &[DropInOption] = &[
    option(
        "test",
        "NAME",
        "the test; deprecated in sysbench 1.0",
        Carried,
    ),
    option("threads", "N", "threads (1)", Carried),
    option(
        "num-threads",
        "N",
        "the same in the spelling of 0.4",
        Carried,
    ),
    option(
        "events",
        "N",
        "end after this many requests (0: no limit)",
        Carried,
    ),
    option(
        "max-requests",
        "N",
        "the same in the spelling of 0.4",
        Carried,
    ),
    option("time", "N", "end after this many seconds (10)", Carried),
    option("max-time", "N", "the same in the spelling of 0.4", Carried),
    option("rate", "N", "requests per second (0: no limit)", Carried),
    option("tx-rate", "N", "the same in the spelling of 0.5", Carried),
    option(
        "forced-shutdown",
        "STRING",
        "",
        Ignored("a run that hangs always ends after 45 s"),
    ),
    option(
        "thread-stack-size",
        "SIZE",
        "",
        Ignored("it changes no request"),
    ),
    option(
        "report-interval",
        "N",
        "print figures of every N seconds (0: none)",
        Carried,
    ),
    option(
        "report-checkpoints",
        "[LIST]",
        "",
        Refused("run once for each length of time"),
    ),
    option("debug", SWITCH, "", Ignored("it changes no request")),
    option(
        "validate",
        SWITCH,
        "",
        Refused("use 'diskproof run --verify'"),
    ),
    option("help", SWITCH, "print the usage", Carried),
    option("version", SWITCH, "print the version", Carried),
    option(
        "config-file",
        "FILENAME",
        "",
        Refused("give the options on the command line"),
    ),
    option("rand-type", "STRING", "", UNIFORM),
    option("rand-spec-iter", "N", "", UNIFORM),
    option("rand-spec-pct", "N", "", UNIFORM),
    option("rand-spec-res", "N", "", UNIFORM),
    option(
        "rand-seed",
        "N",
        "seed of the random offsets (0: random)",
        Carried,
    ),
    option("rand-pareto-h", "N", "", UNIFORM),
    option("verbosity", "N", "", Ignored("stdout has only the report")),
    option(
        "percentile",
        "N",
        "percentile of the latency (95; 0: none)",
        Carried,
    ),
    option(
        "histogram",
        SWITCH,
        "print the latency histogram (off)",
        Carried,
    ),
    option(
        "cpu-max-prime",
        "N",
        "count the primes below this number (10000)",
        Carried,
    ),
    option(
        "file-num",
        "N",
        "number of files in the output (128); one file is used",
        Carried,
    ),
    option(
        "file-block-size",
        "N",
        "bytes of a request (16384)",
        Carried,
    ),
    option(
        "file-total-size",
        "SIZE",
        "size of all files together (2G)",
        Carried,
    ),
    option(
        "file-test-mode",
        "STRING",
        "seqwr, seqrewr, seqrd, rndrd, rndwr or rndrw",
        Carried,
    ),
    option(
        "file-io-mode",
        "STRING",
        "sync, async or mmap (sync)",
        Carried,
    ),
    option(
        "file-async-backlog",
        "N",
        "requests in flight per thread (128)",
        Carried,
    ),
    option(
        "file-extra-flags",
        "[LIST]",
        "sync, dsync and direct",
        Carried,
    ),
    option(
        "file-fsync-freq",
        "N",
        "sync after this many requests (100; 0: never)",
        Carried,
    ),
    option(
        "file-fsync-all",
        SWITCH,
        "sync after each write (off)",
        Carried,
    ),
    option("file-fsync-end", SWITCH, "sync at the end (on)", Carried),
    option("file-fsync-mode", "STRING", "fsync or fdatasync", Carried),
    option(
        "file-merged-requests",
        "N",
        "",
        Refused("use a larger --file-block-size"),
    ),
    option(
        "file-rw-ratio",
        "N",
        "reads per write of rndrw (1.5)",
        Carried,
    ),
];

pub(super) const DIFFERENCES: &[&str] = &[
    "run measures one unnamed file of the total size in the current directory. prepare and cleanup \
     do nothing.",
    "Each sync covers the one file. sysbench syncs each of its files and counts each sync as an \
     event with a latency; diskproof counts only reads and writes.",
    "With --file-fsync-freq above 0, the final sync is the one that follows the run.",
    "With several threads, the standard deviations between threads are nan, because they are not \
     measured.",
    "In fileio lines of --report-interval, latencies are up to a quarter of a second older than \
     counts.",
    "The test cpu divides the same numbers as sysbench and prints intermediate lines. It uses no \
     disk, so it is not saved in the history. --rate does not apply to it.",
    "The tests memory, threads, mutex and the database tests are refused.",
    "In a sequential test, each thread uses a different part of the file.",
];
