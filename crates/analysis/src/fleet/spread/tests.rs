//! Simulated fleets: healthy ones, in which hardly anybody may be named, and such with one slow
//! row. The model and its figures are those that docs/cluster.md states.

use super::super::verdicts::{RowDistance, RowOutcome, test_distances, test_groups};
use super::*;
use crate::fixture::test_rng::TestRng;
use std::collections::BTreeSet;

const METRICS: usize = 8;
const MARGIN: f64 = 0.10;

/// The shape of healthy values; each has about the variance 1.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Normal,
    /// Student's t with five degrees of freedom.
    HeavyTails,
}

impl Shape {
    fn draw(self, rng: &mut TestRng) -> f64 {
        match self {
            Self::Normal => rng.normal(),
            Self::HeavyTails => {
                let squares: f64 = (0..5).map(|_| rng.normal().powi(2)).sum();
                rng.normal() / (squares / 5.0).sqrt() / (5.0_f64 / 3.0).sqrt()
            }
        }
    }
}

/// The metrics of so many rows: half a spread from unit to unit, a spread from run to run, both
/// with a correlation of one half over the metrics of a row.
fn fleet(rows: usize, spread: f64, shape: Shape, rng: &mut TestRng) -> Vec<Vec<Sample>> {
    let half = 0.5_f64.sqrt();
    let mut columns = vec![Vec::new(); METRICS];
    for row in 0..rows {
        let commons = [shape.draw(rng) * half, shape.draw(rng) * half];
        for column in &mut columns {
            let unit = spread / 2.0 * (commons[0] + half * shape.draw(rng));
            let run = spread * (commons[1] + half * shape.draw(rng));
            column.push(Sample {
                row,
                log_speed: unit + run,
                error: 0.0,
            });
        }
    }
    columns
}

/// The rows that are named, and those that are suspects.
struct Names {
    differing: BTreeSet<usize>,
    suspects: BTreeSet<usize>,
}

fn names(columns: &[Vec<Sample>]) -> Names {
    names_of(judge_group(columns, None))
}

fn names_of(judged: JudgedGroup) -> Names {
    let all = test_groups(&[judged], MARGIN);
    let rows = |outcome: RowOutcome| {
        let found = all.iter().filter(|test| test.outcome == outcome);
        found.map(|test| test.distance.row).collect()
    };
    Names {
        differing: rows(RowOutcome::Differs),
        suspects: rows(RowOutcome::Suspect),
    }
}

fn set<const N: usize>(rows: [usize; N]) -> BTreeSet<usize> {
    BTreeSet::from(rows)
}

fn slow_down(columns: &mut [Vec<Sample>], row: usize, share: f64) {
    for column in columns {
        column[row].log_speed += (1.0 - share).ln();
    }
}

/// Of a hundred healthy fleets, the names that are given.
fn false_names(rows: usize, shape: Shape, spread: f64) -> usize {
    let mut rng = TestRng(7);
    let mut count = 0;
    for _ in 0..100 {
        count += names(&fleet(rows, spread, shape, &mut rng)).differing.len();
    }
    count
}

#[test]
fn healthy_fleets_are_not_accused() {
    for spread in [0.02, 0.05, 0.10] {
        let found = false_names(200, Shape::Normal, spread);
        assert!(found <= 5, "normal, {spread}: {found} names");
    }
    let found = false_names(200, Shape::HeavyTails, 0.05);
    assert!(found <= 15, "heavy tails: {found} names");
    for rows in [3, 5, 10] {
        let found = false_names(rows, Shape::Normal, 0.05);
        assert!(found <= 5, "{rows} rows: {found} names");
    }
}

#[test]
fn one_slow_row_is_named_and_nobody_else() {
    let mut rng = TestRng(3);
    for _ in 0..10 {
        let mut columns = fleet(200, 0.02, Shape::Normal, &mut rng);
        slow_down(&mut columns[3..4], 17, 0.5);
        slow_down(&mut columns, 42, 0.2);
        assert_eq!(names(&columns).differing, set([17, 42]));
    }
}

#[test]
fn one_of_three_rows_is_named_at_less_than_a_third() {
    let mut rng = TestRng(5);
    for _ in 0..20 {
        let mut columns = fleet(3, 0.02, Shape::Normal, &mut rng);
        assert_eq!(names(&columns).differing, set([]));
        slow_down(&mut columns, 1, 0.7);
        assert_eq!(names(&columns).differing, set([1]));
    }
}

#[test]
fn row_that_states_its_own_error_is_not_named_for_it() {
    let mut rng = TestRng(11);
    let mut columns = fleet(30, 0.02, Shape::Normal, &mut rng);
    columns[0][4].log_speed -= 1.0;
    assert_eq!(names(&columns).differing, set([4]));
    columns[0][4].error = 0.8;
    assert_eq!(names(&columns).differing, set([]));
}

