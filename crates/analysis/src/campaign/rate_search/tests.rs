//! The search on stations whose truth is known, in virtual time.

use super::answer::EPISODES_MIN;
use super::evidence::Growth;
use super::stalls::FittedLateness;
use super::station::{Busy, Credit, Service, StallLengths, Stalls, Station};
use super::*;

const P99: f64 = 0.01;

/// What searches with several seeds answer about a station.
fn searched(station: Station, limit_s: f64, late_share: f64, runs: u64) -> Vec<RateAnswer> {
    let promise = RatePromise {
        late_share,
        limit_s,
    };
    let mut answers = Vec::new();
    for seed in 0..runs {
        let search = RateSearch::new(promise, RateSearchTimes::default(), 77 + seed);
        answers.push(Busy::new(station, limit_s, 1000 + 7 * seed).carry_out(search));
    }
    answers
}

/// Answers whose interval holds a rate.
fn inside(answers: &[RateAnswer], truth: f64) -> usize {
    answers
        .iter()
        .filter(|answer| answer.low <= truth * 1.005 && answer.high >= truth * 0.995)
        .count()
}

/// Answers that promise more than a rate.
fn promise_too_much(answers: &[RateAnswer], truth: f64) -> usize {
    answers
        .iter()
        .filter(|answer| answer.outcome.is_promise())
        .filter(|answer| answer.low > truth * 1.01)
        .count()
}

fn failed_controls(answers: &[RateAnswer]) -> usize {
    answers
        .iter()
        .filter(|answer| answer.control.is_some_and(|control| control.failed))
        .count()
}

/// Queues that the constants were not tuned on: other servers, capacities and limits. Their rates
/// are those of `rate_study` (3,000,000 requests at each of twelve rates).
#[test]
fn interval_holds_the_rate_of_queues_and_the_control_fails() {
    for (station, limit_s, truth) in [
        (Station::new(1, 150.0, Service::Exponential), 0.08, 92.2),
        (Station::new(3, 700.0, Service::HeavyTailed), 0.025, 514.1),
        (Station::new(6, 2500.0, Service::Constant), 0.009, 2189.1),
    ] {
        let answers = searched(station, limit_s, P99, 5);
        assert!(inside(&answers, truth) >= 4, "{answers:?}");
        assert_eq!(promise_too_much(&answers, truth), 0, "{answers:?}");
        assert!(failed_controls(&answers) >= 4, "{answers:?}");
    }
}

/// Of 1000 requests 7 are late at any rate, as their own service takes that long, where 10 may be.
/// A curve that begins at 0 lies too low: the intervals of 71 of 100 searches held the rate.
#[test]
fn interval_holds_the_rate_of_a_target_that_is_late_at_any_rate() {
    let station = Station::new(6, 2200.0, Service::VeryHeavyTailed);
    let answers = searched(station, 0.025, P99, 16);
    assert!(inside(&answers, 1611.5) >= 15, "{answers:?}");
    assert_eq!(promise_too_much(&answers, 1611.5), 0, "{answers:?}");
}

#[test]
fn stalls_widen_the_interval_and_do_not_falsify_it() {
    let station = Station {
        stalls: Some(Stalls {
            length_s: 0.055,
            every_s: 12.0,
            lengths: StallLengths::Even,
        }),
        ..Station::new(4, 1200.0, Service::Exponential)
    };
    let answers = searched(station, 0.03, P99, 5);
    assert!(inside(&answers, 888.9) >= 4, "{answers:?}");
    assert!(promise_too_much(&answers, 888.9) <= 1, "{answers:?}");
    for answer in answers {
        assert!((answer.high - answer.low) / answer.rate > 0.1, "{answer:?}");
    }
}

/// A stall of most of a second in some cells: the requests that it delays count, or the answer
/// would be the rate of a target without stalls. One that begins as a cell ends does not show.
#[test]
fn rare_long_stalls_do_not_falsify_the_answer() {
    let station = Station {
        stalls: Some(Stalls {
            length_s: 0.9,
            every_s: 190.0,
            lengths: StallLengths::Even,
        }),
        ..Station::new(4, 1000.0, Service::Exponential)
    };
    let answers = searched(station, 0.03, P99, 20);
    assert!(promise_too_much(&answers, 510.7) <= 3, "{answers:?}");
    assert!(inside(&answers, 510.7) >= 17, "{answers:?}");
}

