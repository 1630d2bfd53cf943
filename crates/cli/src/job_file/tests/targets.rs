//! Groups of jobs, their files and their targets.

use super::*;
use std::path::PathBuf;

#[test]
fn exit_what_names_jobs_that_run_together() {
    for text in [
        "[a]\nfilename=/dev/sda\nexitall\nexit_what=stonewall\n[b]\nfilename=/dev/sda\nstonewall\n",
        "[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sda\nstonewall\nexitall\nexit_what=all\n",
    ] {
        translated(text, CliOverrides::default()).unwrap();
    }
}

#[test]
fn jobs_run_together_unless_they_wait() {
    let text = "[global]\nfilename=/dev/sda\nrw=randread\n[a]\n[b]\n[c]\nstonewall\n[global]\n\
                bs=16k\n[d]\n[e]\nwait_for_previous\n";
    let plan = plan(text);
    let seen: Vec<_> = plan
        .workloads
        .iter()
        .map(|w| {
            (
                w.name.as_str(),
                w.line,
                w.flags.together,
                w.flags.bs.unwrap().0,
            )
        })
        .collect();
    let with = Some(true);
    assert_eq!(
        seen,
        [
            ("a", 4, None, 4096),
            ("b", 5, with, 4096),
            ("c", 6, None, 4096),
            ("d", 10, with, 16384),
            ("e", 11, None, 16384)
        ]
    );
    assert_eq!(plan.targets, [PathBuf::from("/dev/sda")]);
    let alone = |text: &str| -> Vec<_> {
        let all = super::plan(text).workloads;
        all.iter().map(|one| one.flags.ends_alone).collect()
    };
    assert_eq!(alone(text), [with, with, with, with, None]);
    assert_eq!(alone(&text.replacen("rw=", "exitall\nrw=", 1)), [None; 5]);
    assert!(!notes(text).contains("concurrent jobs"));
    let unequal = notes("[global]\nfilename=/dev/sda\n[a]\nruntime=5\n[b]\nruntime=9\n");
    assert!(
        unequal.contains("share the shortest of their runtimes"),
        "{unequal}"
    );
    let calm = notes("[global]\nfilename=/dev/sda\ndirect=1\ntime_based\nruntime=5\n[a]\n[b]\n");
    assert_eq!(calm, "");
    assert!(
        refused("[global]\nfilename=/dev/sda\nexitall\nexit_what=all\n[a]\n[b]\nstonewall\n")
            .contains("[a]: exit_what=all would skip")
    );
}

#[test]
fn missing_files_become_parts_of_one_scratch_file() {
    let own = plan(
        "[global]\nsize=10m\ndirectory=/data\n[a]\nnumjobs=4\n[b]\nrw=randwrite\nsize=1500k\n",
    );
    assert_eq!(
        (own.targets.as_slice(), own.size.unwrap().0),
        (&[PathBuf::from("/data")][..], 42 * MIB)
    );
    let [a, b] = &own.workloads[..] else {
        panic!("{own:?}")
    };
    assert_eq!(
        (
            span(&a.flags),
            a.flags.jobs.unwrap().0,
            a.flags.bytes.unwrap().0
        ),
        (Some((0, 40 * MIB)), 4, 40 * MIB)
    );
    assert_eq!(span(&b.flags), Some((40 * MIB, 40 * MIB + 1500 * 1024)));
    let one = plan(
        "[a]\nfilename=/data/new\nsize=10m\nrw=write\n[b]\nfilename=/data/new\nsize=5m\nstonewall\n\
         ",
    );
    assert_eq!(
        (
            one.size.unwrap().0,
            span(&one.workloads[0].flags),
            span(&one.workloads[1].flags)
        ),
        (10 * MIB, None, Some((0, 5 * MIB)))
    );
}

#[test]
fn scratch_file_for_a_missing_file_is_noted() {
    let message = notes("[a]\nfilename=/data/new\nsize=10m\n");
    assert!(
        message.contains("/data/new does not exist: a scratch file of 10 MiB in /data replaces it"),
        "{message}"
    );
    assert!(!message.contains("overwrites blocks"), "{message}");
    let overwrites = |options: &str| {
        notes(&format!(
            "[a]\nfilename=/data/new\nsize=10m\nrw=write\n{options}\n"
        ))
        .contains("overwrites blocks")
    };
    assert!(
        !overwrites("")
            && overwrites("fdatasync=1")
            && !overwrites("fdatasync=1\noverwrite=1")
            && overwrites("numjobs=2")
            && overwrites("size=1500k")
    );
    assert!(!notes("[a]\nfilename=/dev/sda\nrw=write\nfsync=1\n").contains("overwrites blocks"));
}

