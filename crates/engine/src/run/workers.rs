//! The threads of one workload or of several that run together: made together, started at one
//! instant, followed until the last is home.

use crate::io::clock::{Clock, MonotonicClock};
use crate::load::pacer::Pacer;
use crate::load::pattern::{Cursors, Pattern};
use crate::measure::snapshot::{SharedInterim, look_into};
use crate::measure::worker::{Ending, Yield};
use crate::run::error::RunError;
use crate::run::hang::{Asked, PATIENCE_WITHOUT_END, give_up, join, silence_ns};
use crate::run::limits::{
    after_write_of, allowance_of, largest_block, schedule_of, threads_per_worker, within_part,
};
use crate::run::session::{Prepared, Session};
use crate::run::spawn::{Orders, Report, Start, spawn};
use diskproof_device::OpenTarget;
use diskproof_model::group::Group;
use diskproof_model::measurement::{CpuTime, Hang, SERIES_INTERVAL_NS};
use diskproof_model::plan::{Access, Workload};
use diskproof_model::progress::{Control, Phase, Progress, Silence, Watch};
use diskproof_model::series::TimeSeries;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often the watcher is asked.
pub const TICK: Duration = Duration::from_millis(50);
/// From the decision to start to the common start: long enough for every thread to wake up.
const LEAD_NS: u64 = 300_000;

/// A workload on a target.
#[derive(Clone, Copy)]
pub struct Post<'a> {
    /// What to do.
    pub workload: &'a Workload,
    /// Its place in the group.
    pub member: usize,
    /// Index of the target.
    pub target: usize,
    /// The target, by the description that this workload uses.
    pub open: &'a OpenTarget,
    /// What was found and chosen before.
    pub prepared: &'a Prepared,
}

/// The threads of all posts.
pub struct Crew<'a> {
    group: Group<'a>,
    /// [`crate::run::hang::STALL_NS`], or what was asked for.
    stall_ns: u64,
    posts: &'a [Post<'a>],
    reports: Receiver<Report>,
    starts: Vec<Sender<Start>>,
    /// For each target, whether its threads are told to end.
    stops: Vec<Arc<AtomicBool>>,
    /// For each workload, what its threads have published, of all targets.
    published: Vec<Arc<Mutex<TimeSeries>>>,
    /// For each post, what the backends have on, for the record.
    pub features: Vec<Vec<String>>,
    /// For each post, what the threads brought home.
    pub yields: Vec<Vec<Yield>>,
    /// For each post in an open loop, its schedule; from time zero on.
    pub pacers: Vec<Option<Pacer>>,
    /// For each post, the CPU time of its threads.
    pub cpu: Vec<CpuTime>,
    /// For each post, what the target never answered.
    pub hangs: Vec<Option<Hang>>,
    /// For each post, the threads that are not home yet.
    working: Vec<usize>,
    hands: Vec<Hand>,
}

/// A thread, as seen from here.
struct Hand {
    post: usize,
    interim: SharedInterim,
    whereabouts: Whereabouts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whereabouts {
    AtWork,
    /// Its result is here, or it was given up.
    Home,
}

impl<'a> Crew<'a> {
    /// Starts all threads, and waits until each has its backend. `posts` holds, workload by
    /// workload, one per target.
    pub fn start(
        Session { seed, stall_ns, .. }: Session,
        group: Group<'a>,
        posts: &'a [Post<'a>],
    ) -> Result<Self, RunError> {
        let (sender, reports) = channel();
        let targets = posts.len() / group.workloads.len();
        let mut crew = Self {
            group,
            stall_ns,
            posts,
            reports,
            starts: Vec::new(),
            stops: (0..targets)
                .map(|_| Arc::new(AtomicBool::new(false)))
                .collect(),
            published: group
                .workloads
                .iter()
                .map(|_| Arc::new(Mutex::new(TimeSeries::new(SERIES_INTERVAL_NS))))
                .collect(),
            features: vec![Vec::new(); posts.len()],
            yields: posts.iter().map(|_| Vec::new()).collect(),
            pacers: posts
                .iter()
                .map(|post| post.workload.rate.map(|rate| Pacer::new(0, rate)))
                .collect(),
            cpu: vec![CpuTime::default(); posts.len()],
            hangs: vec![None; posts.len()],
            working: vec![0; posts.len()],
            hands: Vec::new(),
        };
        let workloads: Vec<Arc<Workload>> = group
            .workloads
            .iter()
            .map(|workload| Arc::new(workload.clone()))
            .collect();
        for (index, post) in posts.iter().enumerate() {
            let orders = crew.orders_for(seed, &workloads[post.member], index);
            crew.man(index, orders, &sender)?;
        }
        Ok(crew)
    }

