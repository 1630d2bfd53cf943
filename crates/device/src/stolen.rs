//! The CPU time that the hypervisor gave to other virtual machines, from /proc/stat.

use crate::sysroot::{SysRoot, read_text};

/// Place of `steal` among the numbers of the first line of /proc/stat (proc(5)); the ones after it
/// are parts of the earlier ones.
const STOLEN: usize = 7;
/// Fewer ticks of all CPUs together (a second of one) tell nothing.
const TICKS_MIN: u64 = 100;

/// The CPU time of the machine since it was started, in ticks of all CPUs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineCpuTime {
    all: u64,
    stolen: u64,
}

impl MachineCpuTime {
    /// Until now; `None` where the system does not report it.
    pub fn now() -> Option<Self> {
        Self::of_stat(&read_text(&SysRoot::default().proc.join("stat"))?)
    }

    fn of_stat(text: &str) -> Option<Self> {
        let all_cpus = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Option<Vec<u64>> = all_cpus
            .split_whitespace()
            .take(STOLEN + 1)
            .map(|number| number.parse().ok())
            .collect();
        let ticks = ticks.filter(|ticks| ticks.len() > STOLEN)?;
        Some(Self {
            all: ticks
                .iter()
                .fold(0, |sum: u64, one| sum.saturating_add(*one)),
            stolen: ticks[STOLEN],
        })
    }

    /// The share of the CPU time since `start` that the hypervisor gave to others, from 0 to 1;
    /// `None` of too short a time.
    pub fn stolen_share_since(self, start: Self) -> Option<f64> {
        let all = self.all.saturating_sub(start.all);
        let stolen = self.stolen.saturating_sub(start.stolen);
        (all >= TICKS_MIN).then(|| (stolen as f64 / all as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_share_is_the_one_computed_by_hand() {
        let start = MachineCpuTime::of_stat("cpu  100 0 50 800 10 0 5 35 7 7\ncpu0 1 2").unwrap();
        assert_eq!((start.all, start.stolen), (1000, 35));
        let end = MachineCpuTime::of_stat("cpu  150 0 70 900 10 0 5 65 9 9").unwrap();
        assert_eq!(end.stolen_share_since(start), Some(30.0 / 200.0));
        assert_eq!(start.stolen_share_since(start), None);
        // A clock that goes backwards steals nothing.
        assert_eq!(start.stolen_share_since(end), None);
    }

    #[test]
    fn other_text_tells_nothing() {
        for text in [
            "",
            "cpu",
            "cpu  1 2 3",
            "cpu  1 2 3 4 5 6 7 x",
            "intr 1 2 3 4",
        ] {
            assert_eq!(MachineCpuTime::of_stat(text), None, "{text:?}");
        }
        assert!(MachineCpuTime::now().is_some());
    }
}
