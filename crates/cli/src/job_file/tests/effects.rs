//! Options without effect, amounts and rates, as fio 3.33 treats them.

use super::*;
use diskproof_model::plan::RangeSync;
use diskproof_model::shape::{AccessAdvice, FioSync, FioSyncCall, KindRate, WriteLife};

/// What fio 3.33 does with such options, tried side by side.
#[test]
fn options_without_effect_are_accepted_with_a_note() {
    for (options, name) in [
        ("rw=read\ndirect=1\nfadvise_hint=0", "fadvise_hint"),
        ("rw=read\nsync_file_range=write:8", "sync_file_range"),
        ("ioengine=libaio\niodepth=8\niodepth_low=4", "iodepth_low"),
        (
            "ioengine=libaio\niodepth=8\niodepth_batch_complete=4",
            "iodepth_batch_complete",
        ),
        ("ioengine=io_uring\nforce_async=4", "force_async"),
        ("rw=read\nmax_open_zones=8", "max_open_zones"),
        ("rw=write\ntrim_percentage=5", "trim_percentage"),
        ("rw=write\ntrim_backlog=4", "trim_backlog"),
        ("rate_process=poisson", "rate_process"),
        ("rw=read\nioscheduler=mq-deadline", "ioscheduler"),
        ("rw=write\nwrite_barrier=8", "write_barrier"),
        ("thinktime=200\nthinktime_spin=50", "thinktime_spin"),
    ] {
        let notes = notes(&format!("[a]\nfilename=/dev/sda\n{options}\n"));
        assert!(notes.contains(name), "{options}: {notes}");
    }
    for (options, text) in [
        ("rw=randread\npercentage_random=50", "percentage_random"),
        ("rw=write\nsync_file_range=write:8", "sync_file_range"),
        ("ioscheduler=none", "/dev/sda is mq-deadline"),
        ("gtod_reduce=2", "write 0 or 1"),
        ("direct=2", "write 0 or 1"),
        ("rw=read\nrwmixread=200", "at most 100"),
        ("numjobs=0", "at least one copy"),
        ("file_service_type=bogus", "roundrobin"),
        ("clocksource=bogus", "clock_gettime"),
        ("mem=bogus", "mmaphuge"),
        ("percentile_list=abc", "write numbers"),
        ("verify_offset=8", "at least 40"),
        ("thinktime_blocks_type=bogus", "complete, issue"),
        ("io-size=1m", "io_size?"),
        ("zonemode=none\nzonesize=64k", "no zonesize"),
    ] {
        let message = refused(&format!("[a]\nfilename=/dev/sda\n{options}\n"));
        assert!(message.contains(text), "{options}: {message}");
    }
    let no_files = refused("[a]\ndirectory=/data\nsize=1m\nnrfiles=0\n");
    assert!(no_files.contains("moves nothing"), "{no_files}");
    let flags = only("time_based=600\nruntime=5\nsize=1m");
    assert_eq!((flags.bytes, flags.time.unwrap().0), (None, 5_000_000_000));
}

