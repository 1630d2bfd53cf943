//! Connects the socket of a session, Unix or TCP, before a deadline, and lets the client read and
//! write through it.

use crate::conninfo::{ServerHost, ServerPlace};
use crate::error::PostgresError;
use rustix::io::{Errno, read};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with,
};
use std::io;
use std::net::{IpAddr, TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The pause before another try to connect to a server whose queue of connections is full. Chosen,
/// not measured.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// The shortest time for a TCP connection, even where the deadline has passed: the standard library
/// refuses a timeout of zero.
const CONNECT_TIME_MIN: Duration = Duration::from_millis(1);
/// The longest that the socket waits before the session looks for Ctrl-C and its deadline: a user
/// does not notice the delay.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The most that a server may send for one request: the widest view has 80 rows of 300 bytes. The
/// client keeps an answer whole, and small rows take 20 times their size.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// The most bytes of one read: more than most answers have. The buffer is cleared before each read,
/// so a larger one would cost time.
const READ_BYTES_MAX: usize = 4 << 10;

/// True once waits for the server should end: the user has pressed Ctrl-C, say.
pub type StopCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// A connected socket, local or TCP.
#[derive(Debug)]
pub(crate) struct ServerStream {
    socket: OwnedFd,
    /// True if the server runs on this machine, as far as the socket shows.
    pub is_local: bool,
    /// True if only this machine can read what is sent.
    pub is_private: bool,
}

impl From<UnixStream> for ServerStream {
    fn from(stream: UnixStream) -> Self {
        Self {
            socket: stream.into(),
            is_local: true,
            is_private: true,
        }
    }
}

impl ServerStream {
    /// Connects to a host before the deadline.
    pub(crate) fn open(host: &ServerHost, deadline: Instant) -> Result<Self, PostgresError> {
        match &host.place {
            ServerPlace::Socket { directory, .. } => {
                let path = directory.join(format!(".s.PGSQL.{}", host.port));
                Ok(connect_unix(&path, deadline)?.into())
            }
            ServerPlace::Address {
                host: name,
                numeric,
            } => {
                let name = numeric.as_ref().unwrap_or(name);
                Ok(Self::from_tcp(connect_tcp(name, host.port, deadline)?)?)
            }
        }
    }

    /// The stream of a TCP connection, without Nagle's algorithm: each request waits for its
    /// answer.
    fn from_tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let peer = stream.peer_addr().map(|address| address.ip());
        let own = stream.local_addr().map(|address| address.ip());
        let is_loopback = peer.as_ref().is_ok_and(IpAddr::is_loopback);
        let is_own_address = match (&peer, &own) {
            (Ok(peer), Ok(own)) => peer == own,
            _ => false,
        };
        Ok(Self {
            is_local: own.is_ok() && (is_loopback || is_own_address),
            is_private: is_loopback,
            socket: stream.into(),
        })
    }
}

/// The outcome of a wait of the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// The socket waited for [`POLL_INTERVAL`], or until a signal, and nothing came.
    NothingCame,
    /// Something came, or the client did not read.
    NotNeeded,
}

/// The state of a request that the client and its socket share. One thread uses both.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// True if the next read may wait for the server.
    may_wait: AtomicBool,
    /// True if the socket was not ready within [`POLL_INTERVAL`].
    has_waited: AtomicBool,
    /// Bytes that the server may still send.
    bytes_left: AtomicUsize,
}

impl Turn {
    /// Begins a request: its answer is waited for.
    pub(crate) fn begin(&self) {
        self.bytes_left.store(ANSWER_BYTES_MAX, Relaxed);
    }

    /// Lets the socket wait once for the server.
    pub(crate) fn allow_wait(&self) {
        self.may_wait.store(true, Relaxed);
    }

    /// Takes that back, and returns how the socket has used it.
    pub(crate) fn end_wait(&self) -> WaitOutcome {
        self.may_wait.store(false, Relaxed);
        if self.has_waited.swap(false, Relaxed) {
            WaitOutcome::NothingCame
        } else {
            WaitOutcome::NotNeeded
        }
    }
}

