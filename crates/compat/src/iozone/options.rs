//! The options of iozone 3.508.

use crate::drop_in::Treatment::{self, Carried, Ignored, Refused};
use crate::drop_in::{DropInOption, option};

pub(super) const NAME: &str = "iozone";
pub(super) const EMULATES: &str = "iozone 3.508";

/// Only short forms.
const fn short(
    name: &'static str,
    value: &'static str,
    help: &'static str,
    treatment: Treatment,
) -> DropInOption {
    option(name, "", value, help, treatment)
}

const THROUGHPUT: Treatment =
    Refused("the throughput mode does not run; use 'diskproof run --jobs N' or 'sweep --jobs'");
const MAPPED: Treatment = Refused("use 'diskproof run --engine mmap'");
const DEPTH: Treatment = Refused("use 'diskproof sweep --depth' for requests in flight");
const REPLAY: Treatment = Refused("requests are not replayed; use the real iozone");
const CONTENT: Treatment = Refused("data is always random; omit it");
const NETWORK: Treatment = Refused("a run measures one machine; use the real iozone");
const AUTO_2: Treatment = Refused("use -a -z");

pub(super) const OPTIONS: &[DropInOption] = &[
    short("-a", "", "all sizes of files and records", Carried),
    short("-A", "", "", AUTO_2),
    short(
        "-b",
        "file",
        "",
        Refused("use -R and redirect stdout, or 'diskproof as -o FILE.csv iozone …'"),
    ),
    short("-B", "", "", MAPPED),
    short(
        "-c",
        "",
        "",
        Ignored("the file stays open, and closing it transfers no data; -e includes the fsync"),
    ),
    short("-C", "", "", THROUGHPUT),
    short("-d", "microseconds", "", THROUGHPUT),
    short("-D", "", "", MAPPED),
    short("-e", "", "include an fsync in the time of writes", Carried),
    short(
        "-E",
        "",
        "",
        Refused("the tests of -i 0 to 5 run with pread and pwrite here"),
    ),
    short(
        "-f",
        "filename",
        "write in the directory of this file",
        Carried,
    ),
    short("-F", "filenames", "", THROUGHPUT),
    short("-g", "kB", "largest file of -a (512m)", Carried),
    short("-G", "", "", MAPPED),
    short("-h", "", "print the usage", Carried),
    short("-H", "requests", "", DEPTH),
    short(
        "-i",
        "test",
        "0 write, 1 read, 2 random, 3 backward, 4 one record, 5 stride; several times",
        Carried,
    ),
    short("-I", "", "direct I/O", Carried),
    short("-j", "records", "distance of -i 5 in records (17)", Carried),
    short(
        "-J",
        "milliseconds",
        "",
        Refused("use 'diskproof run --rate'"),
    ),
    short("-k", "requests", "", DEPTH),
    short(
        "-K",
        "",
        "",
        Refused("use 'diskproof run' with random reads"),
    ),
    short("-l", "processes", "", THROUGHPUT),
    short(
        "-L",
        "bytes",
        "",
        Ignored("the cache of the processor is not purged"),
    ),
    short("-m", "", "", Ignored("each request has its own buffer")),
    short("-M", "", "", Ignored("the record describes the system")),
    short("-n", "kB", "smallest file of -a (64k)", Carried),
    short("-N", "", "microseconds per operation", Carried),
    short("-o", "", "write with O_SYNC", Carried),
    short("-O", "", "operations per second", Carried),
    short(
        "-p",
        "",
        "",
        Ignored("the cache of the processor is not purged"),
    ),
    short(
        "-P",
        "processor",
        "",
        Refused("use 'taskset -c CPU diskproof as iozone …'"),
    ),
    short("-q", "kB", "largest record of -a (16m)", Carried),
    short(
        "-Q",
        "",
        "",
        Refused("'diskproof show latest' has the distribution of latencies"),
    ),
    short("-r", "kB", "size of a record (4k); several times", Carried),
    short("-R", "", "print the report for Excel", Carried),
    short(
        "-s",
        "kB",
        "size of the file (512k); several times",
        Carried,
    ),
    short(
        "-S",
        "kB",
        "",
        Ignored("the cache of the processor is not purged"),
    ),
    short("-t", "processes", "", THROUGHPUT),
    short("-T", "", "", THROUGHPUT),
    short("-u", "processes", "", THROUGHPUT),
    short(
        "-U",
        "mount-point",
        "",
        Refused("use -I, which bypasses the page cache"),
    ),
    short("-v", "", "print the version", Carried),
    short("-V", "pattern", "", Refused("use 'diskproof run --verify'")),
    short(
        "-w",
        "",
        "",
        Ignored("the scratch file has no name; a test without -i 0 writes its file first"),
    ),
    short("-W", "", "", Refused("nothing else uses the file; omit it")),
    short("-x", "", "", THROUGHPUT),
    short("-X", "file", "", REPLAY),
    short("-y", "kB", "smallest record of -a (4k)", Carried),
    short("-Y", "file", "", REPLAY),
    short("-z", "", "also small records for large files", Carried),
    short("-Z", "", "", MAPPED),
    short("-+n", "", "skip rewrite and reread", Carried),
    short("-+D", "", "write with O_DSYNC", Carried),
    short(
        "-+r",
        "",
        "write with O_SYNC; O_RSYNC is the same on Linux",
        Carried,
    ),
    short("-+b", "kB,ms", "", Refused("use 'diskproof run --rate'")),
    short(
        "-+E",
        "",
        "",
        Refused("use 'diskproof sweep FILE', which reads your file"),
    ),
    short("-+F", "", "", THROUGHPUT),
    short("-+J", "", "", Refused("use 'diskproof run --rate'")),
    short("-+K", "", "", THROUGHPUT),
    short("-+m", "file", "", NETWORK),
    short("-+d", "", "", Refused("use 'diskproof run --verify'")),
    short("-+u", "", "", Ignored("the record has the CPU time")),
    short(
        "-+x",
        "factor",
        "",
        Refused("name the sizes with -s and -r"),
    ),
    short("-+p", "percent", "", Refused("use 'diskproof run --mix'")),
    short("-+t", "", "", NETWORK),
    short("-+k", "", "", THROUGHPUT),
    short("-+q", "seconds", "", Refused("run once for each test")),
    short(
        "-+l",
        "",
        "",
        Refused("nothing else uses the file; omit it"),
    ),
    short(
        "-+L",
        "",
        "",
        Refused("nothing else uses the file; omit it"),
    ),
    short("-+B", "", "", THROUGHPUT),
    short(
        "-+A",
        "advice",
        "",
        Refused("use -I, which bypasses the page cache"),
    ),
    short("-+N", "", "", Ignored("files are not truncated")),
    short("-+S", "set", "", CONTENT),
    short("-+W", "number", "", CONTENT),
    short("-+V", "", "", THROUGHPUT),
    short("-+X", "", "", Refused("its results are invalid")),
    short("-+Z", "", "", CONTENT),
    short("-+w", "percent", "", CONTENT),
    short("-+y", "percent", "", CONTENT),
    short("-+C", "percent", "", CONTENT),
    short("-+a", "percent", "", CONTENT),
    short("-+Q", "bytes", "", CONTENT),
    short("-+H", "host", "", NETWORK),
    short("-+P", "service", "", NETWORK),
    short(
        "-+z",
        "",
        "",
        Ignored("the record has the distribution of latencies"),
    ),
    short("-+M", "", "", CONTENT),
    short("-+R", "file", "", THROUGHPUT),
    short("-+e", "", "", CONTENT),
];

pub(super) const DIFFERENCES: &[&str] = &[
    "Each pair of sizes uses a different part of one unnamed scratch file, in the current \
     directory or in that of -f. With -a, the file therefore needs the space of all pairs; -g \
     limits it.",
    "Tests 6 to 12 (fwrite and fread of the C library, pwrite and pwritev) do not run. Without -i, \
     tests 0 to 5 run.",
    "Without -i 0, a test finds its part of the file already written. iozone requires -i 0.",
    "As in iozone, the page cache answers reads without -I, and absorbs writes without -e.",
    "The processor's cache is not purged, so buffers may be in it, as in every program.",
    "A rate counts the time of the requests and the fsync, but not the start of the test or the \
     close of the file.",
    "An empty field or a 0 in the matrix means that the pair was not measured.",
    "A small file is measured once, for less than a millisecond. 'diskproof sweep' repeats until \
     the interval is narrow.",
];
