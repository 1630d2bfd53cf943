//! The load of each job: defaults, options, limits and the page cache.

use super::*;
use crate::workload::Count;
use diskproof_compat::fio_values;
use diskproof_model::plan::BlockShare;
use diskproof_model::shape::{Arrivals, RandomRun, RunFollow, ThinkCount, ThinkTime};

#[test]
fn job_without_options_has_the_defaults_of_fio() {
    let flags = only("");
    assert_eq!(flags.rw.unwrap().as_str(), "read");
    assert_eq!(
        (
            flags.bs.unwrap().0,
            flags.depth.unwrap().0,
            flags.jobs.unwrap().0,
            flags.engine
        ),
        (4096, 1, 1, Some(EngineChoice::Fixed(EngineKind::Sync)))
    );
    assert_eq!(
        (
            flags.buffered,
            flags.cached,
            flags.time,
            flags.warmup.unwrap().0
        ),
        (Some(true), None, None, 0)
    );
    assert_eq!(
        (flags.bytes.unwrap().0, flags.span, flags.together),
        (8 * GIB, None, None),
        "once through the device"
    );
    let message = notes("[job]\nfilename=/dev/sda\n");
    assert!(
        message.starts_with("direct=0 (fio's default)") && message.lines().count() == 1,
        "{message}"
    );
}

#[test]
fn map_of_visited_blocks_is_that_of_fio() {
    let once = |text: &str| only(text).shape.each_block_once;
    assert!(once("rw=randread") && once("rw=randrw\nsize=1g") && once("rw=randread:8"));
    for other in [
        "rw=read",
        "rw=randread\nnorandommap",
        "rw=randread\nrandom_distribution=zipf",
        "rw=randread\nblockalign=8k",
        "rw=randread\nbssplit=4k/50:8k/50",
    ] {
        assert!(!once(other), "{other}");
    }
}

#[test]
fn skewed_distributions_are_those_of_fio() {
    use diskproof_model::plan::Distribution;
    for (value, law) in [
        ("pareto", Distribution::Pareto { share: 0.2 }),
        ("pareto:0.3", Distribution::Pareto { share: 0.3 }),
        (
            "normal",
            Distribution::Normal {
                spread_percent: 0.0,
            },
        ),
        (
            "normal:12.5",
            Distribution::Normal {
                spread_percent: 12.5,
            },
        ),
        ("zipf", Distribution::Zipf { theta: 1.1 }),
    ] {
        let flags = only(&format!("rw=randread\nrandom_distribution={value}"));
        assert_eq!(
            flags.distribution.map(|found| found.0),
            Some(law),
            "{value}"
        );
        assert!(!flags.shape.each_block_once, "{value}");
    }
    for value in ["pareto:1", "normal:100", "zipf:1.2:0.5", "cauchy"] {
        refused(&format!(
            "[job]\nrw=randread\nsize=1m\nrandom_distribution={value}\n"
        ));
    }
}

#[test]
fn data_of_writes_is_that_of_fio() {
    use diskproof_model::shape::WriteContent;
    let content = |options: &str| only(&format!("rw=write\nbs=8k\n{options}")).shape.content;
    let of = |filler_percent, filler: &[u8], chunk_bytes| WriteContent {
        filler_percent,
        filler: filler.to_vec(),
        chunk_bytes,
        ..WriteContent::default()
    };
    assert_eq!(content("zero_buffers"), Some(of(100, &[], 512)));
    assert_eq!(
        content("buffer_pattern=0xab12"),
        Some(of(100, &[0xab, 0x12], 512))
    );
    assert_eq!(
        content("buffer_compress_percentage=40\nbuffer_compress_chunk=16k\nbuffer_pattern=7"),
        Some(of(40, &[7], 8192))
    );
    assert_eq!(
        content("dedupe_percentage=50\nzero_buffers"),
        Some(WriteContent {
            repeat_percent: 50,
            ..of(0, &[], 512)
        })
    );
    assert_eq!(
        content(
            "dedupe_percentage=50\ndedupe_mode=working_set\nsize=100m\ndedupe_global=1\n\
             dedupe_working_set_percentage=50"
        ),
        Some(WriteContent {
            repeat_percent: 50,
            repeated_blocks: 6400,
            shares_repeated: true,
            ..of(0, &[], 512)
        })
    );
    assert_eq!(
        content("scramble_buffers=0"),
        Some(WriteContent {
            keeps_buffers: true,
            ..of(0, &[], 512)
        })
    );
    // New data each time; and what verify writes is its own.
    for options in [
        "",
        "refill_buffers\nscramble_buffers=0",
        "zero_buffers\nverify=crc32c",
    ] {
        assert_eq!(content(options), None, "{options}");
    }
    assert_eq!(only("rw=read\nzero_buffers").shape.content, None);
}

