//! fio's options that have another name here, or none because what they ask for is always so or has
//! no place: what to write instead. Words that mean the same are aliases of the flags and do not
//! stand here. Meanings are those of fio's HOWTO, 3.42. Pure.

/// Options that say the same to somebody who comes from fio, and the answer to them.
const ANSWERS: &[(&[&str], &str)] = &[
    (
        &["filename", "directory"],
        "is the target, written without a flag: diskproof run /dev/sdb",
    ),
    (
        &["direct", "odirect"],
        "is the default; for direct=0 use buffered (which empties the page cache) or cached",
    ),
    (
        &["invalidate"],
        "is part of buffered, which empties the page cache; cached leaves it alone",
    ),
    (
        &["time_based"],
        "is always so: a workload goes on until its time is over; leave it out",
    ),
    (&["group_reporting", "thread"], "is always so; leave it out"),
    (&["rwmixwrite"], "is the rest to 100 of rwmixread; use that"),
    (
        &["offset"],
        "is the start of a part; use span, such as 1GiB-2GiB",
    ),
    (
        &["offset_increment", "size_increment"],
        "is always so: sequential jobs share the span out among them; leave it out",
    ),
    (
        &["zonemode", "zonerange", "zonesize", "zoneskip"],
        "is for zoned disks, or a walk with gaps in zones; use stride for gaps, or span for a part",
    ),
    (
        &["bsrange", "bs_unaligned"],
        "is a mix of block sizes; use bssplit, such as 4k/50:8k/50",
    ),
    (
        &["blockalign", "ba"],
        "is the block size here; leave it out",
    ),
    (
        &["io_limit"],
        "is the old name of io_size; use bytes, which counts over all jobs",
    ),
    (
        &["loops"],
        "is counted in bytes or ops here; use one of them",
    ),
    (
        &["rate_min", "rate_iops_min"],
        "is a threshold; use --expect 'randread.iops>=1000'",
    ),
    (
        &["rate_process"],
        "is always linear: starts at equal distances; leave it out",
    ),
    (
        &[
            "latency_target",
            "latency_window",
            "latency_percentile",
            "max_latency",
        ],
        "is a threshold at a rate; use --rate and --expect",
    ),
    (
        &[
            "thinktime",
            "thinktime_blocks",
            "thinkcycles",
            "latency_run",
        ],
        "has no place here; rate starts operations at a distance",
    ),
    (&["randseed"], "is --seed"),
    (
        &["randrepeat", "allrandrepeat"],
        "is --seed: the same seed gives the same offsets",
    ),
    (
        &["norandommap", "random_generator", "softrandommap"],
        "is always so: offsets are drawn without a map; leave it out",
    ),
    (
        &["percentage_random", "percentage_sequential", "rw_sequencer"],
        "has no place here; use two workloads of a plan file that run together",
    ),
    (
        &[
            "refill_buffers",
            "scramble_buffers",
            "randrepeat_buffers",
            "buffer_compress_percentage",
            "dedupe_percentage",
        ],
        "has no place here: what is written can neither be compressed nor found twice; leave it \
         out",
    ),
    (
        &["zero_buffers", "buffer_pattern"],
        "has no place here: a disk that compresses would be measured too fast; leave it out",
    ),
    (
        &["do_verify", "verify_fatal", "verify_interval"],
        "is part of verify, which always checks, and names every bad block",
    ),
    (
        &["verify_pattern"],
        "has no place here: blocks carry checksums of their own, which tell more",
    ),
    (
        &["verify_backlog"],
        "reads back while it writes, which has no place here: verify reads back at the end",
    ),
    (
        &["sync", "dsync"],
        "opens with O_SYNC or O_DSYNC, which has no place here; nearest is fsync 1 (for dsync \
         fdatasync 1), a call of its own after each write",
    ),
    (&["fsync_on_close"], "is end-fsync"),
    (
        &[
            "iodepth_batch",
            "iodepth_batch_submit",
            "iodepth_batch_complete",
            "iodepth_batch_complete_min",
            "iodepth_batch_complete_max",
            "iodepth_low",
            "hipri",
            "fixedbufs",
            "registerfiles",
            "sqthread_poll",
            "nonvectored",
            "mem",
            "iomem",
            "iomem_align",
            "lockmem",
        ],
        "has no place here: how requests are handed over is chosen for the disk at hand; leave it \
         out",
    ),
    (
        &["output-format", "minimal"],
        "is --json, or -o FILE.json, .csv, .html (repeatable)",
    ),
    (
        &[
            "write_bw_log",
            "write_lat_log",
            "write_iops_log",
            "write_hist_log",
            "log_avg_msec",
            "percentile_list",
            "lat_percentiles",
        ],
        "is always measured: series and the histogram are in -o FILE.json and .csv; leave it out",
    ),
    (
        &["eta", "eta-newline", "status-interval"],
        "is always shown where stderr is a terminal; leave it out",
    ),
    (
        &["stonewall", "exitall", "new_group"],
        "belongs to several workloads: see docs/plans for plan files",
    ),
    (
        &["wait_for"],
        "waits for one of several, which has no place here: a workload runs after all before it \
         (stonewall in a job file), or together with them",
    ),
    (
        &["exec_prerun", "exec_postrun"],
        "has no place here: no file makes diskproof run other programs; use the shell",
    ),
    (
        &["sync_file_range", "write_barrier", "end_syncfs"],
        "has no place here; use fsync, fdatasync or end-fsync",
    ),
    (
        &[
            "hipri_percentage",
            "force_async",
            "nowait",
            "uncached",
            "atomic",
            "readfua",
            "writefua",
        ],
        "asks the kernel for another way to the disk, which has no place here",
    ),
    (
        &[
            "cmdprio",
            "cmdprio_percentage",
            "cmdprio_class",
            "cmdprio_hint",
            "cmdprio_bssplit",
            "priohint",
        ],
        "gives requests priorities of their own, which has no place here; start diskproof by \
         ionice for one priority",
    ),
    (
        &["bs_is_seq_rand", "offset_align"],
        "has no place here: sizes and offsets of one workload follow one rule",
    ),
    (
        &["serialize_overlap"],
        "has no place here: requests may overlap, as they do by default in fio",
    ),
    (
        &[
            "read_iolog",
            "replay_redirect",
            "replay_no_stall",
            "replay_scale",
        ],
        "plays a recorded load again, which has no place here",
    ),
    (
        &["flow", "flow_id", "flow_sleep"],
        "has no place here; give workloads that run together a rate each",
    ),
    (
        &["fdp", "dataplacement", "write_hint", "plids"],
        "places data by hints to the disk, which has no place here",
    ),
    (&["ramp_size"], "has no place here; use ramp_time"),
    (
        &["verify_only", "verify_state_load"],
        "checks what an earlier run wrote, which has no place here: verify reads back what the \
         same workload wrote",
    ),
    (&["startdelay"], "has no place here; use sleep in the shell"),
    (
        &["cpus_allowed", "cpus_allowed_policy", "cpumask"],
        "has no place here; start diskproof by taskset",
    ),
    (
        &["numa_cpu_nodes", "numa_mem_policy"],
        "has no place here; start diskproof by numactl",
    ),
    (
        &["prio", "prioclass"],
        "has no place here; start diskproof by ionice",
    ),
    (&["nice"], "has no place here; start diskproof by nice"),
    (
        &[
            "gtod_reduce",
            "gtod_cpu",
            "clocksource",
            "disable_lat",
            "disable_clat",
            "disable_slat",
        ],
        "has no place here: each latency is measured; leave it out",
    ),
    (
        &[
            "nrfiles",
            "filesize",
            "openfiles",
            "unique_filename",
            "file_service_type",
        ],
        "has no place here: a directory gets one scratch file of --size",
    ),
    (
        &[
            "create_on_open",
            "create_only",
            "fallocate",
            "unlink",
            "pre_read",
            "file_append",
            "fill_device",
        ],
        "has no place here: the scratch file is written before it is needed and vanishes by \
         itself; leave it out",
    ),
    (
        &["readonly"],
        "is the default: files and devices are only read unless they are given up; leave it out",
    ),
    (
        &["allow_mounted_write"],
        "has no place here: a device that is in use is never written",
    ),
    (
        &["steadystate", "ss", "steadystate_duration", "ss_dur"],
        "is precision, which ends once the rate is known so well",
    ),
    (
        &["ioscheduler"],
        "has no place here: diskproof changes no setting; info shows the scheduler",
    ),
];

/// What to write instead of fio's `option`, as a sentence that goes on after its name; `None` where
/// it is no option of fio that is known here.
pub fn answer(option: &str) -> Option<&'static str> {
    ANSWERS
        .iter()
        .find(|(options, _)| options.contains(&option))
        .map(|(_, answer)| *answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::MeasuringFlags;
    use crate::workload::flags::WorkloadFlags;
    use clap::Args as _;
    use std::collections::BTreeSet;

    #[test]
    fn each_option_is_answered_once_and_is_no_flag_of_ours() {
        let run = WorkloadFlags::augment_args(clap::Command::new("run"));
        let run = MeasuringFlags::augment_args(run);
        let ours: BTreeSet<&str> = run
            .get_arguments()
            .flat_map(|arg| arg.get_long_and_visible_aliases().unwrap_or_default())
            .collect();
        let mut seen = BTreeSet::new();
        for option in ANSWERS.iter().flat_map(|(options, _)| *options) {
            assert!(seen.insert(option), "{option} is answered twice");
            assert!(!ours.contains(option), "{option} is a flag");
        }
        assert_eq!(
            (answer("direct").is_some(), answer("nonsense")),
            (true, None)
        );
    }
}
