//! Hints for options of fio that have another name here, no equivalent, or no need for one: what to
//! write instead. Options with the same meaning are aliases of our flags, and are not listed.
//! Meanings follow fio's HOWTO, 3.42. Pure.

/// Options of fio that share a hint, and the hint: the rest of a sentence that begins with the
/// option.
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
        "is part of buffered, which empties the page cache; cached does not empty it",
    ),
    (
        &["time_based"],
        "is the default: a workload runs until its time is over; remove it",
    ),
    (&["group_reporting", "thread"], "is the default; remove it"),
    (&["rwmixwrite"], "is 100 minus rwmixread; use that"),
    (
        &["offset"],
        "is the start of the span; use span, such as 1GiB-2GiB",
    ),
    (
        &["offset_increment", "size_increment"],
        "is the default: sequential jobs divide the span among them; remove it",
    ),
    (
        &["bs_unaligned"],
        "is a mix of block sizes; use bssplit, such as 4k/50:8k/50",
    ),
    (
        &["io_limit"],
        "is the old name of io_size; use bytes, which covers all jobs",
    ),
    (
        &["loops"],
        "becomes a number of bytes or operations; use bytes or ops",
    ),
    (
        &["rate_min", "rate_iops_min"],
        "is a threshold; use --expect 'randread.iops>=1000'",
    ),
    (
        &["thinkcycles", "thinktime_spin"],
        "is not supported; use thinktime in a fio job, or rate",
    ),
    (
        &["latency_run"],
        "continues after the depth is found, which is not supported; run the job at the depth that \
         latency_target finds",
    ),
    (
        &[
            "ba",
            "blockalign",
            "bsrange",
            "buffer_compress_percentage",
            "buffer_pattern",
            "cpumask",
            "cpus_allowed",
            "cpus_allowed_policy",
            "dedupe_percentage",
            "max_latency",
            "nice",
            "prio",
            "prioclass",
            "rate_process",
            "rw_sequencer",
            "scramble_buffers",
            "ss",
            "ss_dur",
            "startdelay",
            "steadystate",
            "steadystate_duration",
            "thinktime",
            "thinktime_blocks",
            "thinktime_iotime",
            "wait_for",
            "zero_buffers",
            "zonemode",
            "zonerange",
            "zonesize",
            "zoneskip",
        ],
        "is a job option; write the whole fio command after run: diskproof run fio --name=t …",
    ),
    (&["randseed"], "is --seed"),
    (
        &["randrepeat", "allrandrepeat"],
        "is --seed: the same seed gives the same offsets",
    ),
    (
        &["norandommap", "random_generator", "softrandommap"],
        "is the default: random offsets are independent of each other; remove it",
    ),
    (
        &["percentage_random", "percentage_sequential"],
        "is not supported; use two workloads of a plan file that run together",
    ),
    (
        &["refill_buffers"],
        "is the default: written data is always incompressible and never repeats; remove it",
    ),
    (
        &["do_verify", "verify_fatal", "verify_interval"],
        "is part of verify, which always checks and names every bad block",
    ),
    (
        &["verify_pattern"],
        "is not supported: every block carries a checksum, which detects more",
    ),
    (
        &["verify_backlog"],
        "is part of verify, which reads back after all writes; remove it",
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
        "is not supported: diskproof chooses how to submit requests; remove it",
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
        "is always on: -o FILE.json and .csv hold the time series and the histogram; remove it",
    ),
    (
        &["eta", "eta-newline", "status-interval"],
        "is always on if stderr is a terminal; remove it",
    ),
    (
        &["stonewall", "exitall", "new_group"],
        "applies to several workloads; use a plan file (docs/plans)",
    ),
    (
        &["exec_prerun", "exec_postrun"],
        "is not supported: files cannot make diskproof run other programs; use the shell",
    ),
    (
        &["sync_file_range", "write_barrier", "end_syncfs"],
        "is not supported; use fsync, fdatasync or end-fsync",
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
        "sets flags of single requests, which is not supported; remove it",
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
        "sets priorities of single requests, which is not supported; for one priority start \
         diskproof with ionice",
    ),
    (
        &["bs_is_seq_rand"],
        "is not supported: one rule sets all sizes of a workload; use bs=READ,WRITE",
    ),
    (
        &["offset_align"],
        "is not supported; align the offset, or remove it",
    ),
    (
        &["fadvise_hint"],
        "is not supported: the kernel's own readahead applies; remove it",
    ),
    (
        &[
            "zonecapacity",
            "read_beyond_wp",
            "max_open_zones",
            "job_max_open_zones",
            "ignore_zone_limits",
            "zone_reset_threshold",
            "zone_reset_frequency",
            "recover_zbd_write_error",
            "write_zone_remainder",
        ],
        "applies to zoned disks (ZBC, ZNS), which are not supported; use the real fio",
    ),
    (
        &["serialize_overlap"],
        "is not supported: requests may overlap, as they do by default in fio; remove it",
    ),
    (
        &[
            "read_iolog",
            "replay_redirect",
            "replay_no_stall",
            "replay_scale",
        ],
        "replays a recorded load, which is not supported",
    ),
    (
        &["flow", "flow_id", "flow_sleep"],
        "is not supported; give each concurrent workload a rate",
    ),
    (
        &["fdp", "dataplacement", "write_hint", "plids"],
        "passes placement hints to the disk, which is not supported; remove it",
    ),
    (&["ramp_size"], "is not supported; use ramp_time"),
    (
        &["verify_only"],
        "is --rw read --verify, which checks the blocks of an earlier run with --verify",
    ),
    (
        &["verify_state_load"],
        "is not supported; --rw read --verify checks the blocks of an earlier run with --verify",
    ),
    (
        &["fill_device", "fill_fs"],
        "leaves no free space; --rw write --span 0-100% writes an existing file or device to its \
         end",
    ),
    (
        &["numa_cpu_nodes", "numa_mem_policy"],
        "is not supported; start diskproof with numactl",
    ),
    (
        &[
            "gtod_reduce",
            "gtod_cpu",
            "clocksource",
            "disable_lat",
            "disable_clat",
            "disable_slat",
        ],
        "is not supported: every latency is measured; remove it",
    ),
    (
        &[
            "nrfiles",
            "filesize",
            "openfiles",
            "unique_filename",
            "file_service_type",
        ],
        "is not supported: a directory gets one scratch file of --size",
    ),
    (
        &["create_on_open", "create_only", "fallocate", "unlink"],
        "is not supported: the scratch file is filled before its first use and vanishes by \
         itself; remove it",
    ),
    (
        &["pre_read"],
        "is not supported; read the file by a job before it, with stonewall and invalidate=0 in \
         this one",
    ),
    (
        &["file_append"],
        "is not supported: a file keeps its size; remove it",
    ),
    (
        &["readonly"],
        "is the default: files and devices are only read unless you release them with \
         --overwrite or --destroy; remove it",
    ),
    (
        &["allow_mounted_write"],
        "is not supported: diskproof never writes to a device in use",
    ),
    (
        &["ioscheduler"],
        "is not supported: diskproof changes no settings; info shows the scheduler",
    ),
];

/// The hint for an option of fio, as the rest of a sentence that begins with the option; `None` for
/// an option without a hint.
pub(crate) fn answer(option: &str) -> Option<&'static str> {
    ANSWERS
        .iter()
        .find(|(options, _)| options.contains(&option))
        .map(|(_, answer)| *answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::MeasuringFlags;
    use crate::workload::axes::WorkloadAxes;
    use crate::workload::flags::WorkloadFlags;
    use clap::Args as _;
    use std::collections::BTreeSet;

    #[test]
    fn fio_hints_are_unique_and_cover_no_own_flag() {
        let run = WorkloadFlags::augment_args(clap::Command::new("run"));
        let run = WorkloadAxes::augment_args(run);
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
