//! How often the rules about the surface are right: thousands of disks drawn at random, healthy
//! ones and spoilt ones of every degree, judged whole. The header of each rule tells the shares
//! found with `ODDS=2000` and an optimized build: `ODDS=2000 cargo test --config
//! 'profile.test.package.diskproof-analysis.opt-level=2' -p diskproof-analysis odds -- --nocapture`

use crate::dice::Dice;
use crate::surveyed::{Disk, codes};

/// Disks of each kind; a few in the daily run, where the shares below must hold all the same.
fn count() -> u64 {
    std::env::var("ODDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(40)
}

/// The share of random disks on which exactly these findings are made.
fn share(name: &str, expected: &[&str], draw: impl Fn(&mut Dice) -> Disk) -> f64 {
    let right = (0..count()).filter(|seed| {
        let disk = draw(&mut Dice(seed + 1));
        let record = disk.record(*seed);
        let found = codes(&record);
        if found != expected && std::env::var_os("ODDS_SHOW").is_some() {
            eprintln!("{name}: {found:?} instead of {expected:?} on {disk:?}");
        }
        found == expected
    });
    let share = right.count() as f64 / count() as f64;
    eprintln!("{name}: {expected:?} alone on {:.1} %", share * 100.0);
    share
}

/// Any rotating disk without a fault: 2 to 40 zones, 1.3 to 2.5 times as fast outside as inside,
/// noise up to a given share, 20 to 500 points.
fn healthy(dice: &mut Dice, noise: f64) -> Disk {
    let inner = dice.between(30e6, 200e6);
    Disk {
        size_bytes: dice.between(1e9, 8e12) as u64,
        zones: dice.whole(2, 40) as u32,
        inner,
        outer: inner * dice.between(1.3, 2.5),
        noise: dice.between(0.0, noise),
        points: dice.whole(20, 300) as u32,
        rpm: [5400, 7200, 10_000][dice.whole(0, 2) as usize],
        seek_ns: dice.between(6e6, 14e6),
        accesses: 200,
        ..Disk::rotating()
    }
}

/// A part of at least a tenth.
fn span(dice: &mut Dice) -> std::ops::Range<f64> {
    let start = if dice.share() < 0.4 {
        0.0
    } else {
        dice.between(0.0, 0.85)
    };
    start..start + dice.between(0.1, 1.0 - start)
}

/// Zones as real disks have them, and points enough to see them.
fn fine(dice: &mut Dice, noise: f64) -> Disk {
    Disk {
        zones: dice.whole(10, 40) as u32,
        points: dice.whole(60, 300) as u32,
        ..healthy(dice, noise)
    }
}

#[test]
fn healthy_disks_have_no_findings() {
    assert!(share("rotating, whole", &[], |d| healthy(d, 0.03)) >= 0.97);
    assert!(
        share("rotating, a part", &[], |d| Disk {
            span: span(d),
            ..healthy(d, 0.03)
        }) >= 0.97
    );
    assert!(
        share("rotating, no access times", &[], |d| Disk {
            accesses: 0,
            ..healthy(d, 0.03)
        }) >= 0.97
    );
    let solid = |d: &mut Dice| Disk {
        noise: d.between(0.0, 0.05),
        points: d.whole(20, 200) as u32,
        accesses: 200,
        ..Disk::solid()
    };
    assert!(share("SSD", &["not-zoned"], solid) >= 0.97);
    assert!(
        share(
            "SSD that is halved at 2 % of the points",
            &["not-zoned"],
            |d| Disk {
                hiccups: 0.02,
                ..solid(d)
            }
        ) >= 0.97
    );
}

#[test]
fn limits_are_found() {
    // A limit above the inner zones, by 5 % to half of the top rate.
    for (below, least) in [
        (0.05, 0.5),
        (0.1, 0.8),
        (0.2, 0.85),
        (0.3, 0.85),
        (0.5, 0.85),
    ] {
        let capped = |d: &mut Dice| {
            let disk = fine(d, 0.01);
            Disk {
                cap: Some((1.0 - below) * disk.outer),
                ..disk
            }
        };
        assert!(
            share(
                &format!("limited to {:.0} % of the top", 100.0 * (1.0 - below)),
                &["flat-top"],
                capped
            ) >= least
        );
    }
}

#[test]
fn raggedness_is_found() {
    for (loss, least) in [
        (0.1, 0.75),
        (0.15, 0.85),
        (0.2, 0.85),
        (0.3, 0.9),
        (0.5, 0.9),
    ] {
        let narrow = |d: &mut Dice| {
            let disk = healthy(d, 0.01);
            Disk {
                ragged: Some((disk.size_bytes / d.whole(500, 5000), loss)),
                ..disk
            }
        };
        assert!(
            share(
                &format!("cells that lose up to {:.0} %", 100.0 * loss),
                &["ragged"],
                narrow
            ) >= least
        );
    }
    let wide = |d: &mut Dice| {
        let disk = fine(d, 0.01);
        Disk {
            ragged: Some((disk.size_bytes / d.whole(30, 100), d.between(0.25, 0.5))),
            ..disk
        }
    };
    assert!(
        share(
            "30 to 100 cells that lose up to 25 to 50 %",
            &["ragged"],
            wide
        ) >= 0.8
    );
}

#[test]
fn slow_zones_are_found() {
    for (width, least) in [(0.01, 0.6), (0.02, 0.85), (0.05, 0.9), (0.2, 0.9)] {
        let slow = |d: &mut Dice| {
            let (disk, start, left) = (
                fine(d, 0.01),
                d.between(0.0, 1.0 - width),
                d.between(0.3, 0.8),
            );
            Disk {
                slow: vec![(start..start + width, left)],
                ..disk
            }
        };
        assert!(
            share(
                &format!("{:.0} % of the surface at 30 to 80 %", 100.0 * width),
                &["slow-zone"],
                slow
            ) >= least
        );
    }
    let several = |d: &mut Dice| {
        let slow = (0..3).map(|i| {
            let start = f64::from(i) / 3.0 + d.between(0.02, 0.2);
            (start..start + d.between(0.02, 0.08), d.between(0.3, 0.8))
        });
        let slow = slow.collect();
        Disk {
            slow,
            ..fine(d, 0.01)
        }
    };
    assert!(share("three slow zones", &["slow-zone"], several) >= 0.9);
}
