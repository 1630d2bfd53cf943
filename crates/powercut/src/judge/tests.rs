use super::*;
use crate::run::{RunProgress, example};

const SECOND_NS: u64 = 1_000_000_000;
const FACTS: VerifyFacts = VerifyFacts {
    has_restarted: Some(true),
    is_same_target: true,
};

const SMALL: WriteStream = WriteStream {
    kind: StreamKind::Pages,
    slots: 8,
};

/// A run of a page stream and a control stream, one write of each per second.
fn log(count: u64) -> RunLog {
    let control = WriteStream {
        kind: StreamKind::Control,
        slots: 8,
    };
    let mut description = example();
    description.streams = vec![SMALL, control];
    let progress = (1..=count).map(|n| RunProgress {
        elapsed_ns: n * SECOND_NS,
        counts: vec![n, n],
    });
    RunLog {
        description,
        progress: progress.collect(),
        end: LogEnd::Silence,
    }
}

/// What a disk holds that kept everything.
fn kept(count: u64) -> Vec<SlotState> {
    (0..8)
        .map(|slot| SlotState::Whole(SMALL.last_write_to(slot, count)))
        .collect()
}

fn judged(log: &RunLog, pages: Vec<SlotState>, control: Vec<SlotState>) -> CutReport {
    let content = [StreamContent::Slots(pages), StreamContent::Slots(control)];
    judge(log, &content, FACTS)
}

#[test]
fn honest_needs_a_control_page_that_vanished() {
    let all = judged(&log(20), kept(20), kept(20));
    let nothing_vanished = Some(NotProvenReason::NothingVanished);
    assert_eq!(all.verdict, CutVerdict::NotProven);
    assert_eq!(all.reason, nothing_vanished);
    let some = judged(&log(20), kept(20), kept(18));
    assert_eq!(some.verdict, CutVerdict::Honest);
    assert_eq!(some.control_vanished, 2);
    // Eight places, of which each can lose one page.
    assert_eq!((some.control_accepted, some.control_places), (20, 8));
    let mut elsewhere = log(20);
    elsewhere.description.is_control_evidence = false;
    let blind = judged(&elsewhere, kept(20), kept(18));
    assert_eq!(blind.reason, Some(NotProvenReason::NoEvidence));
}

/// The pages that are missing may have been there until the later run began.
#[test]
fn target_that_a_later_run_overwrote_proves_nothing() {
    let mut pages = kept(20);
    pages[0] = SlotState::Foreign;
    assert_eq!(
        judged(&log(20), pages.clone(), kept(20)).verdict,
        CutVerdict::Lying
    );
    pages[1] = SlotState::Overwritten;
    let partly = judged(&log(20), pages, kept(20));
    let whole = judged(
        &log(20),
        vec![SlotState::Overwritten; 8],
        vec![SlotState::Overwritten; 8],
    );
    for report in [partly, whole] {
        assert_eq!(report.verdict, CutVerdict::NotProven);
        assert_eq!(report.reason, Some(NotProvenReason::Overwritten));
    }
}

#[test]
fn acknowledged_writes_that_vanished_are_counted_with_their_seconds() {
    // The disk holds what it held after write 9; 10 to 20 are gone.
    let report = judged(&log(20), kept(9), kept(20));
    assert_eq!(report.verdict, CutVerdict::Lying);
    let pages = &report.streams[0];
    assert_eq!((pages.lost, pages.stale, pages.torn), (0, 11, 0));
    assert_eq!(pages.first_damaged, Some(10));
    assert_eq!(report.lost_seconds, 10.0);
    // Nothing of the run but its layout.
    let report = judged(&log(20), kept(0), kept(20));
    assert_eq!((report.streams[0].lost, report.streams[0].stale), (20, 0));
    assert_eq!(report.lost_seconds, 19.0);
}

#[test]
fn write_in_flight_may_be_torn_but_brings_nothing_older_back() {
    let torn = |slot: usize, state| {
        let mut pages = kept(20);
        pages[slot] = state;
        judged(&log(20), pages, kept(18))
    };
    // 20 is in slot 3; 21 and 22, in slots 4 and 5, may have been in flight.
    for slot in [4, 5] {
        let last = SMALL.last_write_to(slot as u32, 20);
        for (oldest, has_invalid) in [(last, false), (last, true), (last + 8, true), (0, true)] {
            let mixed = SlotState::Mixed {
                oldest,
                has_invalid,
            };
            assert_eq!(
                torn(slot, mixed).verdict,
                CutVerdict::Honest,
                "{slot} {oldest}"
            );
        }
        for state in [
            SlotState::Unreadable,
            SlotState::Garbled,
            SlotState::Whole(last + 8),
        ] {
            assert_eq!(torn(slot, state).verdict, CutVerdict::Honest, "{slot}");
        }
        let older = SlotState::Mixed {
            oldest: last - 8,
            has_invalid: false,
        };
        for state in [
            older,
            SlotState::Whole(last - 8),
            SlotState::Whole(0),
            SlotState::Foreign,
        ] {
            let verdict = torn(slot, state).verdict;
            assert_eq!(verdict, CutVerdict::Lying, "{slot} {state:?}");
        }
    }
    let mixed = SlotState::Mixed {
        oldest: 20,
        has_invalid: true,
    };
    for state in [SlotState::Unreadable, mixed] {
        let report = torn(3, state);
        assert_eq!(report.verdict, CutVerdict::Lying);
        assert_eq!(report.streams[0].torn, 1);
        assert_eq!(report.lost_seconds, 0.0);
    }
    for state in [SlotState::Foreign, SlotState::Garbled] {
        let report = torn(3, state);
        assert_eq!(report.verdict, CutVerdict::Lying);
        assert_eq!(report.streams[0].lost, 3);
    }
}

