//! Answers for workloads that run at the same time when they end, and whether they can run together
//! at all.

use crate::workload::{CachePolicy, Layout, Span, Start, Stop, Verify, Workload};

/// Neighbours in a plan that run at the same time; mostly a single one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group<'a> {
    /// Place of the first in the plan, from 0.
    pub first: usize,
    /// The members, in the order of the plan; never empty.
    pub workloads: &'a [Workload],
}

/// The reason why workloads cannot run at the same time, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Clash {
    /// One gives the scratch file its content, which the others must find.
    #[error(
        "'{name}' writes the scratch file for the first time, so nothing can run together with it. \
         Run it before the others"
    )]
    Layout {
        /// The one that writes.
        name: String,
    },
    /// One workload would overwrite what another checks.
    #[error(
        "'{verified}' checks blocks, but '{writer}' writes to the same span at the same time. Give \
         each a separate span, such as \"0-50%\" and \"50%-100%\" (fio jobs: offset and size)"
    )]
    Verified {
        /// The one that checks.
        verified: String,
        /// The one that overwrites.
        writer: String,
    },
    /// A target has one page cache for all workloads.
    #[error(
        "'{cached}' keeps the page cache, but '{buffered}' empties it. A target has only one page \
         cache, so make both cached or both buffered"
    )]
    PageCache {
        /// The one that keeps it.
        cached: String,
        /// The one that empties it.
        buffered: String,
    },
}

/// The workloads by what runs at the same time, in order.
pub fn groups(list: &[Workload]) -> impl Iterator<Item = Group<'_>> {
    let mut first = 0;
    list.chunk_by(|_, next| next.start == Start::WithPrevious)
        .map(move |workloads| {
            let group = Group { first, workloads };
            first += workloads.len();
            group
        })
}

impl<'a> Group<'a> {
    /// These workloads, the first of which has this place in the plan.
    pub const fn new(first: usize, workloads: &'a [Workload]) -> Self {
        Self { first, workloads }
    }

    /// A single workload, the first of its plan.
    pub fn alone(workload: &'a Workload) -> Self {
        Self::new(0, std::slice::from_ref(workload))
    }

    /// True of a single workload.
    pub fn is_alone(&self) -> bool {
        self.workloads.len() == 1
    }

    /// The measured time after which all of them have ended, in nanoseconds; `None` without a
    /// limit. One that does not end alone ends all others with it.
    pub fn time_ns(&self) -> Option<u64> {
        let mut longest_ns = 0;
        for workload in self.workloads {
            longest_ns = longest_ns.max(self.time_of(workload)?);
        }
        Some(longest_ns)
    }

    /// The time after which all of them have ended, in nanoseconds, with the warm-up and the delays
    /// of their starts; `None` without a limit.
    pub fn whole_ns(&self) -> Option<u64> {
        let mut longest_ns: u64 = 0;
        for workload in self.workloads {
            let delay_ns = workload.shape.starts.delay_ns;
            longest_ns = longest_ns.max(self.time_of(workload)?.saturating_add(delay_ns));
        }
        Some(self.warmup_ns().saturating_add(longest_ns))
    }

    /// The measured time after which one of them ends, in nanoseconds; `None` without a limit. One
    /// without any limit of its own runs as long as the others.
    pub fn time_of(&self, workload: &Workload) -> Option<u64> {
        let shared_ns = self
            .workloads
            .iter()
            .filter(|other| !other.ends_alone)
            .flat_map(|other| other.stop.time_ns)
            .min();
        let own_ns = if workload.stop == Stop::default() {
            self.times_ns().max()
        } else {
            workload.stop.time_ns
        };
        match (own_ns, shared_ns) {
            (Some(own_ns), Some(shared_ns)) => Some(own_ns.min(shared_ns)),
            (own_ns, shared_ns) => own_ns.or(shared_ns),
        }
    }

    /// The shortest measured time that one of them asks for, in nanoseconds; `None` without any.
    pub fn shortest_ns(&self) -> Option<u64> {
        self.times_ns().min()
    }

    /// The time limits of those that have one.
    fn times_ns(&self) -> impl Iterator<Item = u64> {
        self.workloads
            .iter()
            .flat_map(|workload| workload.stop.time_ns)
    }

    /// The warm-up of all of them, in nanoseconds: the longest.
    pub fn warmup_ns(&self) -> u64 {
        self.workloads
            .iter()
            .map(|workload| workload.warmup_ns)
            .max()
            .unwrap_or(0)
    }

    /// The warm-up of one of them, in nanoseconds: its own, or that of all.
    pub fn warmup_of(&self, workload: &Workload) -> u64 {
        if workload.shape.starts.own_warmup {
            workload.warmup_ns
        } else {
            self.warmup_ns()
        }
    }

