//! `access-time-off`: the disk does not do what its data sheet and physics say: half a turn and an
//! average seek per random access, and the top rate. Without the revolutions per minute and the
//! rate it is silent.

use super::flat_top;
use super::program;
use super::rule::*;
use crate::mechanics::{reach, reported_rpm};
use crate::shape::{Reach, Shape};
use diskproof_model::surface::SeekSummary;

pub(super) const ACCESS_TIME_OFF: Rule = Rule {
    code: "access-time-off",
    check: Check::Survey(check_access_time_off),
    says: Meaning::Doubtful,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// An access may take this many times as long as computed: sheets omit the electronics and round in
/// their favour.
const SLOWER: f64 = 1.15;
/// Smallest share of the average seek that random accesses over the whole surface take on an honest
/// disk: sheets round up a little, not by half.
const SEEK_SHARE_MIN: f64 = 0.5;
/// Where the sheet does not tell: the longest average seek of disks up to 7200 rpm and of faster
/// ones, with room; laptop disks have 12 to 14 ms, server disks 3.5 to 5 ms.
const SEEK_NS_MAX: (f64, f64) = (20e6, 9e6);
/// Accesses of less than this share of half a turn, on average, are not those of a platter.
const TURN_SHARE_MIN: f64 = 0.9;
/// The top rate may be so much below the sheet's and above it.
const RATE: std::ops::Range<f64> = 0.88..1.25;
/// Fewer accesses tell nothing.
const ACCESSES_MIN: u64 = 20;
/// The outermost zone is in the span when that begins within this share of the surface.
const OUTER_SHARE: f64 = 0.05;

struct Off {
    words: String,
    faster: bool,
    evidence: Evidence,
}

fn check_access_time_off(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    let off = [access_time(record, surface), top_rate(record, surface)];
    let off: Vec<Off> = off.into_iter().flatten().collect();
    off.first()?;
    let words: Vec<&str> = off.iter().map(|o| o.words.as_str()).collect();
    let remedy = if off.iter().any(|o| o.faster) {
        REMEDY_FASTER
    } else {
        REMEDY_SLOWER
    };
    Some(Diagnosis::with_remedy(
        Severity::Warning,
        format!("{}.", words.join(". ")),
        off.iter().map(|o| o.evidence.clone()),
        remedy,
    ))
}

const REMEDY_FASTER: &str = "Check that the data sheet belongs to this disk, and run diskproof \
                             info. Otherwise an SSD, a cache or a virtual disk answers.";
const REMEDY_SLOWER: &str = "Make sure that nothing else uses the disk and that the data sheet \
                             belongs to it. Then check for quiet seeks (hdparm -M), vibration, \
                             worn sectors (smartctl -a, curve --scan), and a bridge or controller \
                             in the path.";

fn access_time(record: &Record, surface: &SurfaceRecord) -> Option<Off> {
    let sheet = record.plan.questions.data_sheet.unwrap_or_default();
    let rpm = sheet.rpm.filter(|rpm| *rpm > 0);
    let rpm = rpm.or_else(|| reported_rpm(record))?;
    let random = surface.figures.seeks.get(&SeekPattern::Random);
    let random = random.filter(|s| s.n >= ACCESSES_MIN)?;
    let half_turn_ns = 30e9 / f64::from(rpm);
    let measured = random.mean.value;
    let error = random.mean.half_width_95.unwrap_or(0.0);
    let longest = match sheet.seek_ns {
        Some(seek) => SLOWER * (half_turn_ns + seek as f64),
        None => half_turn_ns + longest_seek(rpm),
    };
    // In a part of the surface the arm has less far to go than the sheet's average.
    let whole = reach(record, surface) == Reach::Whole;
    let seek_min = sheet.seek_ns.filter(|_| whole);
    let seek_min = seek_min.map_or(0.0, |seek| SEEK_SHARE_MIN * seek as f64);
    let shortest = TURN_SHARE_MIN * half_turn_ns + seek_min;
    // A disk that only reports its revolutions and answers from a cache is `cache-answered`'s.
    let faster = sheet.rpm.is_some() && measured + error < shortest;
    // What waited for a processor is no slow disk.
    let slower = measured - error > longest && !program::is_starved(surface);
    if !slower && !faster {
        return None;
    }
    let threshold = if faster { shortest } else { longest };
    let path = "/results/0/figures/seeks/random/mean/value";
    Some(Off {
        words: words(random, rpm, half_turn_ns, sheet.seek_ns, faster),
        faster,
        evidence: evidence_at(path, measured, threshold, "ns"),
    })
}

fn words(
    random: &SeekSummary,
    rpm: u32,
    half_turn_ns: f64,
    seek_ns: Option<u64>,
    faster: bool,
) -> String {
    let time = |ns: f64| format_latency(ns.round() as u64);
    let measured = format!(
        "A random access takes {} on average ({} IOPS)",
        time(random.mean.value),
        format_rate(random.iops)
    );
    let computed = match seek_ns {
        Some(seek) => {
            let sum = half_turn_ns + seek as f64;
            format!(
                "{rpm} rpm and the data sheet give {} ({} IOPS): half a turn of {} and a seek of \
                 {}",
                time(sum),
                format_rate(1e9 / sum),
                time(half_turn_ns),
                time(seek as f64)
            )
        }
        None => format!(
            "half a turn at {rpm} rpm takes {}, and no such disk seeks longer than {}",
            time(half_turn_ns),
            time(longest_seek(rpm))
        ),
    };
    format!(
        "{measured}, clearly {} than expected; {computed}",
        if faster { "faster" } else { "slower" }
    )
}

fn longest_seek(rpm: u32) -> f64 {
    match rpm {
        ..=7200 => SEEK_NS_MAX.0,
        _ => SEEK_NS_MAX.1,
    }
}

/// A flat top below the sheet's rate is one fact and told by `flat-top`.
fn top_rate(record: &Record, surface: &SurfaceRecord) -> Option<Off> {
    let promised = record.plan.questions.data_sheet?.bytes_per_second;
    let promised = promised.filter(|rate| *rate > 0.0)?;
    let shape = Shape::of(record.curve(), reach(record, surface))?;
    // Not the highest of all: one sample may be too fast by chance.
    let fastest = largest_by(&shape.levels, |level| level.ln_rate)?;
    let index = shape.points[*fastest.members.first()?].index;
    let top = record.curve()[index].bytes_per_second;
    let target = record.targets.get(surface.data.target);
    let whole = target.map_or(0, |target| target.size_bytes);
    let share = top / promised;
    let outside = surface.data.span_start_bytes as f64 > OUTER_SHARE * whole as f64;
    if RATE.contains(&share) || outside || (share < 1.0 && flat_top::finds(record)) {
        return None;
    }
    let faster = share >= RATE.end;
    let threshold = promised * if faster { RATE.end } else { RATE.start };
    Some(Off {
        words: format!(
            "The fastest place transfers {}, but the data sheet promises {}",
            format_throughput(top),
            format_throughput(promised)
        ),
        faster,
        evidence: point_evidence(index, record, threshold),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::fixture::surveyed::{self, SurveyedDisk, rotating};
    use diskproof_model::health::DiskHealth;
    use diskproof_model::surface::DataSheet;

    pub(super) const EXAMPLES: Examples = Examples::of(
        || {
            let slow = |disk: &mut SurveyedDisk| {
                (disk.rpm, disk.seek_ns, disk.outer) = (5400, 16e6, 70e6);
            };
            record(&rotating(slow), SHEET)
        },
        surveyed::record,
    );

    const SHEET: DataSheet = DataSheet {
        bytes_per_second: Some(92e6),
        ..sheet(Some(7200), Some(11_000_000))
    };

    const fn sheet(rpm: Option<u32>, seek_ns: Option<u64>) -> DataSheet {
        DataSheet {
            rpm,
            seek_ns,
            bytes_per_second: None,
            write_bytes_per_second: None,
            read_iops: None,
            write_iops: None,
        }
    }

    fn record(disk: &SurveyedDisk, sheet: DataSheet) -> Record {
        let mut run = disk.run(7);
        run.0.plan.questions.data_sheet = Some(sheet);
        surveyed::judge(run)
    }

    #[test]
    fn slower_than_the_sheet_in_both() {
        let finding = check_access_time_off(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(finding.evidence.len(), 2);
        states(
            &finding.claim,
            &["slower", "7200 rpm", "15.2 ms (65.9 IOPS)", "69."],
        );
        states(&finding.remedy, &["hdparm -M"]);
    }

    #[test]
    fn impossibly_fast_is_another_disk_or_a_cache() {
        let finding = check_access_time_off(&record(&SurveyedDisk::solid(), SHEET)).unwrap();
        states(&finding.claim, &["faster"]);
        states(&finding.remedy, &["an SSD"]);
        assert_eq!(finding.evidence.len(), 2);
        let rpm_only = record(&SurveyedDisk::solid(), sheet(Some(7200), None));
        let finding = check_access_time_off(&rpm_only).unwrap();
        states(&finding.claim, &["7200 rpm", "4.17 ms"]);
    }

    #[test]
    fn an_honest_disk_its_parts_and_the_unknown_are_no_finding() {
        let honest = SurveyedDisk::rotating;
        for (disk, sheet) in [
            (honest(), SHEET),
            (honest(), sheet(Some(7200), None)),
            (rotating(|disk| disk.span = 0.0..0.1), SHEET),
            (rotating(|disk| disk.span = 0.5..1.0), SHEET),
            (
                rotating(|disk| (disk.rpm, disk.seek_ns) = (15_000, 3.5e6)),
                sheet(Some(15_000), Some(3_400_000)),
            ),
            (SurveyedDisk::solid(), DataSheet::default()),
            // This is what flat-top finds.
            (rotating(|disk| disk.cap = Some(70e6)), SHEET),
        ] {
            let found = check_access_time_off(&record(&disk, sheet));
            assert_eq!(found, None, "{disk:?} {sheet:?}");
        }
        assert_eq!(
            check_access_time_off(&SurveyedDisk::solid().record(1)),
            None
        );
    }

    #[test]
    fn a_reported_speed_alone_shows_only_what_no_disk_does() {
        let report = |disk: SurveyedDisk| {
            let mut run = disk.run(1);
            run.0.health = vec![DiskHealth {
                disk: "sda".to_owned(),
                rotation_rpm: Some(7200),
                ..DiskHealth::default()
            }];
            check_access_time_off(&surveyed::judge(run))
        };
        assert_eq!(
            report(SurveyedDisk::solid()),
            None,
            "cache-answered tells it"
        );
        assert_eq!(report(rotating(|disk| disk.seek_ns = 14e6)), None);
        let slow = report(rotating(|disk| disk.seek_ns = 30e6)).unwrap();
        states(&slow.claim, &["20.0 ms"]);
    }
}
