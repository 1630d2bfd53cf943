//! Divides runs into the launches that started them: a folder may have the records of several
//! nights. A sum is of one launch, and `merge --expect` wants every rank or host of each.

use std::collections::{BTreeMap, BTreeSet};

/// A run that a launcher started.
pub trait Launched {
    /// What a launcher starts once, such as a rank.
    type Place: Ord;

    /// The place of the run.
    fn place(&self) -> &Self::Place;

    /// The start, in nanoseconds since 1970; `None` where it is not known.
    fn start_ns(&self) -> Option<i128>;

    /// The end, in nanoseconds since 1970; `None` where it is not known.
    fn end_ns(&self) -> Option<i128>;

    /// How the runs of a launch begin.
    fn begins(&self) -> Begins;
}

/// How the runs of a launch begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// All at once, as ranks do, and as runs in common slots do.
    Together,
    /// As it may be: a script may start a host after another one has ended.
    Anyhow,
}

/// Runs that do not all begin together are divided only at gaps that are so many times as long as
/// those within a launch. Chosen, not measured.
const CLEAR_GAP: i128 = 2;

/// The launches of these runs, the oldest first; the runs of each are in the order of their starts.
/// A launcher starts a place once, so places that come again are of another launch, if they are
/// most of the places; fewer are runs that were repeated. A launch begins after the one before it
/// has ended: what measures at the same time is one launch, and machines may share a name.
pub fn launches<'r, R: Launched>(runs: impl IntoIterator<Item = &'r R>) -> Vec<Vec<&'r R>> {
    let mut ordered: Vec<&R> = runs.into_iter().collect();
    ordered.sort_by_key(|run| (run.start_ns(), run.place()));
    let mut launches: Vec<Vec<&R>> = Vec::new();
    for part in split_at_gaps(&ordered) {
        match launches.last_mut() {
            Some(before) if !are_two_launches(before, &part) => before.extend(part),
            _ => launches.push(part),
        }
    }
    launches
}

/// The time between the starts of two runs that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Gap {
    length_ns: i128,
    /// The index of the later run.
    next_run: usize,
}

/// Splits runs, which are in the order of their starts, at the longest gaps between two starts:
/// into as many parts as a place was started at most.
fn split_at_gaps<'r, R: Launched>(runs: &[&'r R]) -> Vec<Vec<&'r R>> {
    let mut gaps = Vec::new();
    for (index, pair) in runs.windows(2).enumerate() {
        if let (Some(earlier), Some(later)) = (pair[0].start_ns(), pair[1].start_ns()) {
            gaps.push(Gap {
                length_ns: later - earlier,
                next_run: index + 1,
            });
        }
    }
    gaps.sort_unstable();
    let cuts_max = launches_max(runs).saturating_sub(1);
    let begin_together = runs.iter().all(|run| run.begins() == Begins::Together);
    let cut_gaps = if begin_together {
        cuts_max.min(gaps.len())
    } else {
        clear_gaps(&gaps, cuts_max)
    };
    let mut cuts = BTreeSet::new();
    for gap in gaps.iter().rev().take(cut_gaps) {
        cuts.insert(gap.next_run);
    }
    let mut parts: Vec<Vec<&R>> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        match parts.last_mut() {
            Some(part) if !cuts.contains(&index) => part.push(*run),
            _ => parts.push(vec![*run]),
        }
    }
    parts
}

/// The most launches that these runs, in the order of their starts, may be of: how often a place
/// was started after its run before had ended.
fn launches_max<R: Launched>(runs: &[&R]) -> usize {
    let mut places: BTreeMap<&R::Place, PlaceRuns> = BTreeMap::new();
    for run in runs {
        let place = places.entry(run.place()).or_default();
        match (place.last_end_ns, run.start_ns()) {
            // Another machine of that name, or of that rank.
            (Some(end_ns), Some(start_ns)) if start_ns < end_ns => {}
            _ => place.count += 1,
        }
        place.last_end_ns = place.last_end_ns.max(run.end_ns());
    }
    places
        .into_values()
        .map(|place| place.count)
        .max()
        .unwrap_or(0)
}

/// The runs of one place.
#[derive(Default)]
struct PlaceRuns {
    /// Those that began after the one before them had ended.
    count: usize,
    /// The latest end that is known.
    last_end_ns: Option<i128>,
}

