//! Every option of fio 3.42 that a job on a disk may have, and what becomes of it here. The text of
//! refusals is that of the answers to pasted command lines, so that there is one. docs/job-files.md
//! is made from this table. Pure.

use crate::workload::answer_to_fio;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What becomes of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// It means the same here, or is translated to what does.
    Carried,
    /// It does not change what the disk is asked for.
    LeftOut,
    /// It would be another load: nothing runs, unless it has one of these values, which change
    /// nothing.
    Refused(&'static [&'static str]),
}

/// Some options with the same fate.
#[derive(Debug)]
pub struct OptionRow {
    /// Their names; those with a `/` have aliases behind it.
    pub names: &'static [&'static str],
    /// What becomes of them.
    pub fate: Handling,
    /// More about it, as a phrase; what a refusal says stands in the answers.
    pub text: &'static str,
}

const fn carried(names: &'static [&'static str], text: &'static str) -> OptionRow {
    OptionRow {
        names,
        fate: Handling::Carried,
        text,
    }
}

const fn left_out(names: &'static [&'static str], text: &'static str) -> OptionRow {
    OptionRow {
        names,
        fate: Handling::LeftOut,
        text,
    }
}

const fn refused(names: &'static [&'static str], harmless: &'static [&'static str]) -> OptionRow {
    OptionRow {
        names,
        fate: Handling::Refused(harmless),
        text: "",
    }
}

/// No value changes nothing.
const NEVER: &[&str] = &[];
const ZERO: &[&str] = &["0"];
const NONE: &[&str] = &["none"];