#[test]
fn scheduling_of_threads_is_that_of_fio() {
    use diskproof_model::shape::{IoPriority, ThreadScheduling};
    let of = |options: &str| only(options).shape.scheduling;
    assert_eq!(
        of("cpus_allowed=0-1,3\nprio=4\nnice=-3"),
        Some(ThreadScheduling {
            cpus: vec![0, 1, 3],
            // Best effort, without a class.
            io_priority: Some(IoPriority { class: 2, level: 4 }),
            nice: -3,
        })
    );
    assert_eq!(of("cpumask=5").map(|found| found.cpus), Some(vec![0, 2]));
    let idle = of("prioclass=3").and_then(|found| found.io_priority);
    assert_eq!(idle, Some(IoPriority { class: 3, level: 0 }));
    assert_eq!(of("nice=0"), None);
}

#[test]
fn steady_state_ends_each_job_by_itself() {
    use diskproof_model::shape::{SteadyEnd, SteadyFigure, SteadyTest};
    const SECOND: u64 = 1_000_000_000;
    let of = |options: &str| only(options).shape.steady;
    let wanted = SteadyEnd {
        figure: SteadyFigure::Ops,
        test: SteadyTest::Deviation,
        limit: 2.5,
        is_percent: true,
        over_ns: 30 * SECOND,
        settle_ns: 5 * SECOND,
        every_ns: SECOND,
    };
    assert_eq!(
        of("steadystate=iops:2.5%\nss_dur=30\nss_ramp=5s"),
        Some(wanted)
    );
    assert_eq!(
        of("ss=bw_slope:10k\nss_dur=30\nss_ramp=5s\nss_interval=2"),
        Some(SteadyEnd {
            figure: SteadyFigure::Bytes,
            test: SteadyTest::Slope,
            limit: 10240.0,
            is_percent: false,
            every_ns: 2 * SECOND,
            ..wanted
        })
    );
    let latency = of("ss=lat:20us\nss_dur=30").map(|end| (end.figure, end.limit));
    assert_eq!(latency, Some((SteadyFigure::Latency, 20_000.0)));
    // Without a duration fio ignores it.
    assert_eq!(of("ss=iops:2%"), None);
    let copies = "[a]\nfilename=/dev/sda\nrw=randread\nnumjobs=2\nss=iops:2%\nss_dur=3\n";
    assert_eq!(plan(copies).workloads.len(), 2);
}

#[test]
fn jobs_keep_to_shares_by_weight() {
    use diskproof_model::shape::FlowShare;
    let of = |options: &str| only(options).shape.flow;
    let share = FlowShare {
        number: 3,
        weight: 2,
        pause_ns: 1_000_000,
    };
    assert_eq!(of("flow=2\nflow_id=3\nflow_sleep=1000"), Some(share));
    assert_eq!(of("flow=0"), None);
    assert_eq!(of("flow_sleep=1000"), None);
}

#[test]
fn strided_zones_transfer_the_size_of_the_job() {
    use diskproof_model::shape::ZoneStride;
    let text = |options: &str| only(&format!("bs=1m\n{options}"));
    let flags = text("zonemode=strided\nzonesize=4m\nzoneskip=12m\nsize=40m");
    let stride = ZoneStride {
        zone_bytes: 4 * MIB,
        skip_bytes: 12 * MIB,
    };
    assert_eq!(flags.shape.zone_stride, Some(stride));
    // The zones go on to the end of the device.
    assert_eq!(
        (flags.bytes.map(|bytes| bytes.0), flags.span),
        (Some(40 * MIB), None)
    );
    // On a scratch file of 64 MiB, whose end cuts the third zone short.
    let scratch = "[a]\ndirectory=/data\nbs=1m\nzonesize=10m\nzoneskip=20m\nsize=64m\n";
    let bytes = plan(scratch).workloads[0].flags.bytes.map(|bytes| bytes.0);
    assert_eq!(bytes, Some(24 * MIB));
    assert_eq!(text("zonemode=none\nzonesize=1m").shape.zone_stride, None);
}

