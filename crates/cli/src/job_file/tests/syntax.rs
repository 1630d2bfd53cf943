//! The syntax of job files, includes, variables and names.

use super::*;
use diskproof_compat::fio_values::Base;

#[test]
fn unsupported_engine_is_reported_before_an_unset_variable() {
    for (text, part) in [
        (
            "[job]\nfilename=${NOPE}\nioengine=rbd\nbs=4k\n",
            "line 3: ioengine=rbd",
        ),
        // What the variable stands for may be the cause of another error.
        ("[job]\nrw=${NOPE}\n", "line 2: rw=${NOPE}: "),
        ("[job]\nbs=${NOPE}\nwhat=1\n", "line 2: bs=${NOPE}: "),
    ] {
        let error = refused(text);
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn as_fio_refuses_logs_that_it_cannot_write() {
    let job = |options: &str, overrides| {
        translated(&format!("[job]\nfilename=/dev/sda\n{options}\n"), overrides)
    };
    for options in [
        "write_iolog=/etc/x",
        "write_hist_log=/etc/x",
        "write_bw_log=../x",
        "write_iops_log=/etc/x\nlog_avg_msec=100",
    ] {
        let error = job(options, AS_FIO).unwrap_err();
        let (option, _) = options.split_once('\n').unwrap_or((options, ""));
        assert!(error.contains(&format!("line 3: {option}: ")), "{error}");
    }
    for options in ["write_bw_log=logs/x", "write_bw_log=/work/x"] {
        assert!(job(options, AS_FIO).is_ok(), "{options}");
    }
    let of_output = CliOverrides {
        output: Some(Path::new("/etc/out")),
        ..AS_FIO
    };
    assert!(job("write_bw_log=/etc/out/read", of_output).is_ok());
    assert!(job("write_bw_log=/etc/outside", of_output).is_err());
    let notes = |options| job(options, AS_FIO).unwrap().notes.join("\n");
    assert!(notes("write_bw_log=x").contains("100 ms"));
    for log in [
        "write_bw_log=x\nlog_avg_msec=100\ngroup_reporting",
        "write_lat_log=x",
        "write_hist_log=x\nlog_hist_msec=100",
    ] {
        assert!(!notes(log).contains("ignored"), "{log}");
    }
}

#[test]
fn job_file_syntax_matches_fio() {
    let flags = only(
        "  bs = 8k   ; comment\n\n# comment\n;another\nrw=write # \
         more\niodepth=4;x\nioengine=libaio",
    );
    assert_eq!(sizes(&flags), (8192, 4, 1));
    assert_eq!(flags.rw.unwrap().first(), OpKind::Write);
    let block = |options: &str| only(options).bs.unwrap().0;
    assert_eq!(block("kb_base=1000\nbs=4kib"), 4096);
    assert_eq!(block("bs=4k\nkb_base=1000"), 4000);
    let above = plan("[global]\nbs=4k\n[a]\nfilename=/dev/sda\nkb_base=1000\nsize=80k\n");
    let above = &above.workloads[0].flags;
    assert_eq!(
        (above.bs.unwrap().0, span(above)),
        (4096, Some((0, 81_920)))
    );
    assert_eq!(block("bs=$pagesize"), 4096);
    assert_eq!(only("numjobs=$ncpus\nrw=randread").jobs.unwrap().0, 8);
    let memory = only("size=5*1024*1024*$mb_memory/8 # 5/8 of the memory");
    assert_eq!(span(&memory), Some((0, 5 * 1024 * 1024 * 64 / 8)));
    assert_eq!(span(&only("size=(2 * 512m)")), Some((0, GIB)));
}

#[test]
fn text_without_a_job_is_an_error_only_where_it_would_run() {
    let only_options = CliOverrides {
        action: JobAction::Check,
        ..AS_FIO
    };
    let text = "[global]\nrw=read\n";
    let jobs = translated(text, only_options).unwrap().jobs;
    assert_eq!((jobs.jobs.len(), jobs.global.len()), (0, 1));
    assert!(translated(text, AS_FIO).is_err());
}

#[test]
fn heading_has_the_sizes_of_each_direction_in_the_base_of_the_job() {
    let shown = |options: &str| {
        let text = format!("[a]\nfilename=/dev/sda\n{options}\n");
        let job = translated(&text, AS_FIO).unwrap().jobs.jobs.remove(0);
        let sizes = job.block_sizes.map(|sizes| (sizes.least, sizes.most));
        (sizes, job.base)
    };
    let default = (4096, 4096);
    let (small, large) = ((4096, 8192), (MIB, MIB));
    for (options, wanted) in [
        ("rw=read", [default; 3]),
        ("bs=64k", [(65_536, 65_536); 3]),
        ("bs=(64k-32k)", [(32_768, 32_768); 3]),
        ("bs=,8k", [default, (8192, 8192), (8192, 8192)]),
        ("bsrange=4k-16k", [(4096, 16_384); 3]),
        ("bssplit=4k/50:8k/50,1m", [small, large, large]),
        // fio 3.33: bs sets only what no range sets, wherever it stands.
        ("bsrange=4k-16k\nbs=1k", [(4096, 16_384); 3]),
        ("bsrange=4k-16k\nbssplit=4k/50:8k/50", [small; 3]),
        ("bssplit=4k/50:8k/50\nbsrange=4k-16k", [(4096, 16_384); 3]),
        ("bs=4k\nkb_base=1000", [(4000, 4000); 3]),
    ] {
        let (sizes, base) = shown(options);
        assert_eq!(sizes, wanted, "{options}");
        let is_decimal = options.contains("kb_base");
        assert_eq!(base == Base::Decimal, is_decimal, "{options}");
    }
}

#[test]
fn syntax_error_names_its_line() {
    for (text, part) in [
        ("", "line 1: the file has no job"),
        ("[global]\nbs=4k\n", "line 1: the file has no job"),
        ("bs=4k\n[a]\n", "line 1: bs=4k: an option before"),
        ("[a\n", "line 1: [a: "),
        ("[]\n", "line 1: []: "),
        ("[a]\nbs=${NOPE}\n", "line 2: bs=${NOPE}: "),
        ("[a]\ninclude nowhere\n", "line 2: include nowhere: "),
    ] {
        let message = refused(text);
        assert!(
            message.starts_with(&format!("jobs/x.fio: {part}")),
            "{text}: {message}"
        );
    }
    let long = refused(&format!("[a]\n{}\n", "x".repeat(8000)));
    assert!(
        long.contains("x…: ") && long.chars().count() < 300,
        "{long}"
    );
    assert!(refused(&format!("[a]\n{}\n", "x".repeat(9000))).contains("8192 bytes"));
}

#[test]
fn workload_names_are_valid_and_unique() {
    let global = "[global]\nfilename=/dev/sda\nname=unused\n";
    let sections = "[seq read!]\n[seq read?]\n[x]\nname=mine\n[\u{1b}[2J]\n[---]\n";
    let found = plan(&format!("{global}{sections}"));
    assert_eq!(
        names(&found),
        ["seq-read", "seq-read-2", "mine", "2J", "read"]
    );
    let surveyed = plan(&format!("{global}[burst]\n[access]\n"));
    assert_eq!(names(&surveyed), ["burst-job", "access-job"]);
    let long = format!("[{}]\nnumjobs=3\n", "y".repeat(100));
    let found = plan(&format!("{global}{long}{long}"));
    assert!(
        names(&found).iter().all(|name| name.len() <= 40),
        "{found:?}"
    );
}

#[test]
fn error_quotes_no_line_of_an_included_file() {
    let lines = [
        "root:$6$secret:19000:0:99999:7:::",
        "secret",
        "[secret]",
        "[secret",
        "include secret",
        "size=secret",
        "size=1g ${secret}",
        "rw=secret",
        "bs=(secret)",
        "filename=secret:secret2",
        "ioengine=secret",
        "exec_prerun=secret",
        "numjobs=9999secret",
        "loops=2secret",
        "verify=secret",
        "bssplit=secret/50",
        "random_distribution=zipf:secret",
        "$ncpus=secret+1",
        &format!("secret{}", "x".repeat(9000)),
    ];
    for line in lines {
        let fake = Fake {
            files: [("/etc/shadow", format!("iodepth=1\n{line}\n"))].into(),
            ..Fake::default()
        };
        let text = "[a]\nfilename=/dev/sda\nrw=randread\ninclude /etc/shadow\n";
        let message = JobFile::translate(text, Path::new("x.fio"), CliOverrides::default(), &fake)
            .expect_err(line)
            .to_string();
        assert!(
            message.contains("/etc/shadow: line 2") || message.contains("options that it includes"),
            "{line}: {message}"
        );
        let shown = message.replace("the file may be secret", "");
        assert!(!shown.contains("secret"), "{line}: {message}");
    }
}

fn with(files: &[(&'static str, &str)], variables: &[(&'static str, &str)]) -> Fake {
    let owned = |pairs: &[(&'static str, &str)]| {
        let pairs = pairs.iter().map(|(name, text)| (*name, (*text).to_owned()));
        pairs.collect()
    };
    Fake {
        files: owned(files),
        variables: owned(variables),
        ..Fake::default()
    }
}

fn read_on(machine: &Fake, text: &str) -> Result<JobFile, String> {
    on(machine, text, CliOverrides::default())
}

#[test]
fn includes_and_variables_are_replaced_once() {
    let fake = with(
        &[
            ("jobs/common", "bs=16k\nrw=randread\n"),
            ("/abs", "iodepth=4\nbogus=1"),
        ],
        &[("DISK", "/dev/sda"), ("SELF", "${SELF}${SELF}")],
    );
    let plan = |text| read_on(&fake, text).unwrap().plan;
    let common = plan("[global]\ninclude common\n[a]\nfilename=${DISK}\n");
    assert_eq!(common.workloads[0].flags.bs.unwrap().0, 16384);
    assert_eq!(common.targets, paths(&["/dev/sda"]));
    let message = read_on(&fake, "[a]\ninclude /abs\n").unwrap_err();
    assert!(
        message.starts_with("/abs: line 2: ") && message.contains("include"),
        "{message}"
    );
    let once = plan("[a]\ndescription=${SELF}\nfilename=/dev/sda\n");
    assert_eq!(once.note.unwrap(), "${SELF}${SELF}");
}

/// The file of that name beside the including one is another file.
#[test]
fn include_that_is_there_and_cannot_be_read_is_an_error() {
    let mut fake = with(&[("jobs/common", "bs=16k\n")], &[]);
    let directory = PathKind::Other("a directory".to_owned());
    fake.found.insert("common", directory);
    let text = "[a]\ninclude common\nfilename=/dev/sda\n";
    assert!(read_on(&fake, text).is_err());
}

/// As fio 3.33, which prints an error, ends the section, and runs its jobs.
#[test]
fn missing_include_ends_its_section_only_as_fio() {
    let job = "[a]\nfilename=/dev/sda\nrw=randread\nbs=8k\ninclude nowhere\n";
    assert!(refused(job).contains("line 5: include nowhere: "));
    let file = translated(&format!("{job}\n[b]\nfilename=/dev/sda\n"), AS_FIO).unwrap();
    assert_eq!(names(&file.plan), ["a", "b"]);
    assert_eq!(file.plan.workloads[0].flags.bs.unwrap().0, 8192);
    assert!(file.notes.join("\n").contains("include nowhere"));
    let with_more = translated(&format!("{job}iodepth=4\n"), AS_FIO);
    assert!(with_more.unwrap_err().contains("line 5: include nowhere: "));
}

#[test]
fn includes_refuse_cycles_and_sections() {
    let fake = with(
        &[
            ("jobs/x.fio", "include x.fio\n"),
            ("jobs/section", "[b]\n"),
            ("none", ""),
        ],
        &[],
    );
    let many = format!("[a]\n{}", "include none\n".repeat(300));
    for (text, part) in [
        (
            "[a]\ninclude x.fio\n",
            "jobs/x.fio: line 1: includes are circular",
        ),
        ("[a]\ninclude section\n", "jobs/section: line 1: "),
        ("include section\n", "line 1: include before"),
        (&many, "line 258: includes are circular"),
    ] {
        let error = read_on(&fake, text).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn variables_have_limits() {
    let huge = "v".repeat(8000);
    let fake = with(&[], &[("V", &huge)]);
    let grown = format!("[a]\n{}", "description=${V}\n".repeat(900));
    assert!(read_on(&fake, &grown).unwrap_err().contains("4 MiB"));
    let line = read_on(&fake, "[a]\ndescription=${V}${V}\n").unwrap_err();
    assert!(line.contains("8192 bytes"), "{line}");
}

#[test]
fn job_file_refuses_too_many_options_and_jobs() {
    let options = |count| "thread\n".repeat(count);
    let many_jobs = "[a]\ndirectory=/data\nsize=1m\nnumjobs=1000\n".repeat(1000);
    let two = "[a]\nfilename=/dev/sda\nnumjobs=1000\n[b]\nfilename=/dev/sda\nnumjobs=1000\n";
    let allowed = format!("[global]\n{}{}", options(999), "[a]\n".repeat(1440));
    for (text, part) in [
        (format!("[a]\n{}", options(1100)), "1000 options"),
        ("[a]\nfilename=/dev/sda\n".repeat(1441), "1440 jobs"),
        (many_jobs, "line 17: the file has more than 4096 jobs"),
        (allowed, "[a]: the job has no size"),
        (two.to_owned(), "1440 workloads"),
    ] {
        let error = refused(&text);
        assert!(error.contains(part), "{error}");
    }
}
