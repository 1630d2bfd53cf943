//! Serves the logs of runs on the machine that survives the cut (`powercut serve`). Every
//! connection has a thread and deadlines; nothing that a client sends can make it take more memory
//! than a frame, or write anywhere but to a new log. Connections that only hold a place, or only
//! read, never keep a writer out (`places`).

use crate::deadline_stream::{DeadlineStream, FRAME_TIMEOUT};
use crate::log_store::{LogStore, OpenLog, check_follows};
use crate::places::{ConnectionPlaces, Place, PlaceUse};
use crate::protocol::{WireError, WireMessage, refusal};
use crate::run::{LogEnd, RunProgress, short_id};
use crate::token::{PROOF_BYTES, Token};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

/// A writer reports at least every second (`SIGN_OF_LIFE_INTERVAL`), so one that is silent for a
/// minute was cut.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The server of the log: its socket, and what each connection is served from.
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

/// A client without a place gets this refusal.
const TOO_MANY_CONNECTIONS: &str = "too many connections; try again later";
/// The pause after a connection that could not be accepted. Without it, a server that is out of
/// descriptors would fill its log and a processor until one is free.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);

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
                    std::thread::sleep(ACCEPT_RETRY_PAUSE);
                    continue;
                }
            };
            let Some(place) = ConnectionPlaces::take(&self.places, &stream) else {
                let mut stream = DeadlineStream::new(stream);
                let _ = refusal(TOO_MANY_CONNECTIONS).send(&mut stream);
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

/// A connection, and what serves it.
struct Served<'a> {
    store: &'a LogStore,
    token: &'a Token,
    place: Place,
    peer: SocketAddr,
    note: fn(&str),
}

impl Served<'_> {
    /// Serves one connection from its first frame to its last: the handshake, one request, and its
    /// answers. The place is kept for the request before anything is read or written for it.
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
                let (name, host, path) = (short_id(&run.run), &run.host, &run.target.path);
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
                for run in self.store.newest_runs()? {
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

    fn keep_place(&self, place_use: PlaceUse) -> Result<(), WireError> {
        self.place
            .keep_for(place_use)
            .map_err(|_| io::Error::other(TOO_MANY_CONNECTIONS).into())
    }
}

/// Appends what a writer reports until it stops, and confirms each report once it is durable here.
/// Any other end is an error: silence, a lost connection, or a report that cannot be appended.
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
                let appended = match check_follows(streams, last.as_ref(), next) {
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

/// Sends a run's frames up to the first damaged one, then the end that the log has.
fn send_log(stream: &mut DeadlineStream, store: &LogStore, run: u128) -> Result<(), WireError> {
    let mut frames = match store.open_frames(run) {
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

/// Returns bytes that no other connection gets, so that no proof is worth anything twice. They come
/// from the kernel's random source, or from the standard library's seeds where that fails.
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
