//! Names the hosts or ranks that `merge --expect` wants a record of and that have none.

use super::launches::{Launch, LaunchedRun, Place, launches};
use crate::failure::Failure;
use diskproof_analysis::fleet::{ArrivedRun, Fleet, Surplus};
use diskproof_model::fleet::Hello;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The ranks or hosts of which a record is expected.
pub(super) enum Roster {
    /// This many ranks of each launch; with a launcher that has no ranks, this many hosts.
    Count(u32),
    /// Hosts by name.
    Hosts(Vec<String>),
}

/// Hosts or ranks of which nothing came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Absent {
    /// A host or a rank, or how many of them where only that is known.
    pub name: String,
    /// The number of them; `None` of one with a name.
    pub count: Option<u64>,
}

impl Absent {
    fn named(name: String) -> Self {
        Self { name, count: None }
    }
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
                if !hosts
                    .iter()
                    .any(|known: &String| known.eq_ignore_ascii_case(&host))
                {
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

    /// The hosts or ranks of which neither a record came nor one of these announcements, of each
    /// launch.
    pub(super) fn absent(
        &self,
        fleet: &Fleet,
        hellos: &[&Hello],
        later: LaterLaunches,
    ) -> Vec<Absent> {
        let machines = fleet.machines_of_hosts();
        let runs = launched_runs(fleet.arrived(), hellos, &machines);
        let ranked = ranked_runs(&runs);
        match self {
            Self::Hosts(hosts) => absent_hosts_of_launches(hosts, &launches(&runs), later)
                .into_iter()
                .map(Absent::named)
                .collect(),
            Self::Count(count) if ranked.is_empty() => {
                absent_host_counts(*count as usize, &launches(&runs), &machines, later)
            }
            Self::Count(count) => absent_ranks(*count, &launches(&ranked)),
        }
    }

    /// The hosts or ranks that came and are not expected: an old record in the folder, or a machine
    /// that came under two names, makes the answer one about other disks.
    pub(super) fn surplus(&self, fleet: &Fleet) -> Surplus {
        let machines = fleet.machines_of_hosts();
        let runs = launched_runs(fleet.arrived(), &[], &machines);
        let ranked = ranked_runs(&runs);
        match self {
            Self::Hosts(hosts) => Surplus::named(unlisted_hosts(hosts, &runs)),
            Self::Count(count) if ranked.is_empty() => {
                let beyond = surplus_hosts(u64::from(*count), &launches(&runs), &machines);
                Surplus::unnamed(beyond)
            }
            Self::Count(count) => Surplus::named(surplus_ranks(*count, &launches(&ranked))),
        }
    }
}

/// The runs that a launcher gave a rank.
fn ranked_runs(runs: &[LaunchedRun]) -> Vec<LaunchedRun> {
    let mut ranked = Vec::new();
    for run in runs {
        if let Place::Rank(_) = run.place {
            ranked.push(run.clone());
        }
    }
    ranked
}

/// The hosts that came and are on no line of the list, by name.
fn unlisted_hosts(hosts: &[String], runs: &[LaunchedRun]) -> Vec<String> {
    let mut unlisted = BTreeSet::new();
    for run in runs {
        if !hosts.iter().any(|host| is_same_host(host, &run.host)) {
            unlisted.insert(run.host.clone());
        }
    }
    unlisted.into_iter().collect()
}

/// By how many hosts the largest launch without ranks, with the others that are parts of it, has
/// more than `count`.
fn surplus_hosts(count: u64, launches: &[Launch], machines: &BTreeMap<&str, usize>) -> u64 {
    let mut surplus = 0;
    for launch in launches {
        let mut hosts = 0;
        for host in present_hosts(launch, launches, LaterLaunches::AreApart) {
            hosts += machines.get(host).copied().unwrap_or(1) as u64;
        }
        surplus = surplus.max(hosts.saturating_sub(count));
    }
    surplus
}

/// The ranks of each launch that are not among the first `count`.
fn surplus_ranks(count: u32, launches: &[Launch]) -> Vec<String> {
    let mut surplus = Vec::new();
    for launch in launches {
        for rank in &launch.ranks {
            if *rank >= count {
                surplus.push(named_of_launch(format!("rank {rank}"), launch, launches));
            }
        }
    }
    surplus
}

/// What later launches mean for a host that a launch lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaterLaunches {
    /// Its run in one of them makes up for the lost one.
    MakeUp,
    /// Each launch is to have each host.
    AreApart,
}

