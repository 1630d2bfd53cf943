//! Collects the records that `merge` reads, notes what it cannot use, and finds which expected ones
//! are missing.

use super::roster::{Absent, LaterLaunches, Roster};
use super::source::Source;
use crate::failure::Failure;
use crate::saved::{
    RefusedPart, Streamed, compressed, judged_record, load_all_whole, open_document, read_page,
    read_stream,
};
use diskproof_analysis::fleet::{Added, Fleet, Repetition};
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
        } else if let Some(why) = compressed(start) {
            self.note_lost(&name, why);
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
        let mut began = self.begun_runs();
        let mut rows = Vec::new();
        if let Some(roster) = roster {
            for Absent { name, count } in self.absent(roster, &mut began) {
                rows.push(MissingRow {
                    name,
                    count,
                    why: "expected, but nothing came of it".to_owned(),
                    undecided: false,
                });
            }
        }
        // The rows by name; of several runs of one name, one that is missing for certain counts.
        let mut missing: BTreeMap<String, MissingRow> = BTreeMap::new();
        for hello in began.possibly_repeated {
            let row = missing_row(hello, MAYBE_REPEATED, true);
            missing.insert(row.name.clone(), row);
        }
        for hello in began.lost {
            let row = missing_row(hello, NOT_WHOLE, false);
            missing.insert(row.name.clone(), row);
        }
        rows.extend(missing.into_values());
        rows
    }

    /// The hosts and ranks of the roster of which nothing came. The roster also decides of runs
    /// that nothing else proves to be repeated: where the records alone fill each launch, they
    /// were; where one has a gap that they fill, they were not.
    fn absent(&self, roster: &Roster, began: &mut BegunRuns<'_>) -> Vec<Absent> {
        let mut hellos = began.delivered.clone();
        hellos.extend(&began.lost);
        let gaps_without = roster.absent(&self.fleet, &hellos, LaterLaunches::AreApart);
        if gaps_without.is_empty() {
            began.possibly_repeated.clear();
        } else {
            hellos.extend(&began.possibly_repeated);
            let gaps = roster.absent(&self.fleet, &hellos, LaterLaunches::AreApart);
            if gaps != gaps_without {
                began.lost.append(&mut began.possibly_repeated);
            }
        }
        roster.absent(&self.fleet, &hellos, LaterLaunches::MakeUp)
    }

    /// The runs that announced themselves and were not repeated for certain.
    fn begun_runs(&self) -> BegunRuns<'_> {
        let mut began = BegunRuns::default();
        for hello in &self.hellos {
            if self.fleet.has_run(&hello.run_id) {
                began.delivered.push(hello);
                continue;
            }
            let repetition = self
                .fleet
                .arrived()
                .iter()
                .map(|run| run.repeats(hello))
                .max();
            match repetition {
                Some(Repetition::Certain) => {}
                Some(Repetition::Possible) => began.possibly_repeated.push(hello),
                Some(Repetition::None) | None => began.lost.push(hello),
            }
        }
        began
    }
}

/// Why a run is missing that announced itself.
const NOT_WHOLE: &str = "it began, but its record did not come whole";
/// The same where a later run of its name came.
const MAYBE_REPEATED: &str = "it began, but its record did not come whole. A later run of this \
                              name came; nothing tells whether it repeats this one or is another \
                              machine's. --expect N says how many there are";

/// The announcements of runs.
#[derive(Default)]
struct BegunRuns<'h> {
    /// Those of runs whose records came.
    delivered: Vec<&'h Hello>,
    /// Those of the others that nothing repeats.
    lost: Vec<&'h Hello>,
    /// Those of the others that a later run may repeat.
    possibly_repeated: Vec<&'h Hello>,
}

fn missing_row(hello: &Hello, why: &str, undecided: bool) -> MissingRow {
    MissingRow {
        name: match hello.rank {
            Some(rank) => format!("{} #{rank}", hello.host),
            None => hello.host.clone(),
        },
        why: why.to_owned(),
        count: None,
        undecided,
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
        let mut names = Vec::new();
        for row in missing_rows_of(began, delivered, roster) {
            assert!(!row.undecided, "{row:?}");
            names.push(row.name);
        }
        names
    }

    fn missing_rows_of(
        began: &[Record],
        delivered: &[Record],
        roster: Option<Roster>,
    ) -> Vec<MissingRow> {
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
        collected.missing_rows(roster.as_ref())
    }

    #[test]
    fn compressed_source_is_named_as_such() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("db1.json");
        std::fs::write(&path, b"\x1f\x8b\x08\x00").unwrap();
        let mut collected = Collected {
            fleet: Fleet::new(None),
            hellos: Vec::new(),
            refused: Vec::new(),
        };
        collected.read_file(&path, WithoutRecord::Lost);
        let [refused] = &collected.refused[..] else {
            panic!("{:?}", collected.refused);
        };
        assert!(refused.is_lost && refused.why.contains("gzip -d"));
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
        // Two ranks of one machine, and two clones of one name and machine id without ranks.
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
            let rows = missing_rows_of(&[began], &[beside], None);
            assert_eq!(rows.len(), 1, "{rank:?}");
            assert_eq!(rows[0].undecided, rank.is_none());
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

    /// Pods share a name and have neither rank nor machine id: the later run may be of the same
    /// container, which was started again, or of another pod.
    #[test]
    fn later_pod_of_a_name_leaves_open_whether_it_repeats_the_dead_one() {
        let mut pods = [record(0, 1), record(0, 2), record(1, 2)];
        for pod in &mut pods {
            pod.host.rank = None;
            pod.host.machine = None;
        }
        let (dead, whole) = pods.split_at(1);
        let rows = missing_rows_of(dead, whole, None);
        assert_eq!((rows.len(), rows[0].undecided), (1, true), "{rows:?}");
        assert_eq!(rows[0].name, "db0");
        // The number of hosts decides, and so does a list of them.
        assert_eq!(missing(dead, whole, Some(2)), [""; 0]);
        let list = ["db0", "db1"].map(str::to_owned).to_vec();
        assert_eq!(missing_of(dead, whole, Some(Roster::Hosts(list))), [""; 0]);
        assert_eq!(missing(dead, &whole[..1], Some(1)), [""; 0]);
        let rows = missing_rows_of(dead, whole, Some(Roster::Count(3)));
        assert_eq!((rows.len(), rows[0].undecided), (2, false), "{rows:?}");
        // A machine id proves that the second run repeats the first, or that it does not.
        for pod in &mut pods {
            pod.host.machine = Some("one".to_owned());
        }
        assert_eq!(missing(&pods[..1], &pods[1..], None), [""; 0]);
        pods[0].host.machine = Some("two".to_owned());
        assert_eq!(missing(&pods[..1], &pods[1..], None), ["db0"]);
    }

    /// A list of hosts names each once, so that the dead run of an earlier launch is its gap.
    #[test]
    fn launch_that_a_dead_pod_belongs_to_has_a_gap() {
        let mut pods = Vec::new();
        for (number, hour) in [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2)] {
            let mut pod = record(number, hour);
            pod.host.rank = None;
            pod.host.machine = None;
            pods.push(pod);
        }
        assert_eq!(missing(&pods[..1], &pods[1..], Some(3)), ["db0"]);
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
