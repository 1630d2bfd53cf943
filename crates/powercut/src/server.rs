//! `powercut serve`: keeps the logs of runs, for the machine that survives the cut. Every
//! connection has a thread and deadlines; nothing that a client sends can make it take more memory
//! than a frame, or write anywhere but to a new log. Connections that only hold a place, or only
//! read, never keep a writer out: the oldest that has not asked for anything makes room, and
//! readers get a part.

use crate::log_store::{LogStore, OpenLog, follows};
use crate::protocol::{WireError, WireMessage, refusal};
use crate::run::{LogEnd, RunProgress, short};
use crate::token::{PROOF_BYTES, Token};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From the first byte of a frame to its last, and for the whole handshake.
const FRAME_TIMEOUT: Duration = Duration::from_secs(5);
/// A writer reports at least every second; one that is silent for a minute was cut.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The server's socket, and what it needs.
#[derive(Debug)]
pub struct LogServer {
    listener: TcpListener,
    store: LogStore,
    token: Token,
    places: Arc<ConnectionPlaces>,
}

/// The reason why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Other machines could write logs.
    #[error(
        "{0} is not a loopback address, so other machines can reach it; add --token-file FILE. \
         Create it with: openssl rand -hex 16 > FILE"
    )]
    NeedsToken(SocketAddr),
    /// The kernel refused the address.
    #[error("cannot listen on {0}: {1}")]
    Bind(SocketAddr, io::Error),
}

impl LogServer {
    /// Listens. Addresses other than loopback need a token.
    pub fn bind(address: SocketAddr, token: Token, store: LogStore) -> Result<Self, ListenError> {
        if !is_loopback(address.ip()) && !token.is_set() {
            return Err(ListenError::NeedsToken(address));
        }
        let listener =
            TcpListener::bind(address).map_err(|error| ListenError::Bind(address, error))?;
        Ok(Self {
            listener,
            store,
            token,
            places: Arc::default(),
        })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the process ends. `note` gets a line for each run and each refusal.
    pub fn serve(&self, note: fn(&str)) {
        loop {
            let (stream, peer) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, or a connection that was gone before it was accepted.
                    note(&format!("cannot accept a connection: {error}"));
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                }
            };
            let Some(place) = ConnectionPlaces::take(&self.places, &stream) else {
                let mut stream = DeadlineStream::new(stream);
                let _ = refusal("too many connections; try again later").send(&mut stream);
                continue;
            };
            let (store, token) = (self.store.clone(), self.token.clone());
            let started = std::thread::Builder::new().spawn(move || {
                let mut stream = DeadlineStream::new(stream);
                let served = Served {
                    store: &store,
                    token: &token,
                    place,
                    peer,
                    note,
                };
                if let Err(error) = served.converse(&mut stream) {
                    note(&format!("{peer}: {error}"));
                    let _ = refusal(&error.to_string()).send(&mut stream);
                }
            });
            if let Err(error) = started {
                note(&format!("{peer}: cannot start a thread: {error}"));
            }
        }
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// A socket whose reads and writes end by a deadline, however slowly bytes drip in.
#[derive(Debug)]
pub(crate) struct DeadlineStream {
    stream: TcpStream,
    /// When the frame that is being read or written must be complete.
    deadline: Option<Instant>,
}

impl DeadlineStream {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Reports are small, and each waits for its answer.
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            deadline: None,
        }
    }

    /// Sends a frame; the other side has to take it in time.
    pub(crate) fn send(&mut self, message: &WireMessage) -> io::Result<()> {
        self.deadline = Some(Instant::now() + FRAME_TIMEOUT);
        message.send(self)
    }

    /// Receives a frame that begins within `patience`.
    pub(crate) fn receive(&mut self, patience: Duration) -> Result<WireMessage, WireError> {
        self.deadline = Some(Instant::now() + patience);
        WireMessage::receive(self)
    }

    fn left(&self) -> io::Result<Duration> {
        let left = match self.deadline {
            Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            None => FRAME_TIMEOUT,
        };
        if left.is_zero() {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            Ok(left)
        }
    }
}

impl Read for DeadlineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = loop {
            self.stream.set_read_timeout(Some(self.left()?))?;
            match self.stream.read(buffer) {
                // A signal, even one that restarts other calls (signal(7)).
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(as_timeout)?,
            }
        };
        // The first bytes of a frame: the rest has to follow soon.
        let soon = Instant::now() + FRAME_TIMEOUT;
        self.deadline = Some(match self.deadline {
            Some(deadline) => deadline.min(soon),
            None => soon,
        });
        Ok(read)
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes).map_err(as_timeout)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A socket's timeout is EAGAIN, whose text would mislead.
fn as_timeout(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

/// A connection, and what serves it.
struct Served<'a> {
    store: &'a LogStore,
    token: &'a Token,
    place: Place,
    peer: SocketAddr,
    note: fn(&str),
}