/// One stall in minutes may come so often that it breaks the promise alone: no search that met one
/// is firm. One that met none says how long those are that it can have missed.
#[test]
fn few_stalls_that_were_met_leave_the_answer_undecided() {
    let station = Station {
        stalls: Some(Stalls {
            length_s: 1.2,
            every_s: 250.0,
            lengths: StallLengths::Even,
        }),
        ..Station::new(4, 1000.0, Service::Exponential)
    };
    let answers = searched(station, 0.03, P99, 20);
    let mut firm = 0;
    for answer in &answers {
        if answer.stalls.met > 0 {
            firm += u32::from(answer.outcome.is_promise() && answer.low > 496.6);
            assert!(answer.unseen_stall_s.is_none(), "{answer:?}");
        } else {
            let length_s = answer.unseen_stall_s.unwrap();
            let share = length_s / answer.stalls.unseen_every_s() / (1.0 - answer.low / 1000.0);
            assert!((0.009..0.011).contains(&share), "{answer:?}");
        }
    }
    assert!(firm <= 1, "{answers:?}");
    assert!(inside(&answers, 496.6) >= 16, "{answers:?}");
}

/// Most searches of seven minutes meet a stall that comes once in them. None of these is firm.
#[test]
fn stall_of_two_seconds_that_was_met_leaves_the_answer_undecided() {
    let station = Station {
        stalls: Some(Stalls {
            length_s: 2.0,
            every_s: 400.0,
            lengths: StallLengths::Even,
        }),
        ..Station::new(4, 1000.0, Service::Exponential)
    };
    let answers = searched(station, 0.03, P99, 20);
    let met = answers
        .iter()
        .filter(|answer| answer.stalls.met > 0)
        .count();
    assert!(met >= 12, "{met}: {answers:?}");
    for answer in &answers {
        if answer.stalls.met > 0 && answer.outcome.is_promise() {
            assert!(answer.low < 479.8, "{answer:?}");
        }
    }
}

/// A near cell of ten seconds at 800/s of the 1000/s that are served. In its fifth second requests
/// are late, of which the longest took so long.
fn cell_with_a_late_batch(late: f64, longest_s: f64) -> MeasuredRate {
    let quiet = Batch {
        requests: 800.0,
        late: 2.0,
        longest_s: 0.04,
        waited_s: 0.0,
    };
    let mut batches = vec![quiet; 10];
    batches[5].late = late;
    batches[5].longest_s = longest_s;
    MeasuredRate {
        cell: RateCell {
            kind: RateCellKind::Near,
            rate: 800.0,
            warmup_s: 0.5,
            time_s: 10.0,
            batch_s: 1.0,
            give_up_s: 5.0,
        },
        batches,
        late_by_own_delay: 0.0,
        served: 800.0,
        gave_up: false,
        start_s: 0.0,
        end_s: 10.5,
    }
}

const FITTED: FittedLateness = FittedLateness {
    promised: P99,
    limit_s: 0.03,
    rate: 820.0,
    growth: Growth::FIRST,
    served: 1000.0,
};

#[test]
fn stall_is_one_of_the_target_while_this_program_runs() {
    let stalled = cell_with_a_late_batch(700.0, 0.53);
    let evidence = StallEvidence::seen(std::slice::from_ref(&stalled), &FITTED);
    assert_eq!((evidence.met, evidence.own_cells), (1, 0), "{evidence:?}");
    assert_eq!(evidence.observed_s, 10.0);
    assert!((evidence.length_s - 0.5).abs() < 1e-9, "{evidence:?}");
    // Its requests are counted as they are answered, after the second in which it ran no more.
    let mut kept_off = stalled.clone();
    kept_off.batches[4].waited_s = 0.3;
    let mut late_by_itself = stalled;
    late_by_itself.late_by_own_delay = 400.0;
    for own in [kept_off, late_by_itself] {
        let evidence = StallEvidence::seen(&[own], &FITTED);
        assert_eq!((evidence.met, evidence.own_cells), (0, 1), "{evidence:?}");
        assert_eq!(evidence.observed_s, 0.0, "{evidence:?}");
        assert_eq!(evidence.own_late_share(), 1.0, "{evidence:?}");
    }
}