/// The runs of records, and those that only announced themselves.
fn launched_runs(
    arrived: &[ArrivedRun],
    hellos: &[&Hello],
    machines: &BTreeMap<&str, usize>,
) -> Vec<LaunchedRun> {
    let mut runs = Vec::new();
    for run in arrived {
        runs.push(LaunchedRun {
            place: match run.rank {
                Some(rank) => Place::Rank(rank),
                None => place_of_host(&run.host, &run.targets, &run.run_id, machines),
            },
            host: run.host.clone(),
            size: run.size,
            job: run.job.clone(),
            start_ns: unix_ns(Some(&run.started)),
        });
    }
    let arrived_ids: BTreeSet<&str> = arrived.iter().map(|run| run.run_id.as_str()).collect();
    for hello in hellos {
        if !arrived_ids.contains(hello.run_id.as_str()) {
            runs.push(LaunchedRun {
                place: match hello.rank {
                    Some(rank) => Place::Rank(rank),
                    None => place_of_host(&hello.host, &hello.targets, &hello.run_id, machines),
                },
                host: hello.host.clone(),
                size: hello.size,
                job: hello.job.clone(),
                start_ns: unix_ns(hello.started.as_deref()),
            });
        }
    }
    runs
}

/// The place of a run without a rank on these targets.
fn place_of_host(
    host: &str,
    targets: &[String],
    run_id: &str,
    machines: &BTreeMap<&str, usize>,
) -> Place {
    if machines.get(host).is_some_and(|count| *count > 1) {
        return Place::Run(run_id.to_owned());
    }
    Place::Host {
        name: host.to_owned(),
        targets: targets.to_vec(),
    }
}

fn unix_ns(started: Option<&str>) -> Option<i128> {
    let time: jiff::Timestamp = started?.parse().ok()?;
    Some(time.as_nanosecond())
}

/// The ranks that each launch lacks. The only launch is to have `count` ranks; of several, each as
/// many as its launcher started, where that is known and less.
fn absent_ranks(count: u32, launches: &[Launch]) -> Vec<Absent> {
    let mut absent = Vec::new();
    let mut expected_sum = 0;
    for launch in launches {
        let expected = match launch.size {
            Some(size) if launches.len() > 1 => size.min(count),
            _ => count,
        };
        expected_sum += u64::from(expected);
        for rank in absent_ranks_of(launch, expected) {
            absent.push(Absent::named(named_of_launch(rank, launch, launches)));
        }
    }
    let lacking = u64::from(count).saturating_sub(expected_sum);
    if lacking > 0 {
        absent.push(Absent {
            name: format!("{lacking} of {count} ranks"),
            count: Some(lacking),
        });
    }
    absent
}

/// The ranks below `expected` of which nothing came.
fn absent_ranks_of(launch: &Launch, expected: u32) -> Vec<String> {
    let mut absent = Vec::new();
    for rank in 0..expected {
        if !launch.ranks.contains(&rank) {
            absent.push(format!("rank {rank}"));
        }
    }
    absent
}

/// By how many hosts each launch without ranks has fewer than `count`. Machines that share a name
/// are hosts of their own.
fn absent_host_counts(
    count: usize,
    launches: &[Launch],
    machines: &BTreeMap<&str, usize>,
    later: LaterLaunches,
) -> Vec<Absent> {
    let mut absent = Vec::new();
    for launch in launches {
        let mut hosts = 0;
        for host in present_hosts(launch, launches, later) {
            hosts += machines.get(host).copied().unwrap_or(1);
        }
        let lacking = count.saturating_sub(hosts);
        if lacking > 0 {
            let text = format!("{lacking} of {count} hosts");
            absent.push(Absent {
                name: named_of_launch(text, launch, launches),
                count: Some(lacking as u64),
            });
        }
    }
    if launches.is_empty() && count > 0 {
        absent.push(Absent {
            name: format!("{count} of {count} hosts"),
            count: Some(count as u64),
        });
    }
    absent
}

