//! Drives a session of a server: connects, and runs one statement after the other. tokio-postgres
//! speaks the protocol; the session polls it by hand, so that every wait has its deadline and it
//! needs no runtime.

use crate::error::{CONNECT, PostgresError};
use crate::prepared::{PreparedRun, STATEMENT_NAME};
use crate::stream::{ServerStream, StopCheck, Turn, TurnSocket, WaitOutcome};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tokio_postgres::tls::{NoTls, TlsConnect};
use tokio_postgres::{Client, Config, Error, SimpleQueryMessage, SimpleQueryRow};

/// One row of a result; `None` is NULL.
pub(crate) type ResultRow = Vec<Option<String>>;

/// The future of tokio-postgres that sends and receives over the socket.
struct Connection(Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>);

impl Drop for Connection {
    /// Takes leave, which keeps the end of a session out of the server's log.
    fn drop(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        let _ = self.0.as_mut().poll(&mut context);
    }
}

/// A session with a server, with at most one statement at a time.
pub struct PostgresClient {
    // Dropped before the connection, which so ends.
    client: Client,
    connection: Connection,
    wait: Wait,
    /// The socket of the connection, of a session with a temporary cluster; `None` of any other.
    own_socket: Option<UnixStream>,
}

/// The limits of a session's waits for its server.
struct Wait {
    turn: Arc<Turn>,
    stop: StopCheck,
    /// A wait ends with an error at this time, after which the session is of no use; `None`: it
    /// never does.
    deadline: Option<Instant>,
}

impl Wait {
    /// Polls until there is a result. Each round polls twice: the first poll sends what is to be
    /// sent, and only the second one may wait for what is received.
    fn until_ready<T>(
        &self,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, PostgresError> {
        // Nothing is woken: the socket waits in the thread that polls.
        let mut context = Context::from_waker(Waker::noop());
        self.turn.begin();
        loop {
            if let Poll::Ready(result) = poll(&mut context) {
                return Ok(result);
            }
            self.turn.allow_wait();
            let polled = poll(&mut context);
            let waited = self.turn.end_wait();
            if let Poll::Ready(result) = polled {
                return Ok(result);
            }
            if waited == WaitOutcome::NothingCame && (self.stop)() {
                return Err(PostgresError::Stopped);
            }
            // A server that sends a byte now and then is late, too.
            if let Some(deadline) = self.deadline
                && Instant::now() >= deadline
            {
                return Err(PostgresError::TimedOut);
            }
        }
    }
}

impl PostgresClient {
    /// Connects to the server of a temporary cluster, which trusts its user.
    pub(crate) fn connect(
        socket: &Path,
        user: &str,
        stop: StopCheck,
    ) -> Result<Self, PostgresError> {
        let stream = UnixStream::connect(socket)?;
        let own_socket = Some(stream.try_clone()?);
        let mut config = Config::new();
        config.user(user).dbname("postgres");
        let session = Self::log_in(ServerStream::from(stream), stop, None, &config, NoTls)?;
        Ok(Self {
            own_socket,
            ..session
        })
    }

    /// Logs in over a connected socket.
    pub(crate) fn log_in<T>(
        stream: ServerStream,
        stop: StopCheck,
        deadline: Option<Instant>,
        config: &Config,
        tls: T,
    ) -> Result<Self, PostgresError>
    where
        T: TlsConnect<TurnSocket>,
        T::Stream: Send + 'static,
    {
        let wait = Wait {
            turn: Arc::default(),
            stop,
            deadline,
        };
        let secret = if stream.is_private {
            None
        } else {
            config.get_password().map(password_message)
        };
        let socket = TurnSocket::new(stream, &wait.turn, secret)?;
        let mut connecting = pin!(config.connect_raw(socket, tls));
        let connected = wait.until_ready(|context| connecting.as_mut().poll(context))?;
        let (client, connection) =
            connected.map_err(|error| PostgresError::from_driver(error, CONNECT))?;
        Ok(Self {
            client,
            connection: Connection(Box::pin(connection)),
            wait,
            own_socket: None,
        })
    }

    /// Ends every wait from now on at this time.
    pub(crate) fn set_deadline(&mut self, deadline: Instant) {
        self.wait.deadline = Some(deadline);
    }

    /// Runs a statement and returns its rows.
    pub fn query(&mut self, statement: &str) -> Result<Vec<ResultRow>, PostgresError> {
        let connection = &mut self.connection;
        let mut request = pin!(self.client.simple_query(statement));
        let messages = self.wait.until_ready(|context| {
            if let Poll::Ready(result) = request.as_mut().poll(context) {
                return Poll::Ready(
                    result.map_err(|error| PostgresError::from_driver(error, statement)),
                );
            }
            // It ends before its client does only where the server ends it, and its error says why.
            connection
                .0
                .as_mut()
                .poll(context)
                .map(|ended| match ended {
                    Ok(()) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                    Err(error) => Err(PostgresError::from_driver(error, statement)),
                })
        })??;
        let mut rows = Vec::new();
        for message in &messages {
            if let SimpleQueryMessage::Row(row) = message {
                rows.push(result_row(row));
            }
        }
        Ok(rows)
    }

    /// The first value of a statement.
    pub fn value(&mut self, statement: &str) -> Result<String, PostgresError> {
        let rows = self.query(statement)?;
        match rows.first().and_then(|row| row.first()) {
            Some(Some(value)) => Ok(value.clone()),
            _ => Err(PostgresError::Protocol(format!(
                "no value for '{statement}'"
            ))),
        }
    }