    /// True if all of them may end before their time, because their rates are known. `known` has an
    /// entry for each workload, in their order: true if it has a goal of precision and has reached
    /// it. At least one must be true. A workload that is not known prevents the end, unless it has
    /// no limit at all and so runs as long as the others.
    pub fn may_end(&self, known: &[bool]) -> bool {
        debug_assert_eq!(known.len(), self.workloads.len());
        for (workload, is_known) in self.workloads.iter().zip(known) {
            let is_endless = !self.is_alone() && workload.stop == Stop::default();
            if !is_known && !is_endless {
                return false;
            }
        }
        known.contains(&true)
    }

    /// Names of the others that run on a target of this one, in order.
    pub fn names_beside<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'a str> + 'b {
        let named = self.workloads.iter().find(|workload| workload.name == name);
        self.workloads
            .iter()
            .filter(move |other| match named {
                Some(named) => other.name != name && named.shares_target(other),
                None => true,
            })
            .map(|other| other.name.as_str())
    }

    /// The reason why they cannot run at the same time; `None` where they can.
    pub fn clash(&self) -> Option<Clash> {
        if self.is_alone() {
            return None;
        }
        for workload in self.workloads {
            if workload.layout == Layout::Provides {
                return Some(Clash::Layout {
                    name: workload.name.clone(),
                });
            }
        }
        let overwritten = self.overwritten();
        if overwritten.is_some() {
            return overwritten;
        }
        self.mixed_caches()
    }

    /// The clash of two workloads that share the page cache of a target, where one empties it.
    fn mixed_caches(&self) -> Option<Clash> {
        for first in self.workloads {
            let caches = self
                .workloads
                .iter()
                .filter(|other| other.shares_target(first))
                .map(|other| (other.name.as_str(), other.cache));
            let clash = page_cache_clash(caches);
            if clash.is_some() {
                return clash;
            }
        }
        None
    }

    /// The clash of a workload that checks blocks with another one that writes to its span.
    fn overwritten(&self) -> Option<Clash> {
        for (index, verified) in self.workloads.iter().enumerate() {
            if verified.verify != Verify::Checksum {
                continue;
            }
            for (other_index, other) in self.workloads.iter().enumerate() {
                if other_index != index
                    && other.writes()
                    && other.shares_target(verified)
                    && do_overlap(verified.span, other.span)
                    && !have_same_signatures(verified, other)
                {
                    return Some(Clash::Verified {
                        verified: verified.name.clone(),
                        writer: other.name.clone(),
                    });
                }
            }
        }
        None
    }
}

/// The clash of workloads that keep the page cache of a target with those that empty it.
pub fn page_cache_clash<'a>(
    caches: impl Iterator<Item = (&'a str, CachePolicy)> + Clone,
) -> Option<Clash> {
    let mut cached = None;
    let mut buffered = None;
    for (name, policy) in caches {
        match policy {
            CachePolicy::Cached => cached = cached.or(Some(name)),
            CachePolicy::Buffered => buffered = buffered.or(Some(name)),
            CachePolicy::Direct => {}
        }
    }
    Some(Clash::PageCache {
        cached: cached?.to_owned(),
        buffered: buffered?.to_owned(),
    })
}

/// True if a read of one finds the blocks of both intact, whichever wrote last.
fn have_same_signatures(one: &Workload, other: &Workload) -> bool {
    let signed_bytes = one.signed_bytes();
    let distance = one.span.start_bytes.abs_diff(other.span.start_bytes);
    [one, other].iter().all(|workload| {
        workload.verify == Verify::Checksum
            && workload.writes()
            && workload.shape.content.shares_verified
            && !workload.streams.drops_blocks()
    }) && other.signed_bytes() == signed_bytes
        && distance.is_multiple_of(u64::from(signed_bytes.max(1)))
        && one.shape.content.known == other.shape.content.known
}

/// True if both spans have a byte in common.
fn do_overlap(one: Span, other: Span) -> bool {
    one.start_bytes < end_bytes(other) && other.start_bytes < end_bytes(one)
}

