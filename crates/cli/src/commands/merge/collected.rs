//! The records that `merge` has read, and what it could not use.

use super::roster::Roster;
use super::source::Source;
use crate::failure::Failure;
use crate::saved::{
    RefusedPart, Streamed, judged_record, load_all_whole, open_document, read_page, read_stream,
};
use diskproof_analysis::fleet::{Added, Fleet};
use diskproof_model::document::{AnyDocument, DocumentError};
use diskproof_model::fleet::{Hello, MissingRow, RefusedInput};
use diskproof_model::record::Record;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

/// The records that were read so far, and what was refused of the rest.
pub(super) struct Collected {
    pub fleet: Fleet,
    /// The hosts and ranks that announced a record.
    pub hellos: Vec<Hello>,
    pub refused: Vec<RefusedInput>,
}

impl Collected {
    /// Reads a source to its end. An unusable part is named, and the rest goes on.
    pub(super) fn read(&mut self, source: &Source, history: Option<&Path>) -> Result<(), Failure> {
        match source {
            Source::Stdin => {
                self.read_stream("stdin", &mut io::stdin().lock(), WithoutRecord::Lost);
            }
            Source::File(path) => self.read_file(path, WithoutRecord::Lost),
            Source::FileOfFolder(path) => self.read_file(path, WithoutRecord::of_name(path)),
            Source::History(reference) => {
                for record in load_all_whole(reference, history)? {
                    self.add_record(reference, &record);
                }
            }
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path, without_record: WithoutRecord) {
        let name = path.display().to_string();
        let file = match open_document(path) {
            Ok(file) => file,
            Err(error) => {
                self.note_lost(&name, format!("cannot open the file: {error}"));
                return;
            }
        };
        let mut reader = BufReader::new(file);
        let start = match reader.fill_buf() {
            Ok(start) => start.trim_ascii_start(),
            Err(error) => {
                self.note_lost(&name, format!("cannot read the file: {error}"));
                return;
            }
        };
        if start.is_empty() {
            self.note_without_record(&name, "it is empty", without_record);
        } else if start.starts_with(b"<") {
            self.read_page(&name, reader);
        } else {
            self.read_stream(&name, &mut reader, without_record);
        }
    }

    /// Reads the record in a report page.
    fn read_page(&mut self, name: &str, reader: BufReader<File>) {
        let mut text = String::new();
        let bytes_max = diskproof_model::limits::DOCUMENT_BYTES_MAX as u64;
        if let Err(error) = reader.take(bytes_max + 1).read_to_string(&mut text) {
            self.note_lost(name, format!("cannot read the page: {error}"));
            return;
        }
        if text.len() as u64 > bytes_max {
            self.note_lost(name, DocumentError::TooLarge.to_string());
            return;
        }
        match read_page(&text) {
            Ok(document) => self.take_streamed(name, Streamed::Document(Box::new(document))),
            Err(why) => self.note_lost(name, why),
        }
    }

    fn read_stream(&mut self, name: &str, stream: &mut dyn BufRead, without_record: WithoutRecord) {
        let hellos_before = self.hellos.len();
        match read_stream(stream, &mut |streamed| self.take_streamed(name, streamed)) {
            Ok(0) if self.hellos.len() == hellos_before => {
                self.note_without_record(name, "there is no record in it", without_record);
            }
            Ok(_) => {}
            Err(error) => self.note_lost(name, format!("cannot read it: {error}")),
        }
    }

    /// Takes what a source of this name streamed.
    fn take_streamed(&mut self, name: &str, streamed: Streamed) {
        match streamed {
            Streamed::Hello(hello) => self.hellos.push(hello),
            Streamed::Refused(RefusedPart {
                name: part,
                why,
                is_lost,
            }) => self.refused.push(RefusedInput {
                name: name_of_part(name, &part),
                why,
                is_lost,
            }),
            Streamed::Document(document) => match *document {
                AnyDocument::Record(record) => self.add_record(name, &judged_record(*record)),
                AnyDocument::Comparison(_) => {
                    self.note_unusable(name.to_owned(), "this is a comparison; name its runs");
                }
                AnyDocument::Fleet(_) => {
                    self.note_unusable(name.to_owned(), "this is a fleet; use it with --reference");
                }
            },
        }
    }

    /// Adds a record from an input of this name.
    fn add_record(&mut self, name: &str, record: &Record) {
        match self.fleet.add(record) {
            Added::Counted | Added::Again => {}
            Added::SameId => {
                let why = format!("another run than this one has its id {} too", record.run_id);
                self.note_lost(&name_of_part(name, &record.host.name), why);
            }
            Added::NoFigures => {
                let why = "it measured nothing that could be compared";
                self.note_unusable(name_of_part(name, &record.host.name), why);
            }
        }
    }

    fn note_without_record(&mut self, name: &str, why: &str, without_record: WithoutRecord) {
        match without_record {
            WithoutRecord::Lost => self.note_lost(name, why.to_owned()),
            WithoutRecord::Unusable => self.note_unusable(name.to_owned(), why),
        }
    }

    /// Notes an input that may have held a record, which is lost.
    fn note_lost(&mut self, name: &str, why: String) {
        self.refused.push(RefusedInput {
            name: name.to_owned(),
            why,
            is_lost: true,
        });
    }

    /// Notes an input that holds no record for a fleet.
    fn note_unusable(&mut self, name: String, why: &str) {
        self.refused.push(RefusedInput {
            name,
            why: why.to_owned(),
            is_lost: false,
        });
    }

    /// The error where no record was read: why the first input was refused.
    pub(super) fn no_record_text(&self) -> String {
        match self.refused.first() {
            Some(refused) => format!("no usable record. {}: {}", refused.name, refused.why),
            None => "no usable record".to_owned(),
        }
    }

    /// The ranks and hosts that began, or were expected, and of which no record came. One whose run
    /// was repeated is missing only where its launch is to have each rank.
    pub(super) fn missing_rows(&self, roster: Option<&Roster>) -> Vec<MissingRow> {
        let hellos = self.unrepeated_hellos();
        // Why no record came, by the name of the host or rank.
        let mut missing: BTreeMap<String, String> = BTreeMap::new();
        for hello in &hellos {
            if !self.fleet.has_run(&hello.run_id) {
                let name = match hello.rank {
                    Some(rank) => format!("{} #{rank}", hello.host),
                    None => hello.host.clone(),
                };
                let why = "it began, but its record did not come whole";
                missing.insert(name, why.to_owned());
            }
        }
        let mut rows = Vec::new();
        if let Some(roster) = roster {
            for name in roster.absent(&self.fleet, &hellos) {
                let why = "expected, but nothing came of it".to_owned();
                rows.push(MissingRow { name, why });
            }
        }
        for (name, why) in missing {
            rows.push(MissingRow { name, why });
        }
        rows
    }

    /// The announcements, without those of runs that were repeated and whose records did not come.
    fn unrepeated_hellos(&self) -> Vec<&Hello> {
        let mut hellos = Vec::new();
        for hello in &self.hellos {
            let is_repeated = !self.fleet.has_run(&hello.run_id)
                && self.fleet.arrived().iter().any(|run| run.repeats(hello));
            if !is_repeated {
                hellos.push(hello);
            }
        }
        hellos
    }
}

/// What an input without a record is.
#[derive(Clone, Copy)]
enum WithoutRecord {
    /// A record is lost.
    Lost,
    /// The input is another file, such as the list of hosts beside the records.
    Unusable,
}

impl WithoutRecord {
    /// That of a file in a folder of records. A text may be a list of hosts; a log of a launcher
    /// had a record of each of them.
    fn of_name(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("txt") => Self::Unusable,
            _ => Self::Lost,
        }
    }
}

