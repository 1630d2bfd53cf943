//! Targets with known truth for the tests of the search: a station of servers with random arrivals,
//! in virtual time.

use super::{Batch, MeasuredRate, RateAnswer, RateCell, RateCellKind, RateSearch, SearchStep};
use crate::fixture::test_rng::TestRng;

/// The distribution of service times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Exponential.
    Exponential,
    /// Every service takes the same time.
    Constant,
    /// Lognormal, with a standard deviation of 0.7 in the logarithm.
    HeavyTailed,
    /// Lognormal, with 1.2: at any rate some services are many times as long as the others.
    VeryHeavyTailed,
}

/// Recurring times during which no request is served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stalls {
    /// The length of one, in seconds.
    pub length_s: f64,
    /// The average time from the start of one to that of the next, in seconds.
    pub every_s: f64,
    /// The lengths of the stalls and of the pauses between them.
    pub lengths: StallLengths,
}

/// The lengths of stalls, and of the pauses between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StallLengths {
    /// All stalls last equally long, and the pauses nearly so.
    Even,
    /// Both are exponential: most are short, and a few are many times as long as the average.
    Exponential,
}

impl Stalls {
    /// The length of the next stall, in seconds.
    fn next_length_s(&self, rng: &mut TestRng) -> f64 {
        match self.lengths {
            StallLengths::Even => self.length_s,
            StallLengths::Exponential => self.length_s * rng.exponential(),
        }
    }

    /// The time until the next stall, in seconds.
    fn next_pause_s(&self, rng: &mut TestRng) -> f64 {
        let average_s = self.every_s - self.length_s;
        match self.lengths {
            StallLengths::Even => average_s * rng.between(0.8, 1.2),
            StallLengths::Exponential => average_s * rng.exponential(),
        }
    }
}

/// A limiter with a credit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Credit {
    /// Requests per second that always pass.
    pub base: f64,
    /// The requests beyond them that pass from a full credit.
    pub requests: f64,
}

/// The properties of a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Station {
    /// Requests that are served at the same time.
    pub servers: usize,
    /// Requests per second that all servers together can serve.
    pub capacity: f64,
    /// The distribution of the service times.
    pub service: Service,
    /// The stalls, if it has any.
    pub stalls: Option<Stalls>,
    /// The limiter, if it has one.
    pub credit: Option<Credit>,
    /// It becomes slower by this share of its capacity a second.
    pub slower_per_second: f64,
}

impl Station {
    /// A station without stalls, limiter and drift.
    pub fn new(servers: usize, capacity: f64, service: Service) -> Self {
        Self {
            servers,
            capacity,
            service,
            stalls: None,
            credit: None,
            slower_per_second: 0.0,
        }
    }
}

/// A lognormal value with a mean of 1 and this standard deviation of its logarithm.
fn lognormal(deviation: f64, normal: f64) -> f64 {
    (deviation * normal - 0.5 * deviation * deviation).exp()
}

/// A station at work, in virtual time.
pub struct Busy {
    station: Station,
    rng: TestRng,
    now_s: f64,
    /// The time at which each server is free again.
    free_s: Vec<f64>,
    stall_start_s: f64,
    stall_end_s: f64,
    /// The time at which the limiter would let the next request pass without a credit.
    limiter_s: f64,
    limit_s: f64,
}

impl Busy {
    /// An idle station. Requests that take longer than `limit_s` are late.
    pub fn new(station: Station, limit_s: f64, seed: u64) -> Self {
        let mut rng = TestRng(seed);
        // It has worked for long: its first stall may come at any time.
        let (stall_start_s, stall_end_s) = match station.stalls {
            Some(stalls) => {
                let start_s = rng.share() * stalls.every_s;
                (start_s, start_s + stalls.next_length_s(&mut rng))
            }
            None => (0.0, 0.0),
        };
        Self {
            station,
            rng,
            now_s: 0.0,
            free_s: vec![0.0; station.servers],
            stall_start_s,
            stall_end_s,
            limiter_s: 0.0,
            limit_s,
        }
    }

    /// Measures the cells of a search to its answer.
    pub fn carry_out(&mut self, mut search: RateSearch) -> RateAnswer {
        let mut measured = None;
        loop {
            match search.next(measured) {
                SearchStep::Cell(cell) => measured = Some(self.measure(cell)),
                SearchStep::Answer(answer) => return answer,
            }
        }
    }

