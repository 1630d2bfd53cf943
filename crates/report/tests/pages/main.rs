//! Every page of every fixture: exact at 80 columns, within its width at all others, without colour
//! and control characters where it must be.

mod charts;
mod fio_json;
mod fixture;
mod layers;
mod short;
mod svg;
mod tables;

use diskproof_model::health::DiskHealth;
use diskproof_model::measurement::{OpKind, VerifyResult};
use diskproof_model::plan::{EngineChoice, Plan, Span, SyncCall, SyncPolicy};
use diskproof_model::postgres::{PostgresPlan, SERVER_START_NS, TrialPlan};
use diskproof_model::record::Record;
use diskproof_model::surface::{Coverage, CurvePlan, Survey};
use diskproof_model::target::{HostFacts, TargetIdentity};
use diskproof_report::Examined;
use diskproof_report::style::{Color, Style};
use diskproof_report::terminal::Detail;
use diskproof_report::{ascii, json, terminal};
use std::io::{self, Write};
use std::sync::LazyLock;
use unicode_width::UnicodeWidthStr;

const PLAIN_80: Style = Style {
    width: 80,
    color: Color::Plain,
};

fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("memory takes everything");
    String::from_utf8(out).expect("pages are UTF-8")
}

fn record_page(record: &Record, style: &Style) -> String {
    written(|out| terminal::write_record(record, Detail::Whole, style, out))
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
fn result_page_on_a_narrow_terminal() {
    insta::assert_snapshot!(record_page(
        &fixture::healthy(),
        &Style {
            width: 60,
            color: Color::Plain
        }
    ));
}

#[test]
fn result_page_on_a_wide_terminal() {
    insta::assert_snapshot!(record_page(
        &fixture::graded(fixture::two_targets()),
        &Style {
            width: 200,
            color: Color::Plain
        }
    ));
}

#[test]
fn survey_uses_the_width_of_the_page() {
    insta::assert_snapshot!(
        "surveyed_wide",
        record_page(
            &fixture::graded(fixture::surveyed()),
            &Style {
                width: 200,
                color: Color::Plain
            }
        )
    );
    insta::assert_snapshot!(
        "surveyed_narrow",
        record_page(
            &fixture::graded(fixture::surveyed()),
            &Style {
                width: 60,
                color: Color::Plain
            }
        )
    );
    insta::assert_snapshot!(
        "depths_wide",
        record_page(
            &fixture::graded(fixture::depths()),
            &Style {
                width: 160,
                color: Color::Plain
            }
        )
    );
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
    record.curve.truncate(1);
    record.access.clear();
    let surface = record.surface.as_mut().unwrap();
    surface.seeks.clear();
    surface.short_strokes.clear();
    (surface.device.accounted, surface.device.unresolved) =
        (None, Some("no disk below".to_owned()));
    surface.access_errors.insert("EIO".to_owned(), 3);
    record.curve[0].errors = 2;
    let scan = surface.scan.as_mut().unwrap();
    (scan.finished, scan.to_bytes, scan.slow_blocks) = (false, 1 << 30, 5000);
    scan.map.truncate(1);
    let page = record_page(&record, &PLAIN_80);
    for text in [
        "1 of 1 place of the curve failed",
        "3 × EIO",
        "the disk's counters are not available",
        "up to 1.1 GB (byte 1073741824)",
        "and 4998 more",
    ] {
        assert!(page.contains(text), "{text} is missing:\n{page}");
    }
    record.surface.as_mut().unwrap().rate = None;
    record.curve.clear();
    assert!(
        !record_page(&record, &PLAIN_80).contains('┤'),
        "no graph of nothing"
    );
}

#[test]
fn offered_load_counts_latency_from_the_intended_start() {
    let mut record = fixture::healthy();
    record.measurements.drain(..2);
    record.measurements.truncate(1);
    record.measurements[0].workload.rate = Some(8000.0);
    record.measurements[0].missed_starts = Some(17);
    let read = record.measurements[0].ops.get_mut(&OpKind::Read).unwrap();
    let mut intended = read.latency.clone();
    (intended.p50, intended.max) = (Some(7_770_000), 8_880_000_000);
    read.latency_intended = Some(intended);
    let page = record_page(&record, &PLAIN_80);
    for text in [
        "offered 8000/s",
        " 7.77 ",
        " 8880",
        "17 requests started over 1 ms late",
        "count from the intended",
    ] {
        assert!(page.contains(text), "{text} is missing:\n{page}");
    }
}

#[test]
fn syncs_between_writes_have_their_own_row() {
    let mut record = fixture::healthy();
    let measurement = &mut record.measurements[0];
    measurement.workload.sync = SyncPolicy::Every {
        writes: 4,
        call: SyncCall::Fsync,
    };
    let is_sync_row = |line: &str| line.trim_start().starts_with("sync ");
    let mut sync = measurement.ops[&OpKind::Write].clone();
    sync.latency.p50 = Some(7_770_000);
    measurement.ops.insert(OpKind::Sync, sync);
    let page = record_page(&record, &PLAIN_80);
    assert!(
        page.lines()
            .any(|line| is_sync_row(line) && line.contains(" 7.77 ")),
        "{page}"
    );
    record.measurements[0].workload.sync = SyncPolicy::AtEnd;
    assert!(!record_page(&record, &PLAIN_80).lines().any(is_sync_row));
}

#[test]
fn verification_is_a_remark() {
    let mut record = fixture::healthy();
    let whole = |bad_blocks| VerifyResult {
        blocks: 4711,
        blocks_written: Some(4711),
        bad_blocks,
        ..VerifyResult::default()
    };
    // What was cut short says so, and is not marked as verified.
    let cut = |blocks, bad_blocks| VerifyResult {
        blocks,
        blocks_written: Some(90_000),
        bad_blocks,
        ..VerifyResult::default()
    };
    let earlier = |bad_blocks, runs| VerifyResult {
        blocks: 4711,
        bad_blocks,
        runs: Some(runs),
        ..VerifyResult::default()
    };
    for (verify, word, text) in [
        (whole(0), "verified", "4711 blocks read back, all correct"),
        (whole(2), "wrong data", "2 of 4711 blocks read back wrong"),
        (
            cut(1467, 0),
            "unverified",
            "1467 of 90000 blocks read back before an interruption",
        ),
        (
            cut(1467, 2),
            "wrong data",
            "2 of 1467 blocks read back wrong before an",
        ),
        (
            cut(0, 0),
            "unverified",
            "0 of 90000 blocks read back before an interruption",
        ),
        (
            earlier(0, 1),
            "verified",
            "4711 blocks of earlier writes checked, all correct",
        ),
        (
            earlier(9, 2),
            "wrong data",
            "9 of 4711 blocks are not what an earlier run wrote;",
        ),
    ] {
        record.measurements[0].verify = Some(verify);
        let page = record_page(&record, &PLAIN_80);
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let note = format!(" {word} sequential-write: {text}");
        assert!(words.contains(&note), "{note}: {page}");
        assert!(page.contains(&format!(" {word}\n")), "{page}");
    }
}

#[test]
fn failed_operation_shows_no_latency() {
    let mut record = fixture::healthy();
    let write = record.measurements[0].ops.get_mut(&OpKind::Write).unwrap();
    (
        write.count,
        write.bytes,
        write.iops.value,
        write.iops.half_width_95,
        write.throughput.value,
        write.throughput.half_width_95,
    ) = (0, 0, 0.0, None, 0.0, None);
    (
        write.latency.p50,
        write.latency.p99,
        write.latency.p99_9,
        write.latency.max,
    ) = (None, None, None, 0);
    write.errors.insert("ENOSPC".to_owned(), 4);
    let page = record_page(&record, &PLAIN_80);
    let mut rows = page
        .lines()
        .filter(|line| line.starts_with("sequential-write"));
    let row: Vec<&str> = rows.next().unwrap().split_whitespace().collect();
    assert_eq!(row[1], "write");
    assert!(row.contains(&"undecided") && row.contains(&"–"), "{row:?}");
    assert_eq!(row.last(), Some(&"errors"));
    assert!(
        !row.contains(&"0"),
        "what was not measured is not zero: {row:?}"
    );
    let note = "errors     sequential-write: 4 operations failed (4 × ENOSPC)";
    assert!(page.contains(note), "{page}");
}

#[test]
fn result_page_in_colour() {
    let page = record_page(
        &fixture::partial(),
        &Style {
            width: 80,
            color: Color::Ansi,
        },
    );
    assert_eq!(
        without_sequences(&page),
        record_page(&fixture::partial(), &PLAIN_80),
        "colour only adds sequences"
    );
    insta::assert_snapshot!(page.replace('\u{1b}', "^["));
}

#[test]
fn identity_pages() {
    let page = |record: &Record| {
        written(|out| {
            terminal::write_identity(&examined(record, &record.targets[0]), &PLAIN_80, out)
        })
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
    insta::assert_snapshot!(
        "plan_directory",
        page(&fixture::plan(), fixture::directory())
    );
    insta::assert_snapshot!(
        "plan_device",
        page(&fixture::read_only_plan(), fixture::device())
    );
}

#[test]
fn budget_shows_time_bytes_and_place() {
    let budget = terminal::budget_line(&fixture::plan(), &[fixture::directory()]);
    assert_eq!(
        budget,
        "takes about 58 s after at most 7 min 19 s to fill the scratch file; writes at most 16 GiB \
         into a scratch file of 4 GiB in \
         /var/lib/postgresql (ext4, 80 GiB free), removed afterwards"
    );
    let reading = terminal::budget_line(&fixture::read_only_plan(), &[fixture::device()]);
    assert_eq!(reading, "takes about 22 s; writes nothing to /dev/nvme1n1");
}

#[test]
fn budget_includes_the_first_write_and_ends_at_the_limit() {
    let mut plan = fixture::plan();
    plan.first_write_ns = Some(10_000_000_000);
    let budget = |plan: &_| terminal::budget_line(plan, &[fixture::directory()]);
    assert!(budget(&plan).starts_with("takes about 1 min 8 s; "));
    plan.time_limit_ns = Some(60_000_000_000);
    assert!(budget(&plan).starts_with("takes about 1 min 0 s; "));
}

#[test]
fn budget_counts_the_server_and_only_timed_surveys_have_a_deadline() {
    let (mut plan, targets) = (fixture::plan(), [fixture::directory()]);
    let own_ns = plan.expected_ns(&targets).unwrap();
    plan.postgres = Some(PostgresPlan {
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
    });
    let whole_ns = own_ns + 60_000_000_000 + SERVER_START_NS;
    assert_eq!(plan.expected_ns(&targets), Some(whole_ns));
    assert!(terminal::budget_line(&plan, &targets).starts_with("takes about 2 min 3 s after "));
    assert_eq!(plan.deadline_ns(&targets), Some(whole_ns));
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
    plan.survey = Some(curve(None));
    assert!(plan.expected_ns(&targets) > Some(whole_ns));
    assert_eq!(plan.deadline_ns(&targets), None);
    plan.survey = Some(curve(Some(6_000_000_000)));
    assert!(plan.deadline_ns(&targets) >= plan.expected_ns(&targets));
    plan.time_limit_ns = Some(own_ns);
    assert_eq!(plan.deadline_ns(&targets), Some(own_ns));
    assert_eq!(plan.expected_ns(&targets), Some(own_ns));
}

#[test]
fn scratch_file_without_a_writer_counts_as_written() {
    let mut plan = fixture::plan();
    plan.workloads.retain(|w| !w.writes());
    let budget = terminal::budget_line(&plan, &[fixture::directory()]);
    assert!(
        budget.contains("writes at most 4 GiB into a scratch file of 4 GiB"),
        "{budget}"
    );
}

#[test]
fn budget_names_missing_limits() {
    let mut plan = fixture::plan();
    plan.workloads
        .iter_mut()
        .for_each(|w| (w.stop.bytes, w.stop.time_ns) = (None, None));
    let budget = terminal::budget_line(&plan, &[fixture::directory()]);
    assert!(
        budget.starts_with("takes unlimited time; writes without a limit into"),
        "{budget}"
    );
}

#[test]
fn budget_names_the_amount_where_only_that_limits_the_run() {
    let mut plan = fixture::plan();
    let count = plan.workloads.len() as u64;
    let starts = |plan: &Plan, text: &str| {
        let budget = terminal::budget_line(plan, &[fixture::directory()]);
        assert!(budget.starts_with(text), "{budget}");
    };
    plan.workloads
        .iter_mut()
        .for_each(|w| (w.stop.bytes, w.stop.time_ns) = (Some(1 << 30), None));
    starts(&plan, &format!("takes as long as {count} GiB need; writes"));
    plan.workloads
        .iter_mut()
        .for_each(|w| (w.stop.bytes, w.stop.ops) = (None, Some(100)));
    starts(
        &plan,
        &format!("takes as long as {count}00 operations need; "),
    );
}

#[test]
fn budget_names_the_limit_of_the_writes() {
    let mut plan = fixture::plan();
    plan.workloads.iter_mut().for_each(|w| w.stop.bytes = None);
    let targets = [fixture::directory(), fixture::device()];
    let budget = terminal::budget_line(&plan, &targets);
    // Targets are measured at once: the time is the same for two.
    assert!(
        budget.starts_with(
            "takes about 58 s after at most 7 min 19 s to fill the scratch file; writes as much as "
        ),
        "{budget}"
    );
}

#[test]
fn plan_names_the_span() {
    let mut plan = fixture::plan();
    plan.workloads.truncate(1);
    plan.workloads[0].span = Span {
        start_bytes: 1 << 20,
        length_bytes: Some(2 << 20),
    };
    let page = written(|out| {
        terminal::write_plan(
            &plan,
            &[fixture::directory()],
            &Style {
                width: 120,
                color: Color::Plain,
            },
            out,
        )
    });
    assert!(
        page.contains("sequential write, final sync, over 2 MiB from 1 MiB"),
        "{page}"
    );
}

#[test]
fn verdict_is_repeated_as_on_the_page() {
    for (_, record) in &*RECORDS {
        let page = written(|out| terminal::write_record(record, Detail::Whole, &PLAIN_80, out));
        let again = written(|out| terminal::write_verdict_again(record, &PLAIN_80, out));
        assert_eq!(again.is_empty(), record.verdict.is_none(), "{again}");
        // Where the page shows grades, the headline repeats them in one sentence.
        let headline = record.verdict.as_ref().map(|of| of.headline.as_str());
        let known = |line: &str| page.contains(line) || Some(line) == headline;
        assert!(again.lines().all(known), "{again}");
        assert!(again.lines().count() <= 5, "{again}");
    }
}

#[test]
fn verdict_of_a_check_has_five_lines() {
    for record in [fixture::healthy(), fixture::every_severity()] {
        let page = written(|out| terminal::write_record(&record, Detail::Whole, &PLAIN_80, out));
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
        let commands = record.measurements.len()
            + record
                .findings
                .iter()
                .filter(|f| f.reproduce.is_some())
                .count();
        let commands = commands + usize::from(record.surface.is_some());
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
        for page in wrapped_pages(&Style {
            width,
            color: Color::Plain,
        }) {
            for line in page.lines() {
                assert!(
                    line.width() <= width.max(40),
                    "{} columns where {width} are allowed:\n{line}",
                    line.width()
                );
                assert_eq!(line.trim_end(), line, "spaces at the end");
            }
        }
    }
}

#[test]
fn hostile_text_never_reaches_the_terminal() {
    for page in wrapped_pages(&PLAIN_80) {
        assert!(page.chars().all(is_harmless), "{page:?}");
    }
    let coloured = wrapped_pages(&Style {
        width: 80,
        color: Color::Ansi,
    });
    assert!(
        coloured
            .iter()
            .all(|page| without_sequences(page).chars().all(is_harmless))
    );
    let hostile = fixture::hostile();
    let commands = written(|out| terminal::write_commands(&hostile, &PLAIN_80, out));
    let document = written(|out| json::write_record(&hostile, out));
    let budget = terminal::budget_line(&hostile.plan, &hostile.targets);
    assert!(
        [commands, document]
            .iter()
            .all(|text| text.chars().all(is_harmless))
    );
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
    assert_eq!(
        serde_json::from_value::<HostFacts>(document["host"].clone()).unwrap(),
        record.host
    );
    assert_eq!(
        serde_json::from_value::<Vec<DiskHealth>>(document["health"].clone()).unwrap(),
        [fixture::health()]
    );
    assert_eq!(document["findings"], serde_json::json!([]));
    assert_eq!(
        serde_json::from_value::<TargetIdentity>(document["target"].clone()).unwrap(),
        fixture::device()
    );
}
