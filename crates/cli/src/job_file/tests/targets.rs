//! Groups of jobs, their files and their targets.

use super::*;
use diskproof_compat::StartFailure;

/// As fio 3.33, whose words these are.
#[test]
fn no_file_is_made_where_none_may_be() {
    let read_only = CliOverrides {
        is_read_only: true,
        ..AS_FIO
    };
    let new = "[a]\nfilename=/data/new\nsize=16m\n";
    let several = "[a]\ndirectory=/data\nsize=16m\nnrfiles=2\n";
    let own = "[a]\nfilename=/data/own\nsize=2g\n";
    for text in [new, several, own] {
        let error = translated(text, read_only).unwrap_err();
        assert!(error.contains("due to read-only"), "{text}: {error}");
    }
    for text in [new, several] {
        let text = format!("{text}allow_file_create=0\n");
        let read = translated(&text, AS_FIO).unwrap();
        assert!(read.plan.workloads.is_empty(), "{text}");
        assert_eq!(
            read.jobs.jobs[0].start_failure,
            Some(StartFailure::NoFileAllowed)
        );
        // The scratch file of a measurement vanishes.
        translated(&text, CliOverrides::default()).unwrap();
    }
    // The other jobs run, and the one without a file counts as failed.
    let both = "[a]\nfilename=/data/own\nsize=1m\n[b]\nfilename=/data/new\nsize=1m\n\
                allow_file_create=0\nnumjobs=2\n";
    let read = translated(both, AS_FIO).unwrap();
    assert_eq!(names(&read.plan), ["a"]);
    let failing: Vec<Option<StartFailure>> =
        read.jobs.jobs.iter().map(|job| job.start_failure).collect();
    assert_eq!(failing, [None, Some(StartFailure::NoFileAllowed)]);
    // Nothing waits for a job that fails before it begins, as in fio.
    for failed in [
        "filename=/data/new\nsize=1m\nallow_file_create=0",
        "rw=read",
    ] {
        let waiting = format!("[a]\n{failed}\n[b]\nfilename=/data/own\nsize=1m\nwait_for=a\n");
        let read = translated(&waiting, AS_FIO).unwrap();
        assert_eq!(names(&read.plan), ["b"], "{failed}");
    }
    // An earlier job makes the file.
    let made = "[a]\nfilename=/data/new\nsize=1m\n[b]\nfilename=/data/new\nsize=1m\n\
                allow_file_create=0\n";
    assert_eq!(names(&translated(made, AS_FIO).unwrap().plan), ["a", "b"]);
    let there = "[a]\nfilename=/data/own\nsize=16m\nallow_file_create=0\n";
    translated(there, read_only).unwrap();
    translated(&format!("{own}allow_file_create=0\n"), AS_FIO).unwrap();
}

#[test]
fn exit_what_names_jobs_that_run_together() {
    for text in [
        "[a]\nfilename=/dev/sda\nexitall\nexit_what=stonewall\n[b]\nfilename=/dev/sda\nstonewall\n",
        "[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sda\nstonewall\nexitall\nexit_what=all\n",
    ] {
        read(text);
    }
    let skips = "[global]\nfilename=/dev/sda\nexitall\nexit_what=all\n[a]\n[b]\nstonewall\n";
    let error = refused(skips);
    assert!(error.contains("line 5: [a]: exit_what=all "), "{error}");
}

#[test]
fn exitall_of_one_job_is_that_of_all() {
    // fio 3.33 keeps one flag for all jobs.
    let text = "[global]\nfilename=/dev/sda\n[a]\n[b]\n[c]\nstonewall\nexitall\n";
    let ends_alone: Vec<Option<bool>> = plan(text)
        .workloads
        .iter()
        .map(|one| one.flags.ends_alone)
        .collect();
    assert_eq!(ends_alone, [None; 3]);
}

#[test]
fn exitall_ends_jobs_on_all_targets() {
    let ends = |text: &str| -> Vec<bool> {
        let plan = translated(text, AS_FIO).unwrap().plan;
        plan.workloads
            .iter()
            .map(|one| one.flags.shape.ends.ends_group)
            .collect()
    };
    let own_files = "[global]\nexitall\n[a]\nsize=1m\n[b]\nsize=2m\n";
    assert_eq!(ends(own_files), [true; 2]);
    assert_eq!(ends(&own_files.replace("exitall", "bs=8k")), [false; 2]);
    // On one target the first end is that of all anyway.
    assert_eq!(
        ends(&own_files.replace("exitall", "exitall\nfilename=/dev/sda")),
        [false; 2]
    );
}