    /// Prepares the statement that this session runs over and over, without parameters and rows.
    pub(crate) fn prepare(&mut self, statement: &str) -> Result<PreparedRun, PostgresError> {
        let Some(own_socket) = &self.own_socket else {
            let what = "not a session of a cluster".to_owned();
            return Err(PostgresError::Protocol(what));
        };
        let socket = own_socket.try_clone()?;
        self.query(&format!("PREPARE {STATEMENT_NAME} AS {statement}"))?;
        let stop = StopCheck::clone(&self.wait.stop);
        PreparedRun::new(socket, stop, statement)
    }
}

/// The values of a row as texts.
fn result_row(row: &SimpleQueryRow) -> ResultRow {
    let mut values = Vec::new();
    for index in 0..row.len() {
        // A server without an encoding may send a path that is no text.
        let value = row.try_get(index).unwrap_or(Some("\u{fffd}"));
        values.push(value.map(str::to_owned));
    }
    values
}

/// The message that sends a password in clear text: its kind, its length without the kind, the
/// password and a zero byte.
fn password_message(password: &[u8]) -> Vec<u8> {
    let length = (password.len() as u32 + 5).to_be_bytes();
    [b"p", &length[..], password, b"\0"].concat()
}

impl std::fmt::Debug for PostgresClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresClient").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::io::{Read as _, Write as _};

    /// A login and a query at a server that answers so and hangs up.
    fn session(login: &[u8], answer: Option<&[u8]>) -> Result<Vec<ResultRow>, PostgresError> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(login).unwrap();
        let answer = answer.map(<[u8]>::to_vec);
        std::thread::spawn(move || {
            if let Some(answer) = answer {
                // Until the query is there, or the client has ended.
                let (mut received, mut part) = (Vec::new(), [0; 1024]);
                while !received.ends_with(b"SELECT 1\0") {
                    match theirs.read(&mut part) {
                        Ok(count @ 1..) => received.extend(&part[..count]),
                        _ => break,
                    }
                }
                let _ = theirs.write_all(&answer);
            }
            let _ = theirs.shutdown(std::net::Shutdown::Write);
        });
        let mut config = Config::new();
        config.user("ann").password("secret");
        let stop: StopCheck = Arc::new(|| false);
        let stream = ServerStream::from(ours);
        let mut client = PostgresClient::log_in(stream, stop, None, &config, NoTls)?;
        client.query("SELECT 1")
    }

    #[test]
    fn rows_and_errors_of_a_server_are_read() {
        let login = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
        let columns = [&b"T\0\0\0\x1a\0\x01x\0"[..], &[0; 18], b"D\0\0\0\x0c\0\x01"].concat();
        let end = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
        let answer = [&columns[..], b"\0\0\0\x02ab", end].concat();
        let rows = session(login, Some(&answer)).unwrap();
        assert_eq!(rows, [[Some("ab".to_owned())]]);
        let refused = b"E\0\0\0\x1dSFATAL\0C57P03\0Mstarting\0\0";
        let error = session(login, Some(refused)).unwrap_err();
        let is_refusal = matches!(error, PostgresError::Statement { .. });
        assert!(is_refusal, "{error:?}");
        let error = session(login, None).unwrap_err();
        assert!(matches!(error, PostgresError::Connection(_)), "{error:?}");
    }

    #[test]
    fn password_is_sent_in_clear_text_only_where_no_network_listens() {
        let message = password_message(b"secret");
        for secret in [None, Some(message.clone())] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let turn = Arc::default();
            let is_secret = secret.is_some();
            let mut socket = TurnSocket::new(ServerStream::from(ours), &turn, secret).unwrap();
            let mut context = Context::from_waker(Waker::noop());
            let sent =
                tokio::io::AsyncWrite::poll_write(Pin::new(&mut socket), &mut context, &message);
            assert_eq!(matches!(sent, Poll::Ready(Err(_))), is_secret, "{sent:?}");
            drop(socket);
            let mut read = Vec::new();
            theirs.read_to_end(&mut read).unwrap();
            assert_eq!(read.is_empty(), is_secret);
        }
        // What tokio-postgres sends is what is held back.
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"R\0\0\0\x08\0\0\0\x03").unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        let mut config = Config::new();
        config.user("ann").password("secret");
        let stop: StopCheck = Arc::new(|| false);
        let stream = ServerStream::from(ours);
        assert!(PostgresClient::log_in(stream, stop, None, &config, NoTls).is_err());
        let mut read = Vec::new();
        theirs.read_to_end(&mut read).unwrap();
        assert!(read.ends_with(&message), "{read:?}");
    }

    /// Messages of kinds that a server sends, with bodies that it does not.
    fn messages() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
        let kind = prop::sample::select(&b"RSZTDCENKAIn123stGH"[..]);
        vec((kind, vec(0_u8..16, 0..24)), 0..8)
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(
            messages in messages(),
            end in vec(any::<u8>(), 0..16),
        ) {
            let mut answers = Vec::new();
            let login = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
            for (kind, body) in messages {
                answers.push(kind);
                answers.extend((body.len() as u32 + 4).to_be_bytes());
                answers.extend(body);
            }
            answers.extend(end);
            let _ = session(&answers, None);
            let _ = session(login, Some(&answers));
        }
    }
}
