//! A rotating disk: arm, turning platter, look-ahead buffer, and a queue from which the nearest
//! request is chosen (NCQ).

use super::geometry::{Geometry, Surface};
use super::timing::{DiskCompletion, DiskRequest, Operation, TimingModel};

/// The numbers of a rotating disk. Its write buffer is on: a sequential stream of writes is not
/// broken by the host's pauses, and a flush after writes costs one revolution. Random writes cost
/// what random reads do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rotating {
    /// Surface and arm of the disk.
    pub geometry: Geometry,
    /// Nanoseconds of electronics, per request.
    pub overhead_ns: u64,
    /// Requests among which the nearest is chosen; 1 is first come, first served.
    pub queue_depth: u32,
    /// Look-ahead and write buffer.
    pub buffer_bytes: u64,
}

/// The last bytes that the head read or wrote, and those that it follows on its own.
#[derive(Debug, Clone, Copy)]
struct Stream {
    operation: Operation,
    start_bytes: u64,
    next_bytes: u64,
    /// The time at which the head stood at `next_bytes`.
    head_ns: u64,
}

/// The wait after which a request goes first, however far away. With nearest first alone it might
/// wait for ever. Chosen: twice as long as a queue of 32 random requests takes.
const OVERDUE_NS: u64 = 1_000_000_000;

/// The most by which the rounding of the angle makes following a stream later than a seek to the
/// same place.
const ROUNDING_NS: u64 = 1_000;

/// A rotating disk at work.
pub struct RotatingMachine {
    disk: Rotating,
    surface: Surface,
    waiting: Vec<DiskRequest>,
    in_service: Option<DiskCompletion>,
    /// The time at which the head is free for the next request.
    free_ns: u64,
    /// The track that the head stands at: 0 at the outer edge, 1 at the inner.
    head_radius: f64,
    stream: Option<Stream>,
    /// True if writes since the last flush are in the buffer.
    has_unflushed_writes: bool,
}

/// The service of a request.
struct Service {
    /// The time at which the request ends.
    end_ns: u64,
    /// The bytes that the head would then follow on its own.
    stream: Option<Stream>,
}

impl Rotating {
    /// The disk at virtual time 0, its head at the outer edge.
    pub fn start(&self, size_bytes: u64) -> RotatingMachine {
        RotatingMachine {
            disk: *self,
            surface: self.geometry.lay_out(size_bytes),
            waiting: Vec::new(),
            in_service: None,
            free_ns: 0,
            head_radius: 0.0,
            stream: None,
            has_unflushed_writes: false,
        }
    }

    /// The mean time of one small random read at depth 1: electronics, mean seek, half a turn. Its
    /// transfer comes on top.
    pub fn access_time_ns(&self) -> u64 {
        self.overhead_ns + self.geometry.seek_average_ns + self.geometry.revolution_ns() / 2
    }
}

impl RotatingMachine {
    /// Returns the service of a request that the disk begins at `start_ns`, and changes nothing.
    fn service(&self, request: &DiskRequest, start_ns: u64) -> Service {
        let ready_ns = start_ns + self.disk.overhead_ns;
        if request.operation == Operation::Flush {
            let turn_ns = if self.has_unflushed_writes {
                self.disk.geometry.revolution_ns()
            } else {
                0
            };
            return self.service_without_head(ready_ns + turn_ns);
        }
        if request.operation == Operation::Trim {
            return self.service_without_head(ready_ns);
        }
        if self.is_buffered(request) {
            return self.service_without_head(ready_ns + request.extra_ns);
        }
        let next_bytes = request.offset_bytes + request.length_bytes;
        let reached = Stream {
            operation: request.operation,
            start_bytes: request.offset_bytes,
            next_bytes,
            head_ns: self.reach_ns(request, ready_ns)
                + self
                    .surface
                    .pass_ns(request.offset_bytes, request.length_bytes)
                + request.extra_ns,
        };
        let followed = self
            .followed_stream(request, start_ns)
            .filter(|stream| stream.head_ns <= reached.head_ns + ROUNDING_NS);
        let stream = followed.unwrap_or(reached);
        Service {
            end_ns: stream.head_ns.max(ready_ns + request.extra_ns),
            stream: Some(stream),
        }
    }

