//! Gives the placeholders that take the place of names: `host1-5f2c90aa`, `/path2`.

use sha2::{Digest as _, Sha256};

/// The kind of thing that a text identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    /// The noun, such as `host name`.
    noun: &'static str,
    /// The noun for several.
    plural: &'static str,
    /// The placeholder, or its first part.
    pub(super) placeholder: &'static str,
    distinction: Distinction,
}

/// The things that get different placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distinction {
    /// None: all texts of the kind get one placeholder.
    Nothing,
    /// The things of one record, by a number. Two records may use one number for different things,
    /// because nobody compares such names between machines: the first path, a process.
    InOneRecord,
    /// Also the things of different records, by a number and the mark of the record. Without the
    /// mark all hosts of a fleet would be one.
    BetweenRecords,
}

impl Identity {
    const fn new(
        noun: &'static str,
        plural: &'static str,
        placeholder: &'static str,
        distinction: Distinction,
    ) -> Self {
        Self {
            noun,
            plural,
            placeholder,
            distinction,
        }
    }

    /// A kind of thing within a machine.
    const fn local(noun: &'static str, plural: &'static str, placeholder: &'static str) -> Self {
        Self::new(noun, plural, placeholder, Distinction::InOneRecord)
    }

    /// A kind of thing by which machines are told apart.
    const fn machine(noun: &'static str, plural: &'static str, placeholder: &'static str) -> Self {
        Self::new(noun, plural, placeholder, Distinction::BetweenRecords)
    }
}

pub(super) const HOST: Identity = Identity::machine("host name", "host names", "host");
pub(super) const SERIAL: Identity = Identity::machine("serial number", "serial numbers", "serial");
pub(super) const BOOT: Identity = Identity::machine("boot id", "boot ids", "boot");
pub(super) const MACHINE: Identity = Identity::machine("machine id", "machine ids", "machine");
/// One word for all jobs: records of one job stay together.
pub(super) const JOB: Identity = Identity::new("job", "jobs", "job", Distinction::Nothing);
pub(super) const GROUP: Identity = Identity::local("control group", "control groups", "/group");
pub(super) const PATH: Identity = Identity::local("path", "paths", "/path");
pub(super) const SOURCE: Identity = Identity::local("mount source", "mount sources", "source");
pub(super) const PROCESS: Identity = Identity::local("process name", "process names", "process");
pub(super) const SERVER: Identity = Identity::local("server address", "server addresses", "server");
pub(super) const COMMAND: Identity = Identity::local("command", "commands", "command");
pub(super) const NOTE: Identity = Identity::local("note", "notes", "note");
pub(super) const VOLUME: Identity = Identity::local("volume name", "volume names", "volume");
pub(super) const RAID: Identity = Identity::local("RAID name", "RAID names", "md_");
/// A sentence that may quote a path, a server or another program.
pub(super) const REASON: Identity = Identity::new(
    "reason",
    "reasons",
    "the reason is left out",
    Distinction::Nothing,
);

/// Bytes of a record's mark: two of a thousand records have the same once in ten thousand times.
const MARK_BYTES: usize = 4;

/// The placeholders of a record so far.
#[derive(Debug, Default)]
pub(super) struct Placeholders {
    replaced: Vec<ReplacedName>,
    /// The mark of the record, for placeholders that differ between records.
    mark: String,
}

#[derive(Debug)]
struct ReplacedName {
    identity: Identity,
    name: String,
    placeholder: String,
}

impl Placeholders {
    /// No placeholders yet, for the record with this id. The mark is a hash, because the id begins
    /// with the time.
    pub(super) fn of_run(run_id: &str) -> Self {
        let hash = Sha256::digest(run_id);
        let mut mark = String::new();
        for byte in &hash[..MARK_BYTES] {
            mark.push_str(&format!("{byte:02x}"));
        }
        Self {
            replaced: Vec::new(),
            mark,
        }
    }

    /// The placeholder of a name. The same name of one kind always gets the same one.
    pub(super) fn placeholder(&mut self, identity: Identity, name: &str) -> String {
        let mut number = 1;
        for earlier in &self.replaced {
            if earlier.identity == identity {
                if earlier.name == name {
                    return earlier.placeholder.clone();
                }
                number += 1;
            }
        }
        let word = identity.placeholder;
        let placeholder = match identity.distinction {
            Distinction::Nothing => word.to_owned(),
            Distinction::InOneRecord => format!("{word}{number}"),
            Distinction::BetweenRecords => format!("{word}{number}-{}", self.mark),
        };
        self.replaced.push(ReplacedName {
            identity,
            name: name.to_owned(),
            placeholder: placeholder.clone(),
        });
        placeholder
    }

    /// The number of names that were replaced, of each kind: `1 host name, 2 paths`.
    pub(super) fn counts_text(&self) -> String {
        let mut counts: Vec<IdentityCount> = Vec::new();
        for replaced in &self.replaced {
            let known = counts
                .iter_mut()
                .find(|count| count.identity == replaced.identity);
            match known {
                Some(count) => count.names += 1,
                None => counts.push(IdentityCount {
                    identity: replaced.identity,
                    names: 1,
                }),
            }
        }
        let mut parts = Vec::new();
        for IdentityCount { identity, names } in counts {
            let noun = if names == 1 {
                identity.noun
            } else {
                identity.plural
            };
            parts.push(format!("{names} {noun}"));
        }
        parts.join(", ")
    }
}

/// The number of different names of a kind.
struct IdentityCount {
    identity: Identity,
    names: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholder_tells_apart_what_its_kind_needs() {
        let mut placeholders = Placeholders {
            mark: "5f2c90aa".to_owned(),
            ..Placeholders::default()
        };
        assert_eq!(placeholders.placeholder(HOST, "db1"), "host1-5f2c90aa");
        assert_eq!(placeholders.placeholder(PATH, "/data"), "/path1");
        assert_eq!(placeholders.placeholder(PATH, "/wal"), "/path2");
        assert_eq!(placeholders.placeholder(PATH, "/data"), "/path1");
        for why in ["/data is full", "/wal is full"] {
            let placeholder = placeholders.placeholder(REASON, why);
            assert_eq!(placeholder, "the reason is left out");
        }
        assert_eq!(
            placeholders.counts_text(),
            "1 host name, 2 paths, 2 reasons"
        );
    }
}