#[test]
fn kinds_of_verify_become_own_checksums() {
    let text = |options: &str| format!("[job]\nfilename=/dev/sda\nrw=write\n{options}\n");
    for kind in [
        "crc32c",
        "md5",
        "sha256",
        "xxhash",
        "meta",
        "pattern\nverify_pattern=0xaa",
    ] {
        let options = format!("verify={kind}");
        assert_eq!(
            only(&format!("rw=write\n{options}")).verify,
            Some(true),
            "{kind}"
        );
        let has_pattern = kind.starts_with("pattern") || kind == "meta";
        assert_eq!(
            notes(&text(&options)).contains("instead of the pattern"),
            has_pattern,
            "{kind}"
        );
    }
    for options in ["verify=null", "verify=0"] {
        let job = only(&format!("rw=write\n{options}"));
        assert_eq!((job.verify, job.signs_only), (None, false), "{options}");
    }
}

#[test]
fn files_of_one_job_become_one_of_their_size() {
    for rw in ["rw=randread", "rw=write\nfile_service_type=sequential"] {
        let text = format!("[job]\ndirectory=/data\n{rw}\nnrfiles=4\nsize=64m\n");
        let read = translated(&text, CliOverrides::default()).unwrap();
        assert_eq!(read.plan.size.map(|size| size.0), Some(64 * MIB), "{rw}");
        assert!(
            read.notes.join("\n").contains("the files of a job"),
            "{:?}",
            read.notes
        );
    }
    for other in [
        "rw=read",
        "rw=randread\nrandom_distribution=zipf",
        "rw=randread\nfilesize=1m",
    ] {
        let text = format!("[job]\ndirectory=/data\n{other}\nnrfiles=4\nsize=64m\n");
        let error = translated(&text, CliOverrides::default()).unwrap_err();
        assert!(error.contains("several files for one job"), "{error}");
    }
}

#[test]
fn job_options_become_workload_keys() {
    let flags = only(
        "rw=randrw\nbs=8k\niodepth=32\nioengine=libaio\ndirect=1\nnumjobs=4\nrwmixread=70\n\
         size=1g\noffset=2g\nruntime=60\nramp_time=5s\ntime_based\nnorandommap\nfsync=16",
    );
    assert_eq!(
        (
            flags.rw.unwrap().as_str(),
            flags.bs.unwrap().0,
            flags.depth.unwrap().0,
            flags.jobs.unwrap().0
        ),
        ("randrw", 8192, 32, 4)
    );
    assert_eq!(
        (
            flags.rwmixread.unwrap().0,
            flags.time.unwrap().0,
            flags.warmup.unwrap().0
        ),
        (700, 60_000_000_000, 5_000_000_000)
    );
    assert_eq!(
        (
            span(&flags),
            flags.bytes,
            flags.engine,
            flags.fsync.unwrap().0
        ),
        (
            Some((2 * GIB, 3 * GIB)),
            None,
            Some(EngineChoice::Fixed(EngineKind::Aio)),
            16
        )
    );
    assert_eq!((flags.buffered, flags.cached), (None, None));
}

#[test]
fn repeated_options_take_the_later_value() {
    assert_eq!(
        only("rw=rw\nrwmixread=70\nrwmixwrite=60")
            .rwmixread
            .unwrap()
            .0,
        400,
        "the later one counts"
    );
    assert_eq!(
        only("rw=rw\nrwmixwrite=60\nrwmixread=70")
            .rwmixread
            .unwrap()
            .0,
        700
    );
    assert_eq!(
        only("readwrite=write\nblocksize=64K\ndirect=1\nbuffered=1").buffered,
        Some(true)
    );
}

#[test]
fn block_sizes_and_patterns_become_workload_keys() {
    assert_eq!(only("bs=8k,4k").bs.unwrap().0, 8192);
    assert_eq!(only("bs=8k,4k\nrw=write").bs.unwrap().0, 4096);
    assert_eq!(
        only("bssplit=4k/50:1k/:32k/")
            .bssplit
            .unwrap()
            .0
            .iter()
            .map(|share| share.weight)
            .collect::<Vec<_>>(),
        [50, 25, 25]
    );
    assert_eq!(
        (
            only("rw=read:8k").stride.unwrap().0,
            only("rw=read:-8k").backward
        ),
        (12288, Some(true))
    );
    assert!(
        only("rw=randread\nrandom_distribution=zoned:50/5:30/15:20/")
            .zones
            .is_some()
    );
    assert!(
        only("rw=randread\nrandom_distribution=zipf")
            .distribution
            .is_some()
    );
}