/// Each thread that wakes up waits a little for a processor: that is a part of each second, and no
/// stall of this program.
#[test]
fn usual_waits_for_a_processor_hide_no_stall_of_the_target() {
    let mut stalled = cell_with_a_late_batch(700.0, 0.53);
    for batch in &mut stalled.batches {
        batch.waited_s = 0.3;
    }
    let evidence = StallEvidence::seen(&[stalled], &FITTED);
    assert_eq!((evidence.met, evidence.own_cells), (1, 0), "{evidence:?}");
    let mut hold = cell_with_a_late_batch(2.0, 0.04);
    hold.cell.kind = RateCellKind::Hold;
    hold.cell.give_up_s = 1.0;
    hold.gave_up = true;
    hold.batches = vec![hold.batches[0]; 60];
    hold.batches[59].requests = 0.0;
    for batch in &mut hold.batches {
        batch.waited_s = 0.02;
    }
    let evidence = StallEvidence::seen(&[hold], &FITTED);
    assert_eq!(evidence.met, 1, "{evidence:?}");
    assert!(!evidence.is_own_hold, "{evidence:?}");
}

/// Off the processors for five seconds: counted in each of them, or all at the end of the gap.
#[test]
fn program_without_a_processor_ends_a_cell_by_itself() {
    for waits_s in [
        [0.02, 0.02, 1.0, 1.0, 1.0, 1.0, 1.0],
        [0.02, 0.02, 5.0, 0.0, 0.0, 0.0, 0.02],
    ] {
        let mut cell = cell_with_a_late_batch(0.0, 0.0);
        cell.gave_up = true;
        cell.batches.truncate(waits_s.len());
        for (batch, waited_s) in cell.batches.iter_mut().zip(waits_s) {
            batch.waited_s = waited_s;
        }
        let evidence = StallEvidence::seen(&[cell], &FITTED);
        assert_eq!((evidence.met, evidence.own_cells), (0, 1), "{evidence:?}");
    }
}

/// A control far below what is served in which the target answers nothing has shown a stall if the
/// next one is answered, and the end of the capacity if it is not.
#[test]
fn stall_in_a_control_is_a_stall() {
    let mut served = cell_with_a_late_batch(0.0, 0.0);
    served.cell.kind = RateCellKind::Control;
    served.cell.rate = 600.0;
    served.cell.give_up_s = 1.0;
    let mut gave_up = served.clone();
    gave_up.gave_up = true;
    let evidence = StallEvidence::seen(&[gave_up.clone(), served], &FITTED);
    assert_eq!((evidence.met, evidence.length_s), (1, 1.0), "{evidence:?}");
    let evidence = StallEvidence::seen(&[gave_up.clone(), gave_up], &FITTED);
    assert_eq!(evidence.met, 0, "{evidence:?}");
}

/// A few slow requests while others are answered, and short waits of many.
#[test]
fn slow_requests_are_no_stall() {
    for (late, longest_s) in [(40.0, 0.53), (700.0, 0.06)] {
        let cell = cell_with_a_late_batch(late, longest_s);
        let evidence = StallEvidence::seen(&[cell], &FITTED);
        assert_eq!((evidence.met, evidence.own_cells), (0, 0), "{evidence:?}");
        assert_eq!(evidence.observed_s, 10.0);
    }
}

/// A stall above the interval fills the rest of its cell, as overload does: the search offers the
/// rate once more to know which it was.
#[test]
fn stall_that_fills_a_near_cell_is_one_if_the_repeated_cell_is_served() {
    let promise = RatePromise {
        late_share: P99,
        limit_s: 0.03,
    };
    let mut search = RateSearch::new(promise, RateSearchTimes::default(), 5);
    let mut busy = Busy::new(Station::new(4, 1000.0, Service::Exponential), 0.03, 31);
    let mut filled = None;
    let mut is_next = false;
    let mut measured = None;
    let answer = loop {
        let cell = match search.next(measured) {
            SearchStep::Cell(cell) => cell,
            SearchStep::Answer(answer) => break answer,
        };
        if is_next {
            assert_eq!(cell.kind, RateCellKind::Repeated);
            assert_eq!(Some(cell.rate), filled);
            is_next = false;
        }
        let mut result = busy.measure(cell);
        let is_above = cell.rate > search.fit.interval.rate;
        if filled.is_none() && cell.kind == RateCellKind::Near && is_above {
            filled = Some(cell.rate);
            is_next = true;
            result.served = 0.9 * cell.rate;
            for batch in &mut result.batches {
                batch.late = batch.requests;
                batch.longest_s = 2.0;
            }
        }
        measured = Some(result);
    };
    assert_eq!((answer.stalls.met, answer.falls), (1, 0), "{answer:?}");
    assert!(answer.saturated > 950.0, "{answer:?}");
    assert!(!answer.outcome.is_promise(), "{answer:?}");
}

