//! The syntax of job files, includes, variables and names.

use super::*;

#[test]
fn unsupported_engine_is_reported_before_an_unset_variable() {
    let error = translated(
        "[job]\nfilename=${NOPE}\nioengine=rbd\nbs=4k\n",
        CliOverrides::default(),
    )
    .unwrap_err();
    assert!(error.contains("line 3: ioengine=rbd"), "{error}");
    // What the variable stands for may be the cause of another error.
    for text in ["[job]\nrw=${NOPE}\n", "[job]\nbs=${NOPE}\nwhat=1\n"] {
        let error = translated(text, CliOverrides::default()).unwrap_err();
        assert!(
            error.contains("line 2") && error.contains("NOPE is not set"),
            "{error}"
        );
    }
}

#[test]
fn as_fio_refuses_logs_that_it_cannot_write() {
    let overrides = CliOverrides {
        closeness: Closeness::Fio,
        ..CliOverrides::default()
    };
    let job =
        |options: &str| translated(&format!("[job]\nfilename=/dev/sda\n{options}\n"), overrides);
    for (options, text) in [
        ("write_iolog=x", "single requests are not recorded"),
        ("write_hist_log=/etc/x", "current directory"),
        ("write_bw_log=../x", "current directory"),
        (
            "write_iops_log=/etc/x\nlog_avg_msec=100",
            "current directory",
        ),
    ] {
        let error = job(options).unwrap_err();
        assert!(error.contains(text), "{error}");
    }
    let notes = job("write_bw_log=x\nlog_avg_msec=100\ngroup_reporting")
        .unwrap()
        .notes;
    assert!(!notes.join("\n").contains("ignored"), "{notes:?}");
    for options in ["write_bw_log=logs/x", "write_bw_log=/work/x"] {
        assert!(job(options).is_ok(), "{options}");
    }
    let of_output = CliOverrides {
        output: Some(Path::new("/etc/out")),
        ..overrides
    };
    let text = |path| format!("[job]\nfilename=/dev/sda\nwrite_bw_log={path}\n");
    assert!(translated(&text("/etc/out/read"), of_output).is_ok());
    assert!(translated(&text("/etc/outside"), of_output).is_err());
    let notes = job("write_bw_log=x").unwrap().notes.join("\n");
    assert!(notes.contains("a line per 100 ms"), "{notes}");
    for log in ["write_lat_log=x", "write_hist_log=x\nlog_hist_msec=100"] {
        let notes = job(log).unwrap().notes.join("\n");
        assert!(!notes.contains("ignored"), "{notes}");
    }
}

#[test]
fn job_file_syntax_matches_fio() {
    let flags = only(
        "  bs = 8k   ; comment\n\n# comment\n;another\nrw=write # \
         more\niodepth=4;x\nioengine=libaio",
    );
    assert_eq!(
        (
            flags.bs.unwrap().0,
            flags.rw.unwrap().first(),
            flags.depth.unwrap().0
        ),
        (8192, OpKind::Write, 4)
    );
    assert_eq!(
        (
            only("kb_base=1000\nbs=4kib").bs.unwrap().0,
            only("bs=4k\nkb_base=1000").bs.unwrap().0
        ),
        (4096, 4000)
    );
    assert_eq!(
        span(&only("size=5*1024*1024*$mb_memory/8 # 5/8 of the memory")),
        Some((0, 5 * 1024 * 1024 * 64 / 8))
    );
    assert_eq!(
        (
            only("numjobs=$ncpus\nrw=randread").jobs.unwrap().0,
            only("bs=$pagesize").bs.unwrap().0
        ),
        (8, 4096)
    );
    assert_eq!(span(&only("size=(2 * 512m)")), Some((0, GIB)));
    for (text, part) in [
        ("", "line 1: the file has no job"),
        ("[global]\nbs=4k\n", "line 1: the file has no job"),
        (
            "bs=4k\n[a]\n",
            "line 1: bs=4k: an option before the first section",
        ),
        ("[a\n", "line 1: [a: a section is a name in brackets"),
        ("[]\n", "line 1: []: a section is"),
        (
            "[a]\nbs=${NOPE}\n",
            "line 2: bs=${NOPE}: the environment variable NOPE is not set",
        ),
        (
            "[a]\ninclude nowhere\n",
            "line 2: include nowhere: it is not there",
        ),
    ] {
        let message = refused(text);
        assert!(message.contains(part), "{text}: {message}");
    }
    let long = refused(&format!("[a]\n{}\n", "x".repeat(8000)));
    assert!(
        long.contains("…: fio 3.42 has no such option") && long.chars().count() < 300,
        "{long}"
    );
    assert!(refused(&format!("[a]\n{}\n", "x".repeat(9000))).contains("more than 8192 bytes"));
}

