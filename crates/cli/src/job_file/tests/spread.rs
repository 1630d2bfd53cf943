//! Jobs that name several files or directories.

use super::*;
use crate::workload::{Bytes, SpanBounds};

fn as_fio(text: &str) -> Result<JobFile, String> {
    translated(text, AS_FIO)
}

fn load(flags: &WorkloadFlags) -> (Option<u64>, Option<u64>) {
    (flags.depth.map(|one| one.0), flags.jobs.map(|one| one.0))
}

#[test]
fn several_disks_share_the_depth_of_a_job_or_its_copies() {
    const DISKS: &str = "[a]\nioengine=libaio\nrw=randread\ndirect=1\n";
    let read = as_fio(&format!("{DISKS}iodepth=16\nfilename=/dev/sda:/dev/sdb\n")).unwrap();
    assert_eq!(read.plan.targets, paths(&["/dev/sda", "/dev/sdb"]));
    assert_eq!(read.plan.workloads.len(), 1);
    assert_eq!(load(&read.plan.workloads[0].flags), (Some(8), Some(1)));
    let job = &read.jobs.jobs[0];
    let of_job: Vec<usize> = job.workloads.iter().map(|one| one.target).collect();
    assert_eq!((of_job, job.files), (vec![0, 1], 2));
    assert!(read.notes.join("\n").contains("queue"), "{:?}", read.notes);

    // A name may be in its own option.
    let text = format!("{DISKS}numjobs=4\nfilename=/dev/sda\nfilename=/dev/sdb\n");
    let read = as_fio(&format!("{text}group_reporting\n")).unwrap();
    assert_eq!(load(&read.plan.workloads[0].flags), (Some(1), Some(2)));

    // What cannot be divided goes to the first ones.
    let read = as_fio(&format!("{DISKS}iodepth=9\nfilename=/dev/sda:/dev/sdb\n")).unwrap();
    let depths: Vec<Option<u64>> = read
        .plan
        .workloads
        .iter()
        .map(|one| load(&one.flags).0)
        .collect();
    assert_eq!(depths, [Some(5), Some(4)]);

    let sized = "iodepth=4\nsize=1g\nnumber_ios=101\nrate_iops=100\n";
    let read = as_fio(&format!("{DISKS}{sized}filename=/dev/sda:/dev/big\n")).unwrap();
    let flags = &read.plan.workloads[0].flags;
    assert_eq!(flags.rate.unwrap().0, 50.0);
    let span = flags.span.as_ref().unwrap();
    assert_eq!(span.end, Position::Bytes(GIB / 2));
    let ops: Vec<u64> = read
        .plan
        .workloads
        .iter()
        .map(|one| one.flags.ops.unwrap().0)
        .collect();
    assert_eq!(ops, [51, 50], "as many as the job names");
}

#[test]
fn what_cannot_be_shared_is_refused() {
    for (options, part) in [
        (
            "filename=/dev/sda:/dev/sdb",
            "iodepth=1 is less, and numjobs=1 is no multiple of 2",
        ),
        (
            "iodepth=2\nioengine=libaio\nunlink=1\nfilename=/dev/sda:/data/new",
            "/data/new ",
        ),
        ("size=1m\nfilename=/data/a:/other/b", "several directories"),
        (
            "filesize=1m\noffset=1k\nnrfiles=2\ndirectory=/data",
            "the offset is another place",
        ),
        (
            "size=1m\nfile_service_type=zipf:1\nfilename=/data/a:/data/b",
            "a theta is not 1",
        ),
        (
            "size=1m\nfile_service_type=zipf\nrandom_distribution=zipf\nfilename=/data/a:/data/b",
            "file_service_type",
        ),
        (
            "size=1m\nrw=write\nfile_service_type=gauss\nverify=md5\nnrfiles=2\ndirectory=/data",
            "no file is ever done",
        ),
        (
            "bs=1m\nsize=1500k\nnrfiles=2\ndirectory=/data",
            "each of the job's files is smaller than a block",
        ),
        (
            "bs=1m\nsize=1500k\nfilename=/data/a:/data/b",
            "each of the job's files is smaller than a block",
        ),
        (
            "size=1m\nnumjobs=3\nunlink=1\ndirectory=/data:/other",
            "divided among 2",
        ),
    ] {
        let error = as_fio(&format!("[a]\nrw=randread\n{options}\n")).unwrap_err();
        assert!(error.contains(part), "{options}: {error}");
    }
}