/// A minute at each of three rates, with the late requests of a target that keeps the promise up to
/// this rate.
fn minutes_near(limit_rate: f64) -> Vec<MeasuredRate> {
    let mut cells = Vec::new();
    for rate in [7000.0, 7600.0, 8200.0] {
        let mut cell = cell_with_a_late_batch(0.0, 0.0);
        cell.cell.rate = rate;
        cell.batches = vec![
            Batch {
                requests: rate,
                late: P99 * rate * (10.0 * (rate / limit_rate - 1.0)).exp(),
                ..Batch::default()
            };
            60
        ];
        cells.push(cell);
    }
    cells
}

#[test]
fn drift_of_the_target_widens_the_interval() {
    let promise = RatePromise {
        late_share: P99,
        limit_s: 0.03,
    };
    for (later_rate, is_drift) in [(8000.0, false), (7200.0, true)] {
        let mut search = RateSearch::new(promise, RateSearchTimes::default(), 5);
        search.saturated = 10_000.0;
        search.fit.interval.rate = 7700.0;
        search.cells = minutes_near(8000.0);
        search.cells.extend(minutes_near(later_rate));
        search.refit();
        let answer = search.answer();
        assert_eq!(answer.drift.is_some(), is_drift, "{answer:?}");
        if let Some(drift) = answer.drift {
            assert!((drift + 0.1).abs() < 0.02, "{answer:?}");
            assert!(answer.low <= later_rate, "{answer:?}");
        }
    }
}

/// The clusters of a queue near its capacity are no stalls.
#[test]
fn queue_without_stalls_has_met_none() {
    for (station, limit_s) in [
        (Station::new(2, 400.0, Service::Exponential), 0.04),
        (Station::new(3, 700.0, Service::HeavyTailed), 0.025),
    ] {
        for answer in searched(station, limit_s, P99, 5) {
            assert_eq!(answer.stalls.met, 0, "{answer:?}");
            assert!(answer.stalls.observed_s > 250.0, "{answer:?}");
        }
    }
}

/// A promise that is kept nearly up to saturation: few late episodes are seen below it, and what
/// was held is promised.
#[test]
fn hold_just_below_saturation_is_a_lower_end() {
    let station = Station::new(4, 2500.0, Service::Constant);
    let answers = searched(station, 0.03, P99, 5);
    let mut firm = 0;
    for answer in &answers {
        if answer.outcome.is_promise() && answer.low > 0.8 * 2417.4 {
            firm += 1;
        }
    }
    assert!(firm >= 3, "{answers:?}");
    assert_eq!(promise_too_much(&answers, 2417.4), 0, "{answers:?}");
}

/// A minute may have three seconds of late requests at p95: a stall of 1.2 s in it breaks nothing.
#[test]
fn hold_goes_on_through_what_its_promise_allows() {
    let promise = RatePromise {
        late_share: 0.05,
        limit_s: 0.03,
    };
    let search = RateSearch::new(promise, RateSearchTimes::default(), 1);
    assert_eq!(search.give_up_s(RateCellKind::Hold, 60.0), 3.0);
    assert_eq!(search.give_up_s(RateCellKind::Near, 10.0), 5.0);
    assert_eq!(search.give_up_s(RateCellKind::Curve, 2.5), 1.0);
}

/// Stalls that alone break the promise: there is no rate to promise.
#[test]
fn promise_that_stalls_break_by_themselves_has_no_rate() {
    let station = Station {
        stalls: Some(Stalls {
            length_s: 0.13,
            every_s: 5.0,
            lengths: StallLengths::Even,
        }),
        ..Station::new(4, 1000.0, Service::Exponential)
    };
    for seed in 0..3 {
        let promise = RatePromise {
            late_share: P99,
            limit_s: 0.03,
        };
        let search = RateSearch::new(promise, RateSearchTimes::default(), seed);
        let answer = Busy::new(station, 0.03, 50 + seed).carry_out(search);
        assert_eq!(answer.outcome, LoadOutcome::PerhapsNone, "{answer:?}");
        assert_eq!(answer.low, 0.0);
    }
}