#[test]
fn existing_file_is_named_by_filename_or_section() {
    assert_eq!(
        plan("[a]\ndirectory=/data\nfilename=table\n").targets,
        [PathBuf::from("/data/table")]
    );
    assert_eq!(plan("[/dev/sda]\n").targets, [PathBuf::from("/dev/sda")]);
}

#[test]
fn job_file_refuses_paths_that_cannot_be_measured() {
    assert!(refused("[a]\nfilename=/data/new\n").contains("[a]: the job has no size"));
    // An earlier job makes the file.
    let text = "[a]\nfilename=/data/new\nsize=64m\nrw=write\n[b]\nfilename=/data/new\nstonewall\n";
    assert_eq!(
        plan(text).workloads[1].flags.bytes.map(|b| b.0),
        Some(64 << 20)
    );
    assert!(
        refused("[a]\nfilename=/dev/sdz\nsize=1g\n")
            .contains("line 2: [a]: /dev/sdz does not exist")
    );
    assert!(
        refused("[a]\nfilename=/nowhere/x\nsize=1g\n")
            .contains("the directory /nowhere does not exist")
    );
    assert!(refused("[a]\nfilename=/data\n").contains("/data is a directory"));
    assert!(refused("[a]\nfilename=/dev/null\n").contains("it is no disk"));
    assert!(
        refused("[a]\nfilename=/data/new\nsize=10%\n")
            .contains("a value in percent needs an existing file")
    );
}

/// The targets of a job with this section and options.
fn targets(section: &str, options: &str) -> Result<Vec<PathBuf>, String> {
    let text = format!("[{section}]\nsize=16m\nrw=randread\n{options}\n");
    translated(&text, CliOverrides::default()).map(|file| file.plan.targets)
}

#[test]
fn the_final_path_of_a_file_decides_its_directory() {
    let in_data = Ok(vec![PathBuf::from("/data")]);
    for (section, options) in [
        ("/data/reads", ""),
        ("a", "filename_format=/data/f.$jobnum\nnumjobs=2"),
        ("data/a", "directory=/"),
        ("a", "directory=/\nfilename_format=data/$jobname"),
        ("a", "directory=/data/."),
    ] {
        assert_eq!(targets(section, options), in_data, "[{section}] {options}");
    }
    assert_eq!(targets("a", ""), Ok(vec![PathBuf::from(".")]));
    // Copies in two directories, and on two disks.
    let [both, disks] = [
        "filename_format=/$jobnum/x",
        "filename_format=/dev/disk$jobnum",
    ]
    .map(|format| {
        let found = [
            ("/0", PathKind::Directory),
            ("/1", PathKind::Directory),
            ("/dev/disk0", PathKind::Device(GIB)),
            ("/dev/disk1", PathKind::Device(GIB)),
        ];
        let machine = Fake {
            found: found.into(),
            ..Fake::default()
        };
        let text = format!("[a]\nsize=16m\nrw=randread\nnumjobs=2\n{format}\n");
        let file = JobFile::translate(&text, Path::new("x.fio"), CliOverrides::default(), &machine);
        let file = file.unwrap();
        assert_eq!(file.jobs.jobs[0].workloads.len(), 2);
        file.plan.targets
    });
    assert_eq!(both, [PathBuf::from("/0"), PathBuf::from("/1")]);
    assert_eq!(
        disks,
        [PathBuf::from("/dev/disk0"), PathBuf::from("/dev/disk1")]
    );
}

#[test]
fn the_final_path_of_a_file_must_have_a_directory() {
    for (section, options) in [
        ("/nowhere/a", ""),
        ("a", "filename_format=/nowhere/f"),
        ("nowhere/a", "directory=/data"),
        ("a", "filename=nowhere/f"),
    ] {
        let error = targets(section, options).unwrap_err();
        assert!(error.contains("/nowhere does not exist"), "{error}");
    }
    // A disk that is not there.
    assert!(targets("/dev/sdz", "").unwrap_err().contains("/dev/sdz"));
    let note = notes("[a]\nsize=16m\n");
    assert!(note.contains("/work/a.0.0 does not exist"), "{note}");
}

#[test]
fn an_existing_file_of_the_final_path_is_read_and_never_replaced_by_a_write() {
    let table = vec![PathBuf::from("/data/table")];
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
        let file = translated(&text, CliOverrides::default()).unwrap();
        assert_eq!(file.plan.targets, [PathBuf::from("/data")], "{text}");
        let notes = file.notes.join("\n");
        assert!(notes.contains("/data/table stays unchanged"), "{notes}");
    }
    // What an earlier run of fio left.
    let machine = Fake {
        found: [("/data/a.0.0", PathKind::File(GIB))].into(),
        ..Fake::default()
    };
    let left = "[a]\ndirectory=/data\nsize=1m\n";
    let file = JobFile::translate(left, Path::new("x"), CliOverrides::default(), &machine);
    assert_eq!(file.unwrap().plan.targets, [PathBuf::from("/data")]);
    // A name that the author gives is used.
    let written = plan("[a]\nfilename=/data/table\nrw=write\n");
    assert_eq!(written.targets, table);
}