/// A socket that waits for the server in the read itself, in the turn of the client. So a request
/// takes one system call to send and one to receive, and needs no runtime.
#[derive(Debug)]
pub(crate) struct TurnSocket {
    stream: ServerStream,
    turn: Arc<Turn>,
    /// Bytes that must not be sent, as others could read them.
    secret: Option<Vec<u8>>,
}

impl TurnSocket {
    /// The socket of a client that shares `turn`. It sends nothing that begins with `secret`, one
    /// whole message.
    pub(crate) fn new(
        stream: ServerStream,
        turn: &Arc<Turn>,
        secret: Option<Vec<u8>>,
    ) -> io::Result<Self> {
        set_socket_timeout(&stream.socket, Timeout::Recv, Some(POLL_INTERVAL))?;
        set_socket_timeout(&stream.socket, Timeout::Send, Some(POLL_INTERVAL))?;
        Ok(Self {
            stream,
            turn: Arc::clone(turn),
            secret,
        })
    }

    /// A result of the socket, as the client takes it.
    fn polled<T>(&self, result: rustix::io::Result<T>) -> Poll<io::Result<T>> {
        match result {
            Err(Errno::AGAIN | Errno::TIMEDOUT | Errno::INTR) => {
                self.turn.has_waited.store(true, Relaxed);
                Poll::Pending
            }
            other => Poll::Ready(other.map_err(io::Error::from)),
        }
    }
}

impl AsyncRead for TurnSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.turn.may_wait.load(Relaxed) {
            return Poll::Pending;
        }
        self.turn.may_wait.store(false, Relaxed);
        let room = buffer.remaining().min(READ_BYTES_MAX);
        let result = read(&self.stream.socket, buffer.initialize_unfilled_to(room));
        let Poll::Ready(count) = self.polled(result)? else {
            return Poll::Pending;
        };
        buffer.advance(count);
        let left = self.turn.bytes_left.load(Relaxed).checked_sub(count);
        Poll::Ready(match left {
            Some(left) => {
                self.turn.bytes_left.store(left, Relaxed);
                Ok(())
            }
            None => Err(io::Error::other(PostgresError::Protocol(format!(
                "more than {ANSWER_BYTES_MAX} bytes"
            )))),
        })
    }
}

impl AsyncWrite for TurnSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(secret) = &self.secret
            && bytes.starts_with(secret)
        {
            return Poll::Ready(Err(io::Error::other(PostgresError::in_clear_text())));
        }
        self.polled(send(&self.stream.socket, bytes, SendFlags::NOSIGNAL))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Connects to a Unix socket without blocking: a server that is stopped accepts no connection, and
/// connect(2) would wait for it without end.
fn connect_unix(path: &Path, deadline: Instant) -> Result<UnixStream, PostgresError> {
    let address = SocketAddrUnix::new(path).map_err(io::Error::from)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    loop {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(io::Error::from)?;
        match connect(&socket, &address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(Errno::AGAIN) if Instant::now() < deadline => {
                std::thread::sleep(RETRY_INTERVAL);
            }
            Err(Errno::AGAIN) => return Err(PostgresError::TimedOut),
            Err(error) => return Err(PostgresError::Unreachable(error.into())),
        }
    }
}

/// Tries all addresses of a name. The resolver keeps its own deadlines.
fn connect_tcp(name: &str, port: u16, deadline: Instant) -> Result<TcpStream, PostgresError> {
    let addresses = (name, port)
        .to_socket_addrs()
        .map_err(|error| unresolved(name, &error.to_string()))?;
    let mut last = unresolved(name, "it has no address");
    for address in addresses {
        let left = deadline.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.max(CONNECT_TIME_MIN)) {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                last = PostgresError::TimedOut;
            }
            Err(error) => last = PostgresError::Unreachable(error),
        }
    }
    Err(last)
}

fn unresolved(name: &str, why: &str) -> PostgresError {
    PostgresError::Unreachable(io::Error::other(format!("cannot resolve {name}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn full_queue_of_a_stopped_server_ends_at_the_deadline() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join(".s.PGSQL.5432");
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let _waiting = UnixStream::connect(&path).unwrap();
        let refused = connect_unix(&path, Instant::now());
        assert!(matches!(refused, Err(PostgresError::TimedOut)));
        let absent = connect_unix(&here.path().join("none"), Instant::now());
        assert!(matches!(absent, Err(PostgresError::Unreachable(_))));
    }
}
