//! Every page of every fixture: exact at 80 columns, within its width at all others, without colour
//! and control characters where it must be.

mod charts;
mod fio_json;
mod fixture;
mod layers;
mod short;
mod svg;
mod tables;

use diskproof_model::budget::TargetUse;
use diskproof_model::measurement::{OpKind, VerifyResult};
use diskproof_model::plan::{EngineChoice, Inserts, Plan, Span, SyncCall, SyncPolicy, Task};
use diskproof_model::postgres::{PostgresPlan, SERVER_START_NS, TrialPlan};
use diskproof_model::record::Record;
use diskproof_model::surface::{Coverage, CurvePlan, Survey};
use diskproof_model::target::TargetIdentity;
use diskproof_report::Examined;
use diskproof_report::style::{Color, Style};
use diskproof_report::terminal::Detail;
use diskproof_report::{ascii, html, json, terminal};
use std::io::{self, Write};
use std::sync::LazyLock;
use unicode_width::UnicodeWidthStr;

const PLAIN_80: Style = plain(80);

const ANSI_80: Style = Style {
    width: 80,
    color: Color::Ansi,
};

const fn plain(width: usize) -> Style {
    Style {
        width,
        color: Color::Plain,
    }
}

/// Fails unless the page shows all of these.
#[track_caller]
fn assert_shows(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "{part:?} is missing:\n{page}");
    }
}

fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("memory takes everything");
    String::from_utf8(out).expect("pages are UTF-8")
}

fn record_page(record: &Record, style: &Style) -> String {
    terminal::record_page(record, Detail::Whole, style)
}

/// Built once: their histograms take time.
static RECORDS: LazyLock<[(&str, Record); 8]> = LazyLock::new(|| {
    [
        ("healthy", fixture::healthy()),
        ("read_only", fixture::graded(fixture::read_only())),
        ("partial", fixture::graded(fixture::partial())),
        ("every_severity", fixture::graded(fixture::every_severity())),
        ("two_targets", fixture::graded(fixture::two_targets())),
        ("hostile", fixture::graded(fixture::hostile())),
        ("surveyed", fixture::graded(fixture::surveyed())),
        ("depths", fixture::graded(fixture::depths())),
    ]
});

/// What `info` would know of a target of this record.
fn examined<'a>(record: &'a Record, identity: &'a TargetIdentity) -> Examined<'a> {
    Examined {
        host: &record.host,
        identity,
        health: &record.health,
        findings: &record.findings,
    }
}

/// Every page that wraps its lines.
fn wrapped_pages(style: &Style) -> Vec<String> {
    let mut pages = Vec::new();
    for (_, record) in &*RECORDS {
        pages.push(record_page(record, style));
        pages.push(written(|out| {
            terminal::write_plan(&record.plan, &record.targets, style, out)
        }));
        pages.extend(record.targets.iter().map(|identity| {
            written(|out| terminal::write_identity(&examined(record, identity), style, out))
        }));
    }
    pages
}

#[test]
fn result_pages() {
    for (name, record) in &*RECORDS {
        insta::assert_snapshot!(*name, record_page(record, &PLAIN_80));
    }
}

#[test]
fn pages_use_the_width_of_the_terminal() {
    for (name, record, width) in [
        ("result_page_on_a_narrow_terminal", fixture::healthy(), 60),
        (
            "result_page_on_a_wide_terminal",
            fixture::graded(fixture::two_targets()),
            200,
        ),
        ("surveyed_wide", fixture::graded(fixture::surveyed()), 200),
        ("surveyed_narrow", fixture::graded(fixture::surveyed()), 60),
        ("depths_wide", fixture::graded(fixture::depths()), 160),
    ] {
        insta::assert_snapshot!(name, record_page(&record, &plain(width)));
    }
}

#[test]
fn ascii_pages_have_the_width_of_the_others() {
    for page in wrapped_pages(&PLAIN_80) {
        let ascii = ascii::transliterate(&page);
        assert!(ascii.is_ascii() && ascii.lines().count() == page.lines().count());
    }
    insta::assert_snapshot!(
        "surveyed_ascii",
        ascii::transliterate(&record_page(&fixture::surveyed(), &PLAIN_80))
    );
}