#[test]
fn depth_needs_an_engine_with_a_queue() {
    assert_eq!(only("ioengine=io_uring\niodepth=8").depth.unwrap().0, 8);
    assert_eq!(only("ioengine=psync\niodepth=8").depth.unwrap().0, 1);
    assert_eq!(
        only("ioengine=psync\niodepth=8\nio_submit_mode=offload")
            .depth
            .unwrap()
            .0,
        8
    );
}

#[test]
fn verify_becomes_a_workload_key() {
    assert_eq!(
        (
            only("rw=randwrite\nverify=crc32c").verify,
            only("rw=randwrite\nverify=0").verify
        ),
        (Some(true), None)
    );
    // Blocks for a later job or run, which reads and checks them.
    let signed = only("rw=write\nverify=md5\ndo_verify=0");
    assert_eq!((signed.verify, signed.signs_only), (None, true));
    for text in ["rw=read\nverify=md5", "rw=write\nverify=md5\nverify_only"] {
        let job = only(text);
        assert!(job.verify == Some(true) && !job.writes(), "{text}");
    }
    let unchecked = only("rw=read\nverify=md5\ndo_verify=0");
    assert_eq!((unchecked.verify, unchecked.signs_only), (None, false));
    let order = only("rw=randwrite\nverify=md5\nverify_only=1").rw;
    assert!(
        order.is_some_and(|rw| rw.as_str() == "randread"),
        "{order:?}"
    );
    let later = notes("[job]\nfilename=/dev/sda\nrw=write\nverify=md5\nverify_backlog=8\n");
    assert!(later.contains("fio reads back while it writes"), "{later}");
}

/// The limits of a job: bytes and operations.
fn end(options: &str) -> (Option<u64>, Option<u64>) {
    let flags = only(options);
    (flags.bytes.map(|bytes| bytes.0), flags.ops.map(|ops| ops.0))
}

#[test]
fn limits_cover_all_copies() {
    assert_eq!(
        end("rw=randread\nsize=1g\nnumjobs=4"),
        (Some(4 * GIB), None)
    );
    assert_eq!(
        end("rw=randread\nsize=1g\nnumjobs=2\nloops=3"),
        (Some(6 * GIB), None)
    );
    assert_eq!(
        end("rw=randread\nsize=1g\nio_size=10m\nnumjobs=2"),
        (Some(20 * MIB), None)
    );
    assert_eq!(
        end("rw=randread\nsize=1g\nio_size=10m\nloops=3"),
        (Some(30 * MIB), None)
    );
    assert_eq!(
        end("rw=randread\nsize=1g\nnumber_ios=100\nloops=3"),
        (None, Some(300))
    );
    assert_eq!(
        end("rw=randread\nsize=1g\nnumber_ios=100\nnumjobs=2"),
        (None, Some(200)),
        "of two limits the first"
    );
}

#[test]
fn size_and_operations_end_a_job_at_the_smaller_limit() {
    assert_eq!(
        end("rw=randread\nsize=8k\nnumber_ios=100"),
        (Some(8192), None)
    );
    assert_eq!(
        end("rw=randread\nsize=1g\nnumber_ios=100\nbssplit=4k/50:8k/50"),
        (Some(GIB), Some(100))
    );
    assert_eq!(end("rw=randread\nsize=50%"), (Some(4 * GIB), None));
}

#[test]
fn size_is_rounded_to_blocks() {
    assert_eq!(
        end("bs=1000\nsize=4500"),
        (Some(4000), None),
        "whole blocks"
    );
    assert_eq!(
        (
            end("rw=randread\nbs=1000\nsize=4500"),
            end("rw=randread\nbs=1000\nsize=4500\nnorandommap")
        ),
        ((Some(4000), None), (Some(5000), None))
    );
    assert_eq!(
        end("bs=1000\nsize=9k\nio_size=4500"),
        (Some(5000), None),
        "enough"
    );
}