/// As fio 3.33 did with these jobs.
#[test]
fn amounts_and_rates_are_those_of_fio() {
    let bytes = |options: &str| only(options).bytes.map(|bytes| bytes.0);
    for (options, moved) in [
        ("rw=rw\nsize=1048577\nbs=1m", 2 * MIB),
        ("rw=rw\nsize=3000000\nbs=1m", 3 * MIB),
        ("rw=rw\nsize=1048577\nbs=4k", MIB + 4096),
        ("rw=randread\nsize=8m\nloops=2\nio_size=16m", 16 * MIB),
        ("rw=randread\nsize=16m\nloops=2\nio_size=8m", 16 * MIB),
        ("rw=randread\nsize=4m\nloops=2\nio_size=8m", 8 * MIB),
        ("rw=randread\nsize=4m\nloops=2\nio_size=9m", 12 * MIB),
        ("rw=read\nsize=8m\nloops=2\nio_size=20m", 24 * MIB),
        (
            "rw=randread\nsize=8m\nloops=2\nio_size=12m\nnorandommap",
            24 * MIB,
        ),
        (
            "rw=randread\nsize=4m\nloops=2\nio_size=10000\nbs=8k",
            24 << 10,
        ),
        ("rw=read\nsize=1Mi\nbs=4Ki", MIB),
    ] {
        assert_eq!(bytes(options), Some(moved), "{options}");
    }
    let rates = |options: &str| {
        let flags = only(&format!("rw=randrw\nsize=16m\n{options}"));
        (flags.rate.unwrap().0, flags.rwmixread.unwrap().0)
    };
    assert_eq!(rates("rate_iops=400,200\nrwmixread=67"), (600.0, 667));
    assert_eq!(rates("rate=400k\nrwmixread=75"), (200.0, 500));
    assert_eq!(rates("rate=400k,800k\nbs=4k,8k"), (200.0, 500));
    // Without a comma, as fio reads numbers.
    assert_eq!(rates("rate=400k:800k\nbs=4k-8k"), (200.0, 500));
    assert_eq!(rates("rate_iops=400-200\nbs=(8k-4k)"), (600.0, 667));
    let mix = |split: &str| {
        let flags = only(&format!("rw=randread\nbssplit={split}"));
        let shares = flags.bssplit.unwrap().0.into_iter();
        shares.map(|share| share.weight).collect::<Vec<_>>()
    };
    // The most frequent size has the rest.
    assert_eq!(mix("4k/60:8k/38"), [62, 38]);
    assert_eq!(mix("4k/60:8k/60"), [60, 40]);
    assert_eq!(mix("4k:8k:16k"), [33, 33, 34]);
    let text =
        "[a]\nfilename=/dev/sda\nrw=read\nbs=1m\nsize=25%\noffset_increment=25%\nnumjobs=4\n";
    let read = translated(text, AS_FIO).unwrap();
    // Each copy may use the rest of the disk, and ends after its quarter.
    let quarter = 2 * GIB;
    // fio counts the copies down behind the first one.
    for (part, workload) in [0, 3, 2, 1].into_iter().zip(&read.plan.workloads) {
        let (start, _) = span(&workload.flags).unwrap_or_default();
        let bytes = workload.flags.bytes.map(|bytes| bytes.0);
        assert_eq!((start, bytes), (part * quarter, Some(quarter)));
    }
}

/// fio 3.33 moved 300 reads and 300 writes of the first job in 3 s, 220 and 300 of the second one.
#[test]
fn mix_with_rates_has_the_sizes_and_the_order_of_fio() {
    for (options, rates, per_second) in [
        ("bssplit=8k/50:12k/50", [819_200, 819_200], 200.0..=200.0),
        ("bssplit=4k/50:8k/50,4k", [409_600, 409_600], 160.0..=180.0),
        (
            "bs=4k,8k\nrate_iops=300,100",
            [1_228_800, 819_200],
            400.0..=400.0,
        ),
    ] {
        let text = format!(
            "[a]\nfilename=/data/a\nsize=4m\nrw=randrw\nrate_iops=100\nruntime=3\ntime_based\n\
             {options}\n"
        );
        let plan = translated(&text, AS_FIO).unwrap().plan;
        let flags = &plan.workloads[0].flags;
        let rate = flags.rate.unwrap().0;
        assert!(per_second.contains(&rate), "{options}: {rate}");
        let order = flags.shape.order.fio.as_ref().unwrap();
        let paces: Vec<u64> = order
            .kinds
            .iter()
            .map(|kind| kind.bytes_per_second)
            .collect();
        assert_eq!(paces, rates, "{options}");
        assert!(!flags.shape.order.even_mix);
    }
    // Random starts, and a rate of one direction, are no order.
    for options in ["rate_process=poisson", "rate_iops=100,"] {
        let text = format!(
            "[a]\nfilename=/data/a\nsize=4m\nrw=randrw\nrate_iops=100\nruntime=3\n{options}\n"
        );
        let plan = translated(&text, AS_FIO).unwrap().plan;
        assert!(
            plan.workloads[0].flags.shape.order.fio.is_none(),
            "{options}"
        );
    }
}

