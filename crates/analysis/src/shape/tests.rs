//! Shapes of simulated disks with known properties.

use super::parts::scatter;
use super::*;
use crate::fixture::surveyed::{SurveyedDisk, rotating};
use crate::fixture::test_rng::TestRng;

fn shape(disk: &SurveyedDisk) -> Shape {
    Shape::from_curve(&disk.survey(1).curve, Reach::Whole).unwrap()
}

#[test]
fn scatter_of_noise_is_its_standard_deviation_and_that_of_zones_nothing() {
    let mut rng = TestRng(1);
    let noise: Vec<f64> = (0..100_000).map(|_| rng.normal()).collect();
    assert!((scatter(&noise) - 1.0).abs() < 0.01, "{}", scatter(&noise));
    for (zones, points) in [(2, 20), (10, 20), (24, 50), (40, 500)] {
        assert_eq!(
            shape(&rotating(|disk| (
                disk.zones,
                disk.points,
                disk.noise,
                disk.accesses
            ) = (zones, points, 0.0, 0)))
            .scatter,
            0.0,
            "{zones}"
        );
    }
}

#[test]
fn levels_are_the_zones() {
    let shape = shape(&rotating(|disk| disk.accesses = 0));
    assert_eq!((shape.levels.len(), shape.dips.len()), (24, 0));
    assert!(
        (shape.levels[0].rate() / 92e6 - 1.0).abs() < 0.002
            && (shape.levels[23].rate() / 49e6 - 1.0).abs() < 0.002
    );
}

#[test]
fn a_dip_has_its_bounds_and_the_levels_go_on_behind_it() {
    let disk = rotating(|disk| (disk.slow, disk.accesses) = (vec![(0.5..0.6, 0.5)], 0));
    let shape = shape(&disk);
    let [dip] = &shape.dips[..] else {
        panic!("{:?}", shape.dips)
    };
    assert_eq!((dip.first, dip.last), (100, 119));
    assert!(
        (dip.rate / dip.neighbours_rate - 0.5).abs() < 0.02,
        "{dip:?}"
    );
    assert_eq!(
        (shape.rises(0.0), shape.end_bytes(119, 0)),
        (0, 192_000_000_000)
    );
    assert_eq!(shape.end_bytes(199, 7), 7);
}

#[test]
fn failed_points_and_nonsense_are_ignored_and_few_points_have_no_shape() {
    let mut curve = rotating(|disk| (disk.accesses, disk.points) = (0, 20))
        .survey(1)
        .curve;
    curve[3].errors = 1;
    curve[4].bytes_per_second = 0.0;
    curve[5].bytes_per_second = f64::NAN;
    curve[6].bytes_per_second = f64::INFINITY;
    curve.reverse();
    let shape = Shape::from_curve(&curve, Reach::Whole).unwrap();
    assert!(shape.points.len() == 16 && shape.points.is_sorted_by_key(|p| p.offset_bytes));
    assert_eq!(curve[shape.points[0].index].offset_bytes, 0);
    curve.truncate(11);
    assert_eq!(Shape::from_curve(&curve, Reach::Whole), None);
    assert_eq!(Shape::from_curve(&[], Reach::Part), None);
}

#[test]
fn pauses_of_the_machine_break_no_level_and_are_no_dips() {
    let disk = rotating(|disk| (disk.cap, disk.points, disk.accesses) = (Some(78e6), 60, 0));
    let mut survey = disk.survey(1);
    for (index, factor) in [
        (2, 0.95),
        (11, 0.67),
        (14, 1.8),
        (30, 0.9),
        (50, 1.05),
        (51, 0.6),
    ] {
        let point = &mut survey.curve[index];
        let busy_ns = (point.busy_ns as f64 / factor) as u64;
        point.latency_max_ns += busy_ns.saturating_sub(point.busy_ns);
        (point.bytes_per_second, point.busy_ns) = (point.bytes_per_second * factor, busy_ns);
    }
    let shape = Shape::from_curve(&survey.curve, Reach::Whole).unwrap();
    assert_eq!((shape.dips.len(), shape.rises(0.01)), (0, 0));
    assert!(shape.levels[0].members.len() >= 20, "{:?}", shape.levels[0]);
}

#[test]
fn very_many_points_are_judged_in_groups() {
    let shape = shape(&rotating(|disk| {
        (disk.accesses, disk.points, disk.slow) = (0, 10_000, vec![(0.5..0.6, 0.5)])
    }));
    assert_eq!((shape.points.len(), shape.dips.len()), (3334, 1));
}

#[test]
fn single_delayed_request_within_a_group_is_no_dip() {
    let disk = rotating(|disk| (disk.accesses, disk.points) = (0, 10_000));
    let mut curve = disk.survey(1).curve;
    // The second of three points.
    let slow = 3001;
    let busy_ns = 3 * curve[slow].busy_ns;
    curve[slow].latency_max_ns += busy_ns - curve[slow].busy_ns;
    curve[slow].busy_ns = busy_ns;
    curve[slow].bytes_per_second /= 3.0;
    let shape = Shape::from_curve(&curve, Reach::Whole).unwrap();
    assert_eq!(shape.points[1000].index, slow);
    assert_eq!(shape.dips, []);
}