#[test]
fn stride_limits_a_job_to_its_laps() {
    assert_eq!(
        (
            end("rw=read:8k\nsize=256k"),
            end("rw=read:8k\nsize=256k\nnumber_ios=50").0
        ),
        ((Some(22 * 4096), None), Some(22 * 4096)),
        "one lap"
    );
    let bytes = |options: &str| {
        plan(&format!("[a]\ndirectory=/data\n{options}")).workloads[0]
            .flags
            .bytes
            .unwrap()
            .0
    };
    assert_eq!(
        (
            bytes("rw=read:8k\nsize=100000"),
            bytes("rw=read:8k\nsize=96k")
        ),
        (8 * 4096, 96 * 1024),
        "over the end, and behind it"
    );
    assert_eq!(bytes("rw=read:8k\nsize=256k"), 22 * 4096, "at the end");
    assert_eq!(bytes("rw=randread\nsize=100000\nnorandommap"), 25 * 4096);
    assert_eq!(
        end("rw=read:8k\nsize=256k\nloops=3"),
        (Some(3 * 22 * 4096), None)
    );
    assert_eq!(
        end("rw=read:8k\nsize=256k\nio_size=256k"),
        (Some(256 * 1024), None),
        "several laps"
    );
}

#[test]
fn runtime_does_not_replace_the_size() {
    assert_eq!(
        end("runtime=10"),
        (Some(8 * GIB), None),
        "without time_based whichever comes first"
    );
    assert_eq!(
        end("time_based"),
        (Some(8 * GIB), None),
        "which is nothing without a runtime"
    );
}

#[test]
fn rate_covers_all_copies() {
    let rate = |options: &str| only(options).rate.unwrap().0;
    assert_eq!(rate("rw=randread\nrate_iops=100\nnumjobs=4"), 400.0);
    assert_eq!(rate("rate=1m\nbs=8k"), 128.0);
    assert_eq!(rate("rw=randrw\nrate_iops=70,30\nrwmixread=70"), 100.0);
    assert_eq!(only("rw=randrw\nrate_iops=0").rate, None);
}

