//! The places for connections to the log. Those that only hold one, or only read, never keep a
//! writer out: the oldest that has not asked for anything makes room, and readers get a part.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections at the same time.
pub(crate) const PLACES: usize = 64;
/// Those of them that may list or fetch; the rest is for writers.
pub(crate) const READERS_MAX: usize = 32;

/// What a connection has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceUse {
    /// Nothing yet.
    Nothing,
    /// A list or a log.
    Reader,
    /// To log a run.
    Writer,
}

#[derive(Debug)]
struct HeldPlace {
    number: u64,
    used: PlaceUse,
    /// To end it; `None` where the kernel had no descriptor left.
    stream: Option<TcpStream>,
}

/// All places, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct ConnectionPlaces {
    held: Mutex<Vec<HeldPlace>>,
    taken: AtomicU64,
}

impl ConnectionPlaces {
    fn held(&self) -> MutexGuard<'_, Vec<HeldPlace>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new connection; `None` where all are in use.
    pub(crate) fn take(all: &Arc<Self>, stream: &TcpStream) -> Option<Place> {
        let mut held = all.held();
        if held.len() >= PLACES {
            let oldest = held.iter().position(|one| one.used == PlaceUse::Nothing)?;
            if let Some(stream) = held.remove(oldest).stream {
                // Its thread ends with an error.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        let number = all.taken.fetch_add(1, Ordering::Relaxed);
        held.push(HeldPlace {
            number,
            used: PlaceUse::Nothing,
            stream: stream.try_clone().ok(),
        });
        Some(Place {
            all: Arc::clone(all),
            number,
        })
    }
}

/// One of the places; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    all: Arc<ConnectionPlaces>,
    number: u64,
}

impl Place {
    /// Keeps the place for this. False where too many connections read, or it was lost already.
    pub(crate) fn is_kept_for(&self, used: PlaceUse) -> bool {
        let mut held = self.all.held();
        let readers = held.iter().filter(|one| one.used == PlaceUse::Reader);
        if used == PlaceUse::Reader && readers.count() >= READERS_MAX {
            return false;
        }
        let own = held.iter_mut().find(|one| one.number == self.number);
        own.map(|own| own.used = used).is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.held().retain(|one| one.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn idle_connections_and_readers_leave_places_for_writers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let all = Arc::new(ConnectionPlaces::default());
        let mut places: Vec<Place> = (0..PLACES)
            .map(|_| ConnectionPlaces::take(&all, &stream).unwrap())
            .collect();
        let reads = |place: &Place| place.is_kept_for(PlaceUse::Reader);
        assert_eq!(
            places.iter().filter(|place| reads(place)).count(),
            READERS_MAX
        );
        // The idle ones make room, the oldest first; the readers stay.
        let idle = places.split_off(READERS_MAX);
        let mut writers = Vec::new();
        for _ in READERS_MAX..PLACES {
            let writer = ConnectionPlaces::take(&all, &stream).unwrap();
            assert!(writer.is_kept_for(PlaceUse::Writer));
            writers.push(writer);
        }
        assert!(!idle.iter().any(|place| place.is_kept_for(PlaceUse::Writer)));
        assert!(ConnectionPlaces::take(&all, &stream).is_none());
        drop(idle);
        assert!(ConnectionPlaces::take(&all, &stream).is_none());
        drop(writers);
        assert!(ConnectionPlaces::take(&all, &stream).is_some());
        assert_eq!(all.held().len(), READERS_MAX);
    }
}