/// The end of a span in bytes; the largest number for one without a length.
fn end_bytes(span: Span) -> u64 {
    match span.length_bytes {
        Some(length) => span.start_bytes.saturating_add(length),
        None => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::BlockPattern;
    use crate::stream::Streams;

    fn group(workloads: &[Workload]) -> Group<'_> {
        Group {
            first: 0,
            workloads,
        }
    }

    fn writer(name: &str, start_bytes: u64, length_bytes: Option<u64>) -> Workload {
        Workload {
            streams: Streams::with_reads(0),
            span: Span {
                start_bytes,
                length_bytes,
            },
            ..Workload::named(name)
        }
    }

    #[test]
    fn verified_span_clashes_with_another_writer() {
        let is_clash = |verified: Workload, other: Workload| {
            let verified = Workload {
                verify: Verify::Checksum,
                ..verified
            };
            group(&[other, verified]).clash().is_some()
        };
        assert!(is_clash(writer("a", 0, Some(100)), writer("b", 99, None)));
        assert!(!is_clash(writer("a", 0, Some(100)), writer("b", 100, None)));
        assert!(!is_clash(writer("a", 100, None), writer("b", 0, Some(100))));
        // Reading is free.
        assert!(!is_clash(writer("a", 0, None), Workload::named("b")));
        let alone = Workload {
            verify: Verify::Checksum,
            ..writer("a", 0, None)
        };
        assert_eq!(group(&[alone]).clash(), None);
    }

    #[test]
    fn verified_blocks_are_shared_only_with_others_that_sign_alike() {
        let shared = |name: &str, block_bytes| {
            let mut workload = Workload {
                verify: Verify::Checksum,
                block_bytes,
                ..writer(name, 0, None)
            };
            workload.shape.content.shares_verified = true;
            workload
        };
        let clash = |other: Workload| group(&[shared("a", 65_536), other]).clash().is_some();
        assert!(!clash(shared("b", 65_536)));
        // Both sign parts of 4 KiB.
        assert!(!clash(shared("b", 8192)));
        assert!(clash(shared("b", 512)));
        assert!(clash(writer("b", 0, None)));
        let mut moved = shared("b", 65_536);
        moved.span.start_bytes = 512;
        assert!(clash(moved));
        let signs_only = Workload {
            verify: Verify::SignOnly,
            ..shared("b", 65_536)
        };
        assert!(clash(signs_only));
        let mut other_content = shared("b", 65_536);
        other_content.shape.content.known = Some(BlockPattern {
            bytes: vec![1],
            offset_places: Vec::new(),
            files: None,
        });
        assert!(clash(other_content));
    }

    #[test]
    fn cached_and_buffered_workloads_clash() {
        let with = |name: &str, cache| Workload {
            cache,
            ..Workload::named(name)
        };
        use CachePolicy::{Buffered, Cached, Direct};
        let clash = |a, b| group(&[with("a", a), with("b", b)]).clash();
        let page_cache = Clash::PageCache {
            cached: "a".to_owned(),
            buffered: "b".to_owned(),
        };
        assert_eq!(clash(Cached, Buffered), Some(page_cache));
        assert_eq!(clash(Cached, Direct), None);
        assert_eq!(clash(Direct, Buffered), None);
        assert_eq!(clash(Cached, Cached), None);
        let fills = Workload {
            layout: Layout::Provides,
            ..writer("fill", 0, None)
        };
        let clash = group(&[fills, with("a", Direct)]).clash();
        assert!(matches!(clash, Some(Clash::Layout { .. })));
    }

    #[test]
    fn group_is_known_when_every_goal_is_reached() {
        let named = |name: &str, precision, time_ns| Workload {
            stop: Stop {
                precision,
                time_ns,
                ..Stop::default()
            },
            ..Workload::named(name)
        };
        let (precise, timed) = (named("a", Some(0.02), None), named("b", None, Some(5)));
        let endless = Workload::named("c");
        let two = [precise.clone(), endless];
        assert!(group(&two).may_end(&[true, false]) && !group(&two).may_end(&[false, false]));
        let two = [precise.clone(), timed];
        // The other has time left.
        assert!(!group(&two).may_end(&[true, false]));
        let two = [precise.clone(), precise];
        assert!(!group(&two).may_end(&[true, false]) && group(&two).may_end(&[true, true]));
        assert!(!group(&[Workload::named("alone")]).may_end(&[false]));
    }

    #[test]
    fn delayed_start_is_part_of_the_whole_time() {
        let delayed = |delay_s, time_s| {
            let mut workload = Workload::named("w");
            workload.shape.starts.delay_ns = delay_s;
            workload.stop.time_ns = Some(time_s);
            workload.ends_alone = true;
            workload
        };
        let mut two = [delayed(0, 10), delayed(5, 3)];
        assert_eq!(group(&two).whole_ns(), Some(10));
        two[0].warmup_ns = 2;
        two[1].shape.starts.delay_ns = 12;
        assert_eq!(group(&two).whole_ns(), Some(17));
        assert_eq!(group(&two).time_ns(), Some(10));
        two[1].stop.time_ns = None;
        two[1].stop.ops = Some(1);
        assert_eq!(group(&two).whole_ns(), None);
    }

    #[test]
    fn workloads_that_end_alone_have_their_own_times() {
        let ending = |time_ns, bytes, ends_alone| Workload {
            stop: Stop {
                time_ns,
                bytes,
                ..Stop::default()
            },
            ends_alone,
            ..Workload::named("w")
        };
        let times = |list: &[Workload]| {
            let group = group(list);
            let own: Vec<Option<u64>> = list.iter().map(|one| group.time_of(one)).collect();
            (own, group.time_ns())
        };
        let two = [ending(Some(5), None, true), ending(Some(9), None, true)];
        assert_eq!(times(&two), (vec![Some(5), Some(9)], Some(9)));
        // One that ends the others.
        let two = [ending(Some(5), None, false), ending(Some(9), None, true)];
        assert_eq!(times(&two), (vec![Some(5); 2], Some(5)));
        let two = [ending(Some(5), None, true), ending(None, Some(9), true)];
        assert_eq!(times(&two), (vec![Some(5), None], None));
        // One without any limit runs as long as the others.
        let two = [ending(Some(5), None, true), ending(None, None, true)];
        assert_eq!(times(&two), (vec![Some(5); 2], Some(5)));
    }
}
