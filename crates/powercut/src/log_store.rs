//! Where the logs of runs are kept: a file per run, or memory for a rehearsal. A log holds the
//! frames as they came, each synced before it is confirmed. No log is ever opened again for
//! writing, so a torn end stays what it is: reports that were never confirmed.

use crate::protocol::{WireMessage, progress_frame_bytes};
use crate::run::{RunDescription, RunProgress, parse_run};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of one log: weeks of reports.
pub(crate) const LOG_BYTES_MAX: u64 = 1 << 30;
/// Runs in one folder.
const RUNS_MAX: usize = 10_000;
/// Newest runs that a list names.
pub(crate) const LISTED_MAX: usize = 1_000;
/// Space that stays free for the rest of the machine, or a tenth of a smaller filesystem.
const RESERVE_BYTES: u64 = 1 << 30;
/// The part of the reserve, as a divisor, that must be free before a new run starts.
const NEW_RUN: u64 = 1;
/// The part that must be free for a run that is being logged: it may use the other half of the
/// reserve, so that a run which could start has room to go on.
const KNOWN_RUN: u64 = 2;
/// Ends the name of the file of a run.
const EXTENSION: &str = "powercut";

type MemoryLogs = Arc<Mutex<BTreeMap<u128, Vec<u8>>>>;

fn lock(logs: &MemoryLogs) -> MutexGuard<'_, BTreeMap<u128, Vec<u8>>> {
    logs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The logs are kept in one of two places.
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

#[derive(Debug)]
enum LogSink {
    /// The file, and its folder.
    File(File, PathBuf),
    Memory(MemoryLogs, u128),
}

impl LogStore {
    /// A store in memory.
    pub fn memory() -> Self {
        Self::Memory(Arc::default())
    }

    /// Starts the log of a run. A run that has one is refused.
    pub(crate) fn create(&self, run: &RunDescription) -> io::Result<OpenLog> {
        let number = run
            .run_number()
            .ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
        let sink = match self {
            Self::Folder(folder) => {
                if self.runs()?.len() >= RUNS_MAX {
                    let text = format!("the folder has {RUNS_MAX} logs; remove old ones");
                    return Err(io::Error::other(text));
                }
                check_room(folder, NEW_RUN)?;
                let path = folder.join(format!("{number:032x}.{EXTENSION}"));
                let file = File::create_new(path)?;
                // The name has to survive, too.
                File::open(folder)?.sync_all()?;
                LogSink::File(file, folder.clone())
            }
            Self::Memory(logs) => {
                if lock(logs).insert(number, Vec::new()).is_some() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                LogSink::Memory(Arc::clone(logs), number)
            }
        };
        let mut log = OpenLog { sink, bytes: 0 };
        log.append(&WireMessage::Run(Box::new(run.clone())))?;
        Ok(log)
    }

    /// Numbers of the runs, in no order.
    fn runs(&self) -> io::Result<Vec<u128>> {
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

    /// Numbers of the newest runs, newest first. A log whose first frame is damaged is not listed.
    /// Descriptions are long, so that only one of them is in memory at a time.
    pub(crate) fn newest(&self) -> io::Result<Vec<u128>> {
        let mut started = Vec::new();
        for run in self.runs()? {
            if let Some(description) = self.description(run) {
                started.push((description.started_ms, run));
            }
        }
        started.sort_unstable_by_key(|run| std::cmp::Reverse(*run));
        started.truncate(LISTED_MAX);
        Ok(started.into_iter().map(|(_, run)| run).collect())
    }

    /// The description that the writer of a run sent: its target and its streams.
    pub(crate) fn description(&self, run: u128) -> Option<RunDescription> {
        match WireMessage::receive(&mut self.open(run).ok()?) {
            Ok(WireMessage::Run(description)) => Some(*description),
            _ => None,
        }
    }

    /// The frames of a run.
    pub(crate) fn open(&self, run: u128) -> io::Result<Box<dyn Read>> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(format!("{run:032x}.{EXTENSION}"));
                Ok(Box::new(BufReader::new(open_regular(&path)?)))
            }
            Self::Memory(logs) => match lock(logs).get(&run) {
                Some(log) => Ok(Box::new(Cursor::new(log.clone()))),
                None => Err(io::ErrorKind::NotFound.into()),
            },
        }
    }
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

