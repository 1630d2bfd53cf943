//! The table of all options of fio 3.42 for jobs on a disk, and how each is translated. Refusals
//! share their text with the hints for pasted command lines. docs/job-files.md is generated from
//! this table. Pure.

use crate::workload::answer_to_fio;
use std::collections::HashMap;
use std::sync::LazyLock;

/// How an option is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handling {
    /// It has the same meaning here, or an equivalent.
    Translated,
    /// It does not change the load.
    Ignored,
    /// It would change the load. The job file is refused, except for these values.
    Refused(&'static [&'static str]),
}

/// Options that are handled alike.
#[derive(Debug)]
pub(crate) struct OptionRow {
    /// Their names; aliases follow a `/`.
    pub names: &'static [&'static str],
    /// How they are handled.
    pub handling: Handling,
    /// The translation, or why they are ignored, as a phrase. Empty for refusals: see [`refusal`].
    pub text: &'static str,
}

const fn translated(names: &'static [&'static str], text: &'static str) -> OptionRow {
    OptionRow {
        names,
        handling: Handling::Translated,
        text,
    }
}

const fn ignored(names: &'static [&'static str], text: &'static str) -> OptionRow {
    OptionRow {
        names,
        handling: Handling::Ignored,
        text,
    }
}

const fn refused(names: &'static [&'static str], harmless: &'static [&'static str]) -> OptionRow {
    OptionRow {
        names,
        handling: Handling::Refused(harmless),
        text: "",
    }
}

/// Refused with every value.
const ALWAYS: &[&str] = &[];
const ZERO: &[&str] = &["0"];
const NONE: &[&str] = &["none"];