#[test]
fn page_of_an_incomplete_survey_is_complete() {
    let mut record = fixture::surveyed();
    let surface = record.surface_mut().unwrap();
    surface.data.curve.truncate(1);
    surface.data.access.clear();
    surface.figures.seeks.clear();
    surface.figures.short_strokes.clear();
    (
        surface.data.device.accounted,
        surface.data.device.unresolved,
    ) = (None, Some("no disk below".to_owned()));
    surface.data.access_errors.insert("EIO".to_owned(), 3);
    surface.data.curve[0].errors = 2;
    let scan = surface.data.scan.as_mut().unwrap();
    (scan.finished, scan.to_bytes, scan.slow_blocks) = (false, 1 << 30, 5000);
    scan.map.truncate(1);
    let shown = [
        "1 of 1 place",
        "3 × EIO",
        "1.1 GB (byte 1073741824)",
        "and 4998 more",
    ];
    assert_shows(&record_page(&record, &PLAIN_80), &shown);
    let surface = record.surface_mut().unwrap();
    surface.figures.rate = None;
    surface.data.curve.clear();
    let page = record_page(&record, &PLAIN_80);
    assert!(!page.contains('┤'), "no graph of nothing: {page}");
}

#[test]
fn offered_load_counts_latency_from_the_intended_start() {
    let mut record = fixture::healthy();
    record.measurements.drain(..2);
    record.measurements.truncate(1);
    record.measurements[0].data.workload.rate = Some(8000.0);
    record.measurements[0].data.missed_starts = Some(17);
    let read = record.measurements[0]
        .figures
        .ops
        .get_mut(&OpKind::Read)
        .unwrap();
    let mut intended = read.latency.clone();
    (intended.p50, intended.p99) = (Some(7_770_000), Some(7_990_000));
    intended.max = 8_880_000_000;
    read.latency_intended = Some(intended);
    let page = record_page(&record, &PLAIN_80);
    assert_shows(
        &page,
        &["8000/s", " 7.77 ", " 8880", "17 requests", "1 ms late"],
    );
}

#[test]
fn tiles_count_latency_from_the_intended_start() {
    let mut record = fixture::healthy();
    for measurement in &mut record.measurements {
        for op in measurement.figures.ops.values_mut() {
            let mut intended = op.latency.clone();
            intended.p99 = Some(7_990_000);
            op.latency_intended = Some(intended);
        }
    }
    let html = written(|out| html::write_record(&record, out));
    assert_shows(&html, &["p99 7.99 ms"]);
}

#[test]
fn syncs_between_writes_have_their_own_row() {
    let mut record = fixture::healthy();
    let measurement = &mut record.measurements[0];
    measurement.data.workload.sync = SyncPolicy::Every {
        writes: 4,
        call: SyncCall::Fsync,
    };
    let is_sync_row = |line: &str| line.trim_start().starts_with("sync ");
    let mut sync = measurement.figures.ops[&OpKind::Write].clone();
    sync.latency.p50 = Some(7_770_000);
    measurement.figures.ops.insert(OpKind::Sync, sync);
    let sync = measurement.data.ops[&OpKind::Write].clone();
    measurement.data.ops.insert(OpKind::Sync, sync);
    let page = record_page(&record, &PLAIN_80);
    let row = page.lines().find(|line| is_sync_row(line));
    assert_shows(row.unwrap(), &[" 7.77 "]);
    record.measurements[0].data.workload.sync = SyncPolicy::AtEnd;
    assert!(!record_page(&record, &PLAIN_80).lines().any(is_sync_row));
}

#[test]
fn verification_is_a_remark() {
    let mut record = fixture::healthy();
    // What was cut short is not marked as verified.
    for (blocks, written, runs, bad_blocks, word, text) in [
        (4711, Some(4711), None, 0, "verified", "4711 blocks"),
        (4711, Some(4711), None, 2, "wrong data", "2 of 4711 blocks"),
        (
            1467,
            Some(90_000),
            None,
            0,
            "unverified",
            "1467 of 90000 blocks",
        ),
        (
            1467,
            Some(90_000),
            None,
            2,
            "wrong data",
            "2 of 1467 blocks",
        ),
        (0, Some(90_000), None, 0, "unverified", "0 of 90000 blocks"),
        (
            4711,
            None,
            Some(1),
            0,
            "verified",
            "4711 blocks of earlier writes",
        ),
        (4711, None, Some(2), 9, "wrong data", "9 of 4711 blocks"),
    ] {
        record.measurements[0].data.verify = Some(VerifyResult {
            blocks,
            blocks_written: written,
            runs,
            bad_blocks,
            ..VerifyResult::default()
        });
        let page = record_page(&record, &PLAIN_80);
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_shows(&words, &[&format!(" {word} sequential-write: {text}")]);
        assert_shows(&page, &[&format!(" {word}\n")]);
    }
}

