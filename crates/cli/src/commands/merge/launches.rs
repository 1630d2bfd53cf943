//! What records and announcements tell of launches: `merge --expect` wants every rank or host of
//! each.

use diskproof_analysis::fleet::{self, Begins, Launched};
use std::collections::{BTreeMap, BTreeSet};

/// What a launcher starts once: a rank; without ranks, the runs of a host on the same targets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Rank(u32),
    Host {
        name: String,
        targets: Vec<String>,
    },
    /// The run with this id: its host's name is that of several machines.
    Run(String),
}

/// A run that a launcher started, by its record or its announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaunchedRun {
    pub place: Place,
    pub host: String,
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
    /// The names of the hosts of which something came.
    pub hosts: BTreeSet<String>,
    /// The number of ranks, where the launcher tells.
    pub size: Option<u32>,
}

impl Launch {
    fn of_runs(runs: &[&LaunchedRun]) -> Self {
        let mut launch = Self {
            job: common_job(runs),
            start_ns: runs.iter().filter_map(|run| run.start_ns).min(),
            size: runs.iter().filter_map(|run| run.size).max(),
            ..Self::default()
        };
        for run in runs {
            launch.hosts.insert(run.host.clone());
            if let Place::Rank(rank) = run.place {
                launch.ranks.insert(rank);
            }
        }
        launch
    }
}

/// The job that all these runs are of.
fn common_job(runs: &[&LaunchedRun]) -> Option<String> {
    let first = runs.first()?;
    let is_common = runs.iter().all(|run| run.job == first.job);
    if is_common { first.job.clone() } else { None }
}

impl Launched for LaunchedRun {
    type Place = Place;

    fn place(&self) -> &Place {
        &self.place
    }

    fn start_ns(&self) -> Option<i128> {
        self.start_ns
    }

    /// A run that only announced itself has no end that is known.
    fn end_ns(&self) -> Option<i128> {
        None
    }

    fn begins(&self) -> Begins {
        match self.place {
            Place::Rank(_) => Begins::Together,
            Place::Host { .. } | Place::Run(_) => Begins::Anyhow,
        }
    }
}

/// The launches of these runs: those of each job, and of each time.
pub(super) fn launches(runs: &[LaunchedRun]) -> Vec<Launch> {
    let mut jobs: BTreeMap<Option<&str>, Vec<&LaunchedRun>> = BTreeMap::new();
    for run in runs {
        // A batch script is a job of its own, which says nothing of the other hosts.
        let job = match run.place {
            Place::Rank(_) => run.job.as_deref(),
            Place::Host { .. } | Place::Run(_) => None,
        };
        jobs.entry(job).or_default().push(run);
    }
    let mut launches = Vec::new();
    for runs_of_job in jobs.into_values() {
        for launched in fleet::launches(runs_of_job) {
            launches.push(Launch::of_runs(&launched));
        }
    }
    launches.sort_by_key(|launch| launch.start_ns);
    launches
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of these ranks that start within a second after this one.
    fn runs(second: i128, ranks: impl IntoIterator<Item = u32>) -> Vec<LaunchedRun> {
        let mut runs = Vec::new();
        for rank in ranks {
            runs.push(LaunchedRun {
                place: Place::Rank(rank),
                host: format!("db{rank}"),
                size: None,
                job: None,
                start_ns: Some(second * 1_000_000_000 + i128::from(rank) * 1_000_000),
            });
        }
        runs
    }

    fn ranks_of(runs: &[LaunchedRun]) -> Vec<Vec<u32>> {
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

    /// A run of a host without a rank.
    fn host_run(second: i128, host: &str, target: &str) -> LaunchedRun {
        LaunchedRun {
            place: Place::Host {
                name: host.to_owned(),
                targets: vec![target.to_owned()],
            },
            host: host.to_owned(),
            size: None,
            job: None,
            start_ns: Some(second * 1_000_000_000),
        }
    }

    #[test]
    fn hosts_without_ranks_come_again_as_ranks_do() {
        let mut all = Vec::new();
        for (night, hosts) in [(0, vec!["a", "b", "c"]), (1000, vec!["a", "c"])] {
            // The second disk of each host is no other launch.
            for (second, target) in [(0, "/one"), (30, "/two")] {
                for host in &hosts {
                    all.push(host_run(night + second, host, target));
                }
            }
        }
        let mut hosts: Vec<Vec<String>> = Vec::new();
        for launch in launches(&all) {
            hosts.push(launch.hosts.into_iter().collect());
        }
        assert_eq!(hosts, [vec!["a", "b", "c"], vec!["a", "c"]]);
    }

    /// One ssh after the other, a minute each, twice; and one batch job for each host.
    #[test]
    fn hosts_that_follow_each_other_are_of_one_launch() {
        let mut all = Vec::new();
        for second in [0, 61, 122, 188, 249, 310, 371, 432] {
            let host = ["a", "b", "c", "d"][all.len() % 4];
            all.push(LaunchedRun {
                job: Some(format!("{}.", 100 + all.len())),
                ..host_run(second, host, "/data")
            });
        }
        let found = launches(&all);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].hosts.len(), &found[0].job), (4, &None));
        // A day later again, where one is started twice and another one never comes.
        for (second, host) in [(86_400, "a"), (86_461, "b"), (86_522, "c"), (86_590, "c")] {
            all.push(host_run(second, host, "/data"));
        }
        let found = launches(&all);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].hosts.len(), 3);
    }

    #[test]
    fn jobs_are_launches_whatever_their_time() {
        let mut all = runs(0, 0..4);
        for run in runs(0, 1..4) {
            all.push(LaunchedRun {
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
