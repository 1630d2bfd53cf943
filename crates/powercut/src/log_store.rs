//! Stores the logs of runs: in a file per run, or in memory for a rehearsal. A log holds the frames
//! as they came, each synced before it is confirmed. No log is ever opened again for writing, so
//! its last frame may stay torn: it is a report that was never confirmed.

use crate::protocol::{WireMessage, progress_frame_bytes};
use crate::run::{EXACT_MAX, RunDescription, RunProgress, parse_run};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of one log: reports of five days from the most workers (`report_pace`).
pub(crate) const LOG_BYTES_MAX: u64 = 1 << 30;
/// The most runs in one folder. A list reads the first frame of each. Chosen, not measured.
const RUNS_MAX: usize = 10_000;
/// The most runs that a list names, the newest ones. A client refuses a longer list. Chosen: more
/// than a user looks through.
pub(crate) const LISTED_MAX: usize = 1_000;
/// The reserve: space that stays free for the rest of the machine. A smaller filesystem has a
/// smaller one ([`RESERVE_DIVISOR`]). Chosen, not measured.
const RESERVE_BYTES: u64 = 1 << 30;
/// The reserve of a small filesystem is its size divided by this.
const RESERVE_DIVISOR: u64 = 10;
/// Ends the name of the file of a run. The logs of older builds are found by it.
const EXTENSION: &str = "powercut";

/// The frames of each log in memory, by the number of its run.
type MemoryLogs = Arc<Mutex<BTreeMap<u128, Vec<u8>>>>;

fn lock(logs: &MemoryLogs) -> MutexGuard<'_, BTreeMap<u128, Vec<u8>>> {
    logs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place where logs are kept.
#[derive(Debug, Clone)]
pub enum LogStore {
    /// Files in a folder.
    Folder(PathBuf),
    /// In memory; gone with the process.
    Memory(MemoryLogs),
}

/// A log that a writer fills.
#[derive(Debug)]
pub(crate) struct OpenLog {
    sink: LogSink,
    bytes: u64,
}

/// The place to which a log is written.
#[derive(Debug)]
enum LogSink {
    File { file: File, folder: PathBuf },
    Memory { logs: MemoryLogs, run: u128 },
}

/// The purpose of a write to the store. A run that is being logged may use half of the reserve, so
/// that a run which could start has room to go on.
#[derive(Debug, Clone, Copy)]
enum RoomFor {
    NewRun,
    StartedRun,
}

impl RoomFor {
    /// Returns the free space that the purpose needs on a filesystem of this size.
    fn needed_bytes(self, size_bytes: u64) -> u64 {
        let reserve_bytes = RESERVE_BYTES.min(size_bytes / RESERVE_DIVISOR);
        match self {
            Self::NewRun => reserve_bytes,
            Self::StartedRun => reserve_bytes / 2,
        }
    }
}

impl LogStore {
    /// A store in memory.
    pub fn memory() -> Self {
        Self::Memory(Arc::default())
    }

    /// Starts the log of a run with its description, and makes both its name and its first frame
    /// durable. A run that has a log already is refused.
    pub(crate) fn create(&self, run: &RunDescription) -> io::Result<OpenLog> {
        let number = run
            .run_number()
            .ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
        let sink = match self {
            Self::Folder(folder) => {
                if self.run_numbers()?.len() >= RUNS_MAX {
                    let text = format!("the folder has {RUNS_MAX} logs; remove old ones");
                    return Err(io::Error::other(text));
                }
                check_room(folder, RoomFor::NewRun)?;
                LogSink::File {
                    file: File::create_new(log_path(folder, number))?,
                    folder: folder.clone(),
                }
            }
            Self::Memory(logs) => {
                match lock(logs).entry(number) {
                    Entry::Occupied(_) => return Err(io::ErrorKind::AlreadyExists.into()),
                    Entry::Vacant(place) => place.insert(Vec::new()),
                };
                LogSink::Memory {
                    logs: Arc::clone(logs),
                    run: number,
                }
            }
        };
        let mut log = OpenLog { sink, bytes: 0 };
        match log.begin(run) {
            Ok(()) => Ok(log),
            Err(error) => {
                self.discard(number);
                Err(error)
            }
        }
    }

    /// Removes a log that could not begin, so that its run can be tried again. The error of the
    /// beginning is the one that matters.
    fn discard(&self, run: u128) {
        match self {
            Self::Folder(folder) => {
                let _ = std::fs::remove_file(log_path(folder, run));
            }
            Self::Memory(logs) => {
                lock(logs).remove(&run);
            }
        }
    }

    /// Returns the numbers of the runs, in no order.
    fn run_numbers(&self) -> io::Result<Vec<u128>> {
        match self {
            Self::Folder(folder) => {
                let mut runs = Vec::new();
                for entry in std::fs::read_dir(folder)? {
                    let name = entry?.file_name();
                    if let Some(stem) = name
                        .to_string_lossy()
                        .strip_suffix(&format!(".{EXTENSION}"))
                    {
                        runs.extend(parse_run(stem));
                    }
                }
                Ok(runs)
            }
            Self::Memory(logs) => Ok(lock(logs).keys().copied().collect()),
        }
    }

