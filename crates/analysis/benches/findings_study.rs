//! How often the rules about a surface are right: random disks, quiet ones and faulty ones of every
//! degree, judged whole. The headers of the rules `flat-top`, `ragged`, `slow-zone` and `not-zoned`
//! cite its shares. Run by hand: `cargo bench -p diskproof-analysis --features studies --bench
//! findings_study -- 2000`; the number is that of disks of each kind, 100 unless given.

use diskproof_analysis::fixture::surveyed::{SurveyedDisk, codes};
use diskproof_analysis::fixture::test_rng::TestRng;
use std::collections::BTreeMap;

/// Prints the share of random disks on which exactly these findings are made, and what was found on
/// the others.
fn print_share(name: &str, expected: &[&str], draw: impl Fn(&mut TestRng) -> SurveyedDisk) {
    let count = std::env::args()
        .find_map(|text| text.parse().ok())
        .unwrap_or(100_u64);
    let (mut right, mut others) = (0, BTreeMap::new());
    for seed in 0..count {
        let record = draw(&mut TestRng(seed + 1)).record(seed);
        let found_codes = codes(&record);
        if found_codes == expected {
            right += 1;
        } else {
            let names: Vec<String> = found_codes.iter().map(ToString::to_string).collect();
            *others.entry(names).or_insert(0) += 1;
        }
    }
    println!(
        "{name}: {expected:?} alone on {:.1} %; else {others:?}",
        100.0 * f64::from(right) / count as f64
    );
}

/// Any rotating disk without a fault: 2 to 40 zones, 1.3 to 2.5 times as fast outside as inside,
/// noise up to a given share, 20 to 300 points.
fn quiet(rng: &mut TestRng, noise: f64) -> SurveyedDisk {
    let inner = rng.between(30e6, 200e6);
    SurveyedDisk {
        size_bytes: rng.between(1e9, 8e12) as u64,
        zones: rng.whole(2, 40) as u32,
        inner,
        outer: inner * rng.between(1.3, 2.5),
        noise: rng.between(0.0, noise),
        points: rng.whole(20, 300) as u32,
        rpm: [5400, 7200, 10_000][rng.whole(0, 2) as usize],
        seek_ns: rng.between(6e6, 14e6),
        accesses: 200,
        ..SurveyedDisk::rotating()
    }
}

/// A disk with as many zones as real disks have, and enough points to resolve them.
fn fine(rng: &mut TestRng, noise: f64) -> SurveyedDisk {
    SurveyedDisk {
        zones: rng.whole(10, 40) as u32,
        points: rng.whole(60, 300) as u32,
        ..quiet(rng, noise)
    }
}

fn solid(rng: &mut TestRng) -> SurveyedDisk {
    SurveyedDisk {
        noise: rng.between(0.0, 0.05),
        points: rng.whole(20, 200) as u32,
        accesses: 200,
        ..SurveyedDisk::solid()
    }
}

/// A part of at least a tenth of the disk, which begins at its start in four of ten cases.
fn span(rng: &mut TestRng) -> std::ops::Range<f64> {
    let start = if rng.share() < 0.4 {
        0.0
    } else {
        rng.between(0.0, 0.85)
    };
    start..start + rng.between(0.1, 1.0 - start)
}

fn quiet_disks() {
    print_share("rotating, whole", &[], |rng| quiet(rng, 0.03));
    print_share("rotating, a part", &[], |rng| SurveyedDisk {
        span: span(rng),
        ..quiet(rng, 0.03)
    });
    print_share("rotating, no access times", &[], |rng| SurveyedDisk {
        accesses: 0,
        ..quiet(rng, 0.03)
    });
    print_share("SSD", &["not-zoned"], solid);
    print_share("SSD halved at 2 % of the points", &["not-zoned"], |rng| {
        SurveyedDisk {
            hiccups: 0.02,
            ..solid(rng)
        }
    });
}

/// A limit above the inner zones, by 5 % to half of the top rate.
fn limited_disks() {
    for below in [0.05, 0.1, 0.2, 0.3, 0.5] {
        let name = format!("limited to {:.0} % of the top", 100.0 * (1.0 - below));
        print_share(&name, &["flat-top"], |rng| {
            let disk = fine(rng, 0.01);
            SurveyedDisk {
                cap: Some((1.0 - below) * disk.outer),
                ..disk
            }
        });
    }
}

fn ragged_disks() {
    for loss in [0.1, 0.15, 0.2, 0.3, 0.5] {
        let name = format!("cells that lose up to {:.0} %", 100.0 * loss);
        print_share(&name, &["ragged"], |rng| {
            let disk = quiet(rng, 0.01);
            SurveyedDisk {
                ragged: Some((disk.size_bytes / rng.whole(500, 5000), loss)),
                ..disk
            }
        });
    }
    print_share(
        "30 to 100 cells that lose up to 25 to 50 %",
        &["ragged"],
        |rng| {
            let disk = fine(rng, 0.01);
            SurveyedDisk {
                ragged: Some((disk.size_bytes / rng.whole(30, 100), rng.between(0.25, 0.5))),
                ..disk
            }
        },
    );
}

fn disks_with_slow_zones() {
    for width in [0.01, 0.02, 0.05, 0.2] {
        let name = format!("{:.0} % of the surface at 30 to 80 %", 100.0 * width);
        print_share(&name, &["slow-zone"], |rng| {
            let disk = fine(rng, 0.01);
            let (start, left) = (rng.between(0.0, 1.0 - width), rng.between(0.3, 0.8));
            SurveyedDisk {
                slow: vec![(start..start + width, left)],
                ..disk
            }
        });
    }
    print_share("three slow zones", &["slow-zone"], |rng| {
        let mut slow = Vec::new();
        for third in 0..3 {
            let start = f64::from(third) / 3.0 + rng.between(0.02, 0.2);
            slow.push((
                start..start + rng.between(0.02, 0.08),
                rng.between(0.3, 0.8),
            ));
        }
        SurveyedDisk {
            slow,
            ..fine(rng, 0.01)
        }
    });
}

fn main() {
    quiet_disks();
    limited_disks();
    ragged_disks();
    disks_with_slow_zones();
}
