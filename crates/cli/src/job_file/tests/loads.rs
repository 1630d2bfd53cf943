//! The load of each job: defaults, options, limits and the page cache.

use super::*;
use crate::workload::Count;
use diskproof_compat::fio_values;
use diskproof_engine::pattern::fio::mean_bytes;
use diskproof_model::plan::BlockShare;
use diskproof_model::shape::{Arrivals, RandomRun, RunFollow, ThinkCount, ThinkTime};

#[test]
fn job_without_options_has_the_defaults_of_fio() {
    let flags = only("");
    assert_eq!(flags.rw.unwrap().as_str(), "read");
    assert_eq!(sizes(&flags), (4096, 1, 1));
    assert_eq!(flags.engine, Some(EngineChoice::Fixed(EngineKind::Sync)));
    assert_eq!(
        (flags.buffered, flags.cached, flags.time),
        (Some(true), None, None)
    );
    assert_eq!(flags.warmup.unwrap().0, 0);
    // Once through the device.
    assert_eq!(
        (flags.bytes.unwrap().0, flags.span, flags.together),
        (8 * GIB, None, None)
    );
    let message = notes("[job]\nfilename=/dev/sda\n");
    assert!(
        message.starts_with("direct=0") && message.lines().count() == 1,
        "{message}"
    );
}

#[test]
fn map_of_visited_blocks_is_that_of_fio() {
    let once = |text: &str| only(text).shape.order.each_block_once;
    assert!(once("rw=randread") && once("rw=randrw\nsize=1g") && once("rw=randread:8"));
    for other in [
        "rw=read",
        "rw=randread\nnorandommap",
        "rw=randread\nrandom_distribution=zipf",
        "rw=read\nfile_service_type=random\nio_size=1m",
        "rw=randread\nblockalign=8k",
        "rw=randread\nbssplit=4k/50:8k/50",
    ] {
        assert!(!once(other), "{other}");
    }
}

