//! The options of fio that are no options of a job.

use crate::drop_in::Treatment::{self, Carried, Ignored, Refused};
use crate::drop_in::{DropInOption, long_option};

pub(super) const NAME: &str = "fio";
pub(super) const EMULATES: &str = "fio-3.33";

const NO_DEBUG: Treatment = Ignored("diskproof has no such output; -v shows progress");
const NOT_SHOWN: Treatment = Ignored("it is a figure beside those of the jobs, and is not shown");
const NO_CLIENT: Treatment = Refused("start diskproof on each machine, for example with ssh");
const NO_TRIGGER: Treatment = Refused("start the command from the shell");
const NO_DISK: Treatment = Refused("measures no disk; use the real fio");
const NO_LOG: Treatment = Refused("use -o FILE.json before the tool; it contains the series");
const MEMORY: Treatment = Ignored("diskproof allocates what it needs");
const LIMIT: Treatment = Ignored("the limit is 1440 workloads");
const STRICT: Treatment = Ignored("unsupported options are always errors");
const STATELESS: Treatment = Ignored("diskproof writes no state files");
const IN_DOCS: Treatment = Refused("see docs/job-files.md");

/// A line an option: name, value, help and treatment.
macro_rules! options {
    ($($name:literal $value:literal $help:literal $treatment:ident;)*) => {
        &[$(long_option($name, $value, $help, $treatment)),*]
    };
}

pub(super) const OPTIONS: &[DropInOption] = options! {
    "output" "file" "Write the output to a file" Carried;
    "output-format" "list" "Select forms of output: normal, json, json+, terse" Carried;
    "minimal" "" "Write the terse output" Carried;
    "append-terse" "" "Write the terse output after the normal one" Carried;
    "terse-version" "number" "Select the terse output: 3, 4 or 5" Carried;
    "parse-only" "" "Check the jobs without running them" Carried;
    "showcmd" "" "Show job files as a command line" Carried;
    "section" "name" "Run only this section of job files" Carried;
    "readonly" "" "Refuse jobs that write" Carried;
    "version" "" "Show the version" Carried;
    "help" "" "Show this help" Carried;
    "status-interval" "time" "Repeat the output during the run" Carried;
    "eta" "when" "Show the remaining time" NO_DEBUG;
    "eta-interval" "time" "Set its interval" NO_DEBUG;
    "eta-newline" "time" "Show it on lines of its own" NO_DEBUG;
    "debug" "list" "Show messages for debugging" NO_DEBUG;
    "alloc-size" "kb" "Set the size of a memory pool" MEMORY;
    "max-jobs" "number" "Set the largest number of jobs" LIMIT;
    "warnings-fatal" "" "End at the first warning" STRICT;
    "aux-path" "path" "Set the directory of state files" STATELESS;
    "cmdhelp" "[name]" "Explain an option of jobs" IN_DOCS;
    "enghelp" "[name]" "Explain an I/O engine" IN_DOCS;
    "bandwidth-log" "" "Write a log of all jobs together" NO_LOG;
    "latency-log" "" "Write a log of latencies" NO_LOG;
    "inflate-log" "log" "Unpack a log" NO_LOG;
    "merge-blktrace-only" "" "Merge traces" NO_DISK;
    "cpuclock-test" "" "Test the clock" NO_DISK;
    "crctest" "[list]" "Test the speed of checksums" NO_DISK;
    "memcpytest" "[list]" "Test the speed of memory" NO_DISK;
    "idle-prof" "mode" "Show how idle the processors are" NOT_SHOWN;
    "server" "[args]" "Serve clients" NO_CLIENT;
    "daemonize" "file" "Serve clients in the background" NO_CLIENT;
    "client" "[host]" "Let a server run the jobs" NO_CLIENT;
    "remote-config" "file" "Let a server read a job file" NO_CLIENT;
    "trigger-file" "file" "Start a command with a file" NO_TRIGGER;
    "trigger-timeout" "time" "Start a command after a time" NO_TRIGGER;
    "trigger" "command" "Set the command" NO_TRIGGER;
    "trigger-remote" "command" "Set the command of servers" NO_TRIGGER;
};

pub(super) const DIFFERENCES: &[&str] = &[
    "docs/job-files.md lists every job option, on the command line or in a job file, with its \
     translation. An option that would change the load is refused.",
    "A file that does not exist becomes a part of an unnamed scratch file, which is filled before \
     its first use and then vanishes; fio leaves its files behind. A single new file that filename \
     names stays, as in fio, unless unlink=1 is set. Later commands may write to it, and make it \
     longer, as long as nothing else has changed it. Any other existing file needs --overwrite, \
     and keeps its size.",
    "Filling it takes as long as the disk needs, as with fio's overwrite=1, and does not count as \
     runtime. The normal output has fio's line 'Laying out IO file'.",
    "fio creates missing directories of filename; here they must exist: mkdir -p DIR.",
    "A job has fsync or fdatasync, not both.",
    "fio visits the files of a job in turn from one queue. Here each existing file has its own \
     queue, so iodepth or numjobs must be a multiple of their number. With iodepth=1 and one job, \
     give each file a section with stonewall.",
    "A failed verify ends with error 84 as in fio, but all blocks are read, and the report names \
     them in other words.",
    "Numbers that fio reads in part, such as bs=1.5k, are refused.",
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