/// A disk 20 % slower in a fleet that varies by 5 %: mostly not certain after one run, mostly a
/// suspect, and named by the runs that follow.
#[test]
fn suspects_are_decided_by_a_second_look() {
    let mut rng = TestRng(13);
    let (mut at_once, mut suspected, mut decided, mut wrong) = (0, 0, 0, 0);
    for _ in 0..20 {
        let mut columns = fleet(200, 0.05, Shape::Normal, &mut rng);
        slow_down(&mut columns, 0, 0.2);
        let judged = judge_group(&columns, None);
        let found = names_of(judged.clone());
        at_once += usize::from(found.differing.contains(&0));
        if !found.suspects.contains(&0) && !found.differing.contains(&0) {
            continue;
        }
        suspected += 1;
        // The means of three more runs of the suspect, of one other row that is taken for one, and
        // of ten others.
        let mut again = fleet(12, 0.05 / 3.0_f64.sqrt(), Shape::Normal, &mut rng);
        slow_down(&mut again, 0, 0.2);
        let (mut distances, mut named) = (Vec::new(), BTreeSet::new());
        for (column, scale) in again.iter().zip(&judged.columns) {
            let scale = &scale.as_ref().unwrap().scale;
            for distance in judge_suspects(scale, &column[..2], &column[2..]) {
                distances.push(RowDistance {
                    group: 0,
                    metric: None,
                    distance,
                });
            }
        }
        for test in test_distances(distances, MARGIN) {
            if test.outcome == RowOutcome::Differs {
                named.insert(test.distance.row);
            }
        }
        decided += usize::from(named.contains(&0));
        wrong += usize::from(named.contains(&1));
    }
    assert!(at_once <= 17, "{at_once} of 20 at once");
    assert!(suspected >= 17, "{suspected} of 20 suspected");
    assert!(decided + 2 >= suspected, "{decided} of {suspected} decided");
    assert_eq!(wrong, 0);
}

#[test]
fn heavy_tails_lower_the_degrees_of_freedom() {
    let mut rng = TestRng(17);
    let normal = judge_group(&fleet(200, 0.05, Shape::Normal, &mut rng), None);
    let heavy = judge_group(&fleet(200, 0.05, Shape::HeavyTails, &mut rng), None);
    let freedom = |judged: &JudgedGroup| judged.columns[0].as_ref().unwrap().scale.tail_freedom;
    assert!(freedom(&normal) >= 10.0, "{}", freedom(&normal));
    assert!(freedom(&heavy) <= 8.0, "{}", freedom(&heavy));
}

/// By hand: of 1, 2, 4 and 100 the median is 3, the deviations are 1, 1, 2 and 97, their median is
/// 1.5, and 1.4826 · 1.363 · 1.5 = 3.0312.
#[test]
fn spread_is_the_one_computed_by_hand() {
    let MedianSpread {
        median: center,
        spread,
    } = MedianSpread::of_ordered(&[1.0, 2.0, 4.0, 100.0]);
    assert_eq!(center, 3.0);
    assert!((spread - 3.0312).abs() < 1e-3, "{spread}");
}

#[test]
fn two_rows_are_not_judged() {
    let sample = |row| Sample {
        row,
        log_speed: row as f64,
        error: 0.0,
    };
    let judged = judge_group(&[vec![sample(0), sample(1)]], None);
    assert!(judged.columns[0].is_none() && judged.overall.is_empty());
}

/// The constants of normal values belong together: the quartile is the median absolute deviation,
/// and the variance of a median is π/2 of that of a mean.
#[test]
fn constants_are_those_of_normal_values() {
    assert!((NORMAL_QUARTILE * DEVIATION_PER_MAD - 1.0).abs() < 1e-4);
    assert!((Tail::normal().upper_quartile / NORMAL_QUARTILE - 1.0).abs() < 1e-3);
    assert!((MEDIAN_VARIANCE / std::f64::consts::FRAC_PI_2 - 1.0).abs() < 1e-3);
}

/// Rows with normal tails and the spread of the prior have just this spread, and the error of their
/// median.
#[test]
fn yardstick_is_the_spread_and_the_error_of_the_median() {
    let prior = Prior {
        spread: 0.02,
        freedom: 4.0,
    };
    for other_rows in [2_usize, 10, 1000] {
        let yardstick = Yardstick::new(0.02, prior, other_rows, Tail::normal());
        let error_of_median = std::f64::consts::FRAC_PI_2 / other_rows as f64;
        let expected = 0.02 * 0.02 * (1.0 + error_of_median);
        assert!(
            (yardstick.variance / expected - 1.0).abs() < 2e-3,
            "{other_rows}: {}",
            yardstick.variance
        );
    }
}
