//! Jobs that name several files or directories.

use super::*;

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

    // A name may be given again, and in its own option.
    let text = format!("{DISKS}numjobs=4\nfilename=/dev/sda:/dev/sda\nfilename=/dev/sdb\n");
    let read = as_fio(&format!("{text}group_reporting\n")).unwrap();
    assert_eq!(load(&read.plan.workloads[0].flags), (Some(1), Some(2)));

    let sized = "iodepth=4\nsize=1g\nnumber_ios=101\nrate_iops=100\n";
    let read = as_fio(&format!("{DISKS}{sized}filename=/dev/sda:/dev/big\n")).unwrap();
    let flags = &read.plan.workloads[0].flags;
    let limits = (flags.ops.unwrap().0, flags.rate.unwrap().0);
    assert_eq!(limits, (51, 50.0));
    let span = flags.span.as_ref().unwrap();
    assert_eq!(span.end, Position::Bytes(GIB / 2));
}

#[test]
fn what_cannot_be_shared_is_refused() {
    for (options, part) in [
        (
            "filename=/dev/sda:/dev/sdb",
            "neither iodepth=1 nor numjobs=1",
        ),
        (
            "ioengine=libaio\niodepth=9\nfilename=/dev/sda:/dev/sdb",
            "a multiple of 2",
        ),
        (
            "iodepth=2\nioengine=libaio\nunlink=1\nfilename=/dev/sda:/data/new",
            "/data/new ",
        ),
        ("size=1m\nfilename=/data/a:/other/b", "several directories"),
        (
            "size=1m\nrw=rw\nfilename=/data/a:/data/b",
            "uniformly random",
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
    let read = as_fio("[a]\nrw=randread\nsize=8m\nfilename=/data/a:/data/b\n").unwrap();
    assert_eq!(read.plan.targets, paths(&["/data"]));
    assert_eq!(read.plan.size.map(|one| one.0), Some(8 * MIB));
    assert_eq!(read.jobs.jobs[0].files, 1);

    let text = "[a]\nrw=randread\nsize=8m\nnumjobs=4\ndirectory=/data:/other\ngroup_reporting\n";
    let read = as_fio(text).unwrap();
    // Each copy has its own file.
    let places = ["/data", "/other", "/data", "/other"];
    assert_eq!(read.plan.targets, paths(&places));
    let files = read.plan.scratch_files.iter();
    let names: Vec<&str> = files.filter_map(|file| file.name.as_deref()).collect();
    assert_eq!(names, ["a.0.0", "a.1.0", "a.2.0", "a.3.0"]);
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