/// Refuses to write where less than this part of the reserve is free.
fn check_room(folder: &Path, divisor: u64) -> io::Result<()> {
    let filesystem = rustix::fs::statvfs(folder)?;
    let free_bytes = filesystem.f_bavail.saturating_mul(filesystem.f_frsize);
    let size_bytes = filesystem.f_blocks.saturating_mul(filesystem.f_frsize);
    if has_room(free_bytes, size_bytes, divisor) {
        Ok(())
    } else {
        Err(io::Error::other(
            "the filesystem of the logs is nearly full; free some space, or use --log DIR",
        ))
    }
}

fn has_room(free_bytes: u64, size_bytes: u64, divisor: u64) -> bool {
    free_bytes >= RESERVE_BYTES.min(size_bytes / 10) / divisor
}

impl OpenLog {
    /// Appends a frame and makes it durable.
    pub(crate) fn append(&mut self, message: &WireMessage) -> io::Result<()> {
        let frame = message.encode()?;
        if self.bytes + frame.len() as u64 > LOG_BYTES_MAX {
            let text = format!("the log of this run is full ({LOG_BYTES_MAX} bytes)");
            return Err(io::Error::other(text));
        }
        match &mut self.sink {
            LogSink::File(file, folder) => {
                check_room(folder, KNOWN_RUN)?;
                if let Err(error) = write_durably(file, &frame) {
                    // A full disk leaves half a frame, after which nothing could be read.
                    let _ = cut_to(file, self.bytes);
                    return Err(error);
                }
            }
            LogSink::Memory(logs, run) => {
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

/// Shortens a file, and goes to its end.
fn cut_to(file: &mut File, bytes: u64) -> io::Result<()> {
    file.set_len(bytes)?;
    file.seek(SeekFrom::End(0))?;
    Ok(())
}

/// The most reports of so many streams that a log of these bytes holds.
pub(crate) fn reports_within(bytes: u64, streams: usize) -> u64 {
    bytes / progress_frame_bytes(streams) as u64
}

/// True if a report may follow the one before. One that goes back, or that counts other streams,
/// comes from no writer.
pub(crate) fn follows(
    streams: usize,
    last: Option<&RunProgress>,
    next: &RunProgress,
) -> Result<(), &'static str> {
    if next.counts.len() != streams {
        return Err("a report that counts other streams than the run has");
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
        assert_eq!(store.newest().unwrap(), [number]);
        assert_eq!(store.description(number), Some(example()));
        let path = std::fs::read_dir(place.path()).unwrap().next().unwrap();
        let path = path.unwrap().path();
        let whole = std::fs::read(&path).unwrap();
        for lost in 1..100 {
            std::fs::write(&path, &whole[..whole.len() - lost]).unwrap();
            let mut frames = store.open(example().run_number().unwrap()).unwrap();
            let mut read = 0;
            while WireMessage::receive(&mut frames).is_ok() {
                read += 1;
            }
            assert!((2..4).contains(&read), "{read}");
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
        assert_eq!(store.newest().unwrap(), [number]);
        assert!(store.open(7).is_err());
    }

    #[test]
    fn reserve_is_a_tenth_of_a_small_filesystem() {
        let gib = 1 << 30;
        assert!(has_room(gib, 100 * gib, NEW_RUN));
        assert!(!has_room(gib - 1, 100 * gib, NEW_RUN));
        assert!(has_room(gib / 2, 100 * gib, KNOWN_RUN));
        assert!(has_room(gib / 10, gib, NEW_RUN));
        assert!(!has_room(gib / 10 - 1, gib, NEW_RUN));
        assert!(has_room(gib / 20, gib, KNOWN_RUN));
        assert!(!has_room(gib / 20 - 1, gib, KNOWN_RUN));
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
        let newest = store.newest().unwrap();
        assert_eq!(newest.len(), LISTED_MAX);
        assert_eq!(
            newest[..2],
            [LISTED_MAX as u128 + 6, LISTED_MAX as u128 + 4]
        );
    }

    #[test]
    fn report_that_goes_back_is_refused() {
        let streams = example().streams.len();
        let before = progress(5, 5);
        let last = Some(&before);
        assert!(follows(streams, last, &progress(5, 5)).is_ok());
        assert!(follows(streams, last, &progress(6, 4)).is_err());
        assert!(follows(streams, last, &progress(4, 6)).is_err());
        assert!(follows(streams + 1, last, &progress(6, 6)).is_err());
    }
}
