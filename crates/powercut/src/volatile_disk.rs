//! Simulates a disk with a volatile cache, honest or not, for the rehearsal. Records which write
//! each place holds apart from the content, so that the judgement of the content can be checked.

use crate::random::Splitmix;
use std::collections::{BTreeMap, VecDeque};

/// The most writes in the cache of a disk that ignores syncs. It is below the writes of a
/// rehearsal, so that old writes reach the medium and only the last ones are lost in the cut.
const LYING_CACHE_WRITES: usize = 400;
/// The most writes in the cache of a disk whose syncs skip some pages. This number and the next two
/// are chosen: a rehearsal then has dozens of such writes, and not all are.
const PARTLY_DESTAGING_CACHE_WRITES: usize = 120;
/// One of this many writes is skipped by every sync, on a disk that syncs a part.
const SKIPS_ONE_IN: u64 = 4;
/// One of this many durable pages is torn, on a disk that tears them.
const TEARS_ONE_IN: u64 = 40;
/// A torn page has whole sectors of either write.
const SECTOR_BYTES: usize = 512;

/// The way in which a disk treats writes that it acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskBehaviour {
    /// A sync empties its cache.
    Honest,
    /// A sync does nothing; old writes reach the medium by and by.
    Lying,
    /// A sync skips one of four pages, which stay in the cache for long.
    PartlyDestaging,
    /// A disk without a volatile cache.
    WriteThrough,
    /// A sync empties its cache, and some pages arrive only in part.
    TornPages,
}

impl DiskBehaviour {
    /// Every behaviour, in the order of the report.
    pub const ALL: [Self; 5] = [
        Self::Honest,
        Self::Lying,
        Self::PartlyDestaging,
        Self::WriteThrough,
        Self::TornPages,
    ];

    /// Returns its name in a report.
    pub fn title(self) -> &'static str {
        match self {
            Self::Honest => "honest, volatile cache",
            Self::Lying => "lying, ignores syncs",
            Self::PartlyDestaging => "lying, syncs a part",
            Self::WriteThrough => "write-through, no cache",
            Self::TornPages => "lying, tears pages",
        }
    }
}

/// A place on the disk: stream, and slot or name.
pub(crate) type Place = (usize, u64);

/// Content of a place, and the number of the write it comes from.
#[derive(Debug, Clone)]
pub(crate) struct StoredWrite {
    /// `None` for a name that was removed.
    pub content: Option<Vec<u8>>,
    /// The number of the write within its stream.
    pub number: u64,
    /// True if only a part of it is there.
    pub is_torn: bool,
    /// The oldest write of which a part is there.
    pub oldest: u64,
    /// True if syncs skip it.
    is_skipped: bool,
}

/// A simulated disk: its medium, and the cache that a cut empties.
#[derive(Debug)]
pub(crate) struct VolatileDisk {
    behaviour: DiskBehaviour,
    medium: BTreeMap<Place, StoredWrite>,
    cache: VecDeque<(Place, StoredWrite)>,
    random: Splitmix,
}

impl VolatileDisk {
    pub(crate) fn new(behaviour: DiskBehaviour, seed: u64) -> Self {
        Self {
            behaviour,
            medium: BTreeMap::new(),
            cache: VecDeque::new(),
            random: Splitmix(seed),
        }
    }

    /// Starts with what is on another disk's medium.
    pub(crate) fn take_medium(&mut self, other: Self) {
        self.medium = other.medium;
    }

    /// Accepts a write. `content` is `None` where it removes a name.
    pub(crate) fn write(&mut self, place: Place, number: u64, content: Option<Vec<u8>>) {
        let write = StoredWrite {
            content,
            number,
            is_torn: false,
            oldest: number,
            is_skipped: self.behaviour == DiskBehaviour::PartlyDestaging
                && self.random.below(SKIPS_ONE_IN) == 0,
        };
        match self.behaviour {
            DiskBehaviour::WriteThrough => {
                self.medium.insert(place, write);
            }
            _ => self.cache.push_back((place, write)),
        }
        let cache_writes_max = match self.behaviour {
            DiskBehaviour::Lying => LYING_CACHE_WRITES,
            DiskBehaviour::PartlyDestaging => PARTLY_DESTAGING_CACHE_WRITES,
            _ => usize::MAX,
        };
        if self.cache.len() > cache_writes_max {
            let oldest = self.cache.pop_front();
            self.medium.extend(oldest);
        }
    }

    /// Promises that everything accepted before is durable, and keeps the promise as far as the
    /// behaviour does.
    pub(crate) fn sync(&mut self) {
        if self.behaviour == DiskBehaviour::Lying {
            return;
        }
        for (place, mut write) in std::mem::take(&mut self.cache) {
            let tears =
                self.behaviour == DiskBehaviour::TornPages && self.random.below(TEARS_ONE_IN) == 0;
            if write.is_skipped {
                self.cache.push_back((place, write));
                continue;
            }
            // A newer write overtakes an older one of the same place.
            self.cache.retain(|(held, _)| *held != place);
            if tears {
                self.tear(place, &mut write);
            }
            self.medium.insert(place, write);
        }
    }

    /// Leaves the first sectors of the new content and the rest of the old one.
    fn tear(&mut self, place: Place, write: &mut StoredWrite) {
        let Some(under) = self.medium.get(&place) else {
            return;
        };
        if let (Some(new), Some(old)) = (&mut write.content, &under.content)
            && new.len() == old.len()
            && new.len() > SECTOR_BYTES
        {
            let sectors = (new.len() / SECTOR_BYTES) as u64;
            let cut = (1 + self.random.below(sectors - 1)) as usize * SECTOR_BYTES;
            new[cut..].copy_from_slice(&old[cut..]);
            write.is_torn = true;
            write.oldest = under.oldest;
        }
    }

    /// Cuts the power: the cache is gone, and the last write may be half done.
    pub(crate) fn cut(&mut self) {
        let last = self.cache.pop_back();
        self.cache.clear();
        if let Some((place, mut write)) = last
            && self.random.below(2) == 0
        {
            self.tear(place, &mut write);
            if write.is_torn {
                self.medium.insert(place, write);
            }
        }
    }

    /// The write that is on the medium at this place; `None` where none ever arrived.
    pub(crate) fn stored(&self, place: Place) -> Option<&StoredWrite> {
        self.medium.get(&place)
    }

    /// The content that a place has on the medium; `None` also where a name was removed.
    pub(crate) fn content(&self, place: Place) -> Option<&[u8]> {
        self.medium.get(&place)?.content.as_deref()
    }

    /// The places of a stream that hold something.
    pub(crate) fn places(&self, stream: usize) -> impl Iterator<Item = u64> {
        self.medium
            .range((stream, 0)..=(stream, u64::MAX))
            .filter(|(_, write)| write.content.is_some())
            .map(|((_, place), _)| *place)
    }
}
