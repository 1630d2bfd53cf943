//! The options of fio that are no options of a job.

use crate::drop_in::{
    DropInOption,
    Treatment::{self, Carried, Ignored, Refused},
    long_option as option,
};

pub(super) const NAME: &str = "fio";
pub(super) const EMULATES: &str = "fio-3.33";

const NO_DEBUG: Treatment = Ignored("diskproof has no such output; -v shows progress");
const NO_CLIENT: Treatment = Refused("start diskproof on each machine, for example with ssh");
const NO_TRIGGER: Treatment = Refused("start the command from the shell");
const NO_DISK: Treatment = Refused("measures no disk; use the real fio");
const NO_LOG: Treatment = Refused("use -o FILE.json before the tool; it contains the series");

pub(super) const OPTIONS: &[DropInOption] = &[
    option("output", "file", "Write the output to a file", Carried),
    option(
        "output-format",
        "list",
        "Select forms of output: normal, json, json+, terse",
        Carried,
    ),
    option("minimal", "", "Write the terse output", Carried),
    option(
        "append-terse",
        "",
        "Write the terse output after the normal one",
        Carried,
    ),
    option(
        "terse-version",
        "number",
        "Select the terse output: 3, 4 or 5",
        Carried,
    ),
    option(
        "parse-only",
        "",
        "Check the jobs without running them",
        Carried,
    ),
    option("showcmd", "", "Show job files as a command line", Carried),
    option(
        "section",
        "name",
        "Run only this section of job files",
        Carried,
    ),
    option("readonly", "", "Refuse jobs that write", Carried),
    option("version", "", "Show the version", Carried),
    option("help", "", "Show this help", Carried),
    option(
        "status-interval",
        "time",
        "Repeat the output during the run",
        Carried,
    ),
    option("eta", "when", "Show the remaining time", NO_DEBUG),
    option("eta-interval", "time", "Set its interval", NO_DEBUG),
    option(
        "eta-newline",
        "time",
        "Show it on lines of its own",
        NO_DEBUG,
    ),
    option("debug", "list", "Show messages for debugging", NO_DEBUG),
    option(
        "alloc-size",
        "kb",
        "Set the size of a memory pool",
        Ignored("diskproof allocates what it needs"),
    ),
    option(
        "max-jobs",
        "number",
        "Set the largest number of jobs",
        Ignored("the limit is 1440 workloads"),
    ),
    option(
        "warnings-fatal",
        "",
        "End at the first warning",
        Ignored("unsupported options are always errors"),
    ),
    option(
        "aux-path",
        "path",
        "Set the directory of state files",
        Ignored("diskproof writes no state files"),
    ),
    option(
        "cmdhelp",
        "[name]",
        "Explain an option of jobs",
        Refused("see docs/job-files.md"),
    ),
    option(
        "enghelp",
        "[name]",
        "Explain an I/O engine",
        Refused("see docs/job-files.md"),
    ),
    option(
        "bandwidth-log",
        "",
        "Write a log of all jobs together",
        NO_LOG,
    ),
    option("latency-log", "", "Write a log of latencies", NO_LOG),
    option("inflate-log", "log", "Unpack a log", NO_LOG),
    option("merge-blktrace-only", "", "Merge traces", NO_DISK),
    option("cpuclock-test", "", "Test the clock", NO_DISK),
    option("crctest", "[list]", "Test the speed of checksums", NO_DISK),
    option("memcpytest", "[list]", "Test the speed of memory", NO_DISK),
    option(
        "idle-prof",
        "mode",
        "Show how idle the processors are",
        NO_DISK,
    ),
    option("server", "[args]", "Serve clients", NO_CLIENT),
    option(
        "daemonize",
        "file",
        "Serve clients in the background",
        NO_CLIENT,
    ),
    option("client", "[host]", "Let a server run the jobs", NO_CLIENT),
    option(
        "remote-config",
        "file",
        "Let a server read a job file",
        NO_CLIENT,
    ),
    option(
        "trigger-file",
        "file",
        "Start a command with a file",
        NO_TRIGGER,
    ),
    option(
        "trigger-timeout",
        "time",
        "Start a command after a time",
        NO_TRIGGER,
    ),
    option("trigger", "command", "Set the command", NO_TRIGGER),
    option(
        "trigger-remote",
        "command",
        "Set the command of servers",
        NO_TRIGGER,
    ),
];

/// Options of jobs that take a value only behind `=`.
pub(super) const SWITCHES: &[&str] = &[
    "bs_unaligned",
    "blocksize_unaligned",
    "norandommap",
    "time_based",
    "verify_only",
    "exitall",
    "exitall_on_error",
    "stonewall",
    "wait_for_previous",
    "new_group",
    "thread",
    "group_reporting",
    "zero_buffers",
    "refill_buffers",
];

pub(super) const DIFFERENCES: &[&str] = &[
    "docs/job-files.md lists every job option, on the command line or in a job file, with its \
     translation. An option that would change the load is refused.",
    "A file that does not exist becomes a part of an unnamed scratch file, which is filled before \
     its first use and then vanishes; fio leaves its files behind.",
    "clat equals lat, from before the submission to the completion; slat is not measured.",
    "ctx, majf and minf are 0, and submit and complete show one request at a time, because they \
     are not measured.",
    "IO depths show the average number of requests in flight.",
    "Disk stats name the disk below the target, if there is only one and the kernel times its \
     requests; fio also names loop devices and volumes.",
    "Logs (write_bw_log, write_iops_log, write_lat_log) are written at the end, with a line per \
     100 ms unless log_avg_msec is set. Copies that run as one workload (group_reporting) share a \
     log. write_lat_log writes lat and clat, which are equal, but no slat. A line of \
     write_hist_log covers at least a sixty-fourth of the run. Logs of single requests are \
     refused.",
    "Trims go to block devices as in fio. On a file each trim punches a hole, where fio fails \
     (ENOTTY). With libaio and mmap a trim is a blocking call, so iodepth has no effect. With \
     io_uring trims have a queue depth from Linux 6.12 on, as in fio 3.38 and later.",
    "With --status-interval, the latencies in intermediate output are up to a quarter of a second \
     older than the counts. With --output, the file is written at the end.",
    "After a warm-up (ramp_time), figures cover only the measured time, as in fio. Jobs of one \
     group share the longest warm-up.",
];