/// The hosts that a launch had, or that were made up for later. Launches without a common host are
/// parts of one: the hosts of the other one are there, too.
fn present_hosts<'l>(
    launch: &'l Launch,
    launches: &'l [Launch],
    later: LaterLaunches,
) -> BTreeSet<&'l str> {
    let mut there: BTreeSet<&str> = launch.hosts.iter().map(String::as_str).collect();
    for other in launches {
        let makes_up = match later {
            LaterLaunches::MakeUp => other.start_ns > launch.start_ns,
            LaterLaunches::AreApart => false,
        };
        if makes_up || other.hosts.is_disjoint(&launch.hosts) {
            there.extend(other.hosts.iter().map(String::as_str));
        }
    }
    there
}

/// The hosts of a list that each launch lacks. One that came in no launch is named once. A launch
/// of fewer ranks than the list has hosts, or of which all ranks came, is whole with these.
fn absent_hosts_of_launches(
    hosts: &[String],
    launches: &[Launch],
    later: LaterLaunches,
) -> Vec<String> {
    let all_names = launches.iter().flat_map(|launch| &launch.hosts);
    let in_none = absent_hosts(hosts, all_names.map(String::as_str).collect());
    let mut absent = in_none.clone();
    for launch in launches {
        let lacking_hosts = absent_hosts(hosts, present_hosts(launch, launches, later));
        let lacking = match launch.size {
            Some(size) if launches.len() > 1 => {
                let lacking_ranks = absent_ranks_of(launch, size);
                let is_smaller = (size as usize) < hosts.len();
                if is_smaller || lacking_ranks.is_empty() {
                    lacking_ranks
                } else {
                    lacking_hosts
                }
            }
            _ => lacking_hosts,
        };
        for name in lacking {
            if !in_none.contains(&name) {
                absent.push(named_of_launch(name, launch, launches));
            }
        }
    }
    absent
}