#[test]
fn verification_says_how_many_bytes_at_the_end_no_block_covers() {
    let mut record = fixture::healthy();
    let data = &mut record.measurements[0].data;
    data.verify = Some(VerifyResult {
        blocks: 10,
        blocks_written: Some(10),
        ..VerifyResult::default()
    });
    data.workload.block_bytes = 1 << 20;
    for (span_bytes, left) in [(10 << 20, None), ((10 << 20) + 786_432, Some(786_432))] {
        record.measurements[0].data.span_bytes = span_bytes;
        let page = record_page(&record, &PLAIN_80);
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let clause = "of the span, less than a block";
        match left {
            None => assert!(!words.contains(clause), "{words}"),
            Some(bytes) => assert_shows(&words, &[&format!("the last {bytes} bytes {clause}")]),
        }
    }
}

#[test]
fn failed_operation_shows_no_latency() {
    let mut record = fixture::healthy();
    let write = record.measurements[0]
        .figures
        .ops
        .get_mut(&OpKind::Write)
        .unwrap();
    for estimate in [&mut write.iops, &mut write.throughput] {
        (estimate.value, estimate.half_width_95) = (0.0, None);
    }
    (write.latency.p50, write.latency.p99, write.latency.p99_9) = (None, None, None);
    write.latency.max = 0;
    let write = record.measurements[0]
        .data
        .ops
        .get_mut(&OpKind::Write)
        .unwrap();
    (write.count, write.bytes) = (0, 0);
    write.errors.insert("ENOSPC".to_owned(), 4);
    let page = record_page(&record, &PLAIN_80);
    let row = page
        .lines()
        .find(|line| line.starts_with("sequential-write"));
    let row: Vec<&str> = row.unwrap().split_whitespace().collect();
    assert_eq!((row[1], row.last()), ("write", Some(&"errors")));
    assert!(row.contains(&"undecided") && row.contains(&"–"), "{row:?}");
    assert!(
        !row.contains(&"0"),
        "what was not measured is not zero: {row:?}"
    );
    assert_shows(&page, &["errors     sequential-write: 4 ", "4 × ENOSPC"]);
}

#[test]
fn result_page_in_colour() {
    let page = record_page(&fixture::partial(), &ANSI_80);
    // Colour only adds sequences.
    assert_eq!(
        without_sequences(&page),
        record_page(&fixture::partial(), &PLAIN_80)
    );
    insta::assert_snapshot!(page.replace('\u{1b}', "^["));
}

#[test]
fn identity_pages() {
    let page = |record: &Record| {
        let examined = examined(record, &record.targets[0]);
        written(|out| terminal::write_identity(&examined, &PLAIN_80, out))
    };
    insta::assert_snapshot!("identity_directory", page(&fixture::healthy()));
    let mut device = fixture::read_only();
    device.findings = vec![fixture::every_severity().findings.swap_remove(1)];
    insta::assert_snapshot!("identity_device", page(&device));
}

#[test]
fn plan_pages() {
    let page = |plan: &Plan, target: TargetIdentity| {
        written(|out| terminal::write_plan(plan, &[target], &PLAIN_80, out))
    };
    let device = page(&fixture::read_only_plan(), fixture::device());
    insta::assert_snapshot!(
        "plan_directory",
        page(&fixture::plan(), fixture::directory())
    );
    insta::assert_snapshot!("plan_device", device);
}

/// What the plan of `check` on a directory takes, after a change.
fn budget(change: impl FnOnce(&mut Plan)) -> String {
    let mut plan = fixture::plan();
    change(&mut plan);
    terminal::budget_line(&plan, &[fixture::directory()])
}

#[test]
fn budget_shows_time_bytes_and_place() {
    let place = "4 GiB in /var/lib/postgresql (ext4, 80 GiB free)";
    assert_shows(
        &budget(|_| ()),
        &["about 58 s", "7 min 19 s", "at most 16.2 GiB", place],
    );
    let reading = terminal::budget_line(&fixture::read_only_plan(), &[fixture::device()]);
    assert_shows(
        &reading,
        &["about 22 s; ", "writes nothing to /dev/nvme1n1"],
    );
}

#[test]
fn budget_includes_the_first_write_and_ends_at_the_limit() {
    let of = |limit: Option<u64>| {
        budget(|plan| {
            let scratch = plan.scratch.take().unwrap();
            plan.scratch = Some(scratch.filled_within(1, 10_000_000_000));
            plan.time_limit_ns = limit;
        })
    };
    assert_shows(&of(None), &["about 1 min 8 s; "]);
    assert_shows(&of(Some(60_000_000_000)), &["about 1 min 0 s; "]);
}