#[test]
fn skewed_distributions_are_those_of_fio() {
    use diskproof_model::plan::Distribution::{Normal, Pareto, Zipf};
    let normal = |spread_percent| Normal { spread_percent };
    for (value, law) in [
        ("pareto", Pareto { share: 0.2 }),
        ("pareto:0.3", Pareto { share: 0.3 }),
        ("normal", normal(0.0)),
        ("normal:12.5", normal(12.5)),
        ("zipf", Zipf { theta: 1.1 }),
    ] {
        let flags = only(&format!("rw=randread\nrandom_distribution={value}"));
        assert_eq!(
            flags.distribution.map(|found| found.0),
            Some(law),
            "{value}"
        );
        assert!(!flags.shape.order.each_block_once, "{value}");
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
    let content = |options: &str| {
        only(&format!("rw=write\nbs=8k\n{options}"))
            .shape
            .content
            .written
    };
    let of = |filler_percent, filler: &[u8], chunk_bytes| WriteContent {
        filler_percent,
        filler: filler.to_vec(),
        chunk_bytes,
        ..WriteContent::default()
    };
    let plain = of(0, &[], 512);
    let compressed = "buffer_compress_percentage=40\nbuffer_compress_chunk=16k\nbuffer_pattern=7";
    let repeated = WriteContent {
        repeat_percent: 50,
        ..plain.clone()
    };
    let of_set = WriteContent {
        repeated_blocks: 6400,
        shares_repeated: true,
        ..repeated.clone()
    };
    let kept = WriteContent {
        keeps_buffers: true,
        ..plain
    };
    let set = "dedupe_percentage=50\ndedupe_mode=working_set\nsize=100m\ndedupe_global=1\n\
               dedupe_working_set_percentage=50";
    for (options, expected) in [
        ("zero_buffers", of(100, &[], 512)),
        ("buffer_pattern=0xab12", of(100, &[0xab, 0x12], 512)),
        (compressed, of(40, &[7], 8192)),
        ("dedupe_percentage=50\nzero_buffers", repeated),
        (set, of_set),
        ("scramble_buffers=0", kept),
    ] {
        assert_eq!(content(options), Some(expected), "{options}");
    }
    // New data each time; and what verify writes is its own.
    let new = [
        "",
        "refill_buffers\nscramble_buffers=0",
        "zero_buffers\nverify=crc32c",
    ];
    for options in new {
        assert_eq!(content(options), None, "{options}");
    }
    assert_eq!(only("rw=read\nzero_buffers").shape.content.written, None);
}

#[test]
fn scheduling_of_threads_is_that_of_fio() {
    use diskproof_model::shape::{IoPriority, ThreadScheduling};
    let of = |options: &str| only(options).shape.threads.scheduling;
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
    let of_nodes = of("numa_cpu_nodes=0,2\ncpus_allowed=3").map(|found| found.cpus);
    assert_eq!(of_nodes, Some(vec![0, 1, 4, 5]));
    assert!(
        refused("[a]\nfilename=/dev/sda\nnuma_cpu_nodes=0-3\n").contains("numa_cpu_nodes=0-3: ")
    );
    let idle = of("prioclass=3").and_then(|found| found.io_priority);
    assert_eq!(idle, Some(IoPriority { class: 3, level: 0 }));
    assert_eq!(of("nice=0"), None);
}

#[test]
fn steady_state_ends_each_job_by_itself() {
    use diskproof_model::shape::{SteadyEnd, SteadyFigure, SteadyTest};
    const SECOND_NS: u64 = 1_000_000_000;
    let of = |options: &str| only(options).shape.ends.steady;
    let wanted = SteadyEnd {
        figure: SteadyFigure::Ops,
        test: SteadyTest::Deviation,
        limit: 2.5,
        is_percent: true,
        over_ns: 30 * SECOND_NS,
        settle_ns: 5 * SECOND_NS,
        every_ns: SECOND_NS,
    };
    assert_eq!(
        of("steadystate=iops:2.5%\nss_dur=30\nss_ramp=5s"),
        Some(wanted)
    );
    let slope = SteadyEnd {
        figure: SteadyFigure::Bytes,
        test: SteadyTest::Slope,
        limit: 10240.0,
        is_percent: false,
        every_ns: 2 * SECOND_NS,
        ..wanted
    };
    let found = of("ss=bw_slope:10k\nss_dur=30\nss_ramp=5s\nss_interval=2");
    assert_eq!(found, Some(slope));
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
    let of = |options: &str| only(options).shape.starts.flow;
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
    assert_eq!(flags.shape.order.zone_stride, Some(stride));
    // The zones go on to the end of the device.
    assert_eq!(
        (flags.bytes.map(|bytes| bytes.0), flags.span),
        (Some(40 * MIB), None)
    );
    // On a scratch file of 64 MiB, whose end cuts the third zone short.
    let scratch = "[a]\ndirectory=/data\nbs=1m\nzonesize=10m\nzoneskip=20m\nsize=64m\n";
    let bytes = plan(scratch).workloads[0].flags.bytes.map(|bytes| bytes.0);
    assert_eq!(bytes, Some(24 * MIB));
    assert_eq!(text("zonemode=none").shape.order.zone_stride, None);
}

#[test]
fn kinds_of_verify_become_own_checksums() {
    let kinds = [
        "crc32c",
        "md5",
        "sha256",
        "xxhash",
        "meta",
        "pattern\nverify_pattern=0xaa",
    ];
    for kind in kinds {
        let options = format!("rw=write\nverify={kind}");
        assert_eq!(only(&options).verify, Some(true), "{kind}");
        let has_pattern = kind == "meta";
        let notes = notes(&format!("[job]\nfilename=/dev/sda\n{options}\n"));
        assert_eq!(notes.contains("the pattern"), has_pattern, "{kind}");
    }
    for options in ["verify=null", "verify=0"] {
        let job = only(&format!("rw=write\n{options}"));
        assert_eq!((job.verify, job.signs_only), (None, false), "{options}");
    }
    // fio reads null back, too.
    for (options, reads_back) in [
        ("rw=write", Some(true)),
        ("rw=read", None),
        ("rw=write\ndo_verify=0", None),
        ("rw=write\nbs=4k,8k", Some(true)),
        ("rw=rw\nbs=4k,8k", None),
        ("rw=write\nbssplit=4k/50:8k/50", Some(true)),
        ("rw=write\nnumjobs=2", Some(true)),
    ] {
        let text = format!("[job]\nfilename=/data/own\nsize=1m\nverify=null\n{options}\n");
        let read = translated(&text, AS_FIO).unwrap();
        assert_eq!(read.plan.workloads[0].flags.verify, reads_back, "{options}");
    }
}

#[test]
fn files_of_one_job_become_one_of_their_size() {
    let text = |rw| format!("[job]\ndirectory=/data\n{rw}\nnrfiles=4\nsize=64m\n");
    for (rw, bytes, stride) in [
        ("rw=randread", 64 * MIB, None),
        ("rw=write\nfile_service_type=sequential", 64 * MIB, None),
        // One block of each file in turn.
        ("rw=read", 64 * MIB, Some(16 * MIB)),
        ("rw=randread\nfilesize=1m", 4 * MIB, None),
        ("rw=write\nfilesize=1m", 4 * MIB, Some(MIB)),
    ] {
        let file = read(&text(rw));
        assert_eq!(file.plan.size.map(|size| size.0), Some(bytes), "{rw}");
        assert!(file.notes.join("").contains("nrfiles"), "{rw}");
        let flags = &file.plan.workloads[0].flags;
        assert_eq!(flags.stride.map(|bytes| bytes.0), stride, "{rw}");
        assert_eq!(flags.bytes.map(|one| one.0), Some(bytes), "{rw}");
    }
    let others = [
        "rw=read:8k",
        "rw=randread\nrandom_distribution=zipf",
        "rw=read\nfilesize=10:1m",
    ];
    for other in others {
        let error = refused(&text(other));
        assert!(error.contains("diskproof files DIR"), "{error}");
    }
}

#[test]
fn job_options_become_workload_keys() {
    let flags = only(
        "rw=randrw\nbs=8k\niodepth=32\nioengine=libaio\ndirect=1\nnumjobs=4\nrwmixread=70\n\
         size=1g\noffset=2g\nruntime=60\nramp_time=5s\ntime_based\nnorandommap\nfsync=16",
    );
    assert_eq!(flags.rw.unwrap().as_str(), "randrw");
    assert_eq!(sizes(&flags), (8192, 32, 4));
    let times = (flags.time.unwrap().0, flags.warmup.unwrap().0);
    assert_eq!(times, (60_000_000_000, 5_000_000_000));
    assert_eq!(
        (flags.rwmixread.unwrap().0, flags.fsync.unwrap().0),
        (700, 16)
    );
    assert_eq!(
        (span(&flags), flags.bytes),
        (Some((2 * GIB, 3 * GIB)), None)
    );
    assert_eq!(flags.engine, Some(EngineChoice::Fixed(EngineKind::Aio)));
    assert_eq!((flags.buffered, flags.cached), (None, None));
}

#[test]
fn repeated_options_take_the_later_value() {
    let reads = |options: &str| only(&format!("rw=rw\n{options}")).rwmixread.unwrap().0;
    assert_eq!(reads("rwmixread=70\nrwmixwrite=60"), 400);
    assert_eq!(reads("rwmixwrite=60\nrwmixread=70"), 700);
    let twice = only("readwrite=write\nblocksize=64K\ndirect=1\nbuffered=1");
    assert_eq!(twice.buffered, Some(true));
}

#[test]
fn block_sizes_and_patterns_become_workload_keys() {
    assert_eq!(only("bs=8k,4k").bs.unwrap().0, 8192);
    assert_eq!(only("bs=8k,4k\nrw=write").bs.unwrap().0, 4096);
    let split = only("bssplit=4k/50:1k/:32k/").bssplit.unwrap().0;
    assert!(
        split.iter().map(|share| share.weight).eq([50, 25, 25]),
        "{split:?}"
    );
    assert_eq!(only("rw=read:8k").stride.unwrap().0, 12288);
    assert_eq!(only("rw=read:-8k").backward, Some(true));
    let zoned = only("rw=randread\nrandom_distribution=zoned:50/5:30/15:20/");
    assert!(zoned.zones.is_some());
}

#[test]
fn depth_needs_an_engine_with_a_queue() {
    for (engine, depth) in [
        ("io_uring", 8),
        ("psync", 1),
        ("psync\nio_submit_mode=offload", 8),
        ("posixaio\ndirect=1", 1),
    ] {
        let flags = only(&format!("iodepth=8\nioengine={engine}"));
        assert_eq!(flags.depth.unwrap().0, depth, "{engine}");
        let is_sync = flags.engine == Some(EngineChoice::Fixed(EngineKind::Sync));
        assert_eq!(is_sync, engine != "io_uring", "{engine}");
    }
}

#[test]
fn verify_becomes_a_workload_key() {
    assert_eq!(only("rw=randwrite\nverify=crc32c").verify, Some(true));
    assert_eq!(only("rw=randwrite\nverify=0").verify, None);
    // Blocks for a later job or run, which reads and checks them.
    let signed = only("rw=write\nverify=md5\ndo_verify=0");
    assert_eq!((signed.verify, signed.signs_only), (None, true));
    for text in ["rw=read\nverify=md5", "rw=write\nverify=md5\nverify_only"] {
        let job = only(text);
        assert!(job.verify == Some(true) && !job.writes(), "{text}");
    }
    // As in fio, reads are always checked.
    let read = only("rw=read\nverify=md5\ndo_verify=0");
    assert_eq!((read.verify, read.signs_only), (Some(true), false));
    let order = only("rw=randwrite\nverify=md5\nverify_only=1").rw;
    assert_eq!(order.unwrap().as_str(), "randread");
    let later = notes("[job]\nfilename=/dev/sda\nrw=write\nverify=md5\nverify_backlog=8\n");
    assert!(later.contains("verify_backlog"), "{later}");
}

/// The limits of a job: bytes and operations.
fn end(options: &str) -> (Option<u64>, Option<u64>) {
    let flags = only(options);
    (flags.bytes.map(|bytes| bytes.0), flags.ops.map(|ops| ops.0))
}

/// Each row is a job and its limits in bytes and operations.
#[test]
fn limits_of_a_job_are_those_of_fio() {
    let bytes = |bytes: u64| (Some(bytes), None);
    for (options, limits) in [
        // They cover all copies; of two limits the first ends the job.
        ("rw=randread\nsize=1g\nnumjobs=4", bytes(4 * GIB)),
        ("rw=randread\nsize=1g\nnumjobs=2\nloops=3", bytes(6 * GIB)),
        (
            "rw=randread\nsize=1g\nio_size=10m\nnumjobs=2",
            bytes(20 * MIB),
        ),
        (
            "rw=randread\nsize=1g\nio_size=10m\nloops=3",
            bytes(30 * MIB),
        ),
        (
            "rw=randread\nsize=1g\nnumber_ios=100\nloops=3",
            (None, Some(300)),
        ),
        (
            "rw=randread\nsize=1g\nnumber_ios=100\nnumjobs=2",
            (None, Some(200)),
        ),
        ("rw=randread\nsize=8k\nnumber_ios=100", bytes(8192)),
        (
            "rw=randread\nsize=1g\nnumber_ios=100\nbssplit=4k/50:8k/50",
            (Some(GIB), Some(100)),
        ),
        ("rw=randread\nsize=50%", bytes(4 * GIB)),
        // The last block in order begins in the size, random ones end in it; enough blocks for an
        // amount.
        ("bs=1000\nsize=4500", bytes(5000)),
        ("bs=1000\nsize=4500\nloops=2", bytes(9000)),
        ("rw=randread\nbs=1000\nsize=4500", bytes(4000)),
        ("rw=randread\nbs=1000\nsize=4500\nnorandommap", bytes(5000)),
        ("bs=1000\nsize=9k\nio_size=4500", bytes(5000)),
        // One lap of a stride, or several.
        ("rw=read:8k\nsize=256k", bytes(22 * 4096)),
        ("rw=read:8k\nsize=256k\nloops=3", bytes(3 * 22 * 4096)),
        ("rw=read:8k\nsize=256k\nio_size=256k", bytes(256 * 1024)),
        // A runtime does not replace the size, and time_based is nothing without one.
        ("runtime=10", bytes(8 * GIB)),
        ("time_based", bytes(8 * GIB)),
    ] {
        assert_eq!(end(options), limits, "{options}");
    }
    assert_eq!(
        end("rw=read:8k\nsize=256k\nnumber_ios=50").0,
        Some(22 * 4096)
    );
}

/// On a scratch file of the size of the job.
#[test]
fn stride_limits_a_job_to_its_laps() {
    for (options, bytes) in [
        // Over the end, behind it, and at it.
        ("rw=read:8k\nsize=100000", 8 * 4096),
        ("rw=read:8k\nsize=96k", 96 * 1024),
        ("rw=read:8k\nsize=256k", 22 * 4096),
        ("rw=randread\nsize=100000\nnorandommap", 25 * 4096),
    ] {
        let plan = plan(&format!("[a]\ndirectory=/data\n{options}"));
        let limit = plan.workloads[0].flags.bytes.unwrap();
        assert_eq!(limit.0, bytes, "{options}");
    }
}

/// The real fio fails with "minimum rate exceeds rate".
#[test]
fn floor_above_the_rate_is_refused() {
    for (options, is_kept) in [
        ("rate=4m,2m\nrate_min=3m", false),
        ("rate=4m,2m\nrate_min=2m", true),
        ("rate=4m,\nrate_min=2m", true),
        ("rate_iops=50\nrate_iops_min=51", false),
        ("rate_iops=50\nrate_min=51", true),
    ] {
        let text = format!("[a]\nfilename=/dev/sda\nrw=read\n{options}\n");
        let read = translated(&text, AS_FIO);
        assert_eq!(read.is_ok(), is_kept, "{options}: {read:?}");
    }
}

#[test]
fn errors_of_blocks_are_counted_in_one_file() {
    let job = "[a]\ndirectory=/data\nrw=read\nsize=1m\nblock_error_percentiles=1\n";
    assert!(translated(job, AS_FIO).is_ok());
    assert!(translated(&format!("{job}nrfiles=2\n"), AS_FIO).is_err());
    assert!(translated(&format!("{job}filename=a:b\n"), AS_FIO).is_err());
}

#[test]
fn draws_behind_the_end_are_refused_where_they_are_not_known() {
    let job = "[a]\ndirectory=/data\nrw=randread\nsize=1500k\nbssplit=4k/:8k/\n";
    for (options, is_kept) in [
        ("offset=50%", true),
        ("offset=64k\nrandom_generator=lfsr", true),
        ("offset=50%\nrandom_generator=lfsr", true),
        ("random_distribution=zipf\nrandseed=7", true),
        ("random_distribution=zipf\nnrfiles=2\nba=64k", false),
    ] {
        let read = translated(&format!("{job}{options}\n"), AS_FIO);
        assert_eq!(read.is_ok(), is_kept, "{options}");
    }
}

/// Only in jobs that change blocks with a queue fio looks for overlapping requests.
#[test]
fn overlaps_matter_to_queued_writes() {
    let job = "[a]\nfilename=/dev/sda\nioengine=libaio\nserialize_overlap=1\n";
    for (options, is_kept) in [
        ("rw=read\niodepth=4", true),
        ("rw=write\niodepth=1", true),
        ("rw=write\niodepth=4", false),
    ] {
        let read = translated(&format!("{job}{options}\n"), AS_FIO);
        assert_eq!(read.is_ok(), is_kept, "{options}");
    }
}

/// The bytes that the real fio trims and writes of a device, each, with these options.
#[test]
fn trim_and_write_both_count_towards_io_size() {
    for (options, kib) in [
        ("io_size=512k", 512),
        ("io_size=512k\nloops=3", 1536),
        ("io_size=1536k", 1024),
        ("io_size=2m", 1024),
        ("io_size=2052k", 2048),
        ("io_size=4m\nloops=2", 2048),
        ("loops=2", 2048),
    ] {
        for rw in ["trimwrite", "randtrimwrite"] {
            let text = format!("[a]\nfilename=/dev/sda\nrw={rw}\nsize=1m\n{options}\n");
            let plan = translated(&text, AS_FIO).unwrap().plan;
            let bytes = plan.workloads[0].flags.bytes.unwrap().0;
            assert_eq!(bytes, kib << 10, "{rw} {options}");
        }
    }
}

#[test]
fn rate_covers_all_copies() {
    let rate = |options: &str| only(options).rate.unwrap().0;
    assert_eq!(rate("rw=randread\nrate_iops=100\nnumjobs=4"), 400.0);
    assert_eq!(rate("rate=1m\nbs=8k"), 128.0);
    // As in fio, whose rates are bytes: a request of 12 KiB counts as three of the smallest.
    assert_eq!(rate("rate_iops=300\nbssplit=4k/50:12k/50"), 150.0);
    assert_eq!(rate("rate=1200k\nbssplit=4k/50:12k/50"), 150.0);
    let poisson = "rate_process=poisson\nbssplit=4k/50:12k/50";
    assert_eq!(rate(&format!("rate_iops=300\n{poisson}")), 300.0);
    assert_eq!(rate(&format!("rate=1200k\n{poisson}")), 300.0);
    assert_eq!(rate("rw=randrw\nrate_iops=70,30\nrwmixread=70"), 100.0);
    assert_eq!(only("rw=randrw\nrate_iops=0").rate, None);
}

/// The real fio reads 4 MiB in 139 requests here, and 4,915,200 bytes in the second job.
#[test]
fn rate_of_several_sizes_has_the_bytes_of_fio() {
    for (options, bytes) in [
        ("bssplit=4k/50:64k/50\nrate=2m\nruntime=2", 4_194_304.0),
        ("bsrange=4k-32k\nrate_iops=400\nruntime=3", 4_915_200.0),
    ] {
        let text = format!("[a]\ndirectory=/data\nrw=read\nsize=64m\n{options}\n");
        let plan = translated(&text, AS_FIO).unwrap().plan;
        let flags = &plan.workloads[0].flags;
        let order = flags.shape.order.fio.as_deref().unwrap();
        let seconds = flags.time.unwrap().0 as f64 / 1e9;
        let starts = flags.rate.unwrap().0 * seconds;
        let moved = starts * mean_bytes(order, bytes as u64, u64::MAX, 0).unwrap();
        assert!((moved / bytes - 1.0).abs() < 0.001, "{options}: {moved}");
    }
}

/// fio's map shortens large blocks the more of a lap has been visited, and whole laps count. The
/// mean size of one is 11.3 kB by a simulation apart; that of its first requests is 20 kB.
#[test]
fn rate_of_many_copies_has_the_bytes_of_whole_laps() {
    // A lap of 64 GiB has more requests than are averaged.
    for size in ["256m", "1g", "64g"] {
        for copies in [1, 32] {
            let text = format!(
                "[a]\nfilename=/data/big\nrw=randread\nbssplit=8k/90:128k/10\nrate=100m\n\
                 runtime=600\ntime_based\nsize={size}\nnumjobs={copies}\n"
            );
            let plan = translated(&text, AS_FIO).unwrap().plan;
            assert_eq!(plan.workloads.len(), copies);
            for workload in &plan.workloads {
                let mean = f64::from(100 << 20) / workload.flags.rate.unwrap().0;
                assert!((mean / 11_300.0 - 1.0).abs() < 0.03, "{size}: {mean}");
            }
        }
    }
}

#[test]
fn sizes_of_directions_may_stand_between_colons_or_dashes() {
    for (rw, bytes) in [("read", 4096), ("write", 8192), ("trim", 16384)] {
        for list in ["4k,8k,16k", "4k:8k:16k", "4k-8k-16k"] {
            let flags = only(&format!("rw={rw}\nbs={list}"));
            assert_eq!(sizes(&flags).0, bytes, "{rw} {list}");
        }
    }
}

#[test]
fn direction_without_sizes_of_its_own_has_that_of_bs() {
    for (options, wanted) in [
        ("rw=write\nbsrange=4k-8k,", 4096),
        ("rw=write\nbs=16k\nbsrange=4k-8k,", 16384),
        ("rw=write\nbs=16k\nbssplit=4k/50:8k/50,", 16384),
        ("rw=read\nbs=16k\nbssplit=,4k/50:8k/50", 16384),
    ] {
        let flags = only(options);
        assert_eq!(sizes(&flags).0, wanted, "{options}");
        assert!(flags.bssplit.is_none(), "{options}");
    }
    let shown = |options: &str| {
        let text = format!("[a]\nfilename=/dev/sda\n{options}\n");
        let jobs = translated(&text, AS_FIO).unwrap().jobs;
        jobs.jobs[0]
            .block_sizes
            .map(|sizes| (sizes.least, sizes.most))
    };
    // As fio 3.33 prints it.
    assert_eq!(
        shown("rw=randrw\nbs=16k\nbsrange=4k-8k,"),
        [(4096, 8192), (16384, 16384), (16384, 16384)]
    );
}

#[test]
fn page_cache_is_used_as_in_fio() {
    for (text, buffered_and_cached) in [
        (
            "[a]\ndirect=1\n[b]\nbuffered=0\n[c]\ninvalidate=0\n",
            &[(false, false), (false, false), (false, true)][..],
        ),
        // What is synced need not be written back.
        ("[a]\nrw=write\nfdatasync=1\n", &[(false, true)]),
        // A target has one page cache.
        (
            "[a]\nrw=write\nfdatasync=1\n[b]\nrw=randread\n",
            &[(true, false), (true, false)],
        ),
        ("[a]\nrw=rw\nfsync=1\n", &[(true, false)]),
    ] {
        let plan = plan(&format!("[global]\nfilename=/dev/sda\n{text}"));
        let flags = plan.workloads.iter().map(|one| &one.flags);
        let found = flags.map(|flags| (flags.buffered.is_some(), flags.cached.is_some()));
        assert_eq!(found.collect::<Vec<_>>(), buffered_and_cached, "{text}");
    }
    // A job that only reads has nothing to sync.
    assert_eq!(only("rw=read\nfsync=1\nend_fsync=1").fsync, None);
    assert_eq!(only("rw=write\nend_fsync=1").end_fsync, Some(true));
    assert_eq!(only("rw=write\nfsync=1\nend_fsync=1").end_fsync, None);
}

/// Options that change the load, and the line and option that the message names.
const REFUSED_OPTIONS: &[(&str, &str)] = &[
    ("ioengine=net\nhostname=x", "3: ioengine=net:"),
    ("ioengine=sg", "3: ioengine=sg:"),
    (
        "ioengine=filecreate",
        "3: ioengine=filecreate: use diskproof files",
    ),
    (
        "ioengine=dirdelete",
        "3: ioengine=dirdelete: use diskproof files",
    ),
    ("rw=randtrim\nverify=crc32c", "4: verify=crc32c:"),
    ("rw=trimwrite\nbs=4k,8k,4k", "4: bs=4k,8k,4k:"),
    ("rw=trimwrite\nbssplit=4k,8k,4k", "1: bs:"),
    ("rw=trimread", "3: rw=trimread:"),
    ("thinktime=20\nthinkcycles=10", "4: thinkcycles=10:"),
    ("lockfile=exclusive\nnumjobs=2", "1: [job]: lockfile:"),
    (
        "rw=randread\nbs_is_seq_rand=1\nbs=4k,8k",
        "4: bs_is_seq_rand=1:",
    ),
    (
        "thinktime=10\nrate_iops=50\nrate_ignore_thinktime=1",
        "5: rate_ignore_thinktime=1:",
    ),
    (
        "rw=randtrim\ntrim_percentage=5\ntrim_backlog=4",
        "4: trim_percentage=5:",
    ),
    (
        "rw=write\nbuffer_pattern=0xab\nscramble_buffers=1",
        "5: scramble_buffers=1:",
    ),
    (
        "rw=write\nbuffer_pattern='file'",
        "4: buffer_pattern='file':",
    ),
    (
        "rw=write\ndedupe_percentage=101",
        "4: dedupe_percentage=101:",
    ),
    (
        "rw=write\nsize=1m\ndedupe_percentage=96\ndedupe_mode=working_set",
        "5: dedupe_percentage=96:",
    ),
    (
        "rw=write\ndedupe_percentage=5\ndedupe_mode=working_set\nsize=1m\nnrfiles=2",
        "5: dedupe_mode=working_set:",
    ),
    (
        "rw=write\ndedupe_percentage=5\ndedupe_mode=working_set",
        "5: dedupe_mode=working_set:",
    ),
    ("rw=write\ndedupe_mode=other", "4: dedupe_mode=other:"),
    ("rw=write\nsync=2", "4: sync=2:"),
    ("zonemode=zbd", "3: zonemode=zbd:"),
    ("zonemode=other", "3: zonemode=other:"),
    ("zonemode=strided", "3: zonemode=strided:"),
    ("zonesize=1m\nzonerange=2m", "3: zonesize=1m:"),
    ("rw=randread\nzonesize=1m", "4: zonesize=1m:"),
    (
        "ss=iops:5%\nss_dur=5\nnumjobs=2\ngroup_reporting",
        "1: [job]: steadystate",
    ),
    ("cpus_allowed=3-1", "3: cpus_allowed=3-1:"),
    (
        "cpus_allowed=0-1\ncpus_allowed_policy=other",
        "4: cpus_allowed_policy=other:",
    ),
    ("prio=8", "3: prio=8:"),
    ("nice=20", "3: nice=20:"),
    ("latency_target=5ms\nlatency_run=1", "4: latency_run=1:"),
    (
        "latency_target=500\nlatency_percentile=101",
        "4: latency_percentile=101:",
    ),
    ("rw=read:-4k", "3: rw=read:-4k:"),
    ("rw=rw\nbs=4k,1025m", "4: bs=4k,1025m:"),
    ("rw=rw\nblockalign=4k,8k", "4: blockalign=4k,8k:"),
    ("bsrange=8k-4k", "3: bsrange=8k-4k:"),
    (
        "random_distribution=zipf:1.2:0.5\nrw=randread",
        "3: random_distribution=zipf:1.2:0.5:",
    ),
    (
        "ioengine=io_uring\niodepth=2\nio_submit_mode=offload",
        "5: io_submit_mode=offload:",
    ),
    ("nrfiles=4", "3: nrfiles=4:"),
    ("rw=write\nverify_only", "4: verify_only:"),
    ("rw=rw\nverify=md5\nverify_only", "5: verify_only:"),
    ("verify_state_load=1\nverify=md5", "3: verify_state_load=1:"),
    ("verify=other\nrw=write", "3: verify=other:"),
    ("rate_iops=100,100,x", "3: rate_iops=100,100,x:"),
    ("rate_process=other\nrate_iops=5", "3: rate_process=other:"),
    ("rw=randrw\nrate_iops=10000,3", "4: rate_iops=10000,3:"),
    ("startdelay=5-10", "3: startdelay=5-10:"),
    (
        "wait_for=b\n[b]\nfilename=/dev/sda",
        "3: [job]: wait_for=b:",
    ),
    ("exec_prerun=rm -rf /", "3: exec_prerun=rm -rf /:"),
    ("bs=1.5k", "3: bs=1.5k:"),
    ("runtime=30sec", "3: runtime=30sec:"),
    ("nonsense=1", "3: nonsense=1:"),
    ("bs", "3: bs:"),
    ("bs=1025m", "3: bs=1025m:"),
    ("numjobs=5000", "3: numjobs=5000:"),
    ("rw=read:-8k\nsize=1m\nio_size=2m", "1: [job]: a backward"),
    ("rw=read:-8k\nsize=1m\noffset=1m", "1: [job]: fio ends"),
    ("size=100", "1: [job]: the job's"),
    ("offset=9g", "1: [job]: the job's"),
];

#[test]
fn job_file_refuses_options_that_change_the_load() {
    for (options, refused_option) in REFUSED_OPTIONS {
        let message = refused(&format!("[job]\nfilename=/dev/sda\n{options}\n"));
        let start = format!("jobs/x.fio: line {refused_option}");
        assert!(message.starts_with(&start), "{options}: {message}");
    }
}

#[test]
fn job_options_give_the_sizes_of_blocks() {
    let mix = |mix: &[BlockShare]| -> Vec<(u32, u32)> {
        let shares = mix.iter().map(|share| (share.block_bytes, share.weight));
        shares.collect()
    };
    // The size of all blocks or their mix, and the mix of the other direction.
    for (options, bs, split, others) in [
        ("rw=randrw\nbs=4k,64k", Some(4096), None, &[(65536, 1)][..]),
        ("rw=randrw\nbs=8k,8k", Some(8192), None, &[]),
        ("rw=randwrite\nbs=4k,64k", Some(65536), None, &[]),
        (
            "rw=rw\nbssplit=4k/50:8k/50,16k",
            None,
            Some(vec![(4096, 50), (8192, 50)]),
            &[(16384, 1)],
        ),
        (
            "rw=read\nbsrange=4k-12k",
            None,
            Some(vec![(4096, 1), (8192, 1), (12288, 1)]),
            &[],
        ),
    ] {
        let flags = only(options);
        assert_eq!(flags.bs.map(|bs| bs.0), bs, "{options}");
        assert_eq!(flags.bssplit.map(|split| mix(&split.0)), split, "{options}");
        assert_eq!(mix(&flags.other_sizes), others, "{options}");
    }
}

#[test]
fn job_options_shape_the_load() {
    let shape = |options: &str| only(options).shape;
    assert_eq!(
        shape("rw=randread\nbs=512\nblockalign=4k")
            .order
            .align_bytes,
        Some(4096)
    );
    assert_eq!(shape("rw=read\nblockalign=64k").order.align_bytes, None);
    let run = RandomRun {
        run_ops: 8,
        follow: RunFollow::Identical,
    };
    let found = shape("rw=randread:8\nrw_sequencer=identical")
        .order
        .random_run;
    assert_eq!(found, Some(run));
    let arrivals = shape("rate_iops=50\nrate_process=poisson").starts.arrivals;
    assert_eq!(arrivals, Arrivals::Poisson);
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
    assert_eq!(shape("thinktime=2000").starts.think, Some(think));
    let busy = ThinkTime {
        pause_ops: 0,
        counted: ThinkCount::Started,
        busy_ns: Some(3_000_000_000),
        ..think
    };
    let found = shape("thinktime=2ms\nthinktime_iotime=3\nthinktime_blocks_type=issue")
        .starts
        .think;
    assert_eq!(found, Some(busy));
    let limited = shape("rw=rw\nmax_latency=500\nrate_min=1m,2m\nstartdelay=4");
    let times = (limited.ends.latency_limit_ns, limited.starts.delay_ns);
    assert_eq!(times, (Some(500_000), 4_000_000_000));
    let floors = limited.ends.rate_floors.iter();
    let floors: Vec<_> = floors.map(|floor| (floor.of_writes, floor.floor)).collect();
    assert_eq!(floors, [(false, 1_048_576.0), (true, 2_097_152.0)]);
}

#[test]
fn wait_for_starts_a_job_after_another() {
    let text = |jobs| format!("[global]\nfilename=/dev/sda\n[a]\n[b]\nwait_for=a\n[c]\n{jobs}");
    let plan = plan(&text("wait_for=b\n[d]\nwait_for=b\n"));
    let flags = plan.workloads.iter().map(|one| one.flags.together);
    assert!(flags.eq([None, None, None, Some(true)]), "{plan:?}");
    // As in fio's examples/waitfor.fio, other jobs would still run.
    let error = refused(&text("wait_for=a\n[d]\nwait_for=b\n"));
    assert!(
        error.starts_with("jobs/x.fio: line 9: [d]: wait_for=b: "),
        "{error}"
    );
    let error = refused(&text(""));
    assert!(error.contains("[c]: "), "{error}");
}

/// It waits for all jobs, so that the next one starts with it.
#[test]
fn stonewall_beside_wait_for_decides_alone() {
    let text = "[global]\nfilename=/dev/sda\n[a]\n[b]\nwait_for=a\nstonewall\n[c]\n";
    let plan = plan(text);
    let flags = plan.workloads.iter().map(|one| one.flags.together);
    assert!(flags.eq([None, None, Some(true)]), "{plan:?}");
    let error = refused(&format!("{text}wait_for=a\n"));
    assert!(error.contains("[c]: wait_for=a: "), "{error}");
}

#[test]
fn job_file_notes_options_without_effect() {
    let mixed = notes("[job]\nfilename=/dev/sda\ndirect=1\nrw=randread\nbssplit=4k/50:8k/50\n");
    assert!(mixed.contains("bssplit"), "{mixed}");
    let options = "direct=1\ngroup_reporting\nthread\nwrite_bw_log=x\n";
    let message = notes(&format!("[job]\nfilename=/dev/sda\n{options}"));
    assert_eq!(message.lines().count(), 1, "{message}");
    for name in ["group_reporting (", "write_bw_log (", "thread ("] {
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn sync_opens_the_file_so_that_writes_are_durable() {
    for (options, flag) in [
        ("rw=write\nsync=1\nend_fsync=1", Some("O_SYNC")),
        ("rw=write\nsync=dsync\nend_fsync=1", Some("O_DSYNC")),
        ("rw=read\nsync=1", None),
        ("rw=write\nsync=none", None),
    ] {
        let flags = only(options);
        assert_eq!(flags.sync.map(|sync| sync.0.as_str()), flag, "{options}");
        assert_eq!(flags.end_fsync, None, "{options}");
    }
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
const LARGE: &str = "0 1 65536 64m 2147483648 4294967295 4g 4294967297 6g 1t 9000000000000000";

#[test]
fn no_number_of_a_job_wraps() {
    let numbers = "bs blockalign bsrange bssplit iodepth numjobs size filesize offset \
        offset_increment io_size number_ios loops rate rate_iops rate_min \
        rate_iops_min rate_cycle fsync fdatasync runtime ramp_time startdelay \
        thinktime thinktime_blocks thinktime_iotime zonesize zoneskip rwmixread flow \
        flow_id flow_sleep latency_target latency_window max_latency nrfiles \
        verify_backlog buffer_compress_percentage buffer_compress_chunk \
        dedupe_percentage steadystate_duration rw=read: rw=randread:";
    for key in numbers.split_whitespace() {
        for value in LARGE.split(' ') {
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

#[test]
fn mix_of_nothing_but_one_direction_is_no_mix() {
    for (options, rw) in [
        ("rwmixread=100\nrate_iops=500", "randread"),
        ("rwmixread=0.0", "randwrite"),
        ("rwmixwrite=0\nsync=1", "randread"),
        ("rwmixread=0\nrate_iops=500,300", "randwrite"),
    ] {
        let flags = only(&format!("rw=randrw\n{options}"));
        assert_eq!(flags.rw.unwrap().as_str(), rw, "{options}");
        assert_eq!(flags.rwmixread, None, "{options}");
    }
    let rate = only("rw=randrw\nrwmixread=0\nrate_iops=500,300").rate;
    assert_eq!(rate.map(|rate| rate.0), Some(300.0));
    let both = only("rw=randrw\nrwmixread=30\nrate_iops=500,300");
    assert!(both.shape.order.even_mix && both.rwmixread.is_some());
    assert!(
        !only("rw=randrw\nrate_iops=9\nrate_process=poisson")
            .shape
            .order
            .even_mix
    );
}

#[test]
fn directions_are_random_or_in_order() {
    let mixed = only("rw=randrw\npercentage_random=100,0");
    assert_eq!(mixed.shape.order.in_order, [OpKind::Write]);
    assert_eq!(mixed.rw.unwrap().as_str(), "randrw");
    let other = only("rw=randrw\npercentage_random=0,100");
    assert_eq!(other.shape.order.in_order, [OpKind::Read]);
    // fio 3.33 never comes to the next random offset.
    for (options, rw) in [
        ("rw=randread\npercentage_random=0", "read"),
        ("rw=randrw:-8k", "rw"),
        ("rw=randwrite:-8", "write"),
        ("rw=randread\npercentage_random=100", "randread"),
    ] {
        assert_eq!(only(options).rw.unwrap().as_str(), rw, "{options}");
        assert!(only(options).shape.order.in_order.is_empty(), "{options}");
    }
}

#[test]
fn target_opened_synced_may_be_synced_as_well() {
    use diskproof_model::plan::WriteFlag::{OpenDsync, OpenSync};
    for (options, flag) in [("sync=1", OpenSync), ("sync=dsync", OpenDsync)] {
        for every in ["fsync=1", "fdatasync=2"] {
            let flags = only(&format!("rw=write\n{options}\n{every}"));
            assert_eq!(
                (flags.sync, flags.shape.threads.opened_with),
                (None, Some(flag))
            );
        }
        let alone = only(&format!("rw=write\n{options}"));
        assert_eq!(alone.shape.threads.opened_with, None);
    }
}

#[test]
fn copies_may_have_a_processor_each() {
    let text = "[a]\nfilename=/dev/sda\nrw=randread\nnumjobs=3\ncpus_allowed=0,2\n\
                cpus_allowed_policy=split\ngroup_reporting\n";
    let workloads = plan(text).workloads.into_iter();
    let cpus: Vec<Vec<u16>> = workloads
        .map(|one| one.flags.shape.threads.scheduling.unwrap().cpus)
        .collect();
    assert_eq!(cpus, [[0], [2], [0]]);
}

#[test]
fn size_is_the_amount_where_the_file_is_larger() {
    let random = only("rw=randwrite\nfilesize=4m\nsize=1m");
    assert_eq!(span(&random), Some((0, 4 * MIB)));
    assert_eq!(random.bytes.unwrap().0, MIB);
    let ordered = only("rw=write\nfilesize=4m\nsize=1m");
    assert_eq!(span(&ordered), Some((0, MIB)));
    let smaller = only("rw=write\nfilesize=1m\nsize=4m");
    assert_eq!(smaller.bytes.unwrap().0, MIB);
    let new = plan("[a]\nfilename=/data/new\nrw=write\nfilesize=4m\nsize=1m\n");
    assert_eq!(new.size.unwrap().0, 4 * MIB);
}

#[test]
fn increment_in_percent_is_of_the_size_of_a_new_file() {
    // The file of fio 3.33 ends at 1,261,568 bytes.
    let plan =
        plan("[a]\nfilename=/data/new\nrw=write\nsize=1m\nnumjobs=3\noffset_increment=10%\n");
    assert_eq!(span(&plan.workloads[2].flags).unwrap().1, 1_261_568);
}

#[test]
fn offset_in_percent_does_not_make_a_new_file_longer() {
    // The requests and bytes of fio 3.33.
    for (options, requests) in [
        ("rw=write\noffset=10%", 64),
        ("rw=randwrite\noffset=10%", 64),
        ("rw=write\noffset=10%\nloops=2", 121),
        ("rw=write\noffset=10%\nloops=3", 178),
        ("rw=write\noffset=60%\nloops=2", 89),
    ] {
        let text = format!("[a]\nfilename=/data/new\nsize=256k\n{options}\n");
        let plan = plan(&text);
        assert_eq!(span(&plan.workloads[0].flags).unwrap().1, 262_144);
        let bytes = plan.workloads[0].flags.bytes.unwrap().0;
        assert_eq!(bytes / 4096, requests, "{options}");
    }
}

#[test]
fn laps_and_their_file_have_the_bytes_of_fio() {
    // The bytes that fio 3.33 moved with blocks of 8 KiB, and the file that it left, in KiB.
    for (options, moved, file) in [
        (
            "rw=read\nsize=256k\nio_size=2m\nloops=3\nfilesize=2m",
            6144,
            2048,
        ),
        (
            "rw=randread\nsize=256k\nio_size=2m\nloops=3\nfilesize=2m",
            6144,
            2048,
        ),
        (
            "rw=read\nsize=256k\nio_size=1m\nloops=3\nfilesize=2m",
            3072,
            2048,
        ),
        (
            "rw=read\nsize=256k\nio_size=3m\nloops=3\nfilesize=2m",
            6144,
            2048,
        ),
        ("rw=read\nsize=256k\nloops=3\nfilesize=2m", 768, 2048),
        ("rw=read\nsize=256k\nio_size=2m\nfilesize=2m", 2048, 2048),
        (
            "ioengine=libaio\nrw=read\nsize=256k\nio_size=2m\nloops=3\nfilesize=2m",
            2048,
            2048,
        ),
        (
            "ioengine=libaio\nrw=randread\nsize=256k\nio_size=2m\nloops=3\nfilesize=2m",
            2048,
            2048,
        ),
        ("rw=randread\nbs=64k\nsize=1500k\nfilesize=2m", 1536, 2048),
        (
            "rw=rw\nsize=1m\nio_size=2m\nloops=2\nrwmixread=30",
            2992,
            1024,
        ),
        ("rw=read\nsize=50%\nfilesize=1m", 512, 512),
        ("rw=read\nsize=25%\nfilesize=1m\noffset=256k", 256, 512),
        ("rw=read\nsize=50%\nfilesize=1m\noffset=50%", 512, 512),
        ("rw=randread\nsize=50%\nfilesize=1m\noffset=25%", 512, 512),
        ("rw=read\nsize=50%\nfilesize=1m\nloops=2", 1024, 512),
        ("rw=read\nfilesize=1m\noffset=25%", 1024, 1024),
        ("rw=read\nfilesize=1m\nsize=100%", 1024, 1024),
        ("rw=read\nsize=1m\noffset=50%", 1024, 1024),
        ("rw=read\nsize=1m\noffset=50%\nloops=2", 1536, 1024),
    ] {
        let text = format!("[a]\nfilename=/data/new\nbs=8k\n{options}\n");
        let plan = translated(&text, AS_FIO).unwrap().plan;
        let bytes = plan.workloads[0].flags.bytes.unwrap().0;
        assert_eq!(
            (bytes >> 10, plan.scratch_files[0].bytes >> 10),
            (moved, file),
            "{options}"
        );
    }
}

#[test]
fn gaps_zones_and_verified_laps_have_the_bytes_of_fio() {
    // The blocks that fio 3.33 moved on a new file, and how often it read them back.
    for (options, blocks, times) in [
        ("rw=read:8k\nbs=8k\nsize=1500k", 188, None),
        ("rw=read:8k\nbs=64k\nsize=1500k", 20, None),
        ("rw=read:8k\nbs=64k\nsize=3m", 42, None),
        (
            "rw=write\nbs=16k\nsize=1500k\nzonemode=strided\nzonesize=64k\nzoneskip=64k",
            94,
            None,
        ),
        (
            "rw=write\nbs=8k\nsize=1m\nio_size=2m\nverify=md5",
            128,
            None,
        ),
        (
            "rw=write\nbs=8k\nsize=1m\nloops=2\nverify=md5",
            256,
            Some(2),
        ),
        (
            "rw=write\nbs=8k\nsize=1m\nloops=2\nio_size=3m\nverify=md5",
            256,
            Some(2),
        ),
        ("rw=write\nbs=8k\nsize=1m\nloops=2", 256, None),
        // As in fio, what is read back counts towards the size, and gaps leave some of that.
        // `fio_counts.txt` has the reads of both laps.
        ("rw=write:8k\nbs=4k\nsize=4m\nverify=md5", 684, None),
        // A run that meets the end of the file ends there.
        ("rw=randwrite:4\nbs=8k\nsize=1500k", 103, None),
        (
            "rw=randread:4\nbs=8k\nsize=1500k\nloops=2\nioengine=libaio",
            206,
            None,
        ),
        (
            "rw=randwrite:4\nbs=8k\nsize=1500k\nfilename=/data/b",
            188,
            None,
        ),
        (
            "rw=randwrite\nbs=8k\nsize=1500k\nfilename=/data/b",
            186,
            None,
        ),
    ] {
        let text = format!("[a]\nfilename=/data/new\n{options}\n");
        let plan = translated(&text, AS_FIO).unwrap().plan;
        let flags = &plan.workloads[0].flags;
        let moved = flags.bytes.unwrap().0 / u64::from(flags.bs.unwrap().0);
        assert_eq!(
            (moved, flags.shape.content.verified_times),
            (blocks, times),
            "{options}"
        );
    }
    // A gap that is no multiple of the block is a zone of one block.
    let flags = only("rw=read:8k\nbs=64k\nsize=3m");
    let zones = flags.shape.order.zone_stride.unwrap();
    assert_eq!(
        (zones.zone_bytes, zones.skip_bytes, flags.stride),
        (65_536, 8192, None)
    );
    assert_eq!(span(&flags), Some((0, 3 * MIB)));
}

#[test]
fn offset_of_copies_may_be_in_bytes_and_in_percent() {
    // The files of fio 3.33.
    let files = |options: &str| -> Vec<u64> {
        let text = format!("[a]\nrw=write\nsize=1m\n{options}\n");
        let plan = translated(&text, AS_FIO).unwrap().plan;
        plan.scratch_files.iter().map(|file| file.bytes).collect()
    };
    let bytes = files("numjobs=2\noffset_increment=64k\noffset=10%");
    assert_eq!(bytes, [1_048_576, 1_114_112]);
    let bytes = files("numjobs=3\noffset_increment=10%\noffset=64k");
    assert_eq!(bytes, [1_114_112; 3]);
}

#[test]
fn job_of_several_sizes_reaches_its_size() {
    // The last request of a lap fits into what is left.
    let text = "[a]\nfilename=/data/new\nrw=randread\nbssplit=4k/60:16k/40\nsize=1m\n";
    let bytes = |overrides| {
        let plan = translated(text, overrides).unwrap().plan;
        plan.workloads[0].flags.bytes.unwrap().0
    };
    assert_eq!(bytes(AS_FIO), MIB);
    assert_eq!(bytes(CliOverrides::default()), MIB);
}

#[test]
fn rate_in_bytes_of_several_sizes_is_that_of_their_average() {
    for (options, rate) in [
        ("rw=read\nbssplit=4k/50:12k/50\nrate=1m", 128.0),
        ("rw=randread\nbsrange=4k-12k\nrate=1m", 128.0),
        ("rw=write\nbs=4k,8k\nrate=1m", 128.0),
    ] {
        assert_eq!(only(options).rate.unwrap().0, rate, "{options}");
    }
    let text = "[a]\nfilename=/dev/sda\nrw=read\nbssplit=4k/50:12k/50\nrate=1m\n";
    assert!(notes(text).contains("of their average"));
}

#[test]
fn number_ios_counts_after_the_warm_up_and_not_with_time() {
    let timed = only("rw=write\nnumber_ios=40\ntime_based\nruntime=1");
    assert_eq!(timed.ops, None);
    let ramped = only("rw=write\nnumber_ios=40\nramp_time=1");
    assert!(ramped.shape.ends.ops_after_warmup && ramped.ops.unwrap().0 == 40);
    assert!(!only("rw=write\nnumber_ios=40").shape.ends.ops_after_warmup);
}

#[test]
fn jobs_of_a_group_have_their_own_warm_ups_only_as_fio() {
    let text = "[a]\nrw=read\nsize=1m\nramp_time=1\n[b]\nrw=read\nsize=2m\n";
    for (text, is_own) in [
        (text.to_owned(), true),
        (text.replace("ramp_time=1\n", ""), false),
    ] {
        let workloads = translated(&text, AS_FIO).unwrap().plan.workloads;
        for workload in &workloads {
            assert_eq!(workload.flags.shape.starts.own_warmup, is_own);
        }
        assert_eq!(workloads[1].flags.warmup.unwrap().0, 0);
    }
    assert!(!plan(text).workloads[0].flags.shape.starts.own_warmup);
    assert!(notes(text).contains("share the longest"));
}

#[test]
fn sizes_by_order_are_those_of_reads_for_sequential_requests() {
    for (options, bytes) in [
        ("rw=write\nbs=4k,8k", 8192),
        ("rw=write\nbs=4k,8k\nbs_is_seq_rand=1", 4096),
        ("rw=randwrite\nbs=4k,8k\nbs_is_seq_rand=1", 8192),
        ("rw=read\nbs=4k,8k\nbs_is_seq_rand=1", 4096),
    ] {
        assert_eq!(only(options).bs.unwrap().0, bytes, "{options}");
        let text = format!("[a]\n{options}\nsize=1m\n");
        let workload = &translated(&text, AS_FIO).unwrap().plan.workloads[0];
        let order = workload.flags.shape.order.fio.as_ref().unwrap();
        assert_eq!(order.kinds[0].sizes.most_bytes, bytes, "{options}");
    }
    let mix = only("rw=rw\nbs=4k,8k\nbs_is_seq_rand=1");
    assert!(mix.other_sizes.is_empty());
}

#[test]
fn trims_may_be_as_large_as_the_device_has_room_for() {
    let flags = only("rw=randtrim\nbsrange=512-4g\nnorandommap\nnumber_ios=2000");
    let sizes: Vec<u32> = flags
        .bssplit
        .unwrap()
        .0
        .iter()
        .map(|share| share.block_bytes)
        .collect();
    assert_eq!(sizes[0], 512);
    assert!(sizes.len() > 1000 && sizes.iter().all(|bytes| bytes % 512 == 0));
    refused("[a]\nfilename=/dev/sda\nrw=randread\nbsrange=512-4g\n");
}

#[test]
fn pattern_of_verify_is_the_content() {
    let flags = only("rw=write\nverify=pattern\nverify_pattern=0x55%o");
    let pattern = flags.shape.content.known.unwrap();
    assert_eq!((pattern.bytes.len(), pattern.offset_places), (9, vec![1]));
    assert!(flags.verify == Some(true) && flags.shape.content.written.is_none());
    let sums = only("rw=write\nverify=crc32c\nverify_pattern=0x55");
    assert_eq!(sums.shape.content.known, None);
    refused("[a]\nfilename=/dev/sda\nrw=write\nverify=pattern\n");
}

/// Each of them hung: the first two in their run, the third while the line was read.
#[test]
fn jobs_as_fio_that_would_never_end_are_refused() {
    for (options, word) in [
        (
            "rw=randrw\nbs=32k\nsize=64k\nnrfiles=4\ntime_based\nruntime=2",
            "moves nothing",
        ),
        (
            "rw=randread\nbs=4k\nsize=1m\nzonemode=strided\nzonesize=2k\ntime_based\nruntime=2",
            "moves nothing",
        ),
        ("rw=randread\nbssplit=4k/0:64k/100\nsize=1m", "share of 0"),
    ] {
        let text = format!("[a]\ndirectory=/data\n{options}\n");
        let message = translated(&text, AS_FIO)
            .map(|file| format!("{file:?}"))
            .expect_err(&text);
        assert!(message.contains(word), "{options}: {message}");
    }
}

/// fio 3.33 ends each of the first ones with an error, or before its size, and none of the others.
#[test]
fn jobs_as_fio_that_fail_in_fio_are_refused() {
    let message = |options: &str| {
        let text = format!("[a]\ndirectory=/data\nsize=8m\n{options}\n");
        translated(&text, AS_FIO).err()
    };
    for (options, word) in [
        ("rw=read\ncreate_on_open=1", "create_on_open"),
        ("rw=randrw\ncreate_on_open=1", "create_on_open"),
        ("rw=write\ncreate_on_open=1\ncreate_only=1", "create_only"),
        ("rw=write\nverify=sha256\nverify_offset=64", "104 bytes"),
        ("rw=randread\nverify=sha3-256\nverify_offset=64", "72 bytes"),
        (
            "rw=randwrite\nrandom_distribution=zoned:60/10:40/90\nrandom_generator=lfsr",
            "lfsr",
        ),
        (
            "rw=write\nblock_error_percentiles=1\nbs=512",
            "16384 blocks",
        ),
        ("rw=write\nbssplit=8k\nbsrange=8k-16k", "bsrange"),
        ("rw=write\nbssplit=4k/50:16k/50\nbsrange=8k-32k", "bsrange"),
        ("rw=write\nbssplit=4k/60:16k/40\nbsrange=1k-8k", "bsrange"),
        ("rw=read\nfilename=a:a", "as two"),
        ("rw=read\nfilename=a\nfilename=a", "as two"),
    ] {
        let message = message(options).expect(options);
        assert!(message.contains(word), "{options}: {message}");
    }
    for options in [
        "rw=write\ncreate_on_open=1\nverify=md5",
        "rw=write\nverify=md5\nverify_offset=64",
        "rw=write\nverify=sha256\nverify_offset=104",
        "rw=write\nverify=sha256\nverify_offset=64\ndo_verify=0",
        "rw=randwrite\nrandom_distribution=zoned:60/10:40/90",
        "rw=randwrite\nrandom_generator=lfsr",
        "rw=write\nbssplit=4k/50:8k/50\nbsrange=4k-16k",
        "rw=write\nbsrange=8k-16k\nbssplit=8k",
        "rw=write\nblock_error_percentiles=1\nbs=512,512,1k",
        "rw=write\nblock_error_percentiles=0\nbs=512",
    ] {
        assert_eq!(message(options), None, "{options}");
    }
}

#[test]
fn laps_that_are_not_read_back_are_noted() {
    let text = "[a]\nrw=write\nsize=1m\ndirectory=/data\nverify=md5\ntime_based\nruntime=1\n";
    for (engine, is_noted) in [("libaio", true), ("psync", false)] {
        let text = format!("{text}ioengine={engine}\n");
        let notes = translated(&text, AS_FIO).unwrap().notes.join("\n");
        assert_eq!(notes.contains("reads nothing back"), is_noted, "{engine}");
    }
}

#[test]
fn verify_pattern_alone_has_checksums_as_it_has_a_header_in_fio() {
    let flags = only("rw=write\nverify_pattern=0x55aa");
    assert_eq!(
        (flags.verify, flags.shape.content.known),
        (Some(true), None)
    );
}

#[test]
fn verified_blocks_are_shared_where_copies_visit_the_same() {
    for (options, shared) in [
        ("filename=/data/own\nnumjobs=2", true),
        ("filename=/data/own\nnumjobs=2\noffset_increment=1m", false),
        ("directory=/data\nnumjobs=2", false),
        ("filename=/data/own", false),
    ] {
        let text = format!("[a]\nrw=write\nverify=crc32c\nsize=1m\n{options}\n");
        let file = translated(&text, AS_FIO).unwrap_or_else(|why| panic!("{text}{why}"));
        for workload in &file.plan.workloads {
            let content = &workload.flags.shape.content;
            assert_eq!(content.shares_verified, shared, "{options}");
        }
    }
    let text = "[a]\nfilename=/data/own\nrw=write\nverify=crc32c\nsize=1m\n\
                [b]\nstonewall\nfilename=/data/own\nrw=write\nverify=crc32c\nsize=1m\n";
    let file = translated(text, AS_FIO).unwrap();
    for workload in &file.plan.workloads {
        assert!(!workload.flags.shape.content.shares_verified);
    }
}
