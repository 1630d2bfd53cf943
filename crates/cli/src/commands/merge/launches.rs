//! The launches of which runs came: `merge --expect N` wants every rank of each of them.

use std::collections::{BTreeMap, BTreeSet};

/// A run that a launcher gave a rank, by its record or its announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RankedRun {
    pub rank: u32,
    /// The number of ranks, where the launcher tells.
    pub size: Option<u32>,
    /// The launcher's job and step, where it tells them.
    pub job: Option<String>,
    /// The start, in nanoseconds since 1970; `None` where it is not known.
    pub start_ns: Option<i128>,
}

/// The runs that a launcher started together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Launch {
    pub job: Option<String>,
    /// The start of its first run.
    pub start_ns: Option<i128>,
    /// The ranks of which something came.
    pub ranks: BTreeSet<u32>,
    /// The number of ranks, where the launcher tells.
    pub size: Option<u32>,
}

impl Launch {
    fn of_runs(runs: &[&RankedRun]) -> Self {
        Self {
            job: runs.first().and_then(|run| run.job.clone()),
            start_ns: runs.iter().filter_map(|run| run.start_ns).min(),
            ranks: runs.iter().map(|run| run.rank).collect(),
            size: runs.iter().filter_map(|run| run.size).max(),
        }
    }
}

/// The launches of these runs: those of each job, and of each time. A launcher gives a rank once,
/// so ranks that come again are of another launch, if they are most of the ranks; fewer are runs
/// that were repeated.
pub(super) fn launches(runs: &[RankedRun]) -> Vec<Launch> {
    let mut jobs: BTreeMap<Option<&str>, Vec<&RankedRun>> = BTreeMap::new();
    for run in runs {
        jobs.entry(run.job.as_deref()).or_default().push(run);
    }
    let mut launches = Vec::new();
    for mut of_job in jobs.into_values() {
        of_job.sort_by_key(|run| (run.start_ns, run.rank));
        for part in with_repeated_runs(by_gaps(&of_job)) {
            launches.push(Launch::of_runs(&part));
        }
    }
    launches.sort_by_key(|launch| launch.start_ns);
    launches
}

/// Splits runs, which are in the order of their starts, at the longest gaps between two starts:
/// into as many parts as a rank has runs at most.
fn by_gaps<'r>(runs: &[&'r RankedRun]) -> Vec<Vec<&'r RankedRun>> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for run in runs {
        *counts.entry(run.rank).or_default() += 1;
    }
    let parts = counts.into_values().max().unwrap_or(1);
    let mut gaps = Vec::new();
    for (index, pair) in runs.windows(2).enumerate() {
        if let (Some(earlier), Some(later)) = (pair[0].start_ns, pair[1].start_ns) {
            gaps.push((later - earlier, index + 1));
        }
    }
    gaps.sort_unstable();
    let mut cuts = BTreeSet::new();
    for (_, index) in gaps.iter().rev().take(parts - 1) {
        cuts.insert(*index);
    }
    let mut split = vec![Vec::new()];
    for (index, run) in runs.iter().enumerate() {
        if cuts.contains(&index) {
            split.push(Vec::new());
        }
        if let Some(part) = split.last_mut() {
            part.push(*run);
        }
    }
    split
}

/// Joins each part with the one before it, unless most of the ranks of the larger one are in both.
fn with_repeated_runs(parts: Vec<Vec<&RankedRun>>) -> Vec<Vec<&RankedRun>> {
    let mut launches: Vec<Vec<&RankedRun>> = Vec::new();
    for part in parts {
        match launches.last_mut() {
            Some(before) if !are_two_launches(before, &part) => before.extend(part),
            _ => launches.push(part),
        }
    }
    launches
}

fn are_two_launches(before: &[&RankedRun], after: &[&RankedRun]) -> bool {
    let ranks_before: BTreeSet<u32> = before.iter().map(|run| run.rank).collect();
    let ranks_after: BTreeSet<u32> = after.iter().map(|run| run.rank).collect();
    let in_both = ranks_before.intersection(&ranks_after).count();
    2 * in_both > ranks_before.len().max(ranks_after.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of these ranks that start within a second after this one.
    fn runs(second: i128, ranks: impl IntoIterator<Item = u32>) -> Vec<RankedRun> {
        let mut runs = Vec::new();
        for rank in ranks {
            runs.push(RankedRun {
                rank,
                size: None,
                job: None,
                start_ns: Some(second * 1_000_000_000 + i128::from(rank) * 1_000_000),
            });
        }
        runs
    }

    fn ranks_of(runs: &[RankedRun]) -> Vec<Vec<u32>> {
        let mut ranks = Vec::new();
        for launch in launches(runs) {
            ranks.push(launch.ranks.into_iter().collect());
        }
        ranks
    }

    #[test]
    fn ranks_that_come_again_are_of_another_launch() {
        let all: Vec<u32> = (0..200).collect();
        // The ranks that the first launch lost must not be filled up by the second one.
        let first: Vec<u32> = (3..200).collect();
        let third: Vec<u32> = (0..150).collect();
        let mut both = runs(0, first.clone());
        both.extend(runs(100, all.clone()));
        both.extend(runs(300, third.clone()));
        both.reverse();
        assert_eq!(ranks_of(&both), [first, all, third]);
    }

    #[test]
    fn run_that_was_repeated_is_no_launch() {
        let mut all = runs(0, 0..8);
        all.extend(runs(500, [5, 6]));
        assert_eq!(ranks_of(&all), [(0..8).collect::<Vec<u32>>()]);
        // Ranks that begin late, as where a launcher starts a few at a time.
        all.extend(runs(1000, 8..16));
        assert_eq!(ranks_of(&all), [(0..16).collect::<Vec<u32>>()]);
    }

    #[test]
    fn jobs_are_launches_whatever_their_time() {
        let mut all = runs(0, 0..4);
        for run in runs(0, 1..4) {
            all.push(RankedRun {
                job: Some("17.2".to_owned()),
                ..run
            });
        }
        let found = launches(&all);
        assert_eq!(found.len(), 2);
        assert!(
            found
                .iter()
                .any(|launch| launch.job.is_some() && launch.ranks.len() == 3)
        );
        assert_eq!(launches(&[]), []);
    }
}
