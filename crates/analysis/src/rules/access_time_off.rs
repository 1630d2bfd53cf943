//! `access-time-off`: the access time or the top rate of a disk contradicts its data sheet. A
//! random access takes half a turn and an average seek, so the rule needs the revolutions per
//! minute for the one and the rate of the sheet for the other.

use super::flat_top;
use super::rule::*;
use super::starved::is_survey_starved;
use crate::mechanics::{begins_outside, reach, reported_rpm};
use crate::shape::{Reach, Shape};
use diskproof_model::surface::SeekSummary;

pub(super) const RULE: Rule = Rule {
    code: "access-time-off",
    title: "The disk contradicts its data sheet",
    summary: "The access time or peak rate contradicts the data sheet or the rotation speed.",
    remedy: Remedy::ByCase,
    check: Check::Survey(check),
    says: Meaning::Doubtful,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// An access may take this many times as long as computed: sheets omit the electronics and round in
/// their favour. Chosen, not measured.
const EXPECTED_TIMES_MAX: f64 = 1.15;

/// Smallest share of the average seek that random accesses over the whole surface take on an honest
/// disk: sheets round up a little, not by half.
const SEEK_SHARE_MIN: f64 = 0.5;

/// The longest average seek of disks up to 7200 rpm whose sheet does not state it, with room.
/// Laptop disks have 12 to 14 ms.
const SEEK_NS_MAX: f64 = 20e6;
/// The same of faster disks, which are made for servers and have 3.5 to 5 ms.
const SEEK_NS_MAX_FAST: f64 = 9e6;

/// Accesses of less than this share of half a turn, on average, are not those of a platter. A whole
/// half turn leaves no room for chance.
const TURN_SHARE_MIN: f64 = 0.9;

/// The top rate over the sheet's, where it contradicts nothing. A narrower range accuses disks
/// whose sheet rounds; a wider one misses a link that takes an eighth.
const TOP_RATE_SHARE: std::ops::Range<f64> = 0.88..1.25;

/// The average of fewer accesses depends on where they went.
const ACCESSES_MIN: u64 = 20;

/// On which side of the expected value a figure lies.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Faster,
    Slower,
}

/// A figure that contradicts what is known of the disk.
struct Contradiction {
    claim: String,
    side: Side,
    evidence: Evidence,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    let mut contradictions: Vec<Contradiction> = Vec::new();
    contradictions.extend(access_time(record, surface));
    contradictions.extend(top_rate(record, surface));
    if contradictions.is_empty() {
        return None;
    }
    let claims: Vec<&str> = contradictions
        .iter()
        .map(|contradiction| contradiction.claim.as_str())
        .collect();
    let claim = format!("{}.", claims.join(". "));
    let remedy = if contradictions
        .iter()
        .any(|contradiction| contradiction.side == Side::Faster)
    {
        REMEDY_FASTER
    } else {
        REMEDY_SLOWER
    };
    let observations = contradictions
        .iter()
        .map(|contradiction| contradiction.evidence.clone());
    Some(Diagnosis::new(Severity::Warning, claim, observations).with_remedy(remedy))
}

const REMEDY_FASTER: &str = "Check that the data sheet belongs to this disk, and run diskproof \
                             info. Otherwise an SSD, a cache or a virtual disk answers.";

const REMEDY_SLOWER: &str = "Make sure that nothing else uses the disk and that the data sheet \
                             belongs to it. Then check for quiet seeks (hdparm -M), vibration, \
                             worn sectors (smartctl -a, curve --scan), and a bridge or controller \
                             in the path.";

/// The figures of a disk from which the time of a random access follows.
struct ExpectedAccess {
    rpm: u32,
    /// The average seek by the data sheet.
    seek_ns: Option<u64>,
}

impl ExpectedAccess {
    fn half_turn_ns(&self) -> f64 {
        30e9 / f64::from(self.rpm)
    }

    fn longest_seek_ns(&self) -> f64 {
        match self.rpm {
            ..=7200 => SEEK_NS_MAX,
            _ => SEEK_NS_MAX_FAST,
        }
    }

    /// The longest average that contradicts nothing.
    fn longest_ns(&self) -> f64 {
        match self.seek_ns {
            Some(seek_ns) => EXPECTED_TIMES_MAX * (self.half_turn_ns() + seek_ns as f64),
            None => self.half_turn_ns() + self.longest_seek_ns(),
        }
    }

    /// The shortest one. In a part of the surface the arm has less far to go than the sheet's
    /// average.
    fn shortest_ns(&self, reach: Reach) -> f64 {
        let turn_ns = TURN_SHARE_MIN * self.half_turn_ns();
        match self.seek_ns {
            Some(seek_ns) if reach == Reach::Whole => turn_ns + SEEK_SHARE_MIN * seek_ns as f64,
            _ => turn_ns,
        }
    }

    fn describe(&self) -> String {
        let rpm = self.rpm;
        let half_turn = format_ns(self.half_turn_ns());
        match self.seek_ns {
            Some(seek_ns) => {
                let sum_ns = self.half_turn_ns() + seek_ns as f64;
                format!(
                    "{rpm} rpm and the data sheet give {} ({} IOPS): half a turn of {half_turn} \
                     and a seek of {}",
                    format_ns(sum_ns),
                    format_rate(1e9 / sum_ns),
                    format_ns(seek_ns as f64)
                )
            }
            None => format!(
                "half a turn at {rpm} rpm takes {half_turn}, and no such disk seeks longer than {}",
                format_ns(self.longest_seek_ns())
            ),
        }
    }
}

fn format_ns(ns: f64) -> String {
    format_latency(ns.round() as u64)
}

