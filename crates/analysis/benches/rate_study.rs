//! How often the interval of a rate search holds the truth, on stations with other parameters than
//! its constants were fixed on. Of those that promise too much (`wrong`), `misled` met a stall and
//! promised too much all the same. Prints a line for each kind whose name has the given word:
//! `cargo bench -p diskproof-analysis --features studies --bench rate_study [-- RUNS [WORD]]`.

use diskproof_analysis::campaign::rate_search::station::{
    Busy, Credit, Service, StallLengths, Stalls, Station, true_rate,
};
use diskproof_analysis::campaign::rate_search::{RatePromise, RateSearch, RateSearchTimes};
use diskproof_model::rate::LoadOutcome;

/// Requests of each of the twelve rates by which the true rate is found, at least.
const TRUTH_REQUESTS: f64 = 3e6;
/// They last for at least so many stalls.
const TRUTH_STALLS: f64 = 100.0;
/// And for so many of random length, a few of which decide.
const TRUTH_RANDOM_STALLS: f64 = 3000.0;

fn main() {
    let runs: u64 = std::env::args()
        .filter_map(|word| word.parse().ok())
        .next()
        .unwrap_or(50);
    let word = std::env::args()
        .skip(1)
        .find(|word| !word.starts_with("--") && word.parse::<u64>().is_err())
        .unwrap_or_default();
    println!(
        "{:<34} {:>8} {:>7} {:>6} {:>6} {:>6} {:>6} {:>8} {:>7}",
        "station", "truth", "inside", "firm", "wrong", "met", "misled", "control", "half %"
    );
    for studied in stations() {
        if !studied.name.contains(&word) {
            continue;
        }
        let (name, station, limit_s) = (studied.name, studied.station, studied.promise.limit_s);
        let requests = match station.stalls {
            Some(stalls) => {
                let count = match stalls.lengths {
                    StallLengths::Even => TRUTH_STALLS,
                    StallLengths::Exponential => TRUTH_RANDOM_STALLS,
                };
                TRUTH_REQUESTS.max(count * stalls.every_s * station.capacity)
            }
            None => TRUTH_REQUESTS,
        };
        let truth = true_rate(station, limit_s, studied.promise.late_share, requests);
        let (mut inside, mut wrong, mut controls, mut half) = (0, 0, 0, 0.0);
        let (mut firm, mut met, mut misled) = (0, 0, 0);
        for seed in 0..runs {
            let search = RateSearch::new(studied.promise, RateSearchTimes::default(), 900 + seed);
            let answer = Busy::new(station, limit_s, 31 + 13 * seed).carry_out(search);
            inside += u64::from(answer.low <= truth * 1.0005 && answer.high >= truth * 0.9995);
            let is_promised = matches!(
                answer.outcome,
                LoadOutcome::Sustained | LoadOutcome::AtLeast
            );
            firm += u64::from(is_promised);
            let is_wrong = is_promised && answer.low > truth * 1.01;
            wrong += u64::from(is_wrong);
            met += u64::from(answer.stalls.met > 0);
            misled += u64::from(is_wrong && answer.stalls.met > 0);
            controls += u64::from(answer.control.is_some_and(|control| control.failed));
            half += (answer.high - answer.low) / 2.0 / answer.rate * 100.0;
        }
        println!(
            "{name:<34} {truth:>8.1} {inside:>7} {firm:>6} {wrong:>6} {met:>6} {misled:>6} \
             {controls:>8} {:>7.1}",
            half / runs as f64
        );
    }
}

/// A kind of target, and the promise that its search has to keep.
struct Studied {
    name: &'static str,
    station: Station,
    promise: RatePromise,
}

fn p99(name: &'static str, limit_s: f64, station: Station) -> Studied {
    Studied {
        name,
        station,
        promise: RatePromise {
            late_share: 0.01,
            limit_s,
        },
    }
}

fn stalling(length_s: f64, every_s: f64, station: Station) -> Station {
    Station {
        stalls: Some(Stalls {
            length_s,
            every_s,
            lengths: StallLengths::Even,
        }),
        ..station
    }
}

/// Stalls of random length at random times.
fn stalling_at_random(length_s: f64, every_s: f64, station: Station) -> Station {
    Station {
        stalls: Some(Stalls {
            length_s,
            every_s,
            lengths: StallLengths::Exponential,
        }),
        ..station
    }
}

