//! What a sampler asks of its backend: the rest of short transfers, the buffers of writes, and the
//! blocks whose content it samples.

use super::*;
use crate::io::RequestSource;
use crate::io::buffers::Buffers;
use crate::testing::simulate::FakeClock;

const PAGE: u32 = 4096;

/// A request as the backend got it, with its buffer's content.
struct Sent {
    request: Request,
    content: Vec<u8>,
}

/// A backend that moves at most a page for each request, at once.
struct ShortBackend {
    buffers: Buffers,
    sent: Vec<Sent>,
    done: Vec<(u32, i32)>,
}

impl Backend for ShortBackend {
    fn enqueue(&mut self, source: &mut impl RequestSource) -> io::Result<()> {
        while let Some(request) = source(&mut self.buffers) {
            let length = (request.skip + request.len) as usize;
            let content = self.buffers.bytes(request.buffer as usize, length).to_vec();
            self.done.push((request.slot, request.len.min(PAGE) as i32));
            self.sent.push(Sent { request, content });
        }
        Ok(())
    }

    fn reap(&mut self, sink: &mut impl FnMut(u32, i32)) {
        for (slot, result) in self.done.drain(..) {
            sink(slot, result);
        }
    }

    fn buffers(&self) -> &Buffers {
        &self.buffers
    }
}

/// A sampler with one request in flight of up to two pages, and two buffers.
fn sampler() -> Sampler<ShortBackend, FakeClock> {
    let backend = ShortBackend {
        buffers: Buffers::new(2, 2 * PAGE as usize).unwrap(),
        sent: Vec::new(),
        done: Vec::new(),
    };
    Sampler::new(backend, FakeClock::default(), 1, 7)
}

fn complete(sampler: &mut Sampler<ShortBackend, FakeClock>, op: Op, len: u32) -> Completion {
    sampler.submit(SampleRequest::new(op, 0, len)).unwrap();
    sampler.next_completion().unwrap().unwrap()
}

#[test]
fn short_transfer_goes_on_where_it_ended() {
    let mut sampler = sampler();
    let done = complete(&mut sampler, Op::Read, 6144);
    assert_eq!(done.result, Ok(6144));
    let sent: Vec<(u64, u32, u32)> = sampler
        .backend
        .sent
        .iter()
        .map(|sent| (sent.request.offset, sent.request.len, sent.request.skip))
        .collect();
    assert_eq!(sent, [(0, 6144, 0), (4096, 2048, 4096)]);
}

/// The rest of a write belongs to its beginning; the next write of the place is another one.
#[test]
fn write_has_one_stamp_for_all_its_parts() {
    let mut sampler = sampler();
    complete(&mut sampler, Op::Write, 6144);
    complete(&mut sampler, Op::Write, 4096);
    let [begin, rest, next] = &sampler.backend.sent[..] else {
        panic!("{}", sampler.backend.sent.len());
    };
    assert_eq!(begin.content, rest.content);
    assert_ne!(begin.content[..4096], next.content[..]);
}

/// Data that was read is never written.
#[test]
fn writes_use_buffers_of_their_own() {
    let mut sampler = sampler();
    sampler.write_buffer_offset = 1;
    complete(&mut sampler, Op::Read, PAGE);
    complete(&mut sampler, Op::Write, PAGE);
    let buffers: Vec<u32> = sampler
        .backend
        .sent
        .iter()
        .map(|sent| sent.request.buffer)
        .collect();
    assert_eq!(buffers, [0, 1]);
}

/// A look at a block of 4 KiB pauses the looks for 4096 ns.
#[test]
fn content_is_sampled_for_a_tenth_of_the_time_at_most() {
    let mut sampler = sampler();
    for _ in 0..5 {
        complete(&mut sampler, Op::Read, PAGE);
    }
    assert_eq!(sampler.zero_blocks.sampled, 1);
    sampler.clock.move_to(u64::from(PAGE) - 1);
    complete(&mut sampler, Op::Read, PAGE);
    assert_eq!(sampler.zero_blocks.sampled, 1);
    sampler.clock.move_to(u64::from(PAGE));
    complete(&mut sampler, Op::Read, PAGE);
    assert_eq!(sampler.take_zero_blocks().sampled, 2);
    assert_eq!(sampler.zero_blocks, ZeroSample::default());
}
