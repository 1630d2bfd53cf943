//! The hosts or ranks of which `merge --expect` wants a record.

use super::launches::{Launch, RankedRun, launches};
use crate::failure::Failure;
use diskproof_analysis::fleet::{ArrivedRun, Fleet};
use diskproof_model::fleet::Hello;
use std::collections::BTreeSet;
use std::path::Path;

/// The ranks or hosts of which a record is expected.
pub(super) enum Roster {
    /// This many ranks of each launch; with a launcher that has no ranks, this many hosts.
    Count(u32),
    /// Hosts by name.
    Hosts(Vec<String>),
}

impl Roster {
    /// Reads the value of `--expect`: a number, or a file with a list of hosts.
    pub(super) fn read(text: &str) -> Result<Self, Failure> {
        if let Ok(count) = text.parse() {
            return Ok(Self::Count(count));
        }
        let path = Path::new(text);
        let content = crate::saved::read_document(path).map_err(|error| {
            Failure::Usage(format!(
                "--expect {text}: neither a number nor a readable list of hosts: {error}"
            ))
        })?;
        let mut hosts = Vec::new();
        for line in content.lines() {
            for host in hosts_of_line(line)
                .map_err(|why| Failure::Usage(format!("--expect {text}: {why}")))?
            {
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
            }
        }
        if hosts.is_empty() {
            let text = format!("--expect {text}: no host in it; write one name a line");
            return Err(Failure::Usage(text));
        }
        Ok(Self::Hosts(hosts))
    }

    /// The hosts or ranks of which neither a record came nor one of these announcements.
    pub(super) fn absent(&self, fleet: &Fleet, hellos: &[&Hello]) -> Vec<String> {
        let machines = fleet.machines_of_hosts();
        let mut names: BTreeSet<&str> = machines.keys().copied().collect();
        names.extend(hellos.iter().map(|hello| hello.host.as_str()));
        match self {
            Self::Hosts(hosts) => absent_hosts(hosts, names),
            Self::Count(count) => {
                let runs = ranked_runs(fleet.arrived(), hellos);
                if !runs.is_empty() {
                    return absent_ranks(*count, &launches(&runs));
                }
                let mut hosts = 0;
                for name in names {
                    hosts += machines.get(name).copied().unwrap_or(1);
                }
                match (*count as usize).saturating_sub(hosts) {
                    0 => Vec::new(),
                    absent => vec![format!("{absent} of {count} hosts")],
                }
            }
        }
    }
}

/// The runs with a rank: those of records, and those that only announced themselves.
fn ranked_runs(arrived: &[ArrivedRun], hellos: &[&Hello]) -> Vec<RankedRun> {
    let mut runs = Vec::new();
    for run in arrived {
        if let Some(rank) = run.rank {
            runs.push(RankedRun {
                rank,
                size: run.size,
                job: run.job.clone(),
                start_ns: unix_ns(Some(&run.started)),
            });
        }
    }
    for hello in hellos {
        if let Some(rank) = hello.rank
            && !arrived.iter().any(|run| run.run_id == hello.run_id)
        {
            runs.push(RankedRun {
                rank,
                size: hello.size,
                job: hello.job.clone(),
                start_ns: unix_ns(hello.started.as_deref()),
            });
        }
    }
    runs
}

fn unix_ns(started: Option<&str>) -> Option<i128> {
    let time: jiff::Timestamp = started?.parse().ok()?;
    Some(time.as_nanosecond())
}

/// The ranks that each launch lacks. The only launch is to have `count` ranks; of several, each as
/// many as its launcher started, where that is known and less.
fn absent_ranks(count: u32, launches: &[Launch]) -> Vec<String> {
    let mut absent = Vec::new();
    let mut expected_sum = 0;
    for launch in launches {
        let expected = match launch.size {
            Some(size) if launches.len() > 1 => size.min(count),
            _ => count,
        };
        expected_sum += u64::from(expected);
        for rank in (0..expected).filter(|rank| !launch.ranks.contains(rank)) {
            absent.push(match launches.len() {
                1 => format!("rank {rank}"),
                _ => format!("rank {rank} of {}", launch_text(launch, launches)),
            });
        }
    }
    let lacking = u64::from(count).saturating_sub(expected_sum);
    if lacking > 0 {
        absent.push(format!("{lacking} of {count} ranks"));
    }
    absent
}

/// A launch by its job, and by its start where another one has the same job or none.
fn launch_text(launch: &Launch, launches: &[Launch]) -> String {
    let is_only_one = launches
        .iter()
        .filter(|other| other.job == launch.job)
        .count()
        == 1;
    let start = launch
        .start_ns
        .and_then(|ns| jiff::Timestamp::from_nanosecond(ns).ok());
    match (&launch.job, start) {
        (Some(job), _) if is_only_one => format!("job {job}"),
        (Some(job), Some(start)) => format!("job {job} at {start:.0}"),
        (Some(job), None) => format!("job {job}"),
        (None, Some(start)) => format!("the launch at {start:.0}"),
        (None, None) => "a launch".to_owned(),
    }
}