#[test]
fn job_files_run_one_after_the_other() {
    let text = |text: &'static str, name: &'static str| JobText::File {
        text: text.into(),
        path: Path::new(name),
    };
    let texts = [
        text("[global]\nfilename=/dev/sda\nbs=8k\n[a]\n[b]\n", "x.fio"),
        text("[global]\nfilename=/dev/sda\n[c]\n[d]\n", "y.fio"),
    ];
    let read = JobFile::translate_all(&texts, AS_FIO, &Fake::default()).unwrap();
    let together: Vec<Option<bool>> = read
        .plan
        .workloads
        .iter()
        .map(|one| one.flags.together)
        .collect();
    assert_eq!(together, [None, Some(true), None, Some(true)]);
    let groups: Vec<usize> = read.jobs.jobs.iter().map(|job| job.group).collect();
    assert_eq!(groups, [0, 0, 1, 1]);
    // The global options of a file are its own.
    let blocks: Vec<u32> = read
        .plan
        .workloads
        .iter()
        .map(|one| one.flags.bs.unwrap().0)
        .collect();
    assert_eq!(blocks, [8192, 8192, 4096, 4096]);
}

#[test]
fn jobs_run_together_unless_they_wait() {
    let text = "[global]\nfilename=/dev/sda\nrw=randread\n[a]\n[b]\n[c]\nstonewall\n[global]\n\
                bs=16k\n[d]\n[e]\nwait_for_previous\n";
    let plan = plan(text);
    let workloads = plan.workloads.iter();
    let seen = workloads.map(|w| (&w.name[..], w.line, w.flags.together, w.flags.bs.unwrap().0));
    let with = Some(true);
    let expected = [
        ("a", 4, None, 4096),
        ("b", 5, with, 4096),
        ("c", 6, None, 4096),
        ("d", 10, with, 16384),
        ("e", 11, None, 16384),
    ];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
    assert_eq!(plan.targets, paths(&["/dev/sda"]));
    let alone = |text: &str| -> Vec<_> {
        let all = super::plan(text).workloads;
        all.iter().map(|one| one.flags.ends_alone).collect()
    };
    assert_eq!(alone(text), [with, with, with, with, None]);
    assert_eq!(alone(&text.replacen("rw=", "exitall\nrw=", 1)), [None; 5]);
    assert!(!notes(text).contains("concurrent jobs"));
    // Each has its own time.
    let unequal = notes("[global]\nfilename=/dev/sda\n[a]\nruntime=5\n[b]\nruntime=9\n");
    assert!(!unequal.contains("concurrent jobs"), "{unequal}");
    let calm = notes("[global]\nfilename=/dev/sda\ndirect=1\ntime_based\nruntime=5\n[a]\n[b]\n");
    assert_eq!(calm, "");
}

#[test]
fn missing_files_become_parts_of_one_scratch_file() {
    let own = plan(
        "[global]\nsize=10m\ndirectory=/data\n[a]\nnumjobs=4\n[b]\nrw=randwrite\nsize=1500k\n",
    );
    assert_eq!(
        (&own.targets, own.size.unwrap().0),
        (&paths(&["/data"]), 42 * MIB)
    );
    let [a, b] = &own.workloads[..] else {
        panic!("{own:?}")
    };
    let amount = (a.flags.jobs.unwrap().0, a.flags.bytes.unwrap().0);
    assert_eq!(
        (span(&a.flags), amount),
        (Some((0, 40 * MIB)), (4, 40 * MIB))
    );
    assert_eq!(span(&b.flags), Some((40 * MIB, 40 * MIB + 1500 * 1024)));
    let new = "filename=/data/new\n";
    let one = plan(&format!(
        "[a]\n{new}size=10m\nrw=write\n[b]\n{new}size=5m\nstonewall\n"
    ));
    let spans = [0, 1].map(|index| span(&one.workloads[index].flags));
    assert_eq!(
        (one.size.unwrap().0, spans),
        (10 * MIB, [None, Some((0, 5 * MIB))])
    );
}