    /// Returns the numbers of the newest runs, newest first. A log whose first frame is damaged is
    /// not listed. Descriptions are long, so that only one of them is in memory at a time.
    pub(crate) fn newest_runs(&self) -> io::Result<Vec<u128>> {
        let mut started = Vec::new();
        for run in self.run_numbers()? {
            if let Some(description) = self.description(run) {
                started.push((description.started_ms, run));
            }
        }
        started.sort_unstable_by_key(|run| std::cmp::Reverse(*run));
        started.truncate(LISTED_MAX);
        Ok(started.into_iter().map(|(_, run)| run).collect())
    }

    /// Returns the description that the writer of a run sent; `None` where the run has no log, or
    /// its first frame is damaged.
    pub(crate) fn description(&self, run: u128) -> Option<RunDescription> {
        match WireMessage::receive(&mut self.open_frames(run).ok()?) {
            Ok(WireMessage::Run(description)) => Some(*description),
            _ => None,
        }
    }

    /// Opens the log of a run to read its frames. The last one may be torn.
    pub(crate) fn open_frames(&self, run: u128) -> io::Result<Box<dyn Read>> {
        match self {
            Self::Folder(folder) => {
                let path = log_path(folder, run);
                Ok(Box::new(BufReader::new(open_regular(&path)?)))
            }
            Self::Memory(logs) => match lock(logs).get(&run) {
                Some(log) => Ok(Box::new(Cursor::new(log.clone()))),
                None => Err(io::ErrorKind::NotFound.into()),
            },
        }
    }
}

/// Returns the path of the log of a run.
fn log_path(folder: &Path, run: u128) -> PathBuf {
    folder.join(format!("{run:032x}.{EXTENSION}"))
}

/// Opens a log to read it. A pipe of its name would make the server wait for ever.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// Fails where less space is free than this purpose needs.
fn check_room(folder: &Path, purpose: RoomFor) -> io::Result<()> {
    let filesystem = rustix::fs::statvfs(folder)?;
    let free_bytes = filesystem.f_bavail.saturating_mul(filesystem.f_frsize);
    let size_bytes = filesystem.f_blocks.saturating_mul(filesystem.f_frsize);
    if free_bytes >= purpose.needed_bytes(size_bytes) {
        Ok(())
    } else {
        Err(io::Error::other(
            "the filesystem of the logs is nearly full; free some space, or use --log DIR",
        ))
    }
}

impl OpenLog {
    /// Makes the name of a new log and its first frame durable.
    fn begin(&mut self, run: &RunDescription) -> io::Result<()> {
        if let LogSink::File { folder, .. } = &self.sink {
            File::open(folder)?.sync_all()?;
        }
        self.append(&WireMessage::Run(Box::new(run.clone())))
    }

    /// Appends a frame and makes it durable. A frame that cannot be written whole is removed again:
    /// nothing behind half a frame could be read.
    pub(crate) fn append(&mut self, message: &WireMessage) -> io::Result<()> {
        let frame = message.encode()?;
        if self.bytes + frame.len() as u64 > LOG_BYTES_MAX {
            let text = format!("the log of this run is full ({LOG_BYTES_MAX} bytes)");
            return Err(io::Error::other(text));
        }
        match &mut self.sink {
            LogSink::File { file, folder } => {
                check_room(folder, RoomFor::StartedRun)?;
                if let Err(error) = write_durably(file, &frame) {
                    let _ = cut_to(file, self.bytes);
                    return Err(error);
                }
            }
            LogSink::Memory { logs, run } => {
                lock(logs).entry(*run).or_default().extend(&frame);
            }
        }
        self.bytes += frame.len() as u64;
        Ok(())
    }
}

fn write_durably(file: &mut File, frame: &[u8]) -> io::Result<()> {
    file.write_all(frame)?;
    file.sync_data()
}

/// Shortens a file to this length, and continues at its new end.
fn cut_to(file: &mut File, bytes: u64) -> io::Result<()> {
    file.set_len(bytes)?;
    file.seek(SeekFrom::End(0))?;
    Ok(())
}

/// Returns the most reports of a run with so many streams that a log of these bytes holds.
pub(crate) fn reports_within(bytes: u64, streams: usize) -> u64 {
    bytes / progress_frame_bytes(streams) as u64
}