#[test]
fn a_missing_size_is_named_whatever_the_job_includes() {
    let machine = Fake {
        files: [("jobs/rest.fio", "bs=4k\n".to_owned())].into(),
        ..Fake::default()
    };
    for (options, part) in [("rw=read", "[a]: the job"), ("size=1k", "smaller")] {
        let text = format!("[a]\n{options}\ninclude rest.fio\n");
        let error = on(&machine, &text, CliOverrides::default()).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

/// xfstests asks so whether fio reads a job file.
#[test]
fn jobs_that_are_only_shown_may_have_what_a_run_refuses() {
    let shown = CliOverrides {
        action: JobAction::ShowCommand,
        ..AS_FIO
    };
    for option in [
        "ioengine=e4defrag",
        "ioengine=falloc",
        "ioengine=splice",
        "atomic=1",
        "ioengine=falloc\niodepth=8",
    ] {
        let text = format!("[a]\nfilename=/data/new\nrw=write\nsize=1m\n{option}\n");
        assert!(translated(&text, AS_FIO).is_err(), "{option}");
        let jobs = translated(&text, shown).unwrap().jobs;
        let last = jobs.jobs[0].options.last().unwrap();
        let written = option.lines().last().unwrap();
        let (key, value) = written.split_once('=').unwrap();
        assert_eq!(
            (last.key.as_str(), last.value.as_deref()),
            (key, Some(value))
        );
    }
    // fio refuses these, too.
    for option in [
        "ioengine=nosuch",
        "atomic=2",
        "nosuch=1",
        "bs=",
        "filesize=0",
    ] {
        let text = format!("[a]\nfilename=/data/new\nrw=write\nsize=1m\n{option}\n");
        assert!(translated(&text, shown).is_err(), "{option}");
    }
}

#[test]
fn new_files_keep_their_names_and_may_only_be_made() {
    let as_fio = |text: &str| translated(text, AS_FIO).unwrap();
    let kept = |text: &str| -> Vec<(String, u64)> {
        let files = as_fio(text).plan.scratch_files.into_iter();
        files
            .filter_map(|file| Some((file.name()?.to_owned(), file.bytes)))
            .collect()
    };
    let new = |name: &str, bytes| (name.to_owned(), bytes);
    let made = as_fio("[a]\nfilename=/data/new\nsize=16m\ncreate_only=1\n");
    assert_eq!(made.plan.scratch_files[0].name(), Some("new"));
    let job = &made.jobs.jobs[0];
    assert!(job.workloads.is_empty());
    assert_eq!(job.layout_workloads, [made.plan.workloads[0].name.as_str()]);
    assert_eq!(made.plan.workloads[0].flags.ops.map(|ops| ops.0), Some(1));
    assert_eq!(made.plan.size.map(|size| size.0), Some(16 * MIB));
    let several = "[a]\ndirectory=/data\nrw=write\nsize=2m\nnrfiles=2\ncreate_only=1\n";
    assert_eq!(as_fio(several).plan.workloads[0].flags.stride, None);
    for text in [
        "[a]\nfilename=/data/new\nsize=16m\nunlink=1\n",
        "[a]\nunlink=1\ndirectory=/data\nrw=randread\nsize=16m\nnrfiles=4\n",
        "[a]\nfilename=/data/table\n",
    ] {
        assert_eq!(kept(text), [], "{text}");
    }
    let text = "[a]\ndirectory=/data\nsize=100k\nnumjobs=2\n";
    let files = [new("a.0.0", 102_400), new("a.1.0", 102_400)];
    assert_eq!(kept(text), files);
    assert_eq!(as_fio(text).plan.targets, paths(&["/data", "/data"]));
    let text = "[a]\nfilename=/data/new\nsize=16m\n[b]\nfilename=/other/b\nrw=write\nsize=5m\n";
    assert_eq!(kept(text), [new("new", 16 * MIB), new("b", 5 * MIB)]);
    let flags = as_fio(text).plan.workloads.into_iter();
    let targets: Vec<Option<usize>> = flags.map(|one| one.flags.target).collect();
    assert_eq!(targets, [Some(0), Some(1)]);
    let mixed = as_fio(
        "[a]\nfilename=/data/n\nsize=1m\ncreate_only=1\n[b]\nfilename=/data/n\nsize=1m\nrw=write\n",
    );
    let [made, job] = &mixed.jobs.jobs[..] else {
        panic!("{:?}", mixed.jobs)
    };
    assert_eq!((made.workloads.len(), made.layout_workloads.len()), (0, 1));
    assert_eq!((job.workloads.len(), job.layout_workloads.len()), (1, 0));
    assert_eq!(mixed.plan.workloads[1].flags.ops, None);
}

/// Where fio 3.33 begins with these options on a disk of 8 GiB.
#[test]
fn offset_in_percent_is_rounded_up_to_offset_align() {
    let start = |options: &str| span(&only(&format!("size=1g\n{options}"))).map(|span| span.0);
    let tenth = 8 * GIB / 10;
    for (options, begins) in [
        ("offset=10%", tenth.next_multiple_of(4096)),
        ("offset=10%\nbs=64k", tenth.next_multiple_of(64 << 10)),
        ("offset=10%\noffset_align=1m", tenth.next_multiple_of(MIB)),
        (
            "offset=10%\noffset_align=1m\nbs=2m",
            tenth.next_multiple_of(MIB),
        ),
        ("offset=10%\noffset_align=0", tenth.next_multiple_of(4096)),
        // Bytes stay where they are.
        ("offset=100k\noffset_align=1m", 100 << 10),
    ] {
        assert_eq!(start(options), Some(begins), "{options}");
    }
}

#[test]
fn advice_to_the_kernel_is_that_of_the_job() {
    let advice = |options: &str| only(options).shape.threads.advice;
    assert_eq!(advice("rw=read"), None);
    assert_eq!(advice("rw=read\nfadvise_hint=1"), None);
    assert_eq!(advice("fadvise_hint=0"), Some(AccessAdvice::Normal));
    let opposite = advice("rw=read\nfadvise_hint=random");
    assert_eq!(opposite, Some(AccessAdvice::Random));
    // No advice concerns requests around the page cache.
    assert_eq!(advice("direct=1\nfadvise_hint=random"), None);
}

#[test]
fn files_of_a_directory_are_files_of_the_job() {
    const OPENED: &str = "[a]\nopendir=/data\nrw=randread\niodepth=2\nioengine=libaio\nsize=1m\n";
    let plan = plan(OPENED);
    assert_eq!(plan.targets, paths(&["/data/table", "/data/own"]));
    // Without any, the names of the job stay.
    let named = super::plan("[a]\nopendir=/tmp\nfilename=/data/table\n");
    assert_eq!(named.targets, paths(&["/data/table"]));
    let found = translated(OPENED, AS_FIO).unwrap();
    assert_eq!(found.found_files, paths(&["/data/table", "/data/own"]));
    // A job without any file moves nothing, and keeps its place among the others.
    let text = "[a]\ndirectory=/data\nsize=1m\n[b]\nopendir=/tmp\nstonewall\nnumjobs=2\n\
                [c]\ndirectory=/data\nsize=1m\nrw=randread\nnrfiles=2\n";
    let file = translated(text, AS_FIO).unwrap();
    let measured: Vec<usize> = file
        .jobs
        .jobs
        .iter()
        .map(|job| job.workloads.len())
        .collect();
    assert_eq!(measured, [1, 0, 1]);
    let last = &file.plan.workloads[1].flags;
    assert_eq!(last.together, None);
    assert_eq!(last.shape.order.fio.as_ref().unwrap().draws.job, 4);
    let nothing = translated("[a]\nopendir=/tmp\n", AS_FIO).unwrap();
    assert!(nothing.plan.workloads.is_empty());
    for (options, text) in [
        ("opendir=/tmp", "[a]: fio moves nothing"),
        ("opendir=/tmp\nexitall", "[a]: fio moves nothing"),
        (
            "opendir=/nowhere\nfilename=/data/table",
            "2: opendir=/nowhere: it is not there",
        ),
        (
            "opendir=/data\ndirectory=/tmp",
            "2: opendir=/data: fio puts",
        ),
    ] {
        let message = refused(&format!("[a]\n{options}\nsize=1m\n"));
        assert!(message.contains(text), "{options}: {message}");
    }
}

#[test]
fn commands_of_jobs_belong_to_as_fio_and_to_no_plan() {
    let text = "[global]\nsize=1m\ndirectory=/data\nexec_prerun=marked\n\
                [a]\nnumjobs=2\n[b]\nstonewall\nexec_postrun=echo done\n[c]\ncreate_only=1\n";
    let file = translated(text, AS_FIO).unwrap();
    let commands = file.jobs.commands();
    let ran: Vec<(&str, &str, u64, usize)> = commands
        .iter()
        .map(|one| {
            let output = one.output.to_str().unwrap();
            (
                one.command.as_str(),
                output,
                one.copies,
                one.workloads.len(),
            )
        })
        .collect();
    assert_eq!(
        ran,
        [
            ("marked", "a.prerun.txt", 2, 2),
            ("marked", "b.prerun.txt", 1, 1),
            ("echo done", "b.postrun.txt", 1, 1),
        ]
    );
    assert!(!format!("{:?}", file.plan).contains("marked"));
    for option in ["exec_prerun=true", "exec_postrun=true"] {
        let message = refused(&format!("[a]\nfilename=/data/table\n{option}\n"));
        assert!(message.contains("only 'diskproof as fio'"), "{message}");
        let searching = format!(
            "[a]\nfilename=/data/table\nlatency_target=5ms\nioengine=libaio\niodepth=4\n{option}\n"
        );
        assert!(translated(&searching, AS_FIO).is_err(), "{option}");
    }
}

/// As fio 3.33 reads them.
#[test]
fn sync_of_a_range_has_its_steps_and_writes() {
    let syncs = |options: &str| {
        let text = format!("[a]\ndirectory=/data\nsize=1m\nrw=write\n{options}\n");
        let flags = translated(&text, AS_FIO)?.plan.workloads.remove(0).flags;
        Ok::<_, String>(
            flags
                .shape
                .order
                .fio
                .map_or(Vec::new(), |order| order.syncs),
        )
    };
    let steps = RangeSync {
        wait_before: true,
        write: true,
        wait_after: false,
    };
    let sync = FioSync {
        call: FioSyncCall::FileRange(steps),
        writes: 4,
    };
    assert_eq!(syncs("sync_file_range=wait_before,write:4"), Ok(vec![sync]));
    assert_eq!(
        syncs("sync_file_range=write,wait_before"),
        Ok(vec![FioSync { writes: 1, ..sync }])
    );
    assert_eq!(syncs("sync_file_range=write:0"), Ok(Vec::new()));
    for options in [
        "sync_file_range=all",
        "sync_file_range=write:4\nioengine=posixaio",
        "sync_file_range=write:4\nnrfiles=2",
        "sync_file_range=write:4\nend_fsync=1",
        "sync_file_range=write:4\nrw=randwrite\nlatency_target=1ms\nioengine=libaio\niodepth=4",
    ] {
        assert!(syncs(options).is_err(), "{options}");
    }
}

#[test]
fn one_direction_of_a_mix_may_have_a_rate() {
    let starts = |options: &str| {
        let flags = only(&format!("rw=randrw\nsize=16m\n{options}"));
        assert_eq!(flags.rate, None, "{options}");
        flags.shape.starts.kind_rate
    };
    let rate = |kind, per_second| Some(KindRate { kind, per_second });
    assert_eq!(starts("rate=1m,"), rate(OpKind::Read, 256.0));
    assert_eq!(starts("rate=,1m\nbs=4k,8k"), rate(OpKind::Write, 128.0));
    assert_eq!(starts("rate_iops=,100"), rate(OpKind::Write, 100.0));
    // One workload stands for both copies.
    let copies = starts("rate_iops=100,\nnumjobs=2");
    assert_eq!(copies, rate(OpKind::Read, 200.0));
    // A job that only reads has no use for a rate of writes.
    let reading = only("rw=read\nrate=,1m");
    assert_eq!((reading.rate, reading.shape.starts.kind_rate), (None, None));
}

#[test]
fn latency_target_of_one_request_in_flight_is_a_limit() {
    let ends = |options: &str| {
        let text = format!("[a]\nfilename=/data/table\nlatency_target=5ms\n{options}\n");
        let flags = translated(&text, AS_FIO)?.plan.workloads.remove(0).flags;
        let limit_ns = flags.shape.ends.latency_limit_ns;
        let searches = flags.latency_target.is_some();
        Ok::<_, String>((searches, limit_ns, flags.time.map(|time| time.0)))
    };
    let limit_ns = Some(5_000_000);
    let both_windows_ns = Some(400_000_000);
    let window = "latency_window=200ms";
    assert_eq!(ends(window), Ok((false, limit_ns, both_windows_ns)));
    let run = format!("{window}\nlatency_run=1");
    assert_eq!(ends(&run), Ok((false, limit_ns, None)));
    let percentile = format!("{window}\nlatency_percentile=90");
    assert_eq!(ends(&percentile), Ok((false, None, None)));
    assert_eq!(
        ends("max_latency=1ms"),
        Ok((false, Some(1_000_000), Some(2_000_000_000)))
    );
    let queue = "ioengine=libaio\niodepth=8\nruntime=9";
    assert_eq!(ends(queue), Ok((true, None, Some(9_000_000_000))));
    assert!(ends(&format!("{queue}\nlatency_run=1")).is_err());
}

#[test]
fn files_of_a_log_have_their_places_in_the_target() {
    let files = |options: &str| {
        let text = format!("[a]\ndirectory=/data\nsize=64k\nwrite_iolog=log\n{options}\n");
        let read = translated(&text, AS_FIO)?;
        assert!(read.plan.workloads[0].flags.shape.logs_requests);
        let mut files = Vec::new();
        for workload in &read.jobs.jobs[0].workloads {
            for file in &workload.files {
                files.push((file.name.clone(), file.target_start, file.file_start));
            }
        }
        Ok::<_, String>(files)
    };
    let file =
        |name: &str, target_start, file_start| (format!("/data/{name}"), target_start, file_start);
    assert_eq!(files("rw=read"), Ok(vec![file("a.0.0", 0, 0)]));
    assert_eq!(
        files("rw=randrw\nnrfiles=2\nfilename_format=$jobname.$filenum"),
        Ok(vec![file("a.0", 0, 0), file("a.1", 32 << 10, 0)])
    );
    assert_eq!(
        files("rw=rw\nnumjobs=2"),
        Ok(vec![file("a.0.0", 0, 0), file("a.1.0", 0, 0)])
    );
    // The file holds its first bytes, too, unless it vanishes.
    assert_eq!(
        files("rw=rw\noffset=8k"),
        Ok(vec![file("a.0.0", 8 << 10, 8 << 10)])
    );
    assert_eq!(
        files("rw=write\noffset=8k\nunlink=1"),
        Ok(vec![file("a.0.0", 0, 8 << 10)])
    );
    assert!(files("rw=write\nverify=crc32c").is_err());
    assert!(files("rw=write\nverify=crc32c\ndo_verify=0").is_ok());
    // It is no part of the load that `run` measures.
    let flags = only("write_iolog=log\nsize=1m");
    assert!(!flags.shape.logs_requests);
}

#[test]
fn expected_life_of_data_concerns_jobs_that_write() {
    let life = |options: &str| only(options).shape.threads.write_life;
    assert_eq!(life("rw=write\nwrite_hint=long"), Some(WriteLife::Long));
    assert_eq!(life("rw=write\nwrite_hint=none"), None);
    assert_eq!(life("rw=read\nwrite_hint=long"), None);
}
