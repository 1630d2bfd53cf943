//! Campaigns in virtual time: the same runner and the same decisions on simulated disks.

use super::*;
use diskproof_analysis::campaign::{LiveComparison, LiveSetup};
use diskproof_engine::{FakeDisk, simulate};
use diskproof_model::campaign::{CampaignDecision, CampaignEnd};
use diskproof_model::progress::{Progress, Watch};

const SECOND: u64 = 1_000_000_000;

struct Unwatched;

impl Watch for Unwatched {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        Control::Continue
    }
}

/// Disks, one for each side, on one virtual clock.
struct SimulatedCells {
    disks: Vec<FakeDisk>,
    now_ns: u64,
    measured: u64,
    /// The cell that ends the campaign.
    last: Option<u64>,
}

impl SimulatedCells {
    fn of(speeds: &[f64]) -> Self {
        let disk = |speed: &f64| {
            let service_ns = (1_000_000.0 / speed) as u64;
            FakeDisk {
                service_ns,
                jitter_ns: service_ns,
                channels: 4,
                size_bytes: 1 << 30,
            }
        };
        Self {
            disks: speeds.iter().map(disk).collect(),
            now_ns: 0,
            measured: 0,
            last: None,
        }
    }
}

impl MeasureCell for SimulatedCells {
    fn measure(&mut self, cell: &CampaignCell) -> Result<CellOutcome, RunError> {
        if self.last == Some(self.measured) {
            return Ok(CellOutcome::Ended(INTERRUPTED.to_owned()));
        }
        self.measured += 1;
        let disk = self.disks[cell.side];
        let measurement = simulate(&cell.workload, disk, self.measured, &mut Unwatched).unwrap();
        let slice = TimeSlice::of(&measurement);
        let start_ns = self.now_ns + slice.start_ns;
        self.now_ns = start_ns + slice.wall_ns;
        Ok(CellOutcome::Measured(TimeSlice { start_ns, ..slice }))
    }
}

fn campaign(sides: usize, seconds: u64) -> LiveComparison {
    let workload = |name: &str, depth| Workload {
        depth,
        warmup_ns: SECOND / 2,
        ..Workload::named(name)
    };
    LiveComparison::new(LiveSetup {
        workloads: vec![workload("d1", 1), workload("d32", 32)],
        sides,
        margin: 0.02,
        time_ns: seconds * SECOND,
        seed: 1,
    })
}

fn decisions(speeds: &[f64], seconds: u64) -> (Vec<CampaignDecision>, u64) {
    let mut cells = SimulatedCells::of(speeds);
    let (ended, answer) = carry_out(&mut campaign(speeds.len(), seconds), &mut cells).unwrap();
    assert_eq!(ended, None);
    (answer.unwrap(), cells.now_ns)
}

#[test]
fn campaign_decides_a_tenth_and_equality_in_virtual_time() {
    for speeds in [[1.0, 1.1], [1.0, 1.0]] {
        let (decisions, ns) = decisions(&speeds, 60);
        assert!(
            decisions
                .iter()
                .all(|one| one.ended == CampaignEnd::Decided),
            "{decisions:?}"
        );
        assert!(ns < 60 * SECOND, "{ns}");
    }
}

#[test]
fn campaign_ends_with_its_time() {
    let (decisions, ns) = decisions(&[1.0, 1.019, 0.982], 10);
    assert!(
        decisions.iter().any(|one| one.ended == CampaignEnd::Time),
        "{decisions:?}"
    );
    assert!(ns <= 10 * SECOND, "{ns}");
}

#[test]
fn campaign_that_ends_early_has_no_answer() {
    let mut cells = SimulatedCells::of(&[1.0, 1.1]);
    cells.last = Some(3);
    let (ended, answer) = carry_out(&mut campaign(2, 60), &mut cells).unwrap();
    assert_eq!((ended.as_deref(), answer), (Some(INTERRUPTED), None));
    assert_eq!(cells.measured, 3);
}
