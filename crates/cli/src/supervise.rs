//! A run in a thread of its own, and the one who waits for it: most calls that a target could hold
//! up for good are given up by the engine itself; for all others (making ready, cutting and closing
//! a scratch file, writing back) somebody else has to be there who prints and saves what was
//! measured.

use crate::failure::Failure;
use crate::live::Live;
use crate::output::Voice;
use crate::work::{Harvest, SharedHarvest, Work};
use diskproof_device::Pulse;
use diskproof_engine::RunError;
use diskproof_model::progress::{Control, Found, Progress, Watch};
use diskproof_model::record::Stalled;
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_duration;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// How often the run is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The engine shows a sign of life twenty times a second; only when that is missing for so long
/// others are looked for.
const QUIET: Duration = Duration::from_secs(1);
/// A process that uses this share of a processor is at work, such as filling buffers, and not
/// waiting for a disk.
const BUSY_SHARE: f64 = 0.2;
/// A silence is told first after this, and then after twice as long each time.
const SILENCE_TOLD: Duration = Duration::from_secs(10);

/// How a run ended.
pub struct Ending {
    /// What was measured.
    pub harvest: Harvest,
    /// `Some` sentence where the run ended before its plan did; an error where it could not go on.
    pub ended: Result<Option<String>, RunError>,
    /// Paths of the targets that do not answer.
    pub hung: Vec<String>,
    /// Where they did not answer between the measured requests.
    pub stalled: Option<Stalled>,
}

/// What the run says.
enum News {
    /// Nothing more is measured.
    Ended(Result<Option<String>, RunError>),
    /// The targets are closed but for these, which do not answer.
    Closed(Vec<String>),
}

/// A watcher whose every call is a sign of life.
pub struct Watcher {
    /// What the user sees.
    pub live: Live,
    beats: Arc<AtomicU64>,
}

impl Watch for Watcher {
    fn tick(&mut self, progress: &Progress<'_>) -> Control {
        self.beats.fetch_add(1, Ordering::Relaxed);
        self.live.tick(progress)
    }

    fn found(&mut self, place: &Found) {
        self.live.found(place);
    }
}

/// Carries a run out, and waits for its end, or until nothing of it has shown any sign of life for
/// `stall`.
pub fn carry_out(
    work: Work,
    live: Live,
    identities: &[TargetIdentity],
    (voice, stall): (Voice, Duration),
) -> Result<Ending, Failure> {
    let (harvest, beats) = (Arc::clone(&work.harvest), Arc::new(AtomicU64::new(0)));
    let (sender, news) = channel();
    let watch = Watcher {
        live,
        beats: Arc::clone(&beats),
    };
    let conduct = move || conduct(work, watch, voice, &sender);
    std::thread::Builder::new()
        .name("diskproof-run".to_owned())
        .spawn(conduct)
        .map_err(|error| Failure::Run(RunError::Thread(error)))?;
    Ok(Vigil {
        harvest,
        beats,
        voice,
        stall,
        identities,
    }
    .keep(&news))
}

fn conduct(mut work: Work, mut watch: Watcher, voice: Voice, news: &Sender<News>) {
    let ended = work.all(&mut watch);
    watch.live.finish();
    // Nobody listens any more where the run was given up.
    let _ = news.send(News::Ended(ended));
    let hung = work.close(voice);
    let _ = news.send(News::Closed(hung));
}

/// Who waits.
struct Vigil<'a> {
    harvest: SharedHarvest,
    beats: Arc<AtomicU64>,
    voice: Voice,
    stall: Duration,
    identities: &'a [TargetIdentity],
}

impl Vigil<'_> {
    fn keep(self, news: &Receiver<News>) -> Ending {
        let mut ended = None;
        let mut life = Life::new(self.identities);
        let mut told = SILENCE_TOLD;
        loop {
            match news.recv_timeout(LOOK_EVERY) {
                Ok(News::Ended(how)) => ended = Some(how),
                Ok(News::Closed(hung)) => return self.end(ended.unwrap_or(Ok(None)), hung),
                Err(RecvTimeoutError::Disconnected) => {
                    let died =
                        RunError::Thread(std::io::Error::other("the run ended without a word"));
                    return self.end(Err(died), Vec::new());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let silence = life.silence(self.beats.load(Ordering::Relaxed));
            if silence < SILENCE_TOLD {
                told = SILENCE_TOLD;
            } else if silence >= told {
                told *= 2;
                self.voice.say(&format!(
                    "{}: no answer for {}",
                    self.paths().join(", "),
                    duration(silence)
                ));
            }
            if silence > self.stall {
                let stalled = Some(Stalled {
                    around: self.under_way(),
                    lasted_ns: silence.as_nanos() as u64,
                });
                let ended = ended.unwrap_or_else(|| Ok(Some(self.gave_up(silence))));
                return Ending {
                    stalled,
                    ..self.end(ended, self.paths())
                };
            }
        }
    }

    fn paths(&self) -> Vec<String> {
        self.identities
            .iter()
            .map(|identity| identity.path.clone())
            .collect()
    }

    fn under_way(&self) -> String {
        let harvest = self.harvest.lock().unwrap_or_else(PoisonError::into_inner);
        harvest
            .under_way
            .clone()
            .unwrap_or_else(|| "the first workload".to_owned())
    }

    fn gave_up(&self, silence: Duration) -> String {
        let (paths, around, silence) =
            (self.paths().join(", "), self.under_way(), duration(silence));
        format!(
            "{paths} did not answer any more around '{around}', between its requests, and was \
             given up after {silence}; see the kernel log (dmesg)"
        )
    }

    fn end(&self, ended: Result<Option<String>, RunError>, hung: Vec<String>) -> Ending {
        let harvest =
            std::mem::take(&mut *self.harvest.lock().unwrap_or_else(PoisonError::into_inner));
        let stalled = match &ended {
            Err(RunError::Stalled {
                workload, seconds, ..
            }) => Some(Stalled {
                around: workload.clone(),
                lasted_ns: seconds.saturating_mul(1_000_000_000),
            }),
            _ => None,
        };
        Ending {
            harvest,
            ended,
            hung,
            stalled,
        }
    }
}

fn duration(duration: Duration) -> String {
    format_duration(duration.as_secs() * 1_000_000_000)
}

/// Signs of life of a run: what the engine shows, what the disks complete, and the processor time
/// that this program uses.
struct Life {
    beats: u64,
    pulses: Vec<Pulse>,
    seen: Instant,
    looked: (Instant, Duration),
}

impl Life {
    fn new(identities: &[TargetIdentity]) -> Self {
        let now = Instant::now();
        Self {
            beats: 0,
            pulses: identities.iter().map(Pulse::of).collect(),
            seen: now,
            looked: (now, processor_time()),
        }
    }

    /// For how long there has been none.
    fn silence(&mut self, beats: u64) -> Duration {
        let now = Instant::now();
        if std::mem::replace(&mut self.beats, beats) != beats {
            self.seen = now;
        }
        if now - self.seen > QUIET && now - self.looked.0 > QUIET {
            let (elapsed, used) = (now - self.looked.0, processor_time());
            let is_busy =
                (used - self.looked.1).as_secs_f64() >= BUSY_SHARE * elapsed.as_secs_f64();
            // Each of them has to be asked.
            let beating = self
                .pulses
                .iter_mut()
                .filter_map(|pulse| pulse.beats().then_some(()))
                .count();
            self.looked = (now, used);
            if is_busy || beating > 0 {
                self.seen = now;
            }
        }
        now - self.seen
    }
}

/// Of all threads of this process so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