/// The table.
pub const ROWS: &[OptionRow] = &[
    carried(
        &["name"],
        "name in results, where it stands in the job's own section; else that of the section; \
         other characters than letters, digits and - _ . + become -",
    ),
    carried(
        &["description"],
        "the note of the record, unless `--note` gives one",
    ),
    carried(
        &["filename"],
        "the target, or a part of a scratch file, see above",
    ),
    carried(&["directory"], "the directory of the scratch file"),
    carried(&["filename_format"], "which jobs share a file, see above"),
    carried(
        &["nrfiles/nr_files"],
        "1; several files for one job are refused",
    ),
    carried(
        &["filesize"],
        "size of the file, and of what is done unless `size` says so",
    ),
    carried(&["size"], "`span`, and `bytes` unless `time_based`"),
    carried(&["io_size/io_limit"], "`bytes`, times the jobs and loops"),
    carried(&["loops"], "`bytes`"),
    carried(&["number_ios"], "`ops`, times the jobs"),
    carried(&["offset/fileoffset"], "`span`"),
    carried(&["offset_increment"], "a `span` of its own for each job"),
    carried(
        &["rw/readwrite"],
        "`rw`; `read:8k` (gaps) is `stride`, `read:-8k` with `bs=4k` is `backward`; other numbers \
         behind it, and trims, are refused",
    ),
    carried(&["rwmixread", "rwmixwrite"], "`rwmixread`"),
    carried(
        &["bs/blocksize"],
        "`bs`; different sizes for reads and writes are refused where the job does both",
    ),
    carried(
        &["bssplit"],
        "`bssplit`; different mixes for reads and writes are refused where the job does both",
    ),
    carried(
        &["bsrange/blocksize_range"],
        "`bs` where both ends are the same, else refused: write the sizes as `bssplit`",
    ),
    carried(
        &["blockalign/ba"],
        "nothing where it is the (smallest) block size, else refused",
    ),
    carried(
        &["ioengine"],
        "`engine`: `libaio` aio, `io_uring` uring, `sync`, `psync`, `vsync`, `pvsync`, `pvsync2` \
         sync, `mmap` mmap; others are refused",
    ),
    carried(
        &["iodepth"],
        "`depth`; 1 with the engines that take one request at a time, as in fio",
    ),
    carried(
        &["io_submit_mode"],
        "`inline` nothing; `offload`, which gives each request a thread, lets `iodepth` count \
         with the engines that take one request at a time",
    ),
    carried(&["numjobs"], "`jobs`, or as many workloads, see above"),
    carried(
        &["direct"],
        "`direct=0`, which is fio's default, is `buffered`, or `cached`, see above",
    ),
    carried(&["buffered"], "the reverse of `direct`"),
    carried(&["invalidate"], "0 is `cached`"),
    carried(&["runtime/timeout"], "`time`"),
    carried(
        &["time_based"],
        "without it a job also ends after its `size`",
    ),
    carried(
        &["ramp_time"],
        "`warmup`; jobs that run together share the longest",
    ),
    carried(
        &["stonewall/wait_for_previous"],
        "what follows runs after what is before it, else all runs at the same time: `together`",
    ),
    carried(
        &["exitall"],
        "always so: jobs that run together end together",
    ),
    carried(
        &["exit_what"],
        "`group`, or `all` where all jobs run together; else refused",
    ),
    carried(
        &["rate_iops"],
        "`rate`, over all jobs; latency counts from the intended start",
    ),
    carried(
        &["rate"],
        "`rate`: bytes per second, divided by the block size",
    ),
    carried(
        &["random_distribution"],
        "`random`, `zipf:THETA` and `zoned:` are the same; others are refused",
    ),
    carried(
        &["norandommap"],
        "always so; without it fio meets each block once before it meets one again, and a line on \
         stderr says so",
    ),
    carried(
        &["fsync", "fdatasync"],
        "the same; where nothing is written, nothing",
    ),
    carried(
        &["end_fsync", "fsync_on_close"],
        "`end-fsync`; beside `fsync` or `fdatasync`, or where nothing is written, nothing",
    ),
    carried(
        &["verify"],
        "checksums (`md5`, `crc…`, `sha…`, `xxhash`) are `verify`, with checksums of our own; \
         others are refused",
    ),
    carried(&["kb_base"], "how `k` and `kib` are read"),
    carried(
        &["overwrite"],
        "always so: the scratch file is written before it is needed; without it fio's writes are \
         the first of a new file, and a line on stderr says so",
    ),
    left_out(&["thread", "comm"], "threads are always used"),
    left_out(
        &[
            "group_reporting",
            "new_group",
            "stats",
            "per_job_logs",
            "unified_rw_reporting",
            "unit_base",
            "significant_figures",
            "disk_util",
            "clat_percentiles",
            "lat_percentiles",
            "slat_percentiles",
            "percentile_list",
            "block_error_percentiles",
            "error_dump",
        ],
        "how results are shown",
    ),
    left_out(
        &[
            "write_bw_log",
            "write_lat_log",
            "write_iops_log",
            "write_hist_log",
            "write_iolog",
            "log_avg_msec",
            "log_hist_msec",
            "log_hist_coarseness",
            "log_entries",
            "log_window_value/log_max_value",
            "log_offset",
            "log_prio",
            "log_issue_time",
            "log_compression",
            "log_compression_cpus",
            "log_store_compressed",
            "log_alternate_epoch/log_unix_epoch",
            "log_alternate_epoch_clock_id",
            "bwavgtime/bw_avg_time",
            "iopsavgtime/iops_avg_time",
        ],
        "series and histograms are always recorded: -o FILE.json, .csv, .hlog",
    ),
    left_out(
        &[
            "gtod_reduce",
            "gtod_cpu",
            "clocksource",
            "job_start_clock_id",
            "disable_lat",
            "disable_clat",
            "disable_slat",
            "disable_bw_measurement/disable_bw",
        ],
        "each latency is measured",
    ),
    left_out(
        &[
            "mem/iomem",
            "iomem_align/mem_align",
            "lockmem",
            "hugepage-size",
        ],
        "buffers are our own",
    ),
    left_out(
        &[
            "iodepth_batch/iodepth_batch_submit",
            "iodepth_batch_complete_max",
            "fixedbufs",
            "registerfiles",
            "nonvectored",
            "sqthread_poll",
            "sqthread_poll_cpu",
            "userspace_reap",
            "libaio_vectored",
        ],
        "how requests are handed over is chosen for the disk at hand",
    ),
    left_out(
        &[
            "randrepeat/allrandrepeat",
            "randseed",
            "random_generator",
            "softrandommap",
        ],
        "offsets are drawn by --seed",
    ),
    left_out(
        &[
            "fallocate",
            "create_serialize",
            "create_fsync",
            "create_on_open",
            "allow_file_create",
            "unlink",
            "unique_filename",
            "openfiles",
            "file_service_type",
            "filetype",
        ],
        "the scratch file is written before it is needed, and vanishes",
    ),
    left_out(
        &["allow_mounted_write"],
        "a device that is in use is never written",
    ),
    left_out(
        &[
            "refill_buffers",
            "scramble_buffers",
            "buffer_compress_chunk",
            "dedupe_mode",
            "dedupe_global",
            "dedupe_working_set_percentage",
        ],
        "what is written can neither be compressed nor found twice",
    ),
    left_out(
        &[
            "verify_fatal",
            "verify_dump",
            "verify_async",
            "verify_async_cpus",
            "verify_interval",
            "verify_offset",
            "verifysort",
            "verifysort_nr",
            "verify_state_save",
            "verify_write_sequence",
            "verify_header_seed",
            "experimental_verify",
            "verify_policy",
        ],
        "every bad block is named, by checksums of our own",
    ),
    left_out(
        &["continue_on_error", "ignore_error", "exitall_on_error"],
        "errors are counted by kind; a disk that only fails ends the run",
    ),
    left_out(
        &[
            "rate_min/ratemin",
            "rate_iops_min",
            "rate_cycle/ratecycle",
            "rate_ignore_thinktime",
            "max_latency",
        ],
        "a threshold: use --expect",
    ),
    left_out(
        &["cpus_allowed_policy", "cgroup_nodelete"],
        "nothing without the option that it belongs to",
    ),
    left_out(
        &[
            "thinktime_spin",
            "thinktime_blocks",
            "thinktime_blocks_type",
            "thinktime_iotime",
            "trim_verify_zero",
            "trim_backlog_batch",
            "verify_backlog_batch",
        ],
        "nothing without the option that it belongs to",
    ),
    refused(&["wait_for"], NEVER),
    refused(&["startdelay"], &["0", "0s"]),
    refused(&["thinktime", "thinkcycles"], &["0", "0s", "0us"]),
    refused(&["ramp_size"], ZERO),
    refused(&["sync"], &["0", "none"]),
    refused(&["sync_file_range"], NEVER),
    refused(&["write_barrier", "end_syncfs"], ZERO),
    refused(&["percentage_random"], &["100"]),
    refused(&["percentage_sequential"], ZERO),
    refused(&["rw_sequencer"], &["sequential"]),
    refused(
        &[
            "random_sequence_stride",
            "sprandom",
            "spr_num_regions",
            "spr_op",
            "spr_cs",
        ],
        ZERO,
    ),
    refused(
        &[
            "bs_unaligned/blocksize_unaligned",
            "bs_is_seq_rand",
            "offset_align",
        ],
        ZERO,
    ),
    refused(&["rate_process"], &["linear"]),
    refused(
        &[
            "latency_target",
            "latency_window",
            "latency_percentile",
            "latency_run",
        ],
        ZERO,
    ),
    refused(
        &[
            "iodepth_low",
            "iodepth_batch_complete_min/iodepth_batch_complete",
        ],
        &["0", "1"],
    ),
    refused(
        &[
            "serialize_overlap",
            "hipri",
            "hipri_percentage",
            "force_async",
            "nowait",
            "uncached",
            "atomic",
            "readfua",
            "writefua",
        ],
        ZERO,
    ),
    refused(
        &["num_range", "trim_percentage", "trim_backlog"],
        &["0", "1"],
    ),
    refused(&["fadvise_hint"], &["1"]),
    refused(&["do_verify"], &["1"]),
    refused(
        &[
            "verify_only",
            "verify_backlog",
            "verify_pattern_interval",
            "verify_state_load",
        ],
        ZERO,
    ),
    refused(&["verify_pattern"], NEVER),
    refused(
        &[
            "zero_buffers",
            "buffer_compress_percentage",
            "dedupe_percentage",
        ],
        ZERO,
    ),
    refused(&["buffer_pattern"], NEVER),
    refused(
        &[
            "file_append",
            "fill_device/fill_fs",
            "pre_read",
            "create_only",
            "unlink_each_loop",
        ],
        ZERO,
    ),
    refused(&["opendir"], NEVER),
    refused(&["lockfile"], NONE),
    refused(&["zonemode"], NONE),
    refused(
        &[
            "zonesize",
            "zonerange",
            "zoneskip",
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
        ZERO,
    ),
    refused(&["fdp"], ZERO),
    refused(&["dataplacement/data_placement", "write_hint"], NONE),
    refused(
        &["plid_select/fdp_pli_select", "plids/fdp_pli", "dp_scheme"],
        NEVER,
    ),
    refused(&["flow", "flow_id", "flow_sleep", "flow_watermark"], ZERO),
    refused(
        &[
            "steadystate/ss",
            "steadystate_duration/ss_dur",
            "steadystate_ramp_time/ss_ramp",
            "steadystate_check_interval/ss_interval",
        ],
        NEVER,
    ),
    refused(
        &[
            "read_iolog",
            "read_iolog_chunked",
            "replay_no_stall",
            "replay_redirect",
            "replay_scale",
            "replay_align",
            "replay_time_scale",
            "replay_skip",
            "merge_blktrace_file",
            "merge_blktrace_scalars",
            "merge_blktrace_iters",
        ],
        NEVER,
    ),
    refused(&["exec_prerun", "exec_postrun"], NEVER),
    refused(&["ioscheduler"], NEVER),
    refused(&["cpus_allowed", "cpumask"], NEVER),
    refused(&["numa_cpu_nodes", "numa_mem_policy"], NEVER),
    refused(&["prio", "prioclass", "priohint"], NEVER),
    refused(
        &[
            "cmdprio",
            "cmdprio_percentage",
            "cmdprio_class",
            "cmdprio_hint",
            "cmdprio_bssplit",
        ],
        NEVER,
    ),
    refused(&["nice"], ZERO),
    refused(&["cgroup", "cgroup_weight", "uid", "gid"], NEVER),
    refused(&["profile"], NEVER),
    refused(&["gpu_dev_id", "rwmixcycle", "thp"], ZERO),
];

/// The first of an option's names.
pub fn canonical(key: &str) -> Option<&'static str> {
    row_and_name(key).map(|(_, name)| name)
}

/// What becomes of an option.
pub fn row(key: &str) -> Option<&'static OptionRow> {
    row_and_name(key).map(|(row, _)| row)
}

fn row_and_name(key: &str) -> Option<(&'static OptionRow, &'static str)> {
    BY_NAME.get(key).copied()
}

/// Each name's row, and the first of its names. A file may have a million settings.
static BY_NAME: LazyLock<HashMap<&'static str, (&'static OptionRow, &'static str)>> =
    LazyLock::new(|| {
        let names = ROWS
            .iter()
            .flat_map(|row| row.names.iter().map(move |names| (row, *names)));
        names
            .flat_map(|(row, names)| {
                names
                    .split('/')
                    .map(move |name| (name, (row, names.split('/').next().unwrap_or(names))))
            })
            .collect()
    });

/// Why an option is refused, and what to do.
pub fn refusal(name: &str) -> &'static str {
    answer_to_fio(name).unwrap_or("has no place here: leave it out")
}