#[test]
fn page_cache_is_used_as_in_fio() {
    let caches = |text: &str| {
        let plan = plan(&format!("[global]\nfilename=/dev/sda\n{text}"));
        plan.workloads
            .iter()
            .map(|w| (w.flags.buffered.is_some(), w.flags.cached.is_some()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        caches("[a]\ndirect=1\n[b]\nbuffered=0\n[c]\ninvalidate=0\n"),
        [(false, false), (false, false), (false, true)]
    );
    assert_eq!(
        caches("[a]\nrw=write\nfdatasync=1\n"),
        [(false, true)],
        "what is synced need not be written back"
    );
    assert_eq!(
        caches("[a]\nrw=write\nfdatasync=1\n[b]\nrw=randread\n"),
        [(true, false), (true, false)],
        "a target has one page cache"
    );
    assert_eq!(caches("[a]\nrw=rw\nfsync=1\n"), [(true, false)]);
    assert_eq!(
        only("rw=read\nfsync=1\nend_fsync=1").fsync,
        None,
        "the job only reads"
    );
    assert_eq!(
        (
            only("rw=write\nend_fsync=1").end_fsync,
            only("rw=write\nfsync=1\nend_fsync=1").end_fsync
        ),
        (Some(true), None)
    );
}

/// Options that change the load, and a part of the message that refuses each.
const REFUSED_OPTIONS: &[(&str, &str)] = &[
    (
        "ioengine=net\nhostname=x",
        "line 3: ioengine=net: use the real fio",
    ),
    (
        "ioengine=sg",
        "line 3: ioengine=sg: this value is not supported",
    ),
    ("ioengine=filecreate", "use diskproof files DIR"),
    ("ioengine=dirdelete", "use diskproof files DIR"),
    (
        "rw=randtrim\nverify=crc32c",
        "trims leave nothing to verify",
    ),
    ("rw=trimwrite\nbs=4k,8k,4k", "one size for writes and trims"),
    ("rw=trimwrite\nbssplit=4k,8k,4k", "one size for writes"),
    ("rw=trimread", "randtrimwrite"),
    (
        "thinktime=20\nthinktime_spin=10",
        "line 4: thinktime_spin=10: [job]: fio's 'thinktime_spin' is not supported",
    ),
    (
        "thinktime=10\nrate_ignore_thinktime=1",
        "due during a pause",
    ),
    (
        "rw=write\nbuffer_pattern=0xab\nscramble_buffers=1",
        "changes the pattern",
    ),
    ("rw=write\nbuffer_pattern='file'", "files are not supported"),
    ("rw=write\ndedupe_percentage=101", "use at most 100"),
    (
        "rw=write\ndedupe_percentage=5\ndedupe_mode=working_set",
        "set size in bytes",
    ),
    (
        "rw=write\ndedupe_mode=other",
        "use one of repeat, working_set",
    ),
    ("rw=write\nsync=2", "use one of none, sync, dsync"),
    ("zonemode=zbd", "use strided, or the real fio"),
    ("zonemode=other", "use one of none, strided"),
    ("zonemode=strided", "it needs a zonesize"),
    ("zonesize=1m\nzonerange=2m", "a zonerange other than"),
    ("rw=randread\nzonesize=1m", "with read and write"),
    ("ss=iops:5%\nss_dur=1", "less than two check intervals"),
    (
        "ss=iops:5%\nss_dur=5\nnumjobs=2\ngroup_reporting",
        "the sum of several jobs",
    ),
    ("cpus_allowed=3-1", "write numbers and ranges"),
    (
        "cpus_allowed=0-1\ncpus_allowed_policy=split",
        "a section with cpus_allowed for each copy",
    ),
    ("prio=8", "use at most 7"),
    ("nice=20", "write -20 to 19"),
    ("latency_target=5ms\nlatency_run=1", "fio's 'latency_run'"),
    ("latency_target=500\nlatency_percentile=101", "use 1 to 100"),
    ("rw=randread:-8", "write 1 to"),
    ("rw=read:-4k", "write -8192 for this bs"),
    ("rw=rw\nbs=4k,1025m", "is too large"),
    ("rw=rw\nblockalign=4k,8k", "share one value"),
    ("bsrange=8k-4k", "write a smaller and a larger size"),
    (
        "random_distribution=zipf:1.2:0.5\nrw=randread",
        "this distribution is not supported",
    ),
    ("nrfiles=4", "several files for one job"),
    ("rw=write\nverify_only", "it needs verify"),
    (
        "rw=rw\nverify=md5\nverify_only",
        "the blocks that a mix wrote",
    ),
    (
        "verify_state_load=1\nverify=md5",
        "fio's 'verify_state_load'",
    ),
    ("verify=other\nrw=write", "verifies with checksums"),
    ("rate_iops=100,100,x", "'x' is not a fio number"),
    ("rate_process=poisson", "it needs a rate"),
    (
        "rate_process=other\nrate_iops=5",
        "use one of linear, poisson",
    ),
    (
        "rw=randrw\nrate_iops=10000,3",
        "differ too much for one workload",
    ),
    ("startdelay=5-10", "not a fio time"),
    ("wait_for=b\n[b]\nfilename=/dev/sda", "no job above"),
    (
        "exec_prerun=rm -rf /",
        "files cannot make diskproof run other programs",
    ),
    ("bs=1.5k", "line 3: bs=1.5k: '1.5k' is not a fio number"),
    ("runtime=30sec", "not a fio time"),
    (
        "nonsense=1",
        "line 3: nonsense=1: fio 3.42 has no such option",
    ),
    ("bs", "line 3: bs: the value is missing"),
    ("bs=1025m", "a block of 1074790400 is too large"),
    ("numjobs=5000", "line 3: numjobs=5000: 5000 is too large"),
    (
        "rw=read:-8k\nsize=1m\nio_size=2m",
        "a backward job transfers less than io_size in one pass",
    ),
    (
        "rw=read:-8k\nsize=1m\noffset=1m",
        "fio ends a backward job with an offset",
    ),
    ("size=100", "smaller than a block"),
    ("offset=9g", "starts after the end"),
];

#[test]
fn job_file_refuses_options_that_change_the_load() {
    for (options, part) in REFUSED_OPTIONS {
        let message = refused(&format!("[job]\nfilename=/dev/sda\n{options}\n"));
        assert!(
            message.starts_with("jobs/x.fio: line ") && message.contains(part),
            "{options}: {message}"
        );
    }
}

#[test]
fn job_options_shape_the_load() {
    let shape = |options: &str| only(options).shape;
    let mix = |mix: &[BlockShare]| -> Vec<(u32, u32)> {
        mix.iter()
            .map(|share| (share.block_bytes, share.weight))
            .collect()
    };
    let sizes = |options: &str| {
        let flags = only(options);
        (
            flags.bs.map(|bs| bs.0),
            flags.bssplit.map(|split| mix(&split.0)),
            mix(&flags.other_sizes),
        )
    };
    assert_eq!(
        sizes("rw=randrw\nbs=4k,64k"),
        (Some(4096), None, vec![(65536, 1)])
    );
    assert_eq!(sizes("rw=randrw\nbs=8k,8k"), (Some(8192), None, vec![]));
    assert_eq!(
        sizes("rw=randwrite\nbs=4k,64k"),
        (Some(65536), None, vec![])
    );
    assert_eq!(
        sizes("rw=rw\nbssplit=4k/50:8k/50,16k"),
        (None, Some(vec![(4096, 50), (8192, 50)]), vec![(16384, 1)])
    );
    assert_eq!(
        sizes("rw=read\nbsrange=4k-12k"),
        (None, Some(vec![(4096, 1), (8192, 1), (12288, 1)]), vec![])
    );
    assert_eq!(
        shape("rw=randread\nbs=512\nblockalign=4k").align_bytes,
        Some(4096)
    );
    assert_eq!(shape("rw=read\nblockalign=64k").align_bytes, None);
    assert_eq!(
        shape("rw=randread:8\nrw_sequencer=identical").random_run,
        Some(RandomRun {
            run_ops: 8,
            follow: RunFollow::Identical
        })
    );
    assert_eq!(
        shape("rate_iops=50\nrate_process=poisson").arrivals,
        Arrivals::Poisson
    );
}

#[test]
fn job_options_limit_and_pause_the_load() {
    let shape = |options: &str| only(options).shape;
    let think = ThinkTime {
        pause_ns: 2_000_000,
        pause_ops: 1,
        counted: ThinkCount::Completed,
        busy_ns: None,
    };
    assert_eq!(shape("thinktime=2000").think, Some(think));
    assert_eq!(
        shape("thinktime=2ms\nthinktime_iotime=3\nthinktime_blocks_type=issue").think,
        Some(ThinkTime {
            pause_ops: 0,
            counted: ThinkCount::Started,
            busy_ns: Some(3_000_000_000),
            ..think
        })
    );
    let limited = shape("rw=rw\nmax_latency=500\nrate_min=1m,2m\nstartdelay=4");
    assert_eq!(
        (limited.latency_limit_ns, limited.start_delay_ns),
        (Some(500_000), 4_000_000_000)
    );
    let floors = limited.rate_floors.iter();
    let floors: Vec<_> = floors.map(|floor| (floor.of_writes, floor.floor)).collect();
    assert_eq!(floors, [(false, 1_048_576.0), (true, 2_097_152.0)]);
}

#[test]
fn wait_for_starts_a_job_after_another() {
    let together = |text: &str| {
        let file = translated(text, CliOverrides::default())?;
        let workloads = file.plan.workloads.into_iter();
        Ok::<_, String>(
            workloads
                .map(|one| one.flags.together == Some(true))
                .collect::<Vec<_>>(),
        )
    };
    let head = "[global]\nfilename=/dev/sda\n[a]\n";
    // As in fio's examples/waitfor.fio.
    assert_eq!(
        together(&format!(
            "{head}[b]\nwait_for=a\n[c]\nwait_for=a\n[d]\nwait_for=b\n"
        )),
        Err(
            "jobs/x.fio: line 9: [d]: wait_for=b: other jobs would still run at that time, \
             but a workload waits for all earlier ones; use stonewall"
                .to_owned()
        )
    );
    assert_eq!(
        together(&format!(
            "{head}[b]\nwait_for=a\n[c]\nwait_for=b\n[d]\nwait_for=b\n"
        )),
        Ok(vec![false, false, false, true])
    );
    let error = together(&format!("{head}[b]\nwait_for=a\n[c]\n")).unwrap_err();
    assert!(error.contains("[c]: the job would start before"), "{error}");
}

#[test]
fn job_file_notes_options_without_effect() {
    let mixed = notes("[job]\nfilename=/dev/sda\ndirect=1\nrw=randread\nbssplit=4k/50:8k/50\n");
    assert!(
        mixed.contains("so the mix is exactly that of bssplit"),
        "{mixed}"
    );
    let message =
        notes("[job]\nfilename=/dev/sda\ndirect=1\ngroup_reporting\nthread\nwrite_bw_log=x\n");
    assert_eq!(
        message,
        "ignored, because they do not change the load: group_reporting (display of results); \
         write_bw_log (series and histograms are always recorded: -o FILE.json, .csv, .hlog; \
         `as fio` writes the log); thread (threads are always used)"
    );
}

#[test]
fn sync_opens_the_file_so_that_writes_are_durable() {
    let sync = |options: &str| only(options).sync.map(|sync| sync.0.as_str());
    assert_eq!(sync("rw=write\nsync=1"), Some("O_SYNC"));
    assert_eq!(sync("rw=write\nsync=dsync\nend_fsync=1"), Some("O_DSYNC"));
    assert_eq!(only("rw=write\nsync=1\nend_fsync=1").end_fsync, None);
    assert_eq!(
        (sync("rw=read\nsync=1"), sync("rw=write\nsync=none")),
        (None, None)
    );
}

#[test]
fn posixaio_sends_one_request_at_a_time() {
    let flags = only("ioengine=posixaio\niodepth=8\ndirect=1");
    assert_eq!(
        (flags.engine, flags.depth.map(|depth| depth.0)),
        (Some(EngineChoice::Fixed(EngineKind::Sync)), Some(1))
    );
}

#[test]
fn trims_have_the_third_value_of_a_list_and_an_engine_that_has_them() {
    let flags = only("rw=randtrim\nbs=4k,8k,64k\nsize=1m\nioengine=io_uring\niodepth=8");
    assert_eq!(flags.rw.unwrap().as_str(), "randtrim");
    assert_eq!((flags.bs.unwrap().0, flags.depth.unwrap().0), (64 << 10, 8));
    assert!(flags.writes() && !flags.writes_data());
    for engine in ["libaio", "mmap"] {
        let flags = only(&format!("rw=trimwrite\nioengine={engine}\niodepth=8"));
        assert_eq!(
            (flags.engine, flags.depth),
            (Some(EngineChoice::Fixed(EngineKind::Sync)), Some(Count(1)))
        );
    }
    let syncs = only("rw=trim\nfsync=1\nend_fsync=1");
    assert_eq!((syncs.fsync, syncs.end_fsync), (None, None));
}

/// Around the limits of narrower numbers, and the largest number of a job file.
const LARGE: &[&str] = &[
    "0",
    "1",
    "65536",
    "64m",
    "2147483648",
    "4294967295",
    "4g",
    "4294967297",
    "6g",
    "1t",
    "9000000000000000",
];

#[test]
fn no_number_of_a_job_wraps() {
    let numbers = [
        "bs",
        "blockalign",
        "bsrange",
        "bssplit",
        "iodepth",
        "numjobs",
        "size",
        "filesize",
        "offset",
        "offset_increment",
        "io_size",
        "number_ios",
        "loops",
        "rate",
        "rate_iops",
        "rate_min",
        "rate_iops_min",
        "rate_cycle",
        "fsync",
        "fdatasync",
        "runtime",
        "ramp_time",
        "startdelay",
        "thinktime",
        "thinktime_blocks",
        "thinktime_iotime",
        "zonesize",
        "zoneskip",
        "rwmixread",
        "flow",
        "flow_id",
        "flow_sleep",
        "latency_target",
        "latency_window",
        "max_latency",
        "nrfiles",
        "verify_backlog",
        "buffer_compress_percentage",
        "buffer_compress_chunk",
        "dedupe_percentage",
        "steadystate_duration",
        "rw=read:",
        "rw=randread:",
    ];
    for key in numbers {
        for value in LARGE {
            let option = match key.ends_with(':') {
                true => format!("{key}{value}"),
                false => format!("{key}={value}"),
            };
            for rw in ["read", "randrw", "randwrite"] {
                let start =
                    "[a]\nfilename=/dev/sda\nthinktime=1\nsteadystate=iops:1%\nrate_min=1\n";
                let text = format!("{start}rw={rw}\nbuffer_compress_percentage=9\n{option}\n");
                // An error is fine; a panic or another block size is not.
                let Ok(file) = translated(&text, CliOverrides::default()) else {
                    continue;
                };
                let wanted = fio_values::bytes(value, fio_values::Base::Binary).unwrap();
                for workload in file.plan.workloads.iter().filter(|_| key == "bs") {
                    assert_eq!(workload.flags.bs.map(|bs| u64::from(bs.0)), Some(wanted));
                }
            }
        }
    }
    for block in ["4g", "4294967297", "1025m"] {
        assert!(refused(&format!("[a]\nfilename=/dev/sda\nbs={block}\n")).contains("line 3"));
    }
}