    /// The service of a request that leaves the head where it is.
    fn service_without_head(&self, end_ns: u64) -> Service {
        Service {
            end_ns,
            stream: self.stream,
        }
    }

    /// True if a read finds all its bytes among those the stream has just read.
    fn is_buffered(&self, request: &DiskRequest) -> bool {
        self.stream.is_some_and(|stream| {
            let oldest_bytes = stream
                .start_bytes
                .max(stream.next_bytes.saturating_sub(self.disk.buffer_bytes));
            let reads = stream.operation == Operation::Read && request.operation == Operation::Read;
            reads
                && request.offset_bytes >= oldest_bytes
                && request.offset_bytes + request.length_bytes <= stream.next_bytes
        })
    }

    /// The stream after the request, if the request lies on the stream's way, no further ahead than
    /// the buffer reaches.
    fn followed_stream(&self, request: &DiskRequest, start_ns: u64) -> Option<Stream> {
        let stream = self
            .stream
            .filter(|stream| stream.operation == request.operation)?;
        let gap_bytes = request.offset_bytes.checked_sub(stream.next_bytes)?;
        if gap_bytes > self.disk.buffer_bytes
            || (gap_bytes > 0 && request.operation == Operation::Write)
        {
            return None;
        }
        // The head has gone on since, but no further than the buffer has room.
        let ahead_ns = self
            .surface
            .pass_ns(stream.next_bytes, self.disk.buffer_bytes);
        let pass_ns = self
            .surface
            .pass_ns(stream.next_bytes, gap_bytes + request.length_bytes);
        let head_ns =
            stream.head_ns.max(start_ns.saturating_sub(ahead_ns)) + pass_ns + request.extra_ns;
        Some(Stream {
            next_bytes: request.offset_bytes + request.length_bytes,
            head_ns,
            ..stream
        })
    }

    /// Returns the time at which the head, released at `ready_ns`, first stands at the request's
    /// first byte.
    fn reach_ns(&self, request: &DiskRequest, ready_ns: u64) -> u64 {
        let place = self.surface.place(request.offset_bytes);
        let there_ns = ready_ns
            + self
                .surface
                .seek_ns((place.radius - self.head_radius).abs());
        there_ns + self.surface.turn_ns(there_ns, place.angle)
    }

    /// Returns the index of the one of the first `queue_depth` waiting requests that is next at
    /// `start_ns`: the nearest, but the first one of a sequential run.
    fn next_index(&self, start_ns: u64) -> usize {
        if let Some(overdue) = self
            .arrived(start_ns)
            .find(|i| self.waiting[*i].arrival_ns + OVERDUE_NS < start_ns)
        {
            return overdue;
        }
        let mut chosen = self
            .arrived(start_ns)
            .min_by_key(|i| self.service(&self.waiting[*i], start_ns).end_ns)
            .unwrap_or(0);
        // At most once per waiting request, because each step goes to a lower offset.
        while let Some(before) = self.arrived(start_ns).find(|i| {
            let (before, after) = (&self.waiting[*i], &self.waiting[chosen]);
            before.operation == after.operation
                && before.length_bytes > 0
                && before.offset_bytes + before.length_bytes == after.offset_bytes
                && !self.is_buffered(after)
        }) {
            chosen = before;
        }
        chosen
    }

    /// The number of waiting requests from which the disk chooses.
    fn window(&self) -> usize {
        let depth = self.disk.queue_depth.max(1) as usize;
        self.waiting.len().min(depth)
    }