    /// Starts the threads of a post, and waits until each has its backend. Each worker has a
    /// description of its own, the threads of one share it.
    fn man(
        &mut self,
        index: usize,
        orders: Vec<Vec<Orders>>,
        sender: &Sender<Report>,
    ) -> Result<(), RunError> {
        let open = self.posts[index].open;
        let is_alone = orders.len() == 1;
        let (mut descriptions, mut outcome) = (Vec::new(), Ok(()));
        for worker in orders {
            if !is_alone && outcome.is_ok() {
                outcome = open
                    .for_worker()
                    .map(|fd| descriptions.push(fd))
                    .map_err(RunError::from);
            }
            let fd = descriptions.last().map_or(open.fd(), AsFd::as_fd);
            for mut orders in worker {
                orders.number = self.hands.len();
                let interim = Arc::clone(&orders.interim);
                let (start, started) = channel();
                outcome = outcome.and_then(|()| {
                    spawn(orders, fd, started, sender.clone()).map_err(RunError::Thread)
                });
                if outcome.is_ok() {
                    self.starts.push(start);
                    self.working[index] += 1;
                    self.hands.push(Hand {
                        post: index,
                        interim,
                        whereabouts: Whereabouts::AtWork,
                    });
                }
            }
        }
        let ready = self.await_ready(index);
        outcome.and(ready)
    }

    /// By worker, for each of its threads.
    fn orders_for(&self, seed: u64, workload: &Arc<Workload>, post: usize) -> Vec<Vec<Orders>> {
        let Post {
            member,
            target,
            prepared,
            ..
        } = self.posts[post];
        let threads_per_worker = threads_per_worker(workload, prepared.selection.kind);
        let depth = workload.depth / threads_per_worker;
        let threads = u64::from(workload.workers) * u64::from(threads_per_worker);
        let block = u64::from(largest_block(workload));
        let allowance = allowance_of(workload, threads);
        let mut all = Vec::new();
        for worker in 0..u64::from(workload.workers) {
            let cursors = Cursors::default();
            let of_worker =
                prepared
                    .extent
                    .share(&workload.access, worker, u64::from(workload.workers), block);
            let of_worker = within_part(&allowance, workload, of_worker, prepared.extent);
            let mut threads_of_worker = Vec::new();
            for slot in 0..u64::from(threads_per_worker) {
                let index = worker * u64::from(threads_per_worker) + slot;
                let stream = (post as u64) << 32 | index;
                let ordered = matches!(workload.access, Access::Sequential);
                let (part, parts) = if ordered {
                    (worker, u64::from(workload.workers))
                } else {
                    (index, threads)
                };
                let extent = prepared.extent.share(&workload.access, part, parts, block);
                let mut pattern = Pattern::new(workload, extent, seed, stream);
                if threads_per_worker > 1 {
                    pattern = pattern.together(&cursors, extent);
                }
                threads_of_worker.push(Orders {
                    post,
                    number: 0,
                    workload: Arc::clone(workload),
                    kind: prepared.selection.kind,
                    cache: prepared.cache.used,
                    pattern,
                    extent: prepared.extent,
                    ledger: prepared.ledger.clone(),
                    depth,
                    // In order, the threads of a worker go through its part together.
                    allowance: if ordered {
                        of_worker.clone()
                    } else {
                        within_part(&allowance, workload, extent, prepared.extent)
                    },
                    after_write: after_write_of(workload, prepared.cache.used),
                    pacer: self.pacers[post].clone(),
                    seed,
                    stream,
                    stop: Arc::clone(&self.stops[target]),
                    published: Arc::clone(&self.published[member]),
                    interim: SharedInterim::default(),
                });
            }
            all.push(threads_of_worker);
        }
        all
    }

    /// Hears of every thread of a post, also where one has failed: until then they use descriptors
    /// that are not theirs.
    fn await_ready(&mut self, post: usize) -> Result<(), RunError> {
        let mut outcome = Ok(());
        for _ in 0..self.working[post] {
            let failure = match self.reports.recv() {
                Ok(Report::Ready(post, features)) => {
                    self.features[post] = features;
                    continue;
                }
                Ok(Report::Failed(number, source)) => self.error(number, source),
                Ok(Report::Done(..)) | Err(_) => self.lost(),
            };
            outcome = outcome.and(Err(failure));
        }
        outcome
    }