#[test]
fn budget_counts_the_server_and_only_timed_surveys_have_a_deadline() {
    let (mut plan, targets) = (fixture::plan(), [fixture::directory()]);
    let own_ns = plan.budget(&targets).expected_ns.unwrap();
    let between = plan.workload_task().unwrap().clone();
    let server = PostgresPlan {
        programs: String::new(),
        version: String::new(),
        loads: Vec::new(),
        rounds: 2,
        slice_ns: 1,
        trial: Some(TrialPlan {
            trials: Vec::new(),
            time_ns: 60_000_000_000,
            pairs_max: 8,
            table_bytes: 1,
        }),
    };
    plan.tasks = vec![Task::Inserts(Inserts { server, between })];
    let whole_ns = own_ns + 60_000_000_000 + SERVER_START_NS;
    assert_eq!(plan.budget(&targets).expected_ns, Some(whole_ns));
    assert_shows(
        &terminal::budget_line(&plan, &targets),
        &["about 2 min 3 s ", "server takes up to 1 GiB more"],
    );
    let page = written(|out| terminal::write_plan(&plan, &targets, &plain(120), out));
    assert_shows(&page, &["75 GiB of 80 GiB free space"]);
    assert_eq!(plan.budget(&targets).deadline_ns, Some(whole_ns));
    let curve = |time_ns| Survey {
        operation: OpKind::Read,
        span: Span::default(),
        engine: EngineChoice::Auto,
        curve: Some(CurvePlan {
            points: 24,
            coverage: Coverage::Sampled { sample_bytes: None },
            time_ns,
        }),
        burst: None,
        access: None,
        scan: None,
    };
    plan.tasks.insert(0, Task::Survey(curve(None)));
    assert!(plan.budget(&targets).expected_ns > Some(whole_ns));
    assert_eq!(plan.budget(&targets).deadline_ns, None);
    plan.tasks[0] = Task::Survey(curve(Some(6_000_000_000)));
    assert!(plan.budget(&targets).deadline_ns >= plan.budget(&targets).expected_ns);
    plan.time_limit_ns = Some(own_ns);
    assert_eq!(plan.budget(&targets).deadline_ns, Some(own_ns));
    assert_eq!(plan.budget(&targets).expected_ns, Some(own_ns));
}

#[test]
fn budget_says_what_each_target_is_used_for() {
    let targets = [fixture::directory(), fixture::device()];
    let uses = fixture::plan().budget(&targets).targets;
    assert!(matches!(
        uses[..],
        [TargetUse::Scratch { .. }, TargetUse::Overwrite { .. }]
    ));
    let uses = fixture::read_only_plan().budget(&targets[1..]).targets;
    assert_eq!(uses, [TargetUse::Read]);
}

#[test]
fn space_that_remains_is_that_of_all_targets_on_a_filesystem() {
    let (mut plan, one) = (fixture::plan(), fixture::directory());
    let mut other = one.clone();
    other.path = "/var/lib/other".to_owned();
    other.inode += 1;
    plan.targets.push(other.path.clone());
    let page = written(|out| terminal::write_plan(&plan, &[one, other], &plain(120), out));
    assert_shows(&page, &["72 GiB of 80 GiB free space"]);
    assert_eq!(page.matches("free space remain").count(), 1, "{page}");
}

#[test]
fn scratch_file_without_a_writer_counts_as_written() {
    let budget = budget(|plan| plan.workloads_mut().retain(|w| !w.writes()));
    assert_shows(&budget, &["writes at most 4 GiB", "file of 4 GiB"]);
}

#[test]
fn budget_names_what_limits_it() {
    let limited = |bytes, time_ns, ops| {
        budget(|plan| {
            for w in plan.workloads_mut() {
                (w.stop.bytes, w.stop.time_ns, w.stop.ops) = (bytes, time_ns, ops);
            }
        })
    };
    let count = fixture::plan().workloads().len();
    assert_shows(
        &limited(None, None, None),
        &["unlimited time", "without a limit"],
    );
    assert_shows(
        &limited(Some(1 << 30), None, None),
        &[&format!("{count} GiB need; writes")],
    );
    assert_shows(
        &limited(None, None, Some(100)),
        &[&format!("{count}00 operations need; ")],
    );
}

#[test]
fn budget_names_the_limit_of_the_writes() {
    let mut plan = fixture::plan();
    plan.workloads_mut()
        .iter_mut()
        .for_each(|w| w.stop.bytes = None);
    let targets = [fixture::directory(), fixture::device()];
    let budget = terminal::budget_line(&plan, &targets);
    // Targets are measured at once: the time is the same for two.
    assert_shows(&budget, &["about 58 s ", " 7 min 19 s ", "as much as "]);
}