    /// The indices of the requests in the window that have arrived by this time.
    fn arrived(&self, start_ns: u64) -> impl Iterator<Item = usize> + '_ {
        (0..self.window()).filter(move |i| self.waiting[*i].arrival_ns <= start_ns)
    }

    /// Takes the next request as soon as the head is free.
    fn begin_next(&mut self) {
        let window = &self.waiting[..self.window()];
        let Some(earliest_ns) = window.iter().map(|r| r.arrival_ns).min() else {
            return;
        };
        let start_ns = earliest_ns.max(self.free_ns);
        let nearest = self.next_index(start_ns);
        let request = self.waiting.remove(nearest);
        let Service { end_ns, stream } = self.service(&request, start_ns);
        match request.operation {
            Operation::Read | Operation::Trim => {}
            Operation::Write => self.has_unflushed_writes = true,
            Operation::Flush => self.has_unflushed_writes = false,
        }
        if let (Operation::Read | Operation::Write, Some(stream)) = (request.operation, stream) {
            self.head_radius = self
                .surface
                .place(stream.next_bytes.saturating_sub(1))
                .radius;
        }
        self.stream = stream;
        self.free_ns = end_ns;
        self.in_service = Some(DiskCompletion {
            at_ns: end_ns,
            ticket: request.ticket,
        });
    }
}

impl TimingModel for RotatingMachine {
    fn submit(&mut self, request: DiskRequest) {
        self.waiting.push(request);
    }

    fn take_done(&mut self, now_ns: u64) -> Option<DiskCompletion> {
        if self.in_service.is_none() {
            self.begin_next();
        }
        if self.in_service?.at_ns <= now_ns {
            self.in_service.take()
        } else {
            None
        }
    }