/// The name of what a launch lacks, with the launch where there are several.
fn named_of_launch(name: String, launch: &Launch, launches: &[Launch]) -> String {
    match launches.len() {
        1 => name,
        _ => format!("{name} of {}", launch_text(launch, launches)),
    }
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
/// Names of hosts have no case (RFC 4343).
fn is_same_host(one: &str, other: &str) -> bool {
    let has_bare_name = !one.contains('.') || !other.contains('.');
    let is_same_label = without_domain(one).eq_ignore_ascii_case(without_domain(other));
    one.eq_ignore_ascii_case(other) || (has_bare_name && is_same_label)
}

fn without_domain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::LaterLaunches::MakeUp;
    use super::*;

    fn names(absent: Vec<Absent>) -> Vec<String> {
        absent.into_iter().map(|absent| absent.name).collect()
    }

    /// A clone that was counted twice, and the record of an older night.
    #[test]
    fn hosts_and_ranks_beyond_those_expected_are_counted() {
        let three = [launch_of_hosts(0, &["db1", "db2", "db3"], None)];
        assert_eq!(surplus_hosts(2, &three, &BTreeMap::new()), 1);
        assert_eq!(surplus_hosts(3, &three, &BTreeMap::from([("db1", 2)])), 1);
        assert_eq!(surplus_hosts(3, &three, &BTreeMap::new()), 0);
        assert_eq!(
            surplus_ranks(3, &[launch(0, 0..5, None)]),
            ["rank 3", "rank 4"]
        );
        assert!(surplus_ranks(5, &[launch(0, 0..5, None)]).is_empty());
    }

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
            hosts: BTreeSet::new(),
            size,
        }
    }

    /// A launch of these hosts, without ranks.
    fn launch_of_hosts(second: i64, hosts: &[&str], size: Option<u32>) -> Launch {
        Launch {
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            ..launch(second, 0..hosts.len() as u32, size)
        }
    }

    #[test]
    fn each_launch_has_missing_hosts_of_its_own() {
        let list = ["db1", "db2", "db3", "db4"].map(str::to_owned);
        let whole = launch_of_hosts(0, &["db1", "db2.rack", "db3"], None);
        let lacking = launch_of_hosts(60, &["db1", "db3"], None);
        assert_eq!(
            absent_hosts_of_launches(&list, std::slice::from_ref(&whole), MakeUp),
            ["db4"]
        );
        // A host that never came is named once.
        assert_eq!(
            absent_hosts_of_launches(&list, &[whole, lacking], MakeUp),
            ["db4", "db2 of the launch at 1970-01-01T00:01:00Z"]
        );
        // Two halves of the list, each whole.
        let halves = [
            launch_of_hosts(0, &["db1", "db2"], Some(2)),
            launch_of_hosts(60, &["db3", "db4"], Some(2)),
        ];
        assert_eq!(absent_hosts_of_launches(&list, &halves, MakeUp), [""; 0]);
        assert_eq!(absent_hosts_of_launches(&list, &[], MakeUp), list);
    }

    #[test]
    fn host_that_came_later_or_in_another_part_is_not_missing() {
        let list = ["db1", "db2", "db3", "db4"].map(str::to_owned);
        let of_step = |second, hosts: &[&str], size| launch_of_hosts(second, hosts, size);
        for launches in [
            // Two ranks a node, one for each disk.
            vec![
                Launch {
                    ranks: (0..4).collect(),
                    ..of_step(0, &["db1", "db2"], Some(4))
                },
                Launch {
                    ranks: (0..4).collect(),
                    ..of_step(9, &["db3", "db4"], Some(4))
                },
            ],
            // Two pools, whose launchers tell no size.
            vec![
                of_step(0, &["db1", "db2"], None),
                of_step(9, &["db3", "db4"], None),
            ],
            // What was lost came in a step of its own; the fleet grew.
            vec![
                of_step(0, &["db1", "db2", "db4"], Some(4)),
                of_step(9, &["db3"], Some(1)),
            ],
            vec![
                of_step(0, &["db1", "db2", "db3"], None),
                of_step(9, &["db1", "db2", "db3", "db4"], None),
            ],
        ] {
            assert_eq!(absent_hosts_of_launches(&list, &launches, MakeUp), [""; 0]);
            let lacking = absent_host_counts(4, &launches, &BTreeMap::new(), MakeUp);
            assert_eq!(lacking, [], "{launches:?}");
            assert_eq!(surplus_hosts(4, &launches, &BTreeMap::new()), 0);
        }
    }

    #[test]
    fn each_launch_without_ranks_has_as_many_hosts() {
        let two = [
            launch_of_hosts(0, &["db1", "db2", "pod"], None),
            launch_of_hosts(60, &["db1", "db2"], None),
        ];
        let machines = BTreeMap::from([("db1", 1), ("pod", 2)]);
        assert_eq!(
            absent_host_counts(4, &two, &machines, MakeUp),
            [Absent {
                name: "2 of 4 hosts of the launch at 1970-01-01T00:01:00Z".to_owned(),
                count: Some(2),
            }]
        );
    }

    #[test]
    fn each_launch_has_missing_ranks_of_its_own() {
        let two = [launch(0, 0..200, None), launch(60, 3..200, None)];
        assert_eq!(
            names(absent_ranks(200, &two)),
            [0, 1, 2].map(|rank| format!("rank {rank} of the launch at 1970-01-01T00:01:00Z"))
        );
        assert_eq!(names(absent_ranks(200, &two[..1])), [""; 0]);
        assert_eq!(
            names(absent_ranks(200, &two[1..])),
            ["rank 0", "rank 1", "rank 2"]
        );
    }

    #[test]
    fn launch_of_fewer_ranks_is_whole_with_these() {
        let again = [launch(0, 0..4, Some(4)), launch(60, 0..1, Some(2))];
        assert_eq!(
            names(absent_ranks(4, &again)),
            ["rank 1 of the launch at 1970-01-01T00:01:00Z"]
        );
        // Two halves that together are too few.
        let halves = [launch(0, 0..2, Some(2)), launch(60, 0..2, Some(2))];
        assert_eq!(names(absent_ranks(4, &halves)), [""; 0]);
        assert_eq!(names(absent_ranks(6, &halves)), ["2 of 6 ranks"]);
    }

    #[test]
    fn bare_name_is_the_host_of_every_domain() {
        assert!(is_same_host("db17", "db17.example.org"));
        assert!(is_same_host("DB17", "db17"));
        assert!(is_same_host("db17.example.org", "db17.example.org"));
        assert!(!is_same_host("db17.example.org", "db17.example.com"));
        assert!(!is_same_host("db17", "db1.example.org"));
    }
}