#[test]
fn plan_names_the_span() {
    let mut plan = fixture::plan();
    plan.workloads_mut().truncate(1);
    plan.workloads_mut()[0].span = Span {
        start_bytes: 1 << 20,
        length_bytes: Some(2 << 20),
    };
    let targets = [fixture::directory()];
    let page = written(|out| terminal::write_plan(&plan, &targets, &plain(120), out));
    assert_shows(&page, &["over 2 MiB from 1 MiB"]);
}

#[test]
fn verdict_is_repeated_as_on_the_page() {
    for (_, record) in &*RECORDS {
        let page = record_page(record, &PLAIN_80);
        let again = written(|out| terminal::write_verdict_again(record, &PLAIN_80, out));
        assert_eq!(again.is_empty(), record.verdict.is_none(), "{again}");
        assert!(again.lines().all(|line| page.contains(line)), "{again}");
    }
}

#[test]
fn verdict_of_a_check_has_five_lines() {
    for record in [fixture::healthy(), fixture::every_severity()] {
        let page = record_page(&record, &PLAIN_80);
        let mut parts = page.split("\n\n");
        let verdict = parts.nth(1).unwrap();
        assert_eq!(verdict.lines().count(), 5, "{page}");
        assert!(
            parts.any(|part| part.starts_with("This run moved")),
            "{page}"
        );
    }
}

#[test]
fn commands_are_one_line_each_and_never_wrapped() {
    let page = written(|out| terminal::write_commands(&fixture::every_severity(), &PLAIN_80, out));
    insta::assert_snapshot!(page);
    for (_, record) in &*RECORDS {
        let page = written(|out| terminal::write_commands(record, &PLAIN_80, out));
        let of_findings = record
            .findings
            .iter()
            .filter(|f| f.reproduce.is_some())
            .count();
        let of_survey = usize::from(record.surface().is_some());
        let commands = record.measurements.len() + of_findings + of_survey;
        assert_eq!(page.lines().count(), 2 * commands, "{page}");
        assert!(
            page.lines().step_by(2).all(|line| line.starts_with("# ")),
            "{page}"
        );
    }
}

#[test]
fn no_line_exceeds_the_width() {
    for width in (40..=200).chain([0, 20]) {
        for line in wrapped_pages(&plain(width))
            .iter()
            .flat_map(|page| page.lines())
        {
            let columns = line.width();
            assert!(
                columns <= width.max(40),
                "{columns} of {width} columns:\n{line}"
            );
            assert_eq!(line.trim_end(), line, "spaces at the end");
        }
    }
}

#[test]
fn hostile_text_never_reaches_the_terminal() {
    for page in wrapped_pages(&PLAIN_80) {
        assert!(page.chars().all(is_harmless), "{page:?}");
    }
    for page in wrapped_pages(&ANSI_80) {
        assert!(
            without_sequences(&page).chars().all(is_harmless),
            "{page:?}"
        );
    }
    let hostile = fixture::hostile();
    let commands = written(|out| terminal::write_commands(&hostile, &PLAIN_80, out));
    let document = written(|out| json::write_record(&hostile, out));
    for text in [commands, document] {
        assert!(text.chars().all(is_harmless), "{text:?}");
    }
    let budget = terminal::budget_line(&hostile.plan, &hostile.targets);
    assert!(
        budget.chars().all(|c| c != '\n' && is_harmless(c)),
        "{budget}"
    );
}

fn is_harmless(c: char) -> bool {
    match c {
        '\n' => true,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        c => !c.is_control(),
    }
}

/// The page without the sequences that the printer itself may use: select graphic rendition,
/// nothing else.
fn without_sequences(page: &str) -> String {
    let mut parts = page.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut text, part| {
        let (codes, rest) = part.split_once('m').expect("every sequence ends with m");
        assert!(
            codes.chars().all(|c| c.is_ascii_digit() || c == ';'),
            "{codes:?}"
        );
        text.push_str(rest);
        text
    })
}

#[test]
fn json_reads_back_as_the_same_record() {
    for (name, record) in &*RECORDS {
        let text = written(|out| json::write_record(record, out));
        assert!(text.ends_with("}\n") && !text.ends_with("\n\n"), "{name}");
        assert_eq!(
            &serde_json::from_str::<Record>(&text).unwrap(),
            record,
            "{name}"
        );
    }
}

#[test]
fn json_of_an_identity_contains_host_target_and_health() {
    let record = fixture::read_only();
    let text = written(|out| json::write_identity(&examined(&record, &record.targets[0]), out));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = serde_json::json!({
        "host": record.host,
        "target": fixture::device(),
        "health": [fixture::health()],
        "findings": [],
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&document[field], value, "{field}");
    }
}