/// Checks that a report may follow the `last` one. A report that goes back, that counts other
/// streams, or more writes than any disk ever gets, comes from no writer; the error says so.
pub(crate) fn check_follows(
    streams: usize,
    last: Option<&RunProgress>,
    next: &RunProgress,
) -> Result<(), &'static str> {
    if next.counts.len() != streams {
        return Err("a report that counts other streams than the run has");
    }
    if next.counts.iter().any(|count| *count > EXACT_MAX) {
        return Err("a report of more writes than a run can make");
    }
    let Some(last) = last else {
        return Ok(());
    };
    let mut pairs = next.counts.iter().zip(&last.counts);
    if pairs.any(|(now, before)| now < before) || next.elapsed_ns < last.elapsed_ns {
        return Err("a report that goes back");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunProgress, example};

    fn progress(elapsed_ns: u64, count: u64) -> RunProgress {
        RunProgress {
            elapsed_ns,
            counts: vec![count; example().streams.len()],
        }
    }

    #[test]
    fn log_file_is_read_up_to_its_torn_end_and_never_reused() {
        let place = tempfile::tempdir().unwrap();
        let store = LogStore::Folder(place.path().to_owned());
        let mut log = store.create(&example()).unwrap();
        for at in 1..4 {
            log.append(&WireMessage::Progress(progress(at, at)))
                .unwrap();
        }
        drop(log);
        let error = store.create(&example()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        let number = example().run_number().unwrap();
        assert_eq!(store.newest_runs().unwrap(), [number]);
        assert_eq!(store.description(number), Some(example()));
        let path = std::fs::read_dir(place.path()).unwrap().next().unwrap();
        let path = path.unwrap().path();
        let whole = std::fs::read(&path).unwrap();
        for lost in 1..100 {
            std::fs::write(&path, &whole[..whole.len() - lost]).unwrap();
            let mut frames = store.open_frames(example().run_number().unwrap()).unwrap();
            let mut read = 0;
            while WireMessage::receive(&mut frames).is_ok() {
                read += 1;
            }
            assert!((2..4).contains(&read), "{read}");
        }
    }

    #[test]
    fn run_that_has_a_log_in_memory_keeps_it() {
        let store = LogStore::memory();
        let mut log = store.create(&example()).unwrap();
        log.append(&WireMessage::Progress(progress(1, 1))).unwrap();
        let error = store.create(&example()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        let number = example().run_number().unwrap();
        let mut frames = store.open_frames(number).unwrap();
        assert!(WireMessage::receive(&mut frames).is_ok());
        let report = WireMessage::receive(&mut frames).unwrap();
        assert_eq!(report, WireMessage::Progress(progress(1, 1)));
    }

    #[test]
    fn log_that_cannot_begin_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        // Its frame is too long.
        let unsendable = RunDescription {
            host: "x".repeat(1 << 20),
            ..example()
        };
        for store in [
            LogStore::Folder(place.path().to_owned()),
            LogStore::memory(),
        ] {
            store.create(&unsendable).unwrap_err();
            assert_eq!(store.run_numbers().unwrap(), []);
            store.create(&example()).unwrap();
        }
    }

    #[test]
    fn pipe_among_the_logs_is_no_log() {
        let place = tempfile::tempdir().unwrap();
        let store = LogStore::Folder(place.path().to_owned());
        drop(store.create(&example()).unwrap());
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let pipe = place.path().join(format!("{:032x}.{EXTENSION}", 7));
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        let number = example().run_number().unwrap();
        assert_eq!(store.newest_runs().unwrap(), [number]);
        assert!(store.open_frames(7).is_err());
    }

    #[test]
    fn reserve_is_a_tenth_of_a_small_filesystem() {
        let gib = 1 << 30;
        assert_eq!(RoomFor::NewRun.needed_bytes(100 * gib), gib);
        assert_eq!(RoomFor::StartedRun.needed_bytes(100 * gib), gib / 2);
        assert_eq!(RoomFor::NewRun.needed_bytes(gib), gib / 10);
        assert_eq!(RoomFor::StartedRun.needed_bytes(gib), gib / 20);
    }

    #[test]
    fn newest_runs_come_first_and_are_limited() {
        let store = LogStore::memory();
        for number in 0..LISTED_MAX as u64 + 7 {
            let run = RunDescription {
                run: format!("{number:032x}"),
                // In another order than their numbers.
                started_ms: number ^ 1,
                ..example()
            };
            store.create(&run).unwrap();
        }
        let newest = store.newest_runs().unwrap();
        assert_eq!(newest.len(), LISTED_MAX);
        assert_eq!(
            newest[..2],
            [LISTED_MAX as u128 + 6, LISTED_MAX as u128 + 4]
        );
    }

    /// The judgement adds slots to counts.
    #[test]
    fn report_of_more_writes_than_a_run_can_make_is_refused() {
        let streams = example().streams.len();
        let before = progress(5, 5);
        assert!(check_follows(streams, None, &progress(6, EXACT_MAX)).is_ok());
        for last in [None, Some(&before)] {
            for count in [EXACT_MAX + 1, u64::MAX] {
                assert!(check_follows(streams, last, &progress(6, count)).is_err());
            }
        }
    }

    #[test]
    fn report_that_goes_back_is_refused() {
        let streams = example().streams.len();
        let before = progress(5, 5);
        let last = Some(&before);
        assert!(check_follows(streams, last, &progress(5, 5)).is_ok());
        assert!(check_follows(streams, last, &progress(6, 4)).is_err());
        assert!(check_follows(streams, last, &progress(4, 6)).is_err());
        assert!(check_follows(streams + 1, last, &progress(6, 6)).is_err());
    }
}