#[test]
fn scratch_file_for_a_missing_file_is_noted() {
    let message = notes("[a]\nfilename=/data/new\nsize=10m\n");
    assert!(
        message.contains("/data/new ") && message.contains(" 10 MiB in /data "),
        "{message}"
    );
    for (options, overwrites) in [
        ("rw=read", false),
        ("rw=write", false),
        ("rw=write\nfdatasync=1", true),
        ("rw=write\nfdatasync=1\noverwrite=1", false),
        ("rw=write\nnumjobs=2", true),
        ("rw=write\nsize=1500k", true),
    ] {
        let notes = notes(&format!("[a]\nfilename=/data/new\nsize=10m\n{options}\n"));
        assert_eq!(notes.contains("overwrites blocks"), overwrites, "{options}");
    }
    assert!(!notes("[a]\nfilename=/dev/sda\nrw=write\nfsync=1\n").contains("overwrites"));
}

#[test]
fn existing_file_is_named_by_filename_or_section() {
    let named = plan("[a]\ndirectory=/data\nfilename=table\n").targets;
    assert_eq!(named, paths(&["/data/table"]));
    assert_eq!(plan("[/dev/sda]\n").targets, paths(&["/dev/sda"]));
}

#[test]
fn job_file_refuses_paths_that_cannot_be_measured() {
    for (options, part) in [
        ("filename=/data/new", "1: [a]: "),
        ("filename=/dev/sdz\nsize=1g", "2: [a]: /dev/sdz "),
        (
            "filename=/nowhere/x\nsize=1g",
            "2: [a]: the directory /nowhere ",
        ),
        ("filename=/data", "2: [a]: /data is a directory"),
        ("filename=/dev/null", "2: [a]: /dev/null: "),
        ("filename=/data/new\nsize=10%", "1: [a]: a value in percent"),
    ] {
        let error = refused(&format!("[a]\n{options}\n"));
        assert!(
            error.starts_with(&format!("jobs/x.fio: line {part}")),
            "{error}"
        );
    }
    // An earlier job makes the file.
    let text = "[a]\nfilename=/data/new\nsize=64m\nrw=write\n[b]\nfilename=/data/new\nstonewall\n";
    let bytes = plan(text).workloads[1].flags.bytes.map(|bytes| bytes.0);
    assert_eq!(bytes, Some(64 << 20));
}

/// The targets of a job with this section and options.
fn targets(section: &str, options: &str) -> Result<Vec<PathBuf>, String> {
    let text = format!("[{section}]\nsize=16m\nrw=randread\n{options}\n");
    translated(&text, CliOverrides::default()).map(|file| file.plan.targets)
}

#[test]
fn the_final_path_of_a_file_decides_its_directory() {
    for (section, options) in [
        ("/data/reads", ""),
        ("a", "filename_format=/data/f.$jobnum\nnumjobs=2"),
        ("data/a", "directory=/"),
        ("a", "directory=/\nfilename_format=data/$jobname"),
        ("a", "directory=/data/."),
    ] {
        let found = targets(section, options);
        assert_eq!(found, Ok(paths(&["/data"])), "[{section}] {options}");
    }
    assert_eq!(targets("a", ""), Ok(paths(&["."])));
    // Copies in two directories, and on two disks.
    let machine = Fake {
        found: [
            ("/0", PathKind::Directory),
            ("/1", PathKind::Directory),
            ("/dev/disk0", PathKind::Device(GIB)),
            ("/dev/disk1", PathKind::Device(GIB)),
        ]
        .into(),
        ..Fake::default()
    };
    for (format, targets) in [
        ("/$jobnum/x", ["/0", "/1"]),
        ("/dev/disk$jobnum", ["/dev/disk0", "/dev/disk1"]),
    ] {
        let text = "[a]\nsize=16m\nrw=randread\nnumjobs=2\nfilename_format=";
        let file = on(
            &machine,
            &format!("{text}{format}\n"),
            CliOverrides::default(),
        )
        .unwrap();
        assert_eq!(file.jobs.jobs[0].workloads.len(), 2);
        assert_eq!(file.plan.targets, paths(&targets));
    }
}