fn with_credit(requests: f64) -> Station {
    Station {
        credit: Some(Credit {
            base: 600.0,
            requests,
        }),
        ..Station::new(4, 1000.0, Service::Exponential)
    }
}

/// A credit that lasts for up to a minute at full speed does not pass for capacity; a longer one
/// does in seven minutes, so the answer says how much of it would not have shown.
#[test]
fn short_credit_is_no_capacity_and_a_long_one_is_not_excluded() {
    for seconds in [8.0, 50.0] {
        let answers = searched(with_credit(seconds * 400.0), 0.03, P99, 4);
        assert_eq!(promise_too_much(&answers, 600.0), 0, "{answers:?}");
    }
    for answer in searched(with_credit(1200.0 * 400.0), 0.03, P99, 2) {
        assert!(answer.rate > 750.0, "{answer:?}");
        let unseen = answer.unseen_credit;
        assert!((50_000.0..480_000.0).contains(&unseen), "{answer:?}");
    }
}

#[test]
fn few_late_episodes_are_no_interval() {
    let station = Station::new(2, 150.0, Service::Constant);
    for answer in searched(station, 0.1, 0.001, 3) {
        if answer.outcome != LoadOutcome::NotHeld {
            assert_eq!(
                answer.episodes >= EPISODES_MIN,
                answer.outcome.is_promise(),
                "{answer:?}"
            );
        }
    }
}

/// Measurements that no disk gives, but a damaged record may hold.
#[test]
fn search_survives_measurements_that_no_disk_gives() {
    let absurd = [0.0, 1e-300, 1.0, 1e300];
    for case in 0..64 {
        let promise = RatePromise {
            late_share: P99,
            limit_s: 0.03,
        };
        let mut search = RateSearch::new(promise, RateSearchTimes::within(30.0), case);
        let mut measured = None;
        for step in 0..60 {
            let SearchStep::Cell(cell) = search.next(measured) else {
                break;
            };
            let pick = (case + step) as usize;
            measured = Some(MeasuredRate {
                cell,
                batches: vec![
                    Batch {
                        requests: absurd[pick % 4],
                        late: absurd[pick / 4 % 4],
                        longest_s: absurd[pick / 3 % 4],
                        waited_s: absurd[pick / 5 % 4],
                    };
                    pick % 3
                ],
                late_by_own_delay: absurd[pick / 6 % 4],
                served: absurd[pick / 2 % 4],
                gave_up: case & step != 0,
                start_s: 0.0,
                end_s: 0.0,
            });
        }
        let answer = search.unfinished_answer();
        let figures = [answer.low, answer.rate, answer.high, answer.saturated];
        for figure in figures {
            assert!(figure.is_finite(), "{case}: {answer:?}");
        }
    }
}

/// Where saturating the target leaves no time for cells near the limit, little is held, and no more
/// than that may be promised.
#[test]
fn promise_is_no_more_than_was_held() {
    let station = Station::new(4, 2500.0, Service::Constant);
    let promise = RatePromise {
        late_share: P99,
        limit_s: 0.03,
    };
    for seed in 0..4 {
        let mut search = RateSearch::new(promise, RateSearchTimes::default(), seed);
        let mut busy = Busy::new(station, 0.03, 20 + seed);
        let mut held = 0.0;
        let mut measured = None;
        let answer = loop {
            let cell = match search.next(measured) {
                SearchStep::Cell(cell) => cell,
                SearchStep::Answer(answer) => break answer,
            };
            measured = Some(busy.measure(cell));
            match cell.kind {
                RateCellKind::Saturation => busy.wait(60.0),
                RateCellKind::Hold => held = cell.rate,
                _ => {}
            }
        };
        assert!(held > 0.0 && answer.low <= held, "{held}: {answer:?}");
    }
}

/// A short search has few requests in its first cells: chance must not end the doubling.
#[test]
fn short_search_finds_what_is_served() {
    let station = Station::new(4, 2500.0, Service::Exponential);
    let promise = RatePromise {
        late_share: P99,
        limit_s: 0.03,
    };
    for seed in 0..20 {
        let search = RateSearch::new(promise, RateSearchTimes::within(40.0), seed);
        let answer = Busy::new(station, 0.03, 90 + seed).carry_out(search);
        assert!(answer.saturated > 2000.0, "{seed}: {answer:?}");
    }
}