#[test]
fn own_file_grows_for_as_fio_and_no_other_does() {
    let as_fio = |options: &str| {
        let overrides = CliOverrides {
            closeness: Closeness::Fio,
            ..CliOverrides::default()
        };
        translated(&format!("[a]\n{options}\n"), overrides)
    };
    let own = "filename=/data/own\nrw=read\nbs=1m\nsize=1g\n";
    for (options, bytes) in [
        ("offset=512k\n", GIB + MIB),
        ("numjobs=4\noffset_increment=500m\n", GIB + 1500 * MIB),
    ] {
        let file = as_fio(&format!("{own}{options}")).unwrap();
        assert_eq!(file.kept_name.as_deref(), Some("own"), "{options}");
        assert_eq!(file.plan.targets, [PathBuf::from("/data")], "{options}");
        assert_eq!(file.plan.size.unwrap().0, bytes, "{options}");
    }
    // It is large enough.
    for options in ["", "offset=10%\nsize=50%\n", "numjobs=3\n"] {
        let file = as_fio(&format!("{own}{options}")).unwrap();
        assert_eq!(file.kept_name, None, "{options}");
        assert_eq!(file.plan.targets, [PathBuf::from("/data/own")], "{options}");
    }
    for options in [
        own.replace("own", "table") + "offset=1m\n",
        format!("{own}offset=1m\nunlink=1\n"),
        format!("{own}offset=1m\n[b]\nfilename=/data/table\nsize=1m\n"),
    ] {
        let error = as_fio(&options).map(|file| file.plan).unwrap_err();
        assert!(error.contains("but /data/"), "{error}");
    }
    let disk = refused("[a]\nfilename=/dev/sda\nsize=8g\noffset=1m\n");
    assert!(disk.contains("a smaller size"), "{disk}");
}

#[test]
fn copies_with_separate_loads_become_workloads() {
    let same = plan("[a]\nfilename=/dev/sda\nsize=1g\nnumjobs=3\n");
    assert_eq!(
        same.workloads
            .iter()
            .map(|w| w.name.as_str())
            .collect::<Vec<_>>(),
        ["a-1", "a-2", "a-3"]
    );
    assert!(
        same.workloads
            .iter()
            .all(|w| span(&w.flags) == Some((0, GIB))
                && w.flags.jobs.unwrap().0 == 1
                && w.flags.bytes.unwrap().0 == GIB)
    );
    assert_eq!(
        same.workloads
            .iter()
            .map(|w| w.flags.together)
            .collect::<Vec<_>>(),
        [None, Some(true), Some(true)]
    );
    // Adjacent copies are one workload, whose jobs have a part each.
    let adjacent =
        plan("[a]\nfilename=/dev/sda\nsize=1g\nnumjobs=3\noffset_increment=1g\noffset=2g\n");
    assert_eq!(
        (adjacent.workloads.len(), span(&adjacent.workloads[0].flags)),
        (1, Some((2 * GIB, 5 * GIB)))
    );
    let apart =
        plan("[a]\nfilename=/dev/sda\nrw=randread\nsize=1g\nnumjobs=2\noffset_increment=2g\n");
    assert_eq!(
        apart
            .workloads
            .iter()
            .map(|w| span(&w.flags).unwrap())
            .collect::<Vec<_>>(),
        [(0, GIB), (2 * GIB, 3 * GIB)]
    );
}

#[test]
fn filesize_clips_copies_at_the_end_of_the_file() {
    let clipped =
        plan("[a]\nfilename=/dev/sda\nrw=randread\nfilesize=4g\nnumjobs=3\noffset_increment=1g\n");
    let spans: Vec<_> = clipped
        .workloads
        .iter()
        .map(|w| span(&w.flags).unwrap())
        .collect();
    assert_eq!(spans, [(0, 4 * GIB), (GIB, 4 * GIB), (2 * GIB, 4 * GIB)]);
}