#[test]
fn the_final_path_of_a_file_must_have_a_directory() {
    for (section, options) in [
        ("/nowhere/a", ""),
        ("a", "filename_format=/nowhere/f"),
        ("nowhere/a", "directory=/data"),
        ("a", "filename=nowhere/f"),
        // A disk that is not there.
        ("/dev/sdz", ""),
    ] {
        let error = targets(section, options).unwrap_err();
        assert!(
            error.contains("/nowhere ") || error.contains("/dev/sdz.0.0 "),
            "{error}"
        );
    }
    let note = notes("[a]\nsize=16m\n");
    assert!(note.contains("/work/a.0.0 "), "{note}");
}

#[test]
fn an_existing_file_of_the_final_path_is_read_and_never_replaced_by_a_write() {
    let table = paths(&["/data/table"]);
    assert_eq!(
        targets("a", "filename_format=/data/table"),
        Ok(table.clone())
    );
    let format = "[a]\nsize=16m\nfilename_format=/data/table\n";
    for text in [
        format!("{format}rw=write\n"),
        format!("{format}rw=read\n[b]\nrw=trim\nsize=16m\nfilename_format=/data/table\n"),
        format!("{format}rw=read\nsize=2g\n"),
    ] {
        let file = read(&text);
        assert_eq!(file.plan.targets, paths(&["/data"]), "{text}");
        let notes = file.notes.join("\n");
        assert!(notes.contains("/data/table stays unchanged"), "{notes}");
    }
    // What an earlier run of fio left.
    let machine = Fake {
        found: [("/data/a.0.0", PathKind::File(GIB))].into(),
        ..Fake::default()
    };
    let left = "[a]\ndirectory=/data\nsize=1m\n";
    let file = on(&machine, left, CliOverrides::default()).unwrap();
    assert_eq!(file.plan.targets, paths(&["/data"]));
    // A name that the author gives is used.
    let written = plan("[a]\nfilename=/data/table\nrw=write\n");
    assert_eq!(written.targets, table);
}

#[test]
fn own_file_grows_for_as_fio_and_no_other_does() {
    let as_fio = |options: &str| translated(&format!("[a]\n{options}\n"), AS_FIO);
    let own = "filename=/data/own\nrw=read\nbs=1m\nsize=1g\n";
    for (options, bytes) in [
        ("offset=512k\n", GIB + MIB / 2),
        ("numjobs=4\noffset_increment=500m\n", GIB + 1500 * MIB),
    ] {
        let file = as_fio(&format!("{own}{options}")).unwrap();
        let [grown] = &file.plan.scratch_files[..] else {
            panic!("{options}")
        };
        assert_eq!(grown.name(), Some("own"), "{options}");
        assert_eq!(file.plan.targets, paths(&["/data"]), "{options}");
        assert_eq!(grown.bytes, bytes, "{options}");
    }
    // It is large enough.
    for options in ["", "offset=10%\nsize=50%\n", "numjobs=3\n"] {
        let file = as_fio(&format!("{own}{options}")).unwrap();
        assert!(file.plan.scratch_files.is_empty(), "{options}");
        assert_eq!(file.plan.targets, paths(&["/data/own"]), "{options}");
    }
    for options in [
        own.replace("own", "table") + "offset=1m\n",
        format!("{own}offset=1m\nunlink=1\n"),
    ] {
        let error = as_fio(&options).map(|file| file.plan).unwrap_err();
        assert!(error.contains("but /data/"), "{error}");
    }
    // As in fio, a job ends with the device.
    let disk = only("size=400g\noffset=1m\nrw=randread");
    assert_eq!(span(&disk), Some((MIB, 8 * GIB)));
    assert_eq!(disk.bytes.map(|bytes| bytes.0), Some(8 * GIB - MIB));
}

fn spans(plan: &PlanFile) -> Vec<(u64, u64)> {
    let spans = plan.workloads.iter().map(|one| span(&one.flags).unwrap());
    spans.collect()
}