/// The hosts of a list that are not among the names that hosts call themselves. A name answers for
/// one host of the list: `db1` for `db1.rack-a` or for `db1.rack-b`, but not for both.
fn absent_hosts(hosts: &[String], names: BTreeSet<&str>) -> Vec<String> {
    let mut left = names;
    let mut not_exact = Vec::new();
    for host in hosts {
        if !left.remove(host.as_str()) {
            not_exact.push(host);
        }
    }
    let mut absent = Vec::new();
    for host in not_exact {
        match left.iter().find(|name| is_same_host(name, host)).copied() {
            Some(name) => {
                left.remove(name);
            }
            None => absent.push(host.clone()),
        }
    }
    absent
}

/// The names in a line of a list of hosts, as MPI and pdsh take them: `db17:4`, `db17 slots=4`,
/// `db17,db18`. Fails for ranges such as `db[17-20]`.
fn hosts_of_line(line: &str) -> Result<Vec<String>, String> {
    let text = line.split('#').next().unwrap_or_default().trim();
    let list = text.split([' ', '\t']).next().unwrap_or_default();
    if list.contains(['[', ']', '{', '}']) {
        return Err(format!(
            "{list} is a range of hosts; write one name a line, as `scontrol show hostnames` or \
             `nodeset -e` print them"
        ));
    }
    let mut hosts = Vec::new();
    for name in list.split(',') {
        let host = name.split(':').next().unwrap_or_default();
        if !host.is_empty() {
            hosts.push(host.to_owned());
        }
    }
    Ok(hosts)
}

/// True if both are one host: a list may have names with a domain, and a machine its own without.
fn is_same_host(one: &str, other: &str) -> bool {
    let has_bare_name = !one.contains('.') || !other.contains('.');
    one == other || (has_bare_name && without_domain(one) == without_domain(other))
}

fn without_domain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_list_are_in_its_first_word() {
        for (line, hosts) in [
            ("db17:4", vec!["db17"]),
            ("db17 slots=4", vec!["db17"]),
            ("  db17,db18:2 # rack 3", vec!["db17", "db18"]),
            ("# rack 3", vec![]),
        ] {
            assert_eq!(hosts_of_line(line).unwrap(), hosts, "{line}");
        }
        assert!(hosts_of_line("db[17-20]").is_err());
    }

    #[test]
    fn name_answers_for_one_host_of_the_list() {
        let list = ["db1.rack-a", "db1.rack-b", "db2"].map(str::to_owned);
        for (names, absent) in [
            (vec!["db1", "db2"], vec!["db1.rack-b"]),
            (vec!["db1.rack-b", "db1", "db2.rack-a"], vec![]),
            (vec!["db1.rack-b", "db2"], vec!["db1.rack-a"]),
        ] {
            assert_eq!(absent_hosts(&list, names.into_iter().collect()), absent);
        }
    }

    fn launch(second: i64, ranks: impl IntoIterator<Item = u32>, size: Option<u32>) -> Launch {
        Launch {
            job: None,
            start_ns: Some(i128::from(second) * 1_000_000_000),
            ranks: ranks.into_iter().collect(),
            size,
        }
    }

    #[test]
    fn each_launch_has_missing_ranks_of_its_own() {
        let two = [launch(0, 0..200, None), launch(60, 3..200, None)];
        assert_eq!(
            absent_ranks(200, &two),
            [0, 1, 2].map(|rank| format!("rank {rank} of the launch at 1970-01-01T00:01:00Z"))
        );
        assert_eq!(absent_ranks(200, &two[..1]), [""; 0]);
        assert_eq!(absent_ranks(200, &two[1..]), ["rank 0", "rank 1", "rank 2"]);
    }

    #[test]
    fn launch_of_fewer_ranks_is_whole_with_these() {
        let again = [launch(0, 0..4, Some(4)), launch(60, 0..1, Some(2))];
        assert_eq!(
            absent_ranks(4, &again),
            ["rank 1 of the launch at 1970-01-01T00:01:00Z"]
        );
        // Two halves that together are too few.
        let halves = [launch(0, 0..2, Some(2)), launch(60, 0..2, Some(2))];
        assert_eq!(absent_ranks(4, &halves), [""; 0]);
        assert_eq!(absent_ranks(6, &halves), ["2 of 6 ranks"]);
    }

    #[test]
    fn bare_name_is_the_host_of_every_domain() {
        assert!(is_same_host("db17", "db17.example.org"));
        assert!(is_same_host("db17.example.org", "db17.example.org"));
        assert!(!is_same_host("db17.example.org", "db17.example.com"));
        assert!(!is_same_host("db17", "db1.example.org"));
    }
}