#[test]
fn copies_with_own_files_have_a_part_each() {
    // In its own file, a copy does not visit the bytes before its offset.
    let own = plan(
        "[a]\ndirectory=/data\nrw=randread\nsize=10m\noffset=1m\nnumjobs=2\nbssplit=4k/50:8k/50\n",
    );
    assert_eq!(
        (
            own.workloads.len(),
            own.size.unwrap().0,
            span(&own.workloads[0].flags)
        ),
        (1, 20 * MIB, None)
    );
    // With zipf, each file has its own popular blocks.
    assert_eq!(
        plan(
            "[a]\ndirectory=/data\nrw=randread\nsize=10m\nnumjobs=2\nrandom_distribution=zipf:1.2\n\
             "
        )
        .workloads
        .len(),
        2
    );
    assert_eq!(
        plan("[a]\nfilename=/dev/sda\nrw=randread\nnumjobs=2\nrandom_distribution=zipf:1.2\n")
            .workloads
            .len(),
        1
    );
    let shared = plan(
        "[global]\ndirectory=/data\nsize=10m\nrw=randread\nnumjobs=2\nfilename_format=f.$jobnum\n\
         [a]\n[b]\nstonewall\n",
    );
    assert_eq!(
        (shared.size.unwrap().0, span(&shared.workloads[1].flags)),
        (20 * MIB, None)
    );
}

#[test]
fn jobs_that_differ_only_in_their_disk_become_one_workload() {
    let text = "[global]\nrw=randread\nruntime=5\ntime_based\n[one]\nfilename=/dev/sda\n[two]\n\
                filename=/dev/sdb\n";
    let both = plan(text);
    assert_eq!(
        both.targets,
        [PathBuf::from("/dev/sda"), PathBuf::from("/dev/sdb")]
    );
    assert_eq!(
        both.workloads
            .iter()
            .map(|w| w.name.as_str())
            .collect::<Vec<_>>(),
        ["randread"]
    );
    for other in [
        text.replace("[two]", "[two]\nbs=8k"),
        text.replace("[two]", "[two]\nstonewall"),
    ] {
        assert!(
            refused(&other).contains("the jobs differ between their disks"),
            "{other}"
        );
    }
    assert!(
        refused("[a]\nfilename=/dev/sda:/dev/sdb\n")
            .contains("line 2: [a]: fio visits the 2 files in turn from one queue")
    );
    // Targets on the command line replace those of the file.
    let targets = [PathBuf::from("/data")];
    let given = translated(
        text,
        CliOverrides {
            targets: &targets,
            size: Some(64 * MIB),
            ..CliOverrides::default()
        },
    )
    .expect_err("sizes of two files are not known");
    assert!(given.contains("the job has no size"), "{given}");
    let given = translated(
        &text.replace("[one]", "size=8m\n[one]"),
        CliOverrides {
            targets: &targets,
            ..CliOverrides::default()
        },
    )
    .unwrap();
    assert_eq!(
        (
            given.plan.targets.len(),
            given.plan.size.unwrap().0,
            given.plan.workloads.len()
        ),
        (0, 16 * MIB, 2)
    );
    assert!(
        given.notes[0].contains("the 2 files of the jobs become adjacent parts of the target"),
        "{:?}",
        given.notes
    );
    let device = [PathBuf::from("/dev/big")];
    let given = translated(
        "[a]\nfilename=/dev/sda\nrw=randread\n",
        CliOverrides {
            targets: &device,
            ..CliOverrides::default()
        },
    )
    .unwrap();
    assert_eq!(given.plan.workloads[0].flags.bytes.unwrap().0, 16 * GIB);
}

#[test]
fn section_flag_selects_sections() {
    let text = "[global]\nrw=randread\n[one]\nfilename=/dev/sda\n[two]\nstonewall\nfilename=/dev/\
                sdb\n[odd]\nioengine=net\n";
    let names = |sections: &[&str]| {
        let sections: Vec<String> = sections.iter().map(|name| (*name).to_owned()).collect();
        let file = translated(
            text,
            CliOverrides {
                sections: &sections,
                ..CliOverrides::default()
            },
        )?;
        Ok::<_, String>((
            file.plan.targets,
            file.plan
                .workloads
                .iter()
                .map(|w| w.name.clone())
                .collect::<Vec<_>>(),
        ))
    };
    assert_eq!(
        names(&["two"]),
        Ok((vec![PathBuf::from("/dev/sdb")], vec!["two".to_owned()]))
    );
    assert!(
        names(&["two", "one"])
            .unwrap_err()
            .contains("run the sections one by one (--section NAME)")
    );
    assert!(names(&[]).unwrap_err().contains("ioengine=net"));
    assert_eq!(
        names(&["one", "three"]),
        Err(
            "jobs/x.fio: line 3: there is no section 'three'; the file has one, two, odd"
                .to_owned()
        )
    );
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
        2,
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
        let overrides = CliOverrides {
            closeness: Closeness::Fio,
            ..CliOverrides::default()
        };
        let read = translated(text, overrides).unwrap_or_else(|why| panic!("{text}{why}"));
        assert!(read.plan.workloads.len() >= *workloads, "{text}");
    }
}