    /// The share of requests that are late at a rate, over so many seconds.
    pub fn late_share(&mut self, rate: f64, time_s: f64) -> f64 {
        let measured = self.measure(RateCell {
            kind: RateCellKind::Near,
            rate,
            warmup_s: 10.0,
            time_s,
            batch_s: time_s,
            give_up_s: f64::INFINITY,
        });
        measured.late() / measured.requests()
    }

    /// Stays idle for a while.
    #[cfg(test)]
    pub(super) fn wait(&mut self, time_s: f64) {
        self.now_s += time_s;
    }

    pub(super) fn measure(&mut self, cell: RateCell) -> MeasuredRate {
        let begin_s = self.now_s;
        let counted_from_s = begin_s + cell.warmup_s;
        let count = (cell.time_s / cell.batch_s).round().max(1.0) as usize;
        let end_s = counted_from_s + count as f64 * cell.batch_s;
        let mut batches = vec![Batch::default(); count];
        let mut requests = 0u64;
        let mut gave_up = false;
        let mut arrival_s = begin_s;
        loop {
            arrival_s += self.rng.exponential() / cell.rate;
            if arrival_s >= end_s {
                arrival_s = end_s;
                break;
            }
            let (start_s, done_s) = self.serve(arrival_s);
            requests += 1;
            if arrival_s >= counted_from_s {
                let batch_number = ((arrival_s - counted_from_s) / cell.batch_s) as usize;
                let batch = &mut batches[batch_number.min(count - 1)];
                batch.requests += 1.0;
                batch.longest_s = batch.longest_s.max(done_s - arrival_s);
                if done_s - arrival_s > self.limit_s {
                    batch.late += 1.0;
                }
            }
            if start_s - arrival_s > cell.give_up_s {
                gave_up = true;
                break;
            }
        }
        if gave_up {
            let whole = ((arrival_s - counted_from_s) / cell.batch_s).max(1.0) as usize;
            batches.truncate(whole);
        }
        let drained_s = self.free_s.iter().copied().fold(arrival_s, f64::max);
        self.now_s = drained_s;
        MeasuredRate {
            cell,
            batches,
            late_by_own_delay: 0.0,
            served: requests as f64 / (drained_s - begin_s),
            gave_up,
            start_s: begin_s,
            end_s: drained_s,
        }
    }

    /// The times at which a request of this moment starts to be served, and is answered.
    fn serve(&mut self, arrival_s: f64) -> (f64, f64) {
        let mut server = 0;
        for (number, free_s) in self.free_s.iter().enumerate() {
            if *free_s < self.free_s[server] {
                server = number;
            }
        }
        let mut start_s = arrival_s.max(self.free_s[server]);
        if let Some(credit) = self.station.credit {
            start_s = start_s.max(self.limiter_s - credit.requests / credit.base);
            self.limiter_s = self.limiter_s.max(start_s) + 1.0 / credit.base;
        }
        if let Some(stalls) = self.station.stalls {
            while start_s >= self.stall_end_s {
                self.stall_start_s = self.stall_end_s + stalls.next_pause_s(&mut self.rng);
                self.stall_end_s = self.stall_start_s + stalls.next_length_s(&mut self.rng);
            }
            if start_s >= self.stall_start_s {
                start_s = self.stall_end_s;
            }
        }
        let mean_s = self.station.servers as f64 / self.station.capacity;
        let taken_s = match self.station.service {
            Service::Exponential => mean_s * self.rng.exponential(),
            Service::Constant => mean_s,
            Service::HeavyTailed => mean_s * lognormal(0.7, self.rng.normal()),
            Service::VeryHeavyTailed => mean_s * lognormal(1.2, self.rng.normal()),
        };
        let speed = (1.0 - self.station.slower_per_second * start_s).max(0.5);
        let done_s = start_s + taken_s / speed;
        self.free_s[server] = done_s;
        (start_s, done_s)
    }
}

/// The rate at which this share of requests is late in the long run, by bisection over simulations
/// of so many requests each.
pub fn true_rate(station: Station, limit_s: f64, late_share: f64, requests: f64) -> f64 {
    let unlimited = Station {
        credit: None,
        ..station
    };
    let (mut low, mut high) = (0.02 * station.capacity, 1.15 * station.capacity);
    let time_s = requests / station.capacity;
    for _ in 0..12 {
        let middle = (low + high) / 2.0;
        if Busy::new(unlimited, limit_s, 7).late_share(middle, time_s) > late_share {
            high = middle;
        } else {
            low = middle;
        }
    }
    let rate = (low + high) / 2.0;
    match station.credit {
        Some(credit) => rate.min(credit.base),
        None => rate,
    }
}