impl Served<'_> {
    /// One connection from its first frame to its last.
    fn converse(self, stream: &mut DeadlineStream) -> Result<(), WireError> {
        let nonce = random_nonce();
        stream.send(&WireMessage::Challenge(nonce))?;
        match stream.receive(FRAME_TIMEOUT)? {
            WireMessage::Hello(proof) if self.token.accepts(&nonce, &proof) => {}
            WireMessage::Hello(_) => {
                return Err(WireError::Body(
                    "the token is missing or wrong; see --token-file",
                ));
            }
            _ => return Err(WireError::Body("the first message must be a token")),
        }
        stream.send(&WireMessage::Welcome)?;
        match stream.receive(SILENCE_MAX)? {
            WireMessage::Run(run) => {
                self.keep_place(PlaceUse::Writer)?;
                let mut log = self.store.create(&run)?;
                stream.send(&WireMessage::Logged)?;
                let (name, host, path) = (short(&run.run), &run.host, &run.target.path);
                let peer = self.peer;
                (self.note)(&format!("run {name} of {host} writes to {path} ({peer})"));
                (self.note)(&match keep_log(stream, &mut log, run.streams.len()) {
                    Ok(()) => format!("run {name} stopped"),
                    Err(error) => format!("run {name} stopped reporting: {error}"),
                });
                Ok(())
            }
            WireMessage::List => {
                self.keep_place(PlaceUse::Reader)?;
                for run in self.store.newest()? {
                    // One that was removed meanwhile is not listed.
                    if let Some(run) = self.store.description(run) {
                        stream.send(&WireMessage::Run(Box::new(run)))?;
                    }
                }
                Ok(stream.send(&WireMessage::ListEnd)?)
            }
            WireMessage::Fetch(run) => {
                self.keep_place(PlaceUse::Reader)?;
                send_log(stream, self.store, run)
            }
            _ => Err(WireError::Body("neither a run nor a question")),
        }
    }

    fn keep_place(&self, used: PlaceUse) -> Result<(), WireError> {
        if self.place.is_kept_for(used) {
            Ok(())
        } else {
            Err(io::Error::other("too many connections; try again later").into())
        }
    }
}

/// Appends what a writer reports, and confirms each report once it is durable here.
fn keep_log(
    stream: &mut DeadlineStream,
    log: &mut OpenLog,
    streams: usize,
) -> Result<(), WireError> {
    let mut last: Option<RunProgress> = None;
    loop {
        let message = stream.receive(SILENCE_MAX)?;
        match &message {
            WireMessage::Progress(next) => {
                let appended = match follows(streams, last.as_ref(), next) {
                    Ok(()) => log.append(&message),
                    Err(why) => Err(io::Error::other(why)),
                };
                if let Err(error) = appended {
                    let _ = stream.send(&refusal(&format!("cannot log: {error}")));
                    return Err(error.into());
                }
                last = Some(next.clone());
            }
            WireMessage::Stop => {
                log.append(&message)?;
                stream.send(&WireMessage::Logged)?;
                return Ok(());
            }
            _ => return Err(WireError::Body("a writer only reports")),
        }
        stream.send(&WireMessage::Logged)?;
    }
}

/// Sends a run's frames up to the first damaged one.
fn send_log(stream: &mut DeadlineStream, store: &LogStore, run: u128) -> Result<(), WireError> {
    let mut frames = match store.open(run) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(WireError::Body("there is no such run here"));
        }
        opened => opened?,
    };
    let mut end = LogEnd::Silence;
    while let Ok(message) = WireMessage::receive(&mut frames) {
        match message {
            WireMessage::Stop => end = LogEnd::Stopped,
            WireMessage::Run(_) | WireMessage::Progress(_) => stream.send(&message)?,
            _ => break,
        }
    }
    Ok(stream.send(&WireMessage::LogEnd(end))?)
}

/// Numbers that are never repeated: the kernel's random source, or the standard
/// library's seed from it.
fn random_nonce() -> [u8; PROOF_BYTES] {
    let mut nonce = [0; PROOF_BYTES];
    let flags = rustix::rand::GetRandomFlags::empty();
    if rustix::rand::getrandom(&mut nonce[..], flags).is_err() {
        use std::hash::{BuildHasher as _, Hasher as _, RandomState};
        for part in nonce.chunks_mut(8) {
            let word = RandomState::new().build_hasher().finish();
            part.copy_from_slice(&word.to_le_bytes());
        }
    }
    nonce
}

/// Connections at the same time.
pub(crate) const PLACES: usize = 64;
/// The most connections that may list or fetch; the rest is for writers.
pub(crate) const READERS_MAX: usize = 32;

/// A connection has asked for one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceUse {
    /// No request yet.
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

/// The places in use, the oldest first.
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
            let oldest = held
                .iter()
                .position(|place| place.used == PlaceUse::Nothing)?;
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
        let readers = held
            .iter()
            .filter(|place| place.used == PlaceUse::Reader)
            .count();
        if used == PlaceUse::Reader && readers >= READERS_MAX {
            return false;
        }
        match held.iter_mut().find(|place| place.number == self.number) {
            Some(own) => {
                own.used = used;
                true
            }
            None => false,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.held().retain(|place| place.number != self.number);
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