/// 900/s until a credit is used up that lasts for so many seconds, then 500/s.
fn with_credit(seconds: f64) -> Station {
    Station {
        credit: Some(Credit {
            base: 500.0,
            requests: seconds * 400.0,
        }),
        ..Station::new(4, 900.0, Service::Exponential)
    }
}

fn stations() -> Vec<Studied> {
    let mut p99_9 = p99(
        "M/M/4, 3000/s, 10 ms, p99.9",
        0.01,
        Station::new(4, 3000.0, Service::Exponential),
    );
    p99_9.promise.late_share = 0.001;
    let mut stations = vec![
        p99(
            "M/M/1, 150/s, 80 ms",
            0.08,
            Station::new(1, 150.0, Service::Exponential),
        ),
        p99(
            "M/M/2, 400/s, 40 ms",
            0.04,
            Station::new(2, 400.0, Service::Exponential),
        ),
        p99(
            "M/D/2, 250/s, 60 ms",
            0.06,
            Station::new(2, 250.0, Service::Constant),
        ),
        p99(
            "M/G/3, 700/s, 25 ms",
            0.025,
            Station::new(3, 700.0, Service::HeavyTailed),
        ),
        p99(
            "M/G/6, 2200/s, 25 ms, 0.7 % late",
            0.025,
            Station::new(6, 2200.0, Service::VeryHeavyTailed),
        ),
        p99(
            "M/D/6, 2500/s, 9 ms",
            0.009,
            Station::new(6, 2500.0, Service::Constant),
        ),
        p99(
            "M/M/12, 6000/s, 6 ms",
            0.006,
            Station::new(12, 6000.0, Service::Exponential),
        ),
        p99(
            "M/G/8, 20000/s, 4 ms",
            0.004,
            Station::new(8, 20_000.0, Service::HeavyTailed),
        ),
        p99_9,
    ];
    stations.extend(limited_stations());
    stations
}

/// Targets with stalls and with credits.
fn limited_stations() -> Vec<Studied> {
    vec![
        p99(
            "M/M/4, 1200/s, stalls of 55 ms",
            0.03,
            stalling(0.055, 12.0, Station::new(4, 1200.0, Service::Exponential)),
        ),
        p99(
            "M/D/4, 5000/s, stalls of 30 ms",
            0.01,
            stalling(0.03, 6.0, Station::new(4, 5000.0, Service::Constant)),
        ),
        p99(
            "M/M/4, 1000/s, stalls of 0.3 s",
            0.03,
            stalling(0.3, 60.0, Station::new(4, 1000.0, Service::Exponential)),
        ),
        p99(
            "M/M/4, 1000/s, stalls of 0.9 s",
            0.03,
            stalling(0.9, 190.0, Station::new(4, 1000.0, Service::Exponential)),
        ),
        p99(
            "M/M/8, 4000/s, stalls of 0.9 s",
            0.012,
            stalling(0.9, 190.0, Station::new(8, 4000.0, Service::Exponential)),
        ),
        p99(
            "M/M/4, 1000/s, stalls of 1.2 s",
            0.03,
            stalling(1.2, 250.0, Station::new(4, 1000.0, Service::Exponential)),
        ),
        p99(
            "M/M/4, 1000/s, stalls of 2 s",
            0.03,
            stalling(2.0, 400.0, Station::new(4, 1000.0, Service::Exponential)),
        ),
        p99(
            "M/M/4, 1200/s, random stalls, 55 ms",
            0.03,
            stalling_at_random(0.055, 12.0, Station::new(4, 1200.0, Service::Exponential)),
        ),
        p99(
            "M/D/4, 5000/s, random stalls, 30 ms",
            0.01,
            stalling_at_random(0.03, 6.0, Station::new(4, 5000.0, Service::Constant)),
        ),
        p99(
            "M/M/2, 600/s, random stalls, 100 ms",
            0.05,
            stalling_at_random(0.1, 30.0, Station::new(2, 600.0, Service::Exponential)),
        ),
        p99("500/s, credit of 15 s", 0.03, with_credit(15.0)),
        p99("500/s, credit of 60 s", 0.03, with_credit(60.0)),
        p99("500/s, credit of 120 s", 0.03, with_credit(120.0)),
    ]
}