#[test]
fn workload_names_are_valid_and_unique() {
    let names = |text: &str| {
        plan(text)
            .workloads
            .iter()
            .map(|w| w.name.clone())
            .collect::<Vec<_>>()
    };
    let global = "[global]\nfilename=/dev/sda\nname=unused\n";
    assert_eq!(
        names(&format!(
            "{global}[seq read!]\n[seq read?]\n[x]\nname=mine\n[\u{1b}[2J]\n[---]\n"
        )),
        ["seq-read", "seq-read-2", "mine", "2J", "read"]
    );
    let long = "y".repeat(100);
    assert!(
        names(&format!(
            "{global}[{long}]\nnumjobs=3\n[{long}]\nnumjobs=3\n"
        ))
        .iter()
        .all(|name| name.len() <= 40)
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
    let files = files
        .iter()
        .map(|(name, text)| (*name, (*text).to_owned()))
        .collect();
    let variables = variables
        .iter()
        .map(|(name, text)| (*name, (*text).to_owned()))
        .collect();
    Fake {
        files,
        variables,
        ..Fake::default()
    }
}

fn read(fake: &Fake, text: &str) -> Result<JobFile, String> {
    JobFile::translate(text, Path::new("jobs/x.fio"), CliOverrides::default(), fake)
        .map_err(|error| error.to_string())
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
    let plan = read(&fake, "[global]\ninclude common\n[a]\nfilename=${DISK}\n")
        .unwrap()
        .plan;
    assert_eq!(
        (plan.workloads[0].flags.bs.unwrap().0, plan.targets.len()),
        (16384, 1)
    );
    let message = read(&fake, "[a]\ninclude /abs\n").unwrap_err();
    assert!(
        message.starts_with("/abs: line 2: ") && message.contains("include"),
        "{message}"
    );
    assert!(
        read(&fake, "[a]\ndescription=${SELF}\nfilename=/dev/sda\n")
            .unwrap()
            .plan
            .note
            .unwrap()
            == "${SELF}${SELF}",
        "once is enough"
    );
}

#[test]
fn includes_refuse_cycles_and_sections() {
    let fake = with(
        &[
            ("jobs/x.fio", "include x.fio\n"),
            ("jobs/wide", "include wide2\ninclude wide2\n"),
            ("jobs/section", "[b]\n"),
        ],
        &[],
    );
    assert!(
        read(&fake, "[a]\ninclude x.fio\n")
            .unwrap_err()
            .contains("jobs/x.fio: line 1: includes are circular")
    );
    assert!(
        read(&fake, "[a]\ninclude section\n")
            .unwrap_err()
            .contains("an included file cannot start a section")
    );
    assert!(
        read(&fake, "include section\n")
            .unwrap_err()
            .contains("before the first section")
    );
    let many = "include none\n".repeat(300);
    let fake = with(&[("none", "")], &[]);
    assert!(
        read(&fake, &format!("[a]\n{many}"))
            .unwrap_err()
            .contains("line 258: includes are circular")
    );
}

#[test]
fn variables_have_limits() {
    let huge = "v".repeat(8000);
    let fake = with(&[], &[("V", &huge)]);
    let grown = format!("[a]\n{}", "description=${V}\n".repeat(900));
    assert!(
        read(&fake, &grown)
            .unwrap_err()
            .contains("more than 4 MiB of text")
    );
    assert!(
        read(&fake, "[a]\ndescription=${V}${V}\n")
            .unwrap_err()
            .contains("more than 8192 bytes")
    );
}

#[test]
fn job_file_refuses_too_many_options_and_jobs() {
    assert!(
        refused(&format!("[a]\n{}", "thread\n".repeat(1100))).contains("more than 1000 options")
    );
    assert!(refused(&"[a]\nfilename=/dev/sda\n".repeat(1441)).contains("more than 1440 jobs"));
    assert!(
        refused(&"[a]\ndirectory=/data\nsize=1m\nnumjobs=1000\n".repeat(1000))
            .contains("line 17: the file has more than 4096 jobs, copies")
    );
    assert!(
        refused(&format!(
            "[global]\n{}{}",
            "thread\n".repeat(999),
            "[a]\n".repeat(1440)
        ))
        .contains("[a]: the job has no size")
    );
    assert!(
        refused("[a]\nfilename=/dev/sda\nnumjobs=1000\n[b]\nfilename=/dev/sda\nnumjobs=1000\n")
            .contains("more than 1440 workloads")
    );
}