#[test]
fn search_ends_in_its_time_and_follows_from_its_seed() {
    let station = Station::new(4, 1000.0, Service::Exponential);
    let promise = RatePromise {
        late_share: P99,
        limit_s: 0.03,
    };
    let run = |seed: u64| {
        let mut busy = Busy::new(station, 0.03, 3);
        let search = RateSearch::new(promise, RateSearchTimes::default(), seed);
        busy.carry_out(search)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// The near cells of a search, its whole time, and its answer.
struct Course {
    near_cells: usize,
    end_s: f64,
    answer: RateAnswer,
}

fn course_of(mut search: RateSearch, mut busy: Busy) -> Course {
    let (mut near_cells, mut end_s) = (0, 0.0);
    let mut measured = None;
    loop {
        match search.next(measured) {
            SearchStep::Cell(cell) => {
                near_cells += usize::from(cell.kind == RateCellKind::Near);
                let result = busy.measure(cell);
                end_s = result.end_s;
                measured = Some(result);
            }
            SearchStep::Answer(answer) => {
                return Course {
                    near_cells,
                    end_s,
                    answer,
                };
            }
        }
    }
}

/// A longer proof is added to the search, and takes nothing from what comes before it.
#[test]
fn long_hold_leaves_the_time_of_the_other_cells() {
    let station = Station::new(4, 1000.0, Service::Exponential);
    let promise = RatePromise {
        late_share: P99,
        limit_s: 0.03,
    };
    for total_s in [20.0_f64, 180.0, 900.0] {
        let usual_hold_s = (total_s / 7.0).min(60.0);
        let mut usual = None;
        for hold_s in [usual_hold_s, 600.0] {
            let whole_s = total_s + hold_s - usual_hold_s;
            let times = RateSearchTimes::with_hold(whole_s, hold_s, 0.04);
            let search = RateSearch::new(promise, times, 3);
            let course = course_of(search, Busy::new(station, 0.03, 3));
            assert!(
                course.end_s <= whole_s,
                "{total_s} {hold_s}: {}",
                course.end_s
            );
            // At least as many as with the usual hold.
            let first = *usual.get_or_insert(course.near_cells);
            assert!(course.near_cells >= first.min(8), "{total_s} {hold_s}");
        }
    }
}

/// Each cell of a search with a limit of seconds warms up for ten times as long.
#[test]
fn search_with_a_long_limit_ends_in_its_time() {
    for limit_s in [0.5, 0.7, 1.0, 2.0] {
        let station = Station::new(16, 1e6, Service::Constant);
        let promise = RatePromise {
            late_share: P99,
            limit_s,
        };
        let times = RateSearchTimes::with_hold(420.0, 60.0, 0.04);
        let course = course_of(
            RateSearch::new(promise, times, 1),
            Busy::new(
                Station {
                    capacity: 60.0,
                    ..station
                },
                limit_s,
                1,
            ),
        );
        assert!(course.end_s <= 420.0, "{limit_s}: {}", course.end_s);
    }
}

/// A search of many hours holds what it knows before a record has too many trials.
#[test]
fn search_holds_before_a_record_has_too_many_trials() {
    let promise = RatePromise {
        late_share: P99,
        limit_s: 0.03,
    };
    let mut search = RateSearch::new(promise, RateSearchTimes::within(4e4), 5);
    let mut busy = Busy::new(Station::new(4, 1000.0, Service::Exponential), 0.03, 5);
    let mut trials = 0;
    let mut measured = None;
    while let SearchStep::Cell(cell) = search.next(measured) {
        trials += 1;
        if cell.kind == RateCellKind::Hold {
            break;
        }
        if cell.kind == RateCellKind::Near && search.served_cells.len() < 900 {
            // As many more, without the time that they take.
            let one = search.served_cells[0];
            search.served_cells.resize(TRIALS_MAX - 11, one);
            trials = 0;
        }
        measured = Some(busy.measure(cell));
    }
    assert!(trials <= 2, "{trials}");
}

/// Where the promise is kept nearly up to saturation, no late episodes are seen below it: a narrow
/// interval alone does not end the search.
#[test]
fn narrow_interval_without_episodes_uses_the_time_that_is_left() {
    let station = Station::new(8, 20_000.0, Service::Exponential);
    let promise = RatePromise {
        late_share: P99,
        limit_s: 0.02,
    };
    let search = RateSearch::new(promise, RateSearchTimes::default(), 1);
    let course = course_of(search, Busy::new(station, 0.02, 1));
    assert!(course.answer.episodes < EPISODES_MIN, "{:?}", course.answer);
    assert!(course.end_s > 380.0, "{}", course.end_s);
}

/// A search on a target of 1000 requests/s, on which the first cell that `is_chosen` gives up.
/// Returns the answer, and the number of cells that stalled.
fn searched_with_stall(is_chosen: fn(&RateSearch, &RateCell) -> bool) -> (RateAnswer, usize) {
    let promise = RatePromise {
        late_share: P99,
        limit_s: 0.03,
    };
    let mut search = RateSearch::new(promise, RateSearchTimes::default(), 5);
    let mut busy = Busy::new(Station::new(4, 1000.0, Service::Exponential), 0.03, 31);
    let mut stalled = 0;
    let mut measured = None;
    loop {
        let cell = match search.next(measured) {
            SearchStep::Cell(cell) => cell,
            SearchStep::Answer(answer) => return (answer, stalled),
        };
        let mut result = busy.measure(cell);
        if stalled == 0 && is_chosen(&search, &cell) {
            stalled += 1;
            result.gave_up = true;
            result.served = cell.rate / 10.0;
            result.batches.truncate(1);
            result.batches[0].late = result.batches[0].requests / 2.0;
        }
        measured = Some(result);
    }
}

fn is_unchanged(stalled: &RateAnswer) -> bool {
    let (quiet, _) = searched_with_stall(|_, _| false);
    stalled.saturated > 0.95 * quiet.saturated
        && stalled.high >= quiet.rate
        && stalled.low <= quiet.rate
}

#[test]
fn stall_of_one_near_cell_bounds_nothing_if_the_repeated_cell_keeps_the_rate() {
    let (answer, stalled) = searched_with_stall(|search, cell| {
        cell.kind == RateCellKind::Near
            && search.near_cells >= 2
            && cell.rate < search.fit.interval.low
    });
    assert_eq!((stalled, answer.falls), (1, 0));
    assert!(is_unchanged(&answer), "{answer:?}");
}

#[test]
fn stall_of_the_first_cell_does_not_end_the_doubling() {
    let (answer, stalled) = searched_with_stall(|_, cell| cell.kind == RateCellKind::Doubling);
    assert_eq!(stalled, 1);
    assert!(is_unchanged(&answer), "{answer:?}");
}

/// The answer of a search whose controls have this share of late requests, all in their first
/// batches: another program takes the processors for seconds.
fn searched_with_late_control(late_share: f64) -> RateAnswer {
    let promise = RatePromise {
        late_share: P99,
        limit_s: 0.03,
    };
    let mut search = RateSearch::new(promise, RateSearchTimes::default(), 5);
    let mut busy = Busy::new(Station::new(4, 1000.0, Service::Exponential), 0.03, 31);
    let mut measured = None;
    loop {
        let cell = match search.next(measured) {
            SearchStep::Cell(cell) => cell,
            SearchStep::Answer(answer) => return answer,
        };
        let mut result = busy.measure(cell);
        if cell.kind == RateCellKind::Control {
            result.gave_up = false;
            let mut left = late_share * cell.rate * result.batches.len() as f64;
            for batch in &mut result.batches {
                batch.requests = cell.rate;
                batch.late = left.min(cell.rate);
                left -= batch.late;
            }
        }
        measured = Some(result);
    }
}

#[test]
fn control_that_is_late_by_a_quarter_has_not_kept_the_promise() {
    for (late_share, failed) in [(0.25, true), (0.04, true), (0.02, false), (0.0, false)] {
        let answer = searched_with_late_control(late_share);
        let control = answer.control.unwrap();
        assert_eq!(control.failed, failed, "{late_share}: {answer:?}");
        let is_at_least = answer.outcome == LoadOutcome::AtLeast;
        assert_eq!(is_at_least, !failed, "{late_share}: {answer:?}");
    }
}