/// A short file has no page at the place of a write in flight, which no interrupted write causes.
#[test]
fn page_that_is_missing_is_lost_where_a_write_was_in_flight() {
    let mut pages = kept(20);
    pages.truncate(4);
    assert_eq!(judge_slots(SMALL, 20, &pages).lost, 8);
}

/// A rename leaves the old file or the new one, also where it was in flight.
#[test]
fn file_that_vanished_is_lost_where_its_replacement_was_in_flight() {
    let files = WriteStream {
        kind: StreamKind::Files,
        slots: 8,
    };
    let mut slots = kept(20);
    slots[4] = SlotState::Garbled;
    assert_eq!(judge_slots(files, 20, &slots).lost, 2);
    assert_eq!(judge_slots(SMALL, 20, &slots).lost, 0);
}

#[test]
fn nothing_is_said_of_a_stopped_run_or_an_unknown_target() {
    let mut stopped = log(20);
    stopped.end = LogEnd::Stopped;
    let report = judged(&stopped, kept(9), kept(9));
    assert_eq!(report.reason, Some(NotProvenReason::Stopped));
    let foreign = || StreamContent::Slots(vec![SlotState::Foreign; 8]);
    let unsure = VerifyFacts {
        is_same_target: false,
        ..FACTS
    };
    let content = [foreign(), foreign()];
    let report = judge(&log(20), &content, unsure);
    assert_eq!(report.reason, Some(NotProvenReason::NoTrace));
    let report = judge(&log(20), &content, FACTS);
    assert_eq!(report.verdict, CutVerdict::Lying);
    assert_eq!(report.streams[0].lost, 20);
    let report = judge(&log(0), &content, FACTS);
    assert_eq!(report.reason, Some(NotProvenReason::NothingAcknowledged));
}

/// A run that goes on, or a log that lost its end: the window allows two writes ahead of it.
#[test]
fn content_beyond_the_window_proves_nothing() {
    let report = judged(&log(20), kept(22), kept(18));
    assert_eq!(report.verdict, CutVerdict::Honest);
    for count in [23, 24, 40, 4000] {
        let report = judged(&log(20), kept(count), kept(18));
        assert_eq!(report.reason, Some(NotProvenReason::LogBehind), "{count}");
    }
    // One such write, and damage.
    let mut pages = kept(9);
    pages[7] = SlotState::Mixed {
        oldest: 24,
        has_invalid: true,
    };
    let report = judged(&log(20), pages.clone(), kept(18));
    assert_eq!(report.reason, Some(NotProvenReason::LogBehind));
    let report = judged(&log(0), pages, kept(18));
    assert_eq!(report.reason, Some(NotProvenReason::LogBehind));
    // Names that later writes removed.
    let mut log = log(40);
    log.description.streams[0] = WriteStream {
        kind: StreamKind::Entries,
        slots: 16,
    };
    let judged_names = |names: std::ops::RangeInclusive<u64>| {
        let content = [
            StreamContent::Names(names.collect()),
            StreamContent::Slots(kept(40)),
        ];
        judge(&log, &content, FACTS).reason
    };
    assert_eq!(
        judged_names(29..=44),
        Some(NotProvenReason::NothingVanished)
    );
    assert_eq!(judged_names(35..=50), Some(NotProvenReason::LogBehind));
    // A log without the last reports, of a run whose control pages have vanished.
    let report = judged(&self::log(10), kept(20), kept(8));
    assert_eq!(report.verdict, CutVerdict::NotProven);
}

#[test]
fn names_that_are_missing_or_came_back_are_counted() {
    let entries = WriteStream {
        kind: StreamKind::Entries,
        slots: 16,
    };
    let names = |numbers: std::ops::RangeInclusive<u64>| numbers.collect::<BTreeSet<u64>>();
    // After 40 steps 25 to 40 exist; steps in flight may have removed 25 to 28.
    let right = judge_names(entries, 40, &names(25..=40));
    assert_eq!(right.damaged(), 0);
    assert_eq!(judge_names(entries, 40, &names(29..=44)).damaged(), 0);
    let missing = judge_names(entries, 40, &names(25..=37));
    assert_eq!((missing.lost, missing.first_damaged), (3, Some(38)));
    let back = judge_names(entries, 40, &names(23..=40));
    assert_eq!((back.stale, back.first_damaged), (2, Some(39)));
    assert_eq!(judge_names(entries, 0, &BTreeSet::new()).damaged(), 0);
}

#[test]
fn later_writes_agree_with_counting() {
    for count in 0..40 {
        for slot in 0..8 {
            for number in 0..40u64 {
                if number > 0 && SMALL.slot_of(number) != slot {
                    continue;
                }
                let counted = (1..=count)
                    .filter(|n| SMALL.slot_of(*n) == slot && *n > number)
                    .count() as u64;
                assert_eq!(later_writes(SMALL, slot, number, count), counted);
            }
        }
    }
}