fn access_time(record: &Record, surface: &SurfaceRecord) -> Option<Contradiction> {
    let sheet = record.plan.questions.data_sheet.unwrap_or_default();
    let expected = ExpectedAccess {
        rpm: match sheet.rpm {
            Some(rpm) if rpm > 0 => rpm,
            _ => reported_rpm(record)?,
        },
        seek_ns: sheet.seek_ns,
    };
    let random = surface.figures.seeks.get(&SeekPattern::Random)?;
    if random.n < ACCESSES_MIN {
        return None;
    }
    let measured_ns = random.mean.value;
    let error_ns = random.mean.half_width_95.unwrap_or(0.0);
    let shortest_ns = expected.shortest_ns(reach(record, surface));
    let longest_ns = expected.longest_ns();
    let (side, threshold_ns) = if sheet.rpm.is_some() && measured_ns + error_ns < shortest_ns {
        // Without a sheet, `cache-answered` reports accesses that are faster than the revolutions.
        (Side::Faster, shortest_ns)
    } else if measured_ns - error_ns > longest_ns && !is_survey_starved(surface) {
        // What waited for a processor is no slow disk.
        (Side::Slower, longest_ns)
    } else {
        return None;
    };
    let path = first_result_path("figures/seeks/random/mean/value");
    Some(Contradiction {
        claim: access_claim(random, side, &expected),
        side,
        evidence: evidence_at(path, measured_ns, threshold_ns, "ns"),
    })
}

fn access_claim(random: &SeekSummary, side: Side, expected: &ExpectedAccess) -> String {
    let side = match side {
        Side::Faster => "faster",
        Side::Slower => "slower",
    };
    format!(
        "A random access takes {} on average ({} IOPS), clearly {side} than expected; {}",
        format_ns(random.mean.value),
        format_rate(random.iops),
        expected.describe()
    )
}

fn top_rate(record: &Record, surface: &SurfaceRecord) -> Option<Contradiction> {
    let promised = record.plan.questions.data_sheet?.bytes_per_second?;
    if promised <= 0.0 || !begins_outside(record, surface) {
        return None;
    }
    let shape = Shape::from_curve(record.curve(), reach(record, surface))?;
    // Not the highest of all: one sample may be too fast by chance.
    let fastest = largest_by(&shape.levels, |level| level.ln_rate)?;
    let index = shape.points[*fastest.members.first()?].index;
    let top = record.curve()[index].bytes_per_second;
    let share = top / promised;
    // `flat-top` reports a flat top below the sheet's rate, which is the same fact.
    if TOP_RATE_SHARE.contains(&share) || (share < 1.0 && flat_top::is_flat(record)) {
        return None;
    }
    let (side, limit) = if share >= TOP_RATE_SHARE.end {
        (Side::Faster, TOP_RATE_SHARE.end)
    } else {
        (Side::Slower, TOP_RATE_SHARE.start)
    };
    Some(Contradiction {
        claim: format!(
            "The fastest place transfers {}, but the data sheet promises {}",
            format_throughput(top),
            format_throughput(promised)
        ),
        side,
        evidence: point_evidence(index, record, promised * limit),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::fixture::surveyed::{self, SurveyedDisk, rotating};
    use diskproof_model::health::DiskHealth;
    use diskproof_model::surface::DataSheet;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || {
            let disk = rotating(|disk| (disk.rpm, disk.seek_ns, disk.outer) = (5400, 16e6, 70e6));
            record(&disk, SHEET)
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
            size_bytes: None,
        }
    }

    fn record(disk: &SurveyedDisk, sheet: DataSheet) -> Record {
        let mut run = disk.run(7);
        run.facts.plan.questions.data_sheet = Some(sheet);
        surveyed::judge(run)
    }

    #[test]
    fn slower_than_the_sheet_in_both() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(finding.evidence.len(), 2);
        states(
            &finding.claim,
            &["slower", "7200 rpm", "15.2 ms (65.9 IOPS)", "69."],
        );
        states(&finding.remedy, &["hdparm -M"]);
    }

    #[test]
    fn impossibly_fast_is_another_disk_or_a_cache() {
        let finding = check(&record(&SurveyedDisk::solid(), SHEET)).unwrap();
        states(&finding.claim, &["faster"]);
        states(&finding.remedy, &["an SSD"]);
        assert_eq!(finding.evidence.len(), 2);
        let rpm_only = record(&SurveyedDisk::solid(), sheet(Some(7200), None));
        let finding = check(&rpm_only).unwrap();
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
            let diagnosis = check(&record(&disk, sheet));
            assert_eq!(diagnosis, None, "{disk:?} {sheet:?}");
        }
        assert_eq!(check(&SurveyedDisk::solid().record(1)), None);
    }

    /// The diagnosis of a disk that reports 7200 rpm.
    fn reported(disk: SurveyedDisk) -> Option<Diagnosis> {
        let mut run = disk.run(1);
        run.facts.health = vec![DiskHealth {
            disk: "sda".to_owned(),
            rotation_rpm: Some(7200),
            ..DiskHealth::default()
        }];
        check(&surveyed::judge(run))
    }

    #[test]
    fn a_reported_speed_alone_shows_only_what_no_disk_does() {
        assert_eq!(
            reported(SurveyedDisk::solid()),
            None,
            "cache-answered tells it"
        );
        assert_eq!(reported(rotating(|disk| disk.seek_ns = 14e6)), None);
        let slow = reported(rotating(|disk| disk.seek_ns = 30e6)).unwrap();
        states(&slow.claim, &["20.0 ms"]);
    }
}