    fn next_ns(&self) -> Option<u64> {
        let waiting_ns = self
            .waiting
            .iter()
            .map(|r| r.arrival_ns)
            .min()
            .map(|ns| ns.max(self.free_ns));
        self.in_service.map(|c| c.at_ns).or(waiting_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::drive::{
        DISK, FLUSH, SIZE, TestRequest, arrival, closed_loop, ends, random_reads, read, total_ns,
        write,
    };

    const MIB: u64 = 1 << 20;
    const MOMENTUS: Rotating = Rotating {
        geometry: DISK,
        overhead_ns: 133_333,
        queue_depth: 32,
        buffer_bytes: 8 * MIB,
    };

    #[track_caller]
    fn near(value: f64, truth: f64, share: f64) {
        assert!(
            (value / truth - 1.0).abs() < share,
            "{value} is not {truth}"
        );
    }

    fn sequential(start: u64, count: u64) -> Vec<TestRequest> {
        (0..count).map(|k| read(start + k * MIB, MIB)).collect()
    }

    #[test]
    fn sequential_reads_run_at_zone_rate() {
        for (start, rate) in [(0, 92e6), (SIZE - 200 * MIB, 49e6)] {
            for depth in [1, 4] {
                let ends = ends(&mut MOMENTUS.start(SIZE), depth, &sequential(start, 200));
                assert!(ends.is_sorted());
                let measured = 199.0 * MIB as f64 / (ends[199] - ends[0]) as f64 * 1e9;
                near(measured, rate, 1e-4);
            }
        }
    }

    #[test]
    fn random_access_takes_seek_plus_half_rotation() {
        let loads = random_reads(20_000);
        let mean_ns = total_ns(&mut MOMENTUS.start(SIZE), 1, &loads) as f64 / 20_000.0;
        near(mean_ns, MOMENTUS.access_time_ns() as f64, 0.01);
        assert_eq!(MOMENTUS.access_time_ns(), 14_900_000 - 1);
    }

    #[test]
    fn unbuffered_rereads_take_one_rotation() {
        let bare = Rotating {
            buffer_bytes: 0,
            ..MOMENTUS
        };
        let ends = ends(&mut bare.start(SIZE), 1, &[read(1 << 30, 512); 5]);
        for pair in ends.windows(2) {
            assert!((pair[1] - pair[0]).abs_diff(8_333_333) < 10, "{ends:?}");
        }
    }

    #[test]
    fn deep_queue_serves_nearest_request_first() {
        let loads = random_reads(4000);
        let time = |depth, queue_depth| {
            let disk = Rotating {
                queue_depth,
                ..MOMENTUS
            };
            total_ns(&mut disk.start(SIZE), depth, &loads)
        };
        // A queue of 32 more than doubles the rate; without choice the depth does not matter.
        assert!(time(32, 32) * 2 < time(1, 32));
        near(time(32, 1) as f64, time(1, 1) as f64, 0.01);
        let far_and_near = [read(0, 512), read(SIZE - 512, 512), read(MIB, 512)];
        let ends = ends(&mut MOMENTUS.start(SIZE), 3, &far_and_near);
        assert!(ends[2] < ends[1], "{ends:?}");
    }

    #[test]
    fn reread_is_served_from_buffer() {
        let times = closed_loop(&mut MOMENTUS.start(SIZE), 1, &[read(1 << 30, MIB); 5]);
        assert_eq!(times[4].1 - times[0].1, 4 * MOMENTUS.overhead_ns);
    }

    #[test]
    fn out_of_order_queue_keeps_stream() {
        let mut loads: Vec<TestRequest> = (0..401).map(|k| read(k * MIB / 8, MIB / 8)).collect();
        for pair in loads[1..].chunks_exact_mut(2) {
            pair.swap(0, 1);
        }
        let surface = DISK.lay_out(SIZE);
        for depth in [1, 8] {
            let time_ns = total_ns(&mut MOMENTUS.start(SIZE), depth, &loads);
            let limit_ns =
                surface.pass_ns(0, 401 * MIB / 8) + 8_333_333 + 401 * MOMENTUS.overhead_ns;
            assert!(time_ns < limit_ns, "depth {depth}: {time_ns}");
        }
    }

    #[test]
    fn overdue_request_interrupts_stream() {
        let mut loads = sequential(0, 400);
        loads[1] = read(SIZE - MIB, MIB);
        let times = closed_loop(&mut MOMENTUS.start(SIZE), 2, &loads);
        assert!(times[1].1 < OVERDUE_NS + 100_000_000, "{:?}", times[1]);
    }

    #[test]
    fn host_pause_fills_buffer_and_keeps_stream() {
        let mut disk = MOMENTUS.start(SIZE);
        let ask = |ticket, arrival_ns| DiskRequest {
            offset_bytes: ticket * MIB,
            length_bytes: MIB,
            ..arrival(ticket, arrival_ns)
        };
        disk.submit(ask(0, 0));
        let first_ns = disk.take_done(u64::MAX).unwrap().at_ns;
        let later_ns = first_ns + 1_000_000_000;
        let ends: Vec<u64> = (1..12)
            .scan(later_ns, |now_ns, ticket| {
                disk.submit(ask(ticket, *now_ns));
                *now_ns = disk.take_done(u64::MAX).unwrap().at_ns;
                Some(*now_ns - later_ns)
            })
            .collect();
        // From the buffer, which holds eight; then at the platter's rate.
        assert_eq!(ends[0], MOMENTUS.overhead_ns);
        assert_eq!(ends[7], 8 * MOMENTUS.overhead_ns);
        let pass_ns = DISK.lay_out(SIZE).pass_ns(0, MIB);
        assert!((ends[10] - ends[9]).abs_diff(pass_ns) < 10, "{ends:?}");
    }

    #[test]
    fn commit_takes_one_rotation() {
        let commit = |k: u64| [write(k * 8192, 8192), FLUSH];
        let loads: Vec<TestRequest> = (0..50).flat_map(commit).collect();
        let ends = ends(&mut MOMENTUS.start(SIZE), 1, &loads);
        let mean_ns = (ends[99] - ends[1]) / 49;
        assert!((8_333_333..8_933_333).contains(&mean_ns), "{mean_ns}");
        // Nothing to flush.
        let flush_ns = total_ns(&mut MOMENTUS.start(SIZE), 1, &[FLUSH]);
        assert_eq!(flush_ns, MOMENTUS.overhead_ns);
    }

    #[test]
    fn writes_break_a_read_stream() {
        let ends = ends(
            &mut MOMENTUS.start(SIZE),
            1,
            &[read(0, MIB), write(MIB, MIB)],
        );
        let pass_ns = DISK.lay_out(SIZE).pass_ns(MIB, MIB);
        assert!(ends[1] - ends[0] > pass_ns + 1_000_000, "{ends:?}");
    }
}