#[test]
fn new_files_become_one_and_directories_share_the_copies() {
    let text = "[a]\nunlink=1\nrw=randread\nsize=8m\nfilename=/data/a:/data/b\n";
    let read = as_fio(text).unwrap();
    assert_eq!(read.plan.targets, paths(&["/data"]));
    assert_eq!(read.plan.size.map(|one| one.0), Some(8 * MIB));
    assert_eq!(read.jobs.jobs[0].files, 1);

    let text = "[a]\nrw=randread\nsize=8m\nnumjobs=4\ndirectory=/data:/other\ngroup_reporting\n";
    let read = as_fio(text).unwrap();
    // Each copy has its own file.
    let places = ["/data", "/other", "/data", "/other"];
    assert_eq!(read.plan.targets, paths(&places));
    let files = read.plan.scratch_files.iter();
    let names: Vec<&str> = files.filter_map(|file| file.name()).collect();
    assert_eq!(names, ["a.0.0", "a.3.0", "a.2.0", "a.1.0"]);
    assert_eq!(read.plan.workloads.len(), 1);
    assert_eq!(load(&read.plan.workloads[0].flags), (Some(1), Some(1)));
    assert_eq!(read.jobs.jobs[0].workloads.len(), 4);
    let text = "[a]\nioengine=libaio\niodepth=2\nrw=read\nsize=8m\nfilename=/data/a:/other/b\n";
    let read = as_fio(text).unwrap();
    assert_eq!(read.plan.targets, paths(&["/data", "/other"]));
    assert_eq!(read.plan.scratch_files[1].bytes, 4 * MIB);
    // As in fio, one copy uses the first directory, and so do file names.
    let read = as_fio("[a]\nsize=8m\ndirectory=/data:/other\n").unwrap();
    assert_eq!(read.plan.targets, paths(&["/data"]));
    let read = as_fio("[a]\nsize=8m\ndirectory=/data:/other\nfilename=x\n").unwrap();
    assert_eq!(read.plan.targets, paths(&["/data"]));
}

/// Names and bytes of each file that stays, of each target.
fn kept(text: &str) -> Vec<(Vec<String>, u64)> {
    let files = as_fio(text).unwrap().plan.scratch_files.into_iter();
    let kept = files.filter_map(|file| file.kept);
    kept.map(|kept| (kept.names, kept.file_bytes)).collect()
}

