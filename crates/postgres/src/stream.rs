//! The socket of a session: Unix or TCP, with a deadline for connecting.

use crate::conninfo::{ServerHost, ServerPlace};
use crate::error::PostgresError;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a server whose queue of connections is full is asked again.
const RETRY_EVERY: Duration = Duration::from_millis(20);
/// Longer ones would only delay the look at a deadline.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// A connected socket.
#[derive(Debug)]
pub(crate) enum ServerStream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl ServerStream {
    pub(crate) fn open(host: &ServerHost, deadline: Instant) -> Result<Self, PostgresError> {
        match &host.place {
            ServerPlace::Socket { directory, .. } => {
                let path = directory.join(format!(".s.PGSQL.{}", host.port));
                Ok(Self::Unix(connect_unix(&path, deadline)?))
            }
            ServerPlace::Address {
                host: name,
                numeric,
            } => {
                let name = numeric.as_ref().unwrap_or(name);
                Ok(Self::Tcp(connect_tcp(name, host.port, deadline)?))
            }
        }
    }

    /// Whether the server runs on this machine, as far as the socket shows.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(stream) => match (stream.peer_addr(), stream.local_addr()) {
                (Ok(peer), Ok(own)) => peer.ip().is_loopback() || peer.ip() == own.ip(),
                _ => false,
            },
        }
    }

    /// Whether only this machine can read what is sent.
    pub(crate) fn is_private(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(stream) => stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()),
        }
    }

    pub(crate) fn set_timeouts(&self, time: Duration) -> io::Result<()> {
        let time = Some(time);
        match self {
            Self::Unix(stream) => {
                stream.set_read_timeout(time)?;
                stream.set_write_timeout(time)
            }
            Self::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(time)?;
                stream.set_write_timeout(time)
            }
        }
    }
}

impl Read for ServerStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for ServerStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A server that is stopped accepts no connection, and connect(2) would wait for it without end.
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
            Err(rustix::io::Errno::AGAIN) if Instant::now() < deadline => {
                std::thread::sleep(RETRY_EVERY);
            }
            Err(rustix::io::Errno::AGAIN) => return Err(PostgresError::TimedOut),
            Err(error) => return Err(PostgresError::Unreachable(error.into())),
        }
    }
}

/// Tries all addresses of a name. The resolver keeps its own deadlines.
fn connect_tcp(name: &str, port: u16, deadline: Instant) -> Result<TcpStream, PostgresError> {
    let unknown = |why: String| {
        PostgresError::Unreachable(io::Error::other(format!("cannot resolve {name}: {why}")))
    };
    let addresses: Vec<SocketAddr> = (name, port)
        .to_socket_addrs()
        .map_err(|error| unknown(error.to_string()))?
        .collect();
    let mut last = unknown("it has no address".to_owned());
    for address in addresses {
        let left = deadline.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.max(WAIT_MIN)) {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                last = PostgresError::TimedOut;
            }
            Err(error) => last = PostgresError::Unreachable(error),
        }
    }
    Err(last)
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
        assert!(
            matches!(refused, Err(PostgresError::TimedOut)),
            "{refused:?}"
        );
        let absent = connect_unix(&here.path().join("none"), Instant::now());
        assert!(
            matches!(absent, Err(PostgresError::Unreachable(_))),
            "{absent:?}"
        );
    }
}