/// The table.
pub(crate) const ROWS: &[OptionRow] = &[
    translated(
        &["name"],
        "name in results, if set in the job's own section; otherwise the section's name. \
         Characters other than letters, digits and - _ . + become -",
    ),
    translated(
        &["description"],
        "the note of the record, unless `--note` is given",
    ),
    translated(
        &["filename"],
        "the target, or a part of a scratch file (see above)",
    ),
    translated(&["directory"], "the directory of the scratch file"),
    translated(&["filename_format"], "which jobs share a file (see above)"),
    translated(
        &["nrfiles/nr_files"],
        "several files of one job become one of their total size, with uniformly random requests \
         or `file_service_type=sequential`; otherwise refused",
    ),
    translated(
        &["filesize"],
        "size of the file, and of the part that the job uses unless `size` is set",
    ),
    translated(&["size"], "`span`, and `bytes` unless `time_based`"),
    translated(&["io_size/io_limit"], "`bytes`, times the jobs and loops"),
    translated(&["loops"], "`bytes`"),
    translated(&["number_ios"], "`ops`, times the jobs and loops"),
    translated(&["offset/fileoffset"], "`span`"),
    translated(&["offset_increment"], "a `span` of its own for each job"),
    translated(
        &["rw/readwrite"],
        "`rw`; `read:8k` (gaps) is `stride`, `read:-8k` with `bs=4k` is `backward`, `randread:8` \
         draws an offset for every 8th operation; other negative numbers are refused",
    ),
    translated(&["rwmixread", "rwmixwrite"], "`rwmixread`"),
    translated(
        &["bs/blocksize"],
        "`bs`; reads and writes may have different sizes (`4k,64k`)",
    ),
    translated(
        &["bssplit"],
        "`bssplit`; reads and writes may have different mixes",
    ),
    translated(
        &["bsrange/blocksize_range"],
        "a mix of all multiples of the smaller size up to the larger one",
    ),
    translated(
        &["blockalign/ba"],
        "the multiple of random offsets; sequential operations ignore it, as in fio",
    ),
    translated(
        &["ioengine"],
        "`engine`: `libaio` aio, `io_uring` uring, `sync`, `psync`, `vsync`, `pvsync`, `pvsync2` \
         sync, `posixaio` sync at depth 1, as the C library works, `mmap` mmap; others are refused",
    ),
    translated(
        &["iodepth"],
        "`depth`; 1 with engines that take one request at a time, as in fio",
    ),
    translated(
        &["io_submit_mode"],
        "`inline` is ignored; with `offload`, which uses a thread per request, `iodepth` also \
         applies to engines that take one request at a time",
    ),
    translated(&["numjobs"], "`jobs`, or that many workloads (see above)"),
    translated(
        &["direct"],
        "`direct=0`, which is fio's default, is `buffered` or `cached` (see above)",
    ),
    translated(&["buffered"], "the opposite of `direct`"),
    translated(
        &["invalidate"],
        "0 is `cached`; with 1 `as fio` drops the file from the page cache at the start and after \
         each lap, as in fio",
    ),
    translated(&["runtime/timeout"], "`time`"),
    translated(
        &["time_based"],
        "without it a job also ends after its `size`",
    ),
    translated(
        &["ramp_time"],
        "`warmup`; concurrent jobs share the longest one",
    ),
    translated(
        &["stonewall/wait_for_previous"],
        "the job waits for the earlier ones; without it, jobs run concurrently (`together`)",
    ),
    translated(&["exitall"], "the default: concurrent jobs end together"),
    translated(
        &["exit_what"],
        "`group` or `stonewall`, or `all` in the last group of jobs; otherwise refused",
    ),
    translated(
        &["rate_iops"],
        "`rate`, over all jobs; latency counts from the intended start",
    ),
    translated(
        &["rate"],
        "`rate`: bytes per second, divided by the block size",
    ),
    translated(
        &["random_distribution"],
        "`random`, `zipf:THETA`, `pareto:POWER`, `normal:DEVIATION` and `zoned:` have the same \
         meaning; others are refused",
    ),
    translated(
        &["norandommap"],
        "random offsets are independent of each other; without it each copy visits every block \
         once before it visits one again",
    ),
    translated(
        &["fsync", "fdatasync"],
        "the same; ignored if the job only reads",
    ),
    translated(
        &["sync"],
        "the same (`1` is `sync`); ignored if the job only reads",
    ),
    translated(
        &["end_fsync", "fsync_on_close"],
        "`end-fsync`; ignored with `fsync` or `fdatasync`, or if the job only reads",
    ),
    translated(
        &["verify"],
        "checksums (`md5`, `crc…`, `sha…`, `xxhash`), `meta` and `pattern` are `verify`, with \
         diskproof's own checksums in random data. A job that only reads checks what an \
         earlier job or run wrote with `verify`",
    ),
    translated(
        &["do_verify"],
        "with 0 the blocks get checksums but are not checked; a later job or run can check them",
    ),
    translated(
        &["verify_only"],
        "the job reads and checks the blocks that it would write",
    ),
    translated(
        &["verify_backlog"],
        "everything is read back after all writes",
    ),
    translated(
        &["verify_pattern"],
        "the blocks of `verify` hold random data and diskproof's own checksums",
    ),
    translated(
        &["zero_buffers", "buffer_pattern"],
        "the data of writes; `verify` overrides it, as in fio",
    ),
    translated(
        &["buffer_compress_percentage", "buffer_compress_chunk"],
        "the data of writes: a part of each chunk is zeros or `buffer_pattern`",
    ),
    translated(
        &[
            "dedupe_percentage",
            "dedupe_mode",
            "dedupe_working_set_percentage",
            "dedupe_global",
        ],
        "the data of writes: a part of the blocks repeats others",
    ),
    translated(
        &["refill_buffers", "scramble_buffers"],
        "written data is always new, except with `scramble_buffers=0` and without \
         `refill_buffers`: then each buffer keeps its first data",
    ),
    translated(&["kb_base"], "the meaning of `k` and `kib`"),
    translated(
        &["overwrite"],
        "the default: the scratch file is filled before its first use; without this option fio \
         would write to a new file, and a note on stderr says so",
    ),
    translated(
        &["rw_sequencer"],
        "the offsets between two random ones: `sequential` or `identical`",
    ),
    translated(
        &["rate_process"],
        "`linear` starts requests at equal intervals, `poisson` at random times",
    ),
    translated(
        &[
            "thinktime",
            "thinktime_blocks",
            "thinktime_blocks_type",
            "thinktime_iotime",
        ],
        "a pause of each copy after its requests in flight have completed",
    ),
    translated(
        &["startdelay"],
        "the job starts and ends this much later; ranges are refused",
    ),
    translated(
        &["wait_for"],
        "the job starts when that job ends; refused if other jobs would run at the same time",
    ),
    translated(
        &["max_latency"],
        "a longer latency ends the job within 10 ms, and `as fio` fails with error 110, as in fio",
    ),
    translated(
        &["rate_min/ratemin", "rate_iops_min", "rate_cycle/ratecycle"],
        "a lower rate of a copy over `rate_cycle` ends the job, and `as fio` fails with error 5, \
         as in fio",
    ),
    translated(
        &[
            "steadystate/ss",
            "steadystate_duration/ss_dur",
            "steadystate_ramp_time/ss_ramp",
            "steadystate_check_interval/ss_interval",
        ],
        "the job ends when its rate or mean latency is steady: `iops:`, `bw:`, `lat:`, \
         `iops_slope:`, `bw_slope:` or `lat_slope:`. `group_reporting` over several jobs or copies \
         is refused",
    ),
    translated(
        &["flow", "flow_id", "flow_sleep"],
        "concurrent jobs get shares of the operations by weight",
    ),
    translated(
        &["fill_device/fill_fs"],
        "an existing file or device is written to its end, regardless of `size`; a new file is \
         refused, because it would leave no free space",
    ),
    translated(
        &["mem/iomem"],
        "`as fio` uses huge pages only with `mmaphuge` and `shmhuge`; `diskproof run` uses them \
         whenever the kernel has them",
    ),
    translated(
        &["latency_target", "latency_window", "latency_percentile"],
        "the job searches for the greatest depth up to `iodepth` that meets the latency; it runs \
         alone until the depth is found or `runtime` is over, regardless of its size",
    ),
    translated(
        &["zonemode", "zonesize", "zonerange", "zoneskip"],
        "`strided` with `read` or `write`: parts of the file in turn; `zbd`, random requests and \
         another `zonerange` are refused",
    ),
    translated(
        &["cpus_allowed", "cpumask", "cpus_allowed_policy"],
        "the processors of the job's threads; the policy `split` is refused",
    ),
    translated(
        &["prio", "prioclass", "nice"],
        "the I/O priority (as ionice sets it) and nice value of the job's threads",
    ),
    ignored(&["thread/threads", "comm"], "threads are always used"),
    ignored(
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
        "display of results",
    ),
    ignored(
        &[
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
    ignored(
        &[
            "write_bw_log",
            "write_iops_log",
            "write_lat_log",
            "log_avg_msec",
            "write_hist_log",
            "log_hist_msec",
            "log_hist_coarseness",
        ],
        "series and histograms are always recorded: -o FILE.json, .csv, .hlog; `as fio` writes \
         the log",
    ),
    ignored(
        &["write_iolog"],
        "single requests are not recorded; `as fio` refuses this log",
    ),
    ignored(
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
        "every latency is measured",
    ),
    ignored(
        &["iomem_align/mem_align", "lockmem", "hugepage-size"],
        "diskproof allocates its own buffers",
    ),
    ignored(
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
        "diskproof chooses how to submit requests",
    ),
    ignored(
        &[
            "randrepeat/allrandrepeat",
            "randseed",
            "random_generator",
            "softrandommap",
        ],
        "--seed decides the offsets",
    ),
    ignored(
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
        "the scratch file is filled before its first use, and vanishes",
    ),
    ignored(
        &["allow_mounted_write"],
        "diskproof never writes to a device in use",
    ),
    ignored(
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
        "diskproof's own checksums identify every bad block",
    ),
    ignored(
        &["continue_on_error", "ignore_error", "exitall_on_error"],
        "errors are counted by kind; a disk that returns only errors ends the run",
    ),
    ignored(
        &["cgroup_nodelete"],
        "no effect without the option to which it belongs",
    ),
    ignored(
        &[
            "rate_ignore_thinktime",
            "trim_verify_zero",
            "trim_backlog_batch",
            "verify_backlog_batch",
        ],
        "no effect without the option to which it belongs",
    ),
    refused(&["thinkcycles", "thinktime_spin"], &["0", "0s", "0us"]),
    refused(&["ramp_size"], ZERO),
    refused(&["sync_file_range"], ALWAYS),
    refused(&["write_barrier", "end_syncfs"], ZERO),
    refused(&["percentage_random"], &["100"]),
    refused(&["percentage_sequential"], ZERO),
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
    refused(&["latency_run"], ZERO),
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
    refused(&["verify_pattern_interval", "verify_state_load"], ZERO),
    refused(
        &["file_append", "pre_read", "create_only", "unlink_each_loop"],
        ZERO,
    ),
    refused(&["opendir"], ALWAYS),
    refused(&["lockfile"], NONE),
    refused(
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
        ZERO,
    ),
    refused(&["fdp"], ZERO),
    refused(&["dataplacement/data_placement", "write_hint"], NONE),
    refused(
        &["plid_select/fdp_pli_select", "plids/fdp_pli", "dp_scheme"],
        ALWAYS,
    ),
    refused(&["flow_watermark"], ZERO),
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
        ALWAYS,
    ),
    refused(&["exec_prerun", "exec_postrun"], ALWAYS),
    refused(&["ioscheduler"], ALWAYS),
    refused(&["numa_cpu_nodes", "numa_mem_policy"], ALWAYS),
    refused(&["priohint"], ALWAYS),
    refused(
        &[
            "cmdprio",
            "cmdprio_percentage",
            "cmdprio_class",
            "cmdprio_hint",
            "cmdprio_bssplit",
        ],
        ALWAYS,
    ),
    refused(&["cgroup", "cgroup_weight", "uid", "gid"], ALWAYS),
    refused(&["profile"], ALWAYS),
    refused(&["gpu_dev_id", "rwmixcycle", "thp"], ZERO),
];

/// The first of an option's names.
pub(crate) fn canonical(key: &str) -> Option<&'static str> {
    row_and_name(key).map(|(_, name)| name)
}

/// The row of an option.
pub(crate) fn row(key: &str) -> Option<&'static OptionRow> {
    row_and_name(key).map(|(row, _)| row)
}

fn row_and_name(key: &str) -> Option<(&'static OptionRow, &'static str)> {
    BY_NAME.get(key).copied()
}

/// The row and the first name of each name. A map, because a file may have a million settings.
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
pub(crate) fn refusal(name: &str) -> &'static str {
    answer_to_fio(name).unwrap_or("is not supported; remove it")
}
