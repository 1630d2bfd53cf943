//! Gives the connections of the log server their places. A connection without a request loses its
//! place to a new one, and only a part of the places is for readers, so that neither keeps a writer
//! out.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most connections at the same time. Each takes a thread, two descriptors, and a frame's
/// memory: a client can take no more of the machine than that. Chosen: more than disks are tested
/// at once.
const PLACES_MAX: usize = 64;
/// The most connections that may list or fetch. The other half of the places is for writers.
const READERS_MAX: usize = 32;

/// The use of a place, by the request of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceUse {
    /// No request yet.
    Nothing,
    /// A list or a log.
    Reader,
    /// The log of a run that it writes.
    Writer,
}

/// A place that a connection holds.
#[derive(Debug)]
struct HeldPlace {
    /// Names the place; no two connections of a server get the same number.
    number: u64,
    place_use: PlaceUse,
    /// A second descriptor of the connection, to end it; `None` where the kernel had none left.
    stream: Option<TcpStream>,
}

/// The places in use, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct ConnectionPlaces {
    held: Mutex<Vec<HeldPlace>>,
    /// The number of the next place.
    next_number: AtomicU64,
}

impl ConnectionPlaces {
    fn lock_held(&self) -> MutexGuard<'_, Vec<HeldPlace>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a new connection; `None` where all are in use. Where all are held, the
    /// oldest connection without a request is ended and loses its place.
    pub(crate) fn take(all: &Arc<Self>, stream: &TcpStream) -> Option<Place> {
        let mut held = all.lock_held();
        if held.len() >= PLACES_MAX {
            let oldest = held
                .iter()
                .position(|place| place.place_use == PlaceUse::Nothing)?;
            if let Some(stream) = held.remove(oldest).stream {
                // Its thread ends with an error.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        let number = all.next_number.fetch_add(1, Ordering::Relaxed);
        held.push(HeldPlace {
            number,
            place_use: PlaceUse::Nothing,
            stream: stream.try_clone().ok(),
        });
        Some(Place {
            all: Arc::clone(all),
            number,
        })
    }
}

/// There are too many connections for the requested use of a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoPlace;

/// One of the places; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    all: Arc<ConnectionPlaces>,
    number: u64,
}

impl Place {
    /// Keeps the place for this use, so that no other connection takes it. Fails where too many
    /// connections read, or where another connection took the place already.
    pub(crate) fn keep_for(&self, place_use: PlaceUse) -> Result<(), NoPlace> {
        let mut held = self.all.lock_held();
        let readers = held
            .iter()
            .filter(|place| place.place_use == PlaceUse::Reader)
            .count();
        if place_use == PlaceUse::Reader && readers >= READERS_MAX {
            return Err(NoPlace);
        }
        match held.iter_mut().find(|place| place.number == self.number) {
            Some(own) => {
                own.place_use = place_use;
                Ok(())
            }
            None => Err(NoPlace),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all
            .lock_held()
            .retain(|place| place.number != self.number);
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
        let mut places: Vec<Place> = (0..PLACES_MAX)
            .map(|_| ConnectionPlaces::take(&all, &stream).unwrap())
            .collect();
        let readers = places
            .iter()
            .filter(|place| place.keep_for(PlaceUse::Reader).is_ok())
            .count();
        assert_eq!(readers, READERS_MAX);
        // The idle ones make room, the oldest first; the readers stay.
        let idle = places.split_off(READERS_MAX);
        let mut writers = Vec::new();
        for _ in READERS_MAX..PLACES_MAX {
            let writer = ConnectionPlaces::take(&all, &stream).unwrap();
            assert!(writer.keep_for(PlaceUse::Writer).is_ok());
            writers.push(writer);
        }
        assert!(
            idle.iter()
                .all(|place| place.keep_for(PlaceUse::Writer).is_err())
        );
        assert!(ConnectionPlaces::take(&all, &stream).is_none());
        drop(idle);
        assert!(ConnectionPlaces::take(&all, &stream).is_none());
        drop(writers);
        assert!(ConnectionPlaces::take(&all, &stream).is_some());
        assert_eq!(all.lock_held().len(), READERS_MAX);
    }
}