#[test]
fn copies_with_separate_loads_become_workloads() {
    let same = plan("[a]\nfilename=/dev/sda\nsize=1g\nnumjobs=3\n");
    assert_eq!(names(&same), ["a-1", "a-2", "a-3"]);
    assert_eq!(spans(&same), [(0, GIB); 3]);
    for (workload, together) in same.workloads.iter().zip([None, Some(true), Some(true)]) {
        let flags = &workload.flags;
        assert_eq!((flags.jobs.unwrap().0, flags.bytes.unwrap().0), (1, GIB));
        assert_eq!(flags.together, together);
    }
    // Adjacent copies are one workload, whose jobs have a part each.
    let adjacent =
        plan("[a]\nfilename=/dev/sda\nsize=1g\nnumjobs=3\noffset_increment=1g\noffset=2g\n");
    assert_eq!(spans(&adjacent), [(2 * GIB, 5 * GIB)]);
    let apart =
        plan("[a]\nfilename=/dev/sda\nrw=randread\nsize=1g\nnumjobs=2\noffset_increment=2g\n");
    assert_eq!(spans(&apart), [(0, GIB), (2 * GIB, 3 * GIB)]);
    // At the end of the file.
    let clipped =
        plan("[a]\nfilename=/dev/sda\nrw=randread\nfilesize=4g\nnumjobs=3\noffset_increment=1g\n");
    assert_eq!(
        spans(&clipped),
        [(0, 4 * GIB), (GIB, 4 * GIB), (2 * GIB, 4 * GIB)]
    );
}

#[test]
fn copies_with_own_files_have_a_part_each() {
    // In its own file, a copy does not visit the bytes before its offset.
    let own = plan(
        "[a]\ndirectory=/data\nrw=randread\nsize=10m\noffset=1m\nnumjobs=2\nbssplit=4k/50:8k/50\n",
    );
    assert_eq!((own.workloads.len(), own.size.unwrap().0), (1, 20 * MIB));
    assert_eq!(span(&own.workloads[0].flags), None);
    // With zipf, each file has its own popular blocks.
    let zipf = "rw=randread\nsize=10m\nnumjobs=2\nrandom_distribution=zipf:1.2\n";
    for (target, workloads) in [("directory=/data", 2), ("filename=/dev/sda", 1)] {
        let plan = plan(&format!("[a]\n{target}\n{zipf}"));
        assert_eq!(plan.workloads.len(), workloads, "{target}");
    }
    let shared = plan(
        "[global]\ndirectory=/data\nsize=10m\nrw=randread\nnumjobs=2\nfilename_format=f.$jobnum\n\
         [a]\n[b]\nstonewall\n",
    );
    assert_eq!(shared.size.unwrap().0, 20 * MIB);
    assert_eq!(span(&shared.workloads[1].flags), None);
}

const TWO_DISKS: &str = "[global]\nrw=randread\nruntime=5\ntime_based\n[one]\nfilename=/dev/sda\n\
                         [two]\nfilename=/dev/sdb\n";

#[test]
fn jobs_that_differ_only_in_their_disk_become_one_workload() {
    let both = plan(TWO_DISKS);
    assert_eq!(both.targets, paths(&["/dev/sda", "/dev/sdb"]));
    assert_eq!(names(&both), ["randread"]);
    let all = |plan: &PlanFile| -> Vec<(String, Option<usize>, Option<bool>)> {
        let workloads = plan.workloads.iter();
        let seen = workloads.map(|one| (one.name.clone(), one.flags.target, one.flags.together));
        seen.collect()
    };
    for (other, together) in [("bs=8k", Some(true)), ("stonewall", None)] {
        let apart = plan(&TWO_DISKS.replace("[two]", &format!("[two]\n{other}")));
        assert_eq!(apart.targets, paths(&["/dev/sda", "/dev/sdb"]));
        let (one, two) = (
            ("one".to_owned(), Some(0), None),
            ("two".to_owned(), Some(1), together),
        );
        assert_eq!(all(&apart), [one, two]);
    }
    let turns = refused("[a]\nfilename=/dev/sda:/dev/sdb\n");
    assert!(
        turns.contains("line 2: [a]: fio visits the 2 files"),
        "{turns}"
    );
}