fn names_of(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn several_new_files_stay() {
    let text = "[a]\nrw=write\nsize=1500k\nnumjobs=2\nfilename=/data/a:/data/b\n";
    assert_eq!(kept(text), [(names_of(&["a", "b"]), 768_000)]);
    let plan = as_fio(text).unwrap().plan;
    // Each file has 187 whole blocks.
    assert_eq!(plan.scratch_files[0].bytes, 374 * 4096);
    assert_eq!(plan.workloads[0].flags.stride, None);
    assert_eq!(plan.workloads[0].flags.bytes.unwrap().0, 374 * 4096);
    // Copies have files of their own, in which several jobs may go on.
    let text = "[a]\nrw=randread\nsize=1m\nnumjobs=2\nnrfiles=2\ndirectory=/data\n";
    let names = [["a.0.0", "a.0.1"], ["a.1.0", "a.1.1"]].map(|names| names_of(&names));
    assert_eq!(kept(text), names.map(|names| (names, MIB / 2)));
    // A mix goes through one file after the other; filesize is that of each.
    let text = "[a]\nrw=rw\nsize=256k\nfilesize=2m\nfilename=/data/a:/data/b\n";
    assert_eq!(kept(text), [(names_of(&["a", "b"]), 2 * MIB)]);
    let text = "[a]\nrw=write\nsize=1m\nfilename=/data/a:/data/b\n[b]\nrw=read\nsize=1m\n\
                filename=/data/a:/data/b\nstonewall\n";
    assert_eq!(kept(text), [(names_of(&["a", "b"]), MIB / 2)]);
}

/// Where the part of the job's target begins in each of its files, the size of those, and the bytes
/// of the workload.
fn part(options: &str) -> (u64, u64, u64) {
    let text = format!("[a]\nrw=write\ndirectory=/data\nnrfiles=2\n{options}\n");
    let plan = as_fio(&text).unwrap().plan;
    let kept = plan.scratch_files[0].kept.as_ref().expect(options);
    let bytes = plan.workloads[0].flags.bytes.expect(options).0;
    (kept.part_start, kept.file_bytes, bytes)
}

#[test]
fn several_new_files_have_the_offset_and_the_queue_of_the_job() {
    const KIB: u64 = 1024;
    // What fio 3.33 makes and moves.
    for (options, wanted) in [
        ("ioengine=libaio\niodepth=3\nsize=1m", (0, 512, 1024)),
        ("ioengine=io_uring\niodepth=3\nsize=1m", (0, 512, 1024)),
        ("ioengine=mmap\nsize=1m", (0, 512, 1024)),
        ("verify=crc32c\nsize=1m", (0, 512, 1024)),
        ("size=1m\noffset=64k", (64, 576, 1024)),
        ("size=1m\noffset=25%", (0, 512, 1024)),
        ("filesize=1m\noffset=64k", (64, 1024, 1920)),
        ("filesize=1m\nsize=1m\noffset=64k", (64, 1024, 1024)),
        ("filesize=1m\nsize=50%", (0, 512, 1024)),
        ("size=1m\nio_size=300k", (0, 512, 300)),
        ("size=1m\nfile_service_type=random", (0, 512, 1024)),
    ] {
        let (start, file, bytes) = wanted;
        assert_eq!(
            part(options),
            (start * KIB, file * KIB, bytes * KIB),
            "{options}"
        );
    }
    let text = "[a]\nrw=write\ndirectory=/data\nnrfiles=2\nsize=1m\nnumjobs=2\n\
                offset_increment=128k\n";
    let files = as_fio(text).unwrap().plan.scratch_files;
    let starts: Vec<u64> = files
        .iter()
        .filter_map(|file| file.kept.as_ref())
        .map(|kept| kept.part_start)
        .collect();
    assert_eq!(starts, [0, 128 * KIB]);
}

/// A machine with two files that diskproof made.
fn with_own_files(bytes: [u64; 2]) -> Fake {
    Fake {
        found: [
            ("/data/a", PathKind::File(bytes[0])),
            ("/data/b", PathKind::File(bytes[1])),
        ]
        .into(),
        own: vec!["/data/a", "/data/b"],
        ..Fake::default()
    }
}

/// The real fio reads as many bytes. Half of a file of 512 KiB lies behind the second start.
#[test]
fn copies_that_begin_later_in_found_files_end_with_them() {
    const KIB: u64 = 1024;
    let machine = with_own_files([512 * KIB; 2]);
    for (options, moved) in [
        ("rw=read\noffset_increment=256k", [1024, 512]),
        ("rw=read\noffset=64k\noffset_increment=128k", [896, 640]),
        ("rw=randread\nsize=80%\noffset_increment=128k", [816, 768]),
    ] {
        let text = format!("[a]\nfilename=/data/a:/data/b\nnumjobs=2\n{options}\n");
        let plan = on(&machine, &text, AS_FIO).expect(options).plan;
        let kept = plan.scratch_files[0].kept.as_ref().expect(options);
        assert_eq!(kept.file_bytes, 512 * KIB, "{options}");
        let mut bytes = Vec::new();
        for workload in &plan.workloads {
            bytes.push(workload.flags.bytes.expect(options).0 / KIB);
        }
        assert_eq!(bytes, moved, "{options}");
    }
}

#[test]
fn several_files_that_exist_give_a_job_its_size_and_percentages() {
    const KIB: u64 = 1024;
    let machine = with_own_files([MIB, MIB]);
    // What fio 3.33 moves in two files of 1 MiB.
    for (options, start, moved) in [
        ("", 0, 2048),
        ("size=50%", 0, 1024),
        ("size=100%", 0, 2048),
        ("offset=25%", 256, 1536),
        ("size=50%\noffset=75%", 768, 512),
        ("size=50%\nbs=12k", 0, 1008),
        ("offset=25%\nloops=2\nsize=512k", 256, 1024),
    ] {
        let text = format!("[a]\nrw=read\nfilename=/data/a:/data/b\n{options}\n");
        let plan = on(&machine, &text, AS_FIO).expect(options).plan;
        let kept = plan.scratch_files[0].kept.as_ref().expect(options);
        let bytes = plan.workloads[0].flags.bytes.expect(options).0;
        let found = (kept.part_start / KIB, bytes / KIB);
        assert_eq!(found, (start, moved), "{options}");
    }
    // Of files that differ, a percentage would be another place in each.
    let machine = with_own_files([MIB, 2 * MIB]);
    let text = "[a]\nrw=read\nsize=50%\nfilename=/data/a:/data/b\n";
    let error = on(&machine, text, AS_FIO).unwrap_err();
    assert!(error.contains("[a]: "), "{error}");
}

#[test]
fn copies_at_percentages_of_several_new_files_move_the_bytes_of_fio() {
    let text = "[a]\nrw=randread\nsize=1m\nnumjobs=3\noffset_increment=10%\nunlink=1\n\
                filename=/data/a:/data/b:/data/c\n";
    let plan = as_fio(text).unwrap().plan;
    let spans: Vec<(u64, u64)> = plan
        .workloads
        .iter()
        .map(|one| span(&one.flags).unwrap())
        .collect();
    let starts: Vec<u64> = spans.iter().map(|one| one.0 / 4096).collect();
    assert_eq!(starts, [0, 18, 9], "{spans:?}");
    // fio 3.33: 85 blocks of each file.
    for workload in &plan.workloads {
        assert_eq!(workload.flags.bytes.unwrap().0, 255 * 4096);
    }
}

#[test]
fn file_grows_with_copies_at_percentages_of_what_was_found() {
    let text = "[a]\nrw=write\nsize=1500k\nnumjobs=3\nfilename=/data/a\noffset_increment=10%\n";
    let file_bytes =
        |machine: &Fake| on(machine, text, AS_FIO).unwrap().plan.scratch_files[0].bytes;
    // The sizes that two runs of fio 3.33 leave.
    assert_eq!(file_bytes(&Fake::default()), 1_843_200);
    assert_eq!(file_bytes(&with_own_files([1_843_200, 0])), 1_904_640);
}

/// The sizes that fio 3.33 leaves: a copy takes its percentage of what those before it made.
#[test]
fn new_files_grow_with_each_copy_at_a_percentage() {
    let three = ["a", "b", "c"];
    let files = "/data/a:/data/b:/data/c";
    for (options, names, bytes) in [
        (
            format!("size=1500k\noffset=99%\nnumjobs=3\nfilename={files}"),
            &three[..],
            1_523_712,
        ),
        (
            format!("size=1500k\noffset=50%\nnumjobs=2\nfilename={files}"),
            &three[..],
            770_048,
        ),
        (
            "size=1536k\noffset=50%\nnumjobs=3\nfilename=/data/a".to_owned(),
            &three[..1],
            2_752_512,
        ),
        (
            "size=1m\noffset=50%\nnumjobs=3\nfilename=/data/a".to_owned(),
            &three[..1],
            1_835_008,
        ),
        (
            format!("size=1500k\noffset=99%\nfilename={files}"),
            &three[..],
            512_000,
        ),
    ] {
        let text = format!("[a]\nrw=randread\n{options}\n");
        assert_eq!(kept(&text), [(names_of(names), bytes)], "{options}");
        // Each copy moves its size, from where fio begins.
        let plan = as_fio(&text).unwrap().plan;
        for workload in &plan.workloads {
            let files = workload.flags.shape.order.fio.as_ref().unwrap().files;
            assert!(files.first_start + files.lap_bytes <= bytes, "{options}");
        }
        let first = plan.workloads[0].flags.shape.order.fio.as_ref().unwrap();
        assert_eq!(first.files.first_start, 0, "{options}");
    }
}

#[test]
fn zones_have_no_effect_with_several_open_files() {
    let text = "[a]\nrw=read\nzonemode=strided\nzonesize=64k\nzoneskip=64k\nsize=1m\n";
    // fio 3.33 decides by the option alone: without it, zones stay with several files, too.
    let several = as_fio(&format!("{text}openfiles=2\nnrfiles=2\ndirectory=/data\n")).unwrap();
    let flags = &several.plan.workloads[0].flags;
    assert_eq!(flags.shape.order.zone_stride, None);
    assert!(several.notes.join("").contains("zonemode"));
    for files in [
        "nrfiles=2\ndirectory=/data",
        "filename=/data/a:/data/b",
        "filename=/data/a",
    ] {
        let plan = as_fio(&format!("{text}{files}\n")).unwrap().plan;
        let order = plan.workloads[0].flags.shape.order.fio.clone();
        assert!(order.unwrap().places.zones.is_some(), "{files}");
    }
}

#[test]
fn copies_that_begin_behind_each_other_share_several_files() {
    let text = "[a]\nrw=write\nsize=1m\nfilename=/data/a:/data/b\noffset=64k\n\
                numjobs=3\noffset_increment=128k\n";
    let end = (64 + 2 * 128 + 512) << 10;
    assert_eq!(kept(text), [(names_of(&["a", "b"]), end)]);
    let plan = as_fio(text).unwrap().plan;
    assert_eq!(plan.scratch_files[0].bytes, 2 * (end - (64 << 10)));
    for (copy, workload) in [0, 2, 1].into_iter().zip(&plan.workloads) {
        let files = workload.flags.shape.order.fio.as_ref().unwrap().files;
        assert_eq!(files.part_start, 64 << 10);
        assert_eq!(files.first_start, (64 + 128 * copy) << 10);
        assert_eq!(files.part_bytes, end - (64 << 10));
    }
}

#[test]
fn offsets_of_a_pattern_are_those_in_each_of_several_files() {
    let text = "[a]\nrw=write\nsize=1m\noffset=64k\nnrfiles=4\ndirectory=/data\n\
                verify=pattern\nverify_pattern=%o\n";
    let plan = as_fio(text).unwrap().plan;
    let pattern = plan.workloads[0].flags.shape.content.known.as_ref();
    let files = pattern.unwrap().files.unwrap();
    assert_eq!((files.part_bytes, files.part_start), (MIB / 4, 64 << 10));
    assert_eq!(
        plan.scratch_files[0].kept.as_ref().unwrap().part_start,
        64 << 10
    );
}

#[test]
fn single_file_that_stays_ends_where_its_jobs_do() {
    let text = "[a]\nrw=write\nsize=1500001\ndirectory=/data\n\
                [b]\nrw=read\nsize=1m\nfilename=/data/a.0.0\n";
    assert_eq!(kept(text), [(names_of(&["a.0.0"]), 1_500_001)]);
    assert_eq!(
        as_fio(text).unwrap().plan.scratch_files[0].bytes,
        367 * 4096
    );
}

#[test]
fn file_that_was_there_stays_with_unlink() {
    let text = "[a]\nrw=read\nunlink=1\nfilename=/data/table\n";
    let notes = as_fio(text).unwrap().notes.join("\n");
    assert!(notes.contains("unlink=1"), "{notes}");
    let text = text.replace("unlink=1", "unlink=0");
    let notes = as_fio(&text).unwrap().notes.join("\n");
    assert!(!notes.contains("unlink"), "{notes}");
}

#[test]
fn files_that_vanish_are_parts_of_one() {
    let text = "[a]\nrw=write\nsize=1m\nunlink=1\nfilename=/data/a:/data/b\n";
    assert_eq!(kept(text), []);
    assert_eq!(
        plan("[a]\nrw=write\nsize=1m\nfilename=/data/a:/data/b\n").scratch_files,
        []
    );
}

/// The real fio leaves them.
#[test]
fn files_that_would_vanish_against_the_user_are_refused() {
    for options in [
        "offset=1k",
        "numjobs=2\noffset_increment=1k",
        "numjobs=2\noffset_increment=10%",
        "\n[b]\nrw=read\nsize=512k\nfilename=/data/a:/data/b",
        "bs=1k\nsize=6k",
        "\n[b]\nrw=read\nsize=1m\nfilename=/data/a",
    ] {
        let text = format!("[a]\nrw=write\nsize=1m\nfilename=/data/a:/data/b\n{options}\n");
        let why = as_fio(&text).expect_err(options);
        assert!(why.contains("cannot stay"), "{options}: {why}");
    }
    for directories in ["/data", "/data:/more\nnumjobs=2"] {
        let text =
            format!("[a]\nrw=write\nsize=1m\nnrfiles=2\noffset=1k\ndirectory={directories}\n");
        let why = as_fio(&text).expect_err(directories);
        assert!(why.contains("cannot stay"), "{directories}: {why}");
    }
}

#[test]
fn copies_with_logs_are_workloads_of_their_own() {
    let text = "[a]\nfilename=/dev/sda\nrw=randread\nnumjobs=3\ngroup_reporting\n";
    assert_eq!(as_fio(text).unwrap().plan.workloads.len(), 1);
    let logged = as_fio(&format!("{text}write_hist_log=log\n")).unwrap();
    assert_eq!(logged.plan.workloads.len(), 3);
}

/// As fio 3.33, which reads one section after the other.
#[test]
fn option_of_another_engine_is_unknown() {
    let job = "rw=read\nsize=1m\nfilename=/data/new\n";
    for (text, is_known) in [
        (format!("[a]\n{job}hipri\nioengine=io_uring\n"), true),
        (format!("[a]\n{job}hipri\nioengine=psync\n"), false),
        (format!("[a]\n{job}userspace_reap\n"), false),
        (
            format!("[global]\nhipri=1\n[a]\n{job}ioengine=io_uring\n"),
            false,
        ),
        (
            format!("[global]\nhipri=1\nioengine=io_uring\n[a]\n{job}ioengine=psync\n"),
            true,
        ),
    ] {
        assert_eq!(as_fio(&text).is_ok(), is_known, "{text}");
    }
}

/// fio gives a file to the first copy that has its name, and the others move nothing.
#[test]
fn one_name_for_several_files_is_refused() {
    for options in [
        "numjobs=2\nfilename_format=x.$filenum",
        "nrfiles=2\nfilename_format=x.$jobnum",
    ] {
        let text = format!("[a]\nrw=read\nsize=1m\ndirectory=/data\n{options}\n");
        let why = as_fio(&text).expect_err(options);
        assert!(why.contains("filename_format"), "{options}: {why}");
    }
    let text = "[a]\nrw=read\nsize=1m\ndirectory=/data:/other\nnumjobs=2\nfilename_format=x\n";
    assert!(as_fio(text).is_ok());
}

#[test]
fn appending_job_begins_where_its_file_ends() {
    let append = "rw=write\nsize=1m\nfile_append=1\n";
    let flags = &as_fio(&format!(
        "[a]\nfilename=/data/own\noffset=4k\nloops=3\n{append}"
    ))
    .unwrap()
    .plan
    .workloads[0]
        .flags;
    let end = SpanBounds {
        start: Position::Bytes(GIB),
        end: Position::Bytes(GIB + MIB),
    };
    assert_eq!((flags.span, flags.bytes), (Some(end), Some(Bytes(MIB))));
    for options in [
        "filename=/data/new\ntime_based\nruntime=1",
        "filename=/data/new\nio_size=2m",
        "filename=/data/own:/data/new",
        "ioengine=mmap\nfilename=/data/new",
        "filename=/data/new\n[b]\nfilename=/data/new\nrw=write\nsize=50%\nfile_append=1",
    ] {
        let text = format!("[a]\n{append}{options}\n");
        let why = as_fio(&text).expect_err(options);
        assert!(why.contains("file_append"), "{options}: {why}");
    }
    let why = translated(&format!("[a]\n{append}"), CliOverrides::default()).unwrap_err();
    assert!(why.contains("file_append"), "{why}");
}

/// As fio 3.33 does: each makes the file longer, unless it may not, before any of them runs.
#[test]
fn appending_jobs_of_a_file_begin_behind_each_other() {
    // Without a span a job has the whole file.
    let spans_of = |text: &str| -> Vec<Option<(u64, u64)>> {
        let plan = as_fio(text).unwrap().plan;
        let spans = plan.workloads.iter().map(|one| span(&one.flags));
        spans.collect()
    };
    let append = "rw=write\nsize=1m\nfilename=x\nfile_append=1\n";
    let two = format!("[a]\n{append}[b]\nstonewall\n{append}");
    let one_by_one = [Some((0, MIB)), Some((MIB, 2 * MIB))];
    assert_eq!(spans_of(&two), one_by_one);
    let behind = format!("[a]\nrw=write\nsize=1m\nfilename=x\n[b]\nstonewall\n{append}");
    assert_eq!(spans_of(&behind), one_by_one);
    let unextended = two
        .replace("stonewall\n", "")
        .replace(append, &format!("{append}fallocate=none\n"));
    assert_eq!(spans_of(&unextended), [None, None]);
    let copies = as_fio(&format!("[a]\n{append}numjobs=2\n")).unwrap().plan;
    let bytes: u64 = copies
        .workloads
        .iter()
        .map(|one| one.flags.bytes.unwrap().0)
        .sum();
    assert_eq!(bytes, 2 * MIB);
}

#[test]
fn lock_of_a_file_concerns_jobs_that_share_it() {
    let job = |options: &str| as_fio(&format!("[a]\nrw=write\nsize=1m\n{options}\n"));
    for options in [
        "lockfile=none\nfilename=x\nnumjobs=2",
        "lockfile=exclusive\nfilename=x",
        "lockfile=readwrite\nnumjobs=2",
        "lockfile=exclusive\nfilename=x\nnumjobs=2\nioengine=libaio",
    ] {
        assert!(job(options).is_ok(), "{options}");
    }
    for options in [
        "lockfile=exclusive\nfilename=x\nnumjobs=2",
        "lockfile=readwrite\nfilename=x\n[b]\nfilename=x\nrw=read\nsize=1m",
    ] {
        assert!(job(options).unwrap_err().contains("lockfile"), "{options}");
    }
}

#[test]
fn logged_copies_in_several_directories_have_their_own_names() {
    let text = "[a]\nrw=write\nsize=1m\nunlink=1\nnumjobs=4\ndirectory=/data:/other\n\
                write_iolog=log\n";
    let read = as_fio(text).unwrap();
    let mut names = Vec::new();
    for workload in &read.jobs.jobs[0].workloads {
        names.extend(workload.files.iter().map(|file| file.name.as_str()));
    }
    names.sort_unstable();
    assert_eq!(
        names,
        ["/data/a.0.0", "/data/a.2.0", "/other/a.1.0", "/other/a.3.0"]
    );
}

#[test]
fn fill_device_goes_to_the_end_of_what_exists() {
    let read = as_fio("[a]\nrw=write\nsize=1m\nfill_device=1\nfilename=/dev/sda\n").unwrap();
    let flags = &read.plan.workloads[0].flags;
    assert_eq!(
        (flags.bytes.map(|one| one.0), &flags.span),
        (Some(8 * GIB), &None)
    );
    let error = as_fio("[a]\nrw=write\nsize=1m\nfill_device=1\ndirectory=/data\n").unwrap_err();
    assert!(error.contains("[a]: fill_device"), "{error}");
}