/// The number of the longest gaps, `most` or fewer, that are clearly longer than all others. The
/// gaps are in ascending order.
fn clear_gaps(gaps: &[Gap], most: usize) -> usize {
    for cut in (1..=most.min(gaps.len())).rev() {
        let shortest_cut = gaps.len() - cut;
        let is_clear = match shortest_cut.checked_sub(1) {
            Some(longest_within) => {
                gaps[shortest_cut].length_ns >= CLEAR_GAP * gaps[longest_within].length_ns
            }
            None => true,
        };
        if is_clear {
            return cut;
        }
    }
    0
}

/// Returns `true` if most of the places of the larger one are in both, and the later one began
/// after all runs of the earlier one had ended.
fn are_two_launches<R: Launched>(before: &[&R], after: &[&R]) -> bool {
    let places_before: BTreeSet<&R::Place> = before.iter().map(|run| run.place()).collect();
    let places_after: BTreeSet<&R::Place> = after.iter().map(|run| run.place()).collect();
    let in_both = places_before.intersection(&places_after).count();
    let have_places_in_common = 2 * in_both > places_before.len().max(places_after.len());
    have_places_in_common && all_ended_before(before, after)
}

fn all_ended_before<R: Launched>(before: &[&R], after: &[&R]) -> bool {
    let last_end_ns = before.iter().filter_map(|run| run.end_ns()).max();
    let first_start_ns = after.iter().filter_map(|run| run.start_ns()).min();
    match (last_end_ns, first_start_ns) {
        (Some(end_ns), Some(start_ns)) => end_ns <= start_ns,
        (None, _) | (_, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The run of a rank, in seconds.
    struct RankRun {
        rank: u32,
        start_s: i128,
        end_s: Option<i128>,
    }

    impl Launched for RankRun {
        type Place = u32;

        fn place(&self) -> &u32 {
            &self.rank
        }

        fn start_ns(&self) -> Option<i128> {
            Some(self.start_s * 1_000_000_000)
        }

        fn end_ns(&self) -> Option<i128> {
            Some(self.end_s? * 1_000_000_000)
        }

        fn begins(&self) -> Begins {
            Begins::Together
        }
    }

    /// The ranks that start at this second, each for a minute.
    fn night(start_s: i128, ranks: impl IntoIterator<Item = u32>) -> Vec<RankRun> {
        let mut runs = Vec::new();
        for rank in ranks {
            runs.push(RankRun {
                rank,
                start_s: start_s + i128::from(rank) % 3,
                end_s: Some(start_s + 60),
            });
        }
        runs
    }

    fn sizes(nights: &[(i128, &[u32])]) -> Vec<usize> {
        let mut runs = Vec::new();
        for (start_s, ranks) in nights {
            runs.extend(night(*start_s, ranks.iter().copied()));
        }
        launches(&runs).iter().map(Vec::len).collect()
    }

    #[test]
    fn most_places_of_a_launch_come_again_in_the_next_one() {
        let all: &[u32] = &[0, 1, 2, 3];
        assert_eq!(sizes(&[(0, all), (3600, all)]), [4, 4]);
        assert_eq!(sizes(&[(0, all), (3600, &[0, 1, 3])]), [4, 3]);
        // Half of them are runs that were repeated.
        assert_eq!(sizes(&[(0, all), (3600, &[0, 1])]), [6]);
        assert_eq!(sizes(&[(0, &[0, 1]), (3600, &[1])]), [3]);
        assert_eq!(sizes(&[]), [0; 0]);
    }

    /// The longest time without a start is no border of launches.
    #[test]
    fn run_that_was_repeated_long_after_two_launches_joins_no_launches() {
        let all: &[u32] = &[0, 1, 2, 3];
        assert_eq!(sizes(&[(0, all), (3600, all), (86_400, &[2])]), [4, 5]);
        assert_eq!(sizes(&[(0, all), (80_000, &[2]), (86_400, all)]), [5, 4]);
    }

    /// Pods of one name measure at the same time.
    #[test]
    fn runs_of_one_name_at_the_same_time_are_of_one_launch() {
        let pods: &[u32] = &[0, 0, 1, 1, 2, 2];
        assert_eq!(sizes(&[(0, pods)]), [6]);
        assert_eq!(sizes(&[(0, pods), (3600, pods)]), [6, 6]);
        // The later ones begin long after the first, and one of them is repeated.
        let mut late = night(0, [0, 1, 2]);
        for run in &mut late {
            run.end_s = Some(960);
        }
        late.extend(night(900, [0, 1, 2]));
        late.extend(night(1010, [0]));
        assert_eq!(launches(&late).len(), 1);
        for run in &mut late {
            run.end_s = None;
        }
        assert_eq!(launches(&late).len(), 2);
    }
}