#[test]
fn targets_on_the_command_line_replace_those_of_the_file() {
    let on = |text: &str, target: &str, size| {
        let overrides = CliOverrides {
            targets: &paths(&[target]),
            size,
            ..CliOverrides::default()
        };
        translated(text, overrides)
    };
    // The sizes of the two files are not known.
    let unknown = on(TWO_DISKS, "/data", Some(64 * MIB)).unwrap_err();
    assert!(unknown.contains("no size"), "{unknown}");
    let given = on(&TWO_DISKS.replace("[one]", "size=8m\n[one]"), "/data", None).unwrap();
    assert_eq!(given.plan.targets, paths(&[]));
    assert_eq!(
        (given.plan.size.unwrap().0, given.plan.workloads.len()),
        (16 * MIB, 2)
    );
    assert!(given.notes[0].contains("the 2 files "), "{:?}", given.notes);
    let device = on("[a]\nfilename=/dev/sda\nrw=randread\n", "/dev/big", None).unwrap();
    assert_eq!(device.plan.workloads[0].flags.bytes.unwrap().0, 16 * GIB);
}

#[test]
fn section_flag_selects_sections() {
    let text = "[global]\nrw=randread\n[one]\nfilename=/dev/sda\n[two]\nstonewall\nfilename=/dev/\
                sdb\n[odd]\nioengine=net\n";
    let selected = |sections: &[&str]| {
        let sections: Vec<String> = sections.iter().map(|name| (*name).to_owned()).collect();
        let overrides = CliOverrides {
            sections: &sections,
            ..CliOverrides::default()
        };
        translated(text, overrides).map(|file| file.plan)
    };
    let two = selected(&["two"]).unwrap();
    assert_eq!(
        (&two.targets, names(&two)),
        (&paths(&["/dev/sdb"]), vec!["two"])
    );
    for (sections, part) in [
        (&[][..], "ioengine=net"),
        (
            &["one", "three"],
            "line 3: there is no section 'three'; the file has one, two, odd",
        ),
    ] {
        let error = selected(sections).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

/// Own jobs with the options of fio's examples jesd219, poisson-rate-submission, 1mbs_clients,
/// waitfor, dedupe-global and disk-zone-profile, and how many workloads each becomes.
const LIKE_EXAMPLES: &[(&str, usize)] = &[
    (
        "[mix]\nioengine=libaio\ndirect=1\nrw=randrw\nnorandommap\nrandrepeat=0\nrwmixread=40\n\
         rwmixwrite=60\niodepth=64\nnumjobs=2\nbssplit=512/10:4k/80:64k/10\nblockalign=4k\n\
         random_distribution=zoned:50/5:30/15:20/80\nfilename=/dev/sda\ngroup_reporting\n",
        1,
    ),
    (
        "[rate]\nsize=64m\nrw=randread\nioengine=libaio\niodepth=8\ndirect=1\n\
         io_submit_mode=offload\nrate_iops=80\nrate_process=poisson\n",
        1,
    ),
    (
        "[global]\nsize=8m\nrw=read\ndirectory=/tmp\nrate=2000\nratemin=1500\n[one]\n\
         startdelay=0\n[two]\nstartdelay=3\n",
        2,
    ),
    (
        "[global]\nthreads=1\ngroup_reporting\nfilename=/tmp/f\nfilesize=16m\nruntime=2\n\
         numjobs=2\n[a]\nrw=write\nbs=64k\n[b]\nnew_group\nwait_for=a\nrw=randread\n",
        2,
    ),
    (
        "[global]\nioengine=libaio\niodepth=16\nsize=10m\ndedupe_mode=working_set\n\
         dedupe_global=1\ndedupe_percentage=40\nrw=write\nbuffer_compress_percentage=40\n\
         dedupe_working_set_percentage=40\n[a]\n[b]\n",
        1,
    ),
    (
        "[zones]\nbs=64k\ndirect=1\nrw=read\nioengine=libaio\niodepth=2\nzonemode=strided\n\
         zonesize=64m\nzoneskip=1g\nfilename=/dev/sdb\nwrite_bw_log\nlog_offset=1\n",
        1,
    ),
];

#[test]
fn jobs_like_the_examples_of_fio_become_workloads() {
    for (text, workloads) in LIKE_EXAMPLES {
        let read = translated(text, AS_FIO).unwrap_or_else(|why| panic!("{text}{why}"));
        assert!(read.plan.workloads.len() >= *workloads, "{text}");
    }
}