    /// A thread is not home, and will never be.
    fn lost(&self) -> RunError {
        let post = self
            .working
            .iter()
            .position(|working| *working > 0)
            .unwrap_or(0);
        RunError::Lost {
            workload: self.posts[post].workload.name.clone(),
        }
    }

    fn error(&self, number: usize, source: io::Error) -> RunError {
        let post = self.hands[number].post;
        worker_error(self.posts[post].workload, self.posts[post].open, source)
    }

    /// Gives the common start.
    pub fn release(&mut self) -> Start {
        let at_ns = MonotonicClock.now() + LEAD_NS;
        let start = Start {
            at_ns,
            schedule: schedule_of(self.group, at_ns),
        };
        for sender in self.starts.drain(..) {
            // A worker that is gone has reported why.
            let _ = sender.send(start);
        }
        start
    }

    /// Waits for all workers; asks the watcher meanwhile. Returns what the watcher said last.
    pub fn follow(
        &mut self,
        phase: Phase,
        start: Start,
        watch: &mut dyn Watch,
    ) -> Result<Control, RunError> {
        let (mut told, mut failure) = (Control::Continue, None);
        let mut ending_since = vec![None; self.stops.len()];
        let mut known = vec![false; self.group.workloads.len()];
        while self.working.iter().any(|working| *working > 0) {
            match self.reports.recv_timeout(TICK) {
                // Given up, and answered after all: too late.
                Ok(Report::Done(number, ..) | Report::Failed(number, _))
                    if self.hands[number].whereabouts == Whereabouts::Home => {}
                Ok(Report::Done(number, done, cpu)) => self.come_home(number, *done, cpu),
                Ok(Report::Failed(number, source)) => {
                    failure.get_or_insert(self.error(number, source));
                    self.leave(number);
                    self.stop_all();
                }
                Ok(Report::Ready(..)) | Err(RecvTimeoutError::Timeout) => {}
                // What the others did must not pass for all of it.
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(failure.unwrap_or_else(|| self.lost()));
                }
            }
            let now = MonotonicClock.now();
            // Told to end, too: it is worth knowing what the end waits for.
            let control = self.tick(phase, start, now, &mut known, watch);
            if told == Control::Continue && control != Control::Continue {
                told = control;
                self.stop_all();
            }
            self.give_up_stalled(start, now, &mut ending_since);
        }
        failure.map_or(Ok(told), Err)
    }

    fn stop_all(&self) {
        self.stops
            .iter()
            .for_each(|stop| stop.store(true, Ordering::Relaxed));
    }

    /// Notes that a thread works no more; its post.
    fn leave(&mut self, number: usize) -> usize {
        let hand = &mut self.hands[number];
        hand.whereabouts = Whereabouts::Home;
        self.working[hand.post] -= 1;
        hand.post
    }

    /// With its last thread a post is over. Where it was done before its time, or given up, the
    /// others on its target end too: from here on their figures would be those of another load.
    fn come_home(&mut self, number: usize, done: Yield, cpu: CpuTime) {
        let post = self.leave(number);
        self.yields[post].push(done);
        self.cpu[post].user_ns += cpu.user_ns;
        self.cpu[post].system_ns += cpu.system_ns;
        let is_early = |y: &Yield| matches!(y.ending, Ending::Allowance | Ending::Errors(_));
        let is_over = self.working[post] == 0 && self.yields[post].iter().all(is_early);
        if is_over && !self.group.is_alone() {
            self.stops[self.posts[post].target].store(true, Ordering::Relaxed);
        }
    }

    /// Gives up each target that has not answered for too long after it was time to end: what its
    /// threads have shown comes home without them. Nothing more may be asked of it then.
    fn give_up_stalled(&mut self, start: Start, now: u64, ending_since: &mut [Option<u64>]) {
        for (target, since) in ending_since.iter_mut().enumerate() {
            if since.is_none()
                && (now >= start.schedule.end_ns || self.stops[target].load(Ordering::Relaxed))
            {
                *since = Some(now);
            }
            if since.is_none()
                && self.is_endless()
                && self.silence_of(target, start, now)
                    > self.stall_ns.saturating_mul(PATIENCE_WITHOUT_END)
            {
                *since = Some(now);
            } else if since.is_none_or(|since| now - since <= self.stall_ns) {
                continue;
            }
            let since = since.unwrap_or(now);
            let ending = if since >= start.schedule.end_ns {
                (Ending::Time, start.schedule.end_ns)
            } else {
                (Ending::Told, since)
            };
            let is_stuck = |hand: &Hand| {
                hand.whereabouts == Whereabouts::AtWork && self.posts[hand.post].target == target
            };
            let stuck: Vec<usize> = (0..self.hands.len())
                .filter(|number| is_stuck(&self.hands[*number]))
                .collect();
            if !stuck.is_empty() {
                self.stops[target].store(true, Ordering::Relaxed);
                self.posts
                    .iter()
                    .filter(|post| post.target == target)
                    .for_each(|post| post.open.leave_open());
            }
            for number in stuck {
                let post = self.leave(number);
                let Post {
                    workload, prepared, ..
                } = self.posts[post];
                let (start_ns, measure_ns) = (start.at_ns, start.schedule.measure_ns);
                let asked = Asked {
                    workload,
                    engine: prepared.selection.kind,
                    start_ns,
                    measure_ns,
                    ending,
                };
                let (done, hang) = give_up(&self.hands[number].interim, asked, now);
                self.hangs[post] = Some(join(self.hangs[post], hang));
                self.yields[post].push(done);
            }
        }
    }

    /// Shows the watcher every workload, and says what it makes of them together.
    fn tick(
        &self,
        phase: Phase,
        start: Start,
        now: u64,
        known: &mut [bool],
        watch: &mut dyn Watch,
    ) -> Control {
        let silence = self.silence(start, now);
        for (member, known) in known.iter_mut().enumerate() {
            match self.tick_one(member, (phase, silence), start, now, watch) {
                Control::Interrupt => return Control::Interrupt,
                Control::Enough => *known = true,
                Control::Continue => {}
            }
        }
        if self.group.is_known(known) {
            Control::Enough
        } else {
            Control::Continue
        }
    }

    /// Whether only operations or bytes that are done end this, and it would wait for those for
    /// good.
    fn is_endless(&self) -> bool {
        self.group.time_ns().is_none()
    }

    /// For how long a target has been asked for something and has completed nothing; 0 where it has
    /// not been asked.
    fn silence_of(&self, target: usize, start: Start, now: u64) -> u64 {
        let hands = self
            .hands
            .iter()
            .filter(|hand| self.working[hand.post] > 0 && self.posts[hand.post].target == target);
        silence_ns(hands.map(|hand| look_into(&hand.interim)), start.at_ns, now).unwrap_or(0)
    }

    /// The target that has been asked for something and has completed nothing for longest.
    fn silence(&self, start: Start, now: u64) -> Option<Silence> {
        let of_target = |target| Silence {
            target,
            length_ns: self.silence_of(target, start, now),
        };
        (0..self.stops.len())
            .map(of_target)
            .filter(|silence| silence.length_ns > 0)
            .max_by_key(|silence| silence.length_ns)
    }

    fn tick_one(
        &self,
        member: usize,
        (phase, silence): (Phase, Option<Silence>),
        start: Start,
        now: u64,
        watch: &mut dyn Watch,
    ) -> Control {
        let workload = &self.group.workloads[member];
        let series = self.published[member]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let (phase, since) = match phase {
            Phase::Measure if now < start.schedule.measure_ns => (Phase::Warmup, start.at_ns),
            other => (other, start.schedule.measure_ns),
        };
        let elapsed_ns = now.saturating_sub(since);
        let total = series.total();
        let share =
            |part: u64, whole: Option<u64>| whole.map(|whole| part as f64 / whole.max(1) as f64);
        // Bytes and operations are counted over all targets, but limited for each.
        let all = |each: Option<u64>| each.map(|each| each.saturating_mul(self.stops.len() as u64));
        let limits = [
            share(elapsed_ns, self.group.time_ns()),
            share(total.bytes, all(workload.stop.bytes)),
            share(total.ops, all(workload.stop.ops)),
        ];
        let done = limits
            .into_iter()
            .flatten()
            .reduce(f64::max)
            .map(|share| share.min(1.0));
        watch.tick(&Progress {
            name: &workload.name,
            phase,
            elapsed_ns,
            done,
            series: &series,
            silence,
            resume_bytes: None,
        })
    }
}

/// A worker could not go on.
pub fn worker_error(workload: &Workload, target: &OpenTarget, source: io::Error) -> RunError {
    RunError::Worker {
        path: target.identity().path.clone(),
        workload: workload.name.clone(),
        source,
    }
}
