//! The hosts or ranks of which `merge --expect` wants a record.

use crate::failure::Failure;
use diskproof_model::fleet::Hello;
use std::collections::BTreeSet;
use std::path::Path;

/// The ranks or hosts of which a record is expected.
pub(super) enum Roster {
    /// This many ranks; with a launcher that has no ranks, this many hosts.
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

    /// The hosts or ranks of which neither a record nor a hello came. `rows` are the hosts of the
    /// records, with their ranks.
    pub(super) fn absent(&self, rows: &[(&str, Option<u32>)], hellos: &[Hello]) -> Vec<String> {
        let mut seen: Vec<(&str, Option<u32>)> = rows.to_vec();
        seen.extend(hellos.iter().map(|hello| (hello.host.as_str(), hello.rank)));
        match self {
            Self::Hosts(hosts) => {
                let names = seen.iter().map(|(name, _)| *name).collect();
                absent_hosts(hosts, names)
            }
            Self::Count(count) => {
                let ranks: Vec<u32> = seen.iter().flat_map(|(_, rank)| *rank).collect();
                if !ranks.is_empty() {
                    return (0..*count)
                        .filter(|rank| !ranks.contains(rank))
                        .map(|rank| format!("rank {rank}"))
                        .collect();
                }
                let hosts: BTreeSet<&str> = seen.iter().map(|(name, _)| *name).collect();
                match (*count as usize).saturating_sub(hosts.len()) {
                    0 => Vec::new(),
                    absent => vec![format!("{absent} of {count} hosts")],
                }
            }
        }
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

    #[test]
    fn bare_name_is_the_host_of_every_domain() {
        assert!(is_same_host("db17", "db17.example.org"));
        assert!(is_same_host("db17.example.org", "db17.example.org"));
        assert!(!is_same_host("db17.example.org", "db17.example.com"));
        assert!(!is_same_host("db17", "db1.example.org"));
    }
}