/// A part of an input, such as a host's lines in a stream; without a part, the input.
fn name_of_part(input: &str, part: &str) -> String {
    if part.is_empty() {
        input.to_owned()
    } else {
        format!("{input}, {part}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pieces::hello;
    use diskproof_model::target::Rank;

    /// The record of a rank that began in this hour on a host of its own.
    fn record(rank: u32, hour: u32) -> Record {
        let mut record = diskproof_analysis::fixture::record();
        record.run_id = format!("{hour:016x}{rank:016x}");
        record.started = format!("2026-12-01T{hour:02}:00:00.000000000Z");
        record.host.name = format!("db{rank}");
        record.host.rank = Some(Rank {
            rank,
            size: Some(4),
        });
        record
    }

    /// What is missing where these runs announced themselves, and these of them delivered.
    fn missing(began: &[Record], delivered: &[Record], expected: Option<u32>) -> Vec<String> {
        missing_of(began, delivered, expected.map(Roster::Count))
    }

    fn missing_of(began: &[Record], delivered: &[Record], roster: Option<Roster>) -> Vec<String> {
        let mut collected = Collected {
            fleet: Fleet::new(None),
            hellos: Vec::new(),
            refused: Vec::new(),
        };
        for record in began {
            let hello = Hello {
                started: Some(record.started.clone()),
                ..hello(&record.run_id, &record.host, &record.targets)
            };
            collected.take_streamed("stdin", Streamed::Hello(hello));
        }
        for record in delivered {
            collected.add_record("stdin", record);
        }
        let mut names = Vec::new();
        for row in collected.missing_rows(roster.as_ref()) {
            names.push(row.name);
        }
        names
    }

    #[test]
    fn run_that_was_repeated_is_not_missing() {
        let first: Vec<Record> = (0..4).map(|rank| record(rank, 1)).collect();
        let mut again = record(2, 2);
        let mut delivered = vec![first[0].clone(), first[1].clone(), first[3].clone()];
        assert_eq!(missing(&first, &delivered, None), ["db2 #2"]);
        assert_eq!(missing(&first, &delivered, Some(4)), ["db2 #2"]);
        delivered.push(again.clone());
        assert_eq!(missing(&first, &delivered, None), [""; 0]);
        assert_eq!(missing(&first, &delivered, Some(4)), [""; 0]);
        // An earlier run repeats nothing, nor does one of another target or one that ended early.
        for spoil in [
            |again: &mut Record| again.started = record(2, 0).started,
            |again: &mut Record| again.targets[0].path.push('2'),
            |again: &mut Record| again.partial = true,
            |again: &mut Record| again.host.name.push('2'),
        ] {
            again = record(2, 2);
            spoil(&mut again);
            delivered.pop();
            delivered.push(again);
            assert_eq!(missing(&first, &delivered, None), ["db2 #2"]);
        }
    }

    #[test]
    fn run_at_the_same_time_repeats_no_other_one() {
        // Two ranks of one machine, and two machines of one name without ranks.
        for rank in [Some(1), None] {
            let mut began = record(0, 1);
            began.host.machine = Some("one".to_owned());
            let mut beside = record(0, 1);
            beside.run_id = "beside".to_owned();
            beside.started = began.started.replace(":00.0", ":02.0");
            beside.host.machine.clone_from(&began.host.machine);
            for record in [&mut began, &mut beside] {
                record.host.rank = record.host.rank.filter(|_| rank.is_some());
            }
            if let (Some(rank), Some(other)) = (&mut beside.host.rank, rank) {
                rank.rank = other;
            }
            assert_eq!(missing(&[began], &[beside], None).len(), 1, "{rank:?}");
        }
    }

    #[test]
    fn repeated_launch_fills_no_rank_of_the_first_one() {
        let first: Vec<Record> = (0..4).map(|rank| record(rank, 1)).collect();
        let mut delivered = first[..3].to_vec();
        for rank in 0..4 {
            delivered.push(record(rank, 2));
        }
        assert_eq!(missing(&first, &delivered, None), [""; 0]);
        assert_eq!(
            missing(&first, &delivered, Some(4)),
            ["rank 3 of the launch at 2026-12-01T01:00:00Z"]
        );
    }

    /// Pods share a name and have neither rank nor machine id.
    #[test]
    fn later_pod_of_a_name_does_not_hide_the_death_of_another() {
        let mut pods = [record(0, 1), record(0, 2)];
        for pod in &mut pods {
            pod.host.rank = None;
            pod.host.machine = None;
        }
        assert_eq!(missing(&pods[..1], &pods[1..], None), ["db0"]);
        // A machine id proves that the second run repeats the first.
        for pod in &mut pods {
            pod.host.machine = Some("one".to_owned());
        }
        assert_eq!(missing(&pods[..1], &pods[1..], None), [""; 0]);
    }

    #[test]
    fn list_of_hosts_is_wanted_of_each_launch() {
        let list = ["db0", "db1", "db2", "db3"].map(str::to_owned).to_vec();
        for has_ranks in [true, false] {
            let mut runs = Vec::new();
            for (rank, hour) in [(0, 1), (1, 1), (2, 1), (3, 1), (0, 2), (1, 2), (3, 2)] {
                let mut run = record(rank, hour);
                run.host.rank = run.host.rank.filter(|_| has_ranks);
                runs.push(run);
            }
            let lacking = missing_of(&[], &runs, Some(Roster::Hosts(list.clone())));
            assert_eq!(lacking, ["db2 of the launch at 2026-12-01T02:00:00Z"]);
        }
    }

    #[test]
    fn machines_of_one_name_are_hosts_of_their_own() {
        let mut pods = Vec::new();
        for rank in 0..3 {
            let mut pod = record(rank, 1);
            pod.host.name = "pod".to_owned();
            pod.host.rank = None;
            pods.push(pod);
        }
        assert_eq!(missing(&[], &pods, Some(3)), [""; 0]);
        pods[2].started = record(2, 2).started;
        assert_eq!(missing(&[], &pods, Some(3)), ["1 of 3 hosts"]);
    }
}
