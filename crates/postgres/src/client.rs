//! A session of a server: the few messages of PostgreSQL's protocol 3.0 that a load and a look at
//! its counters need (documentation of PostgreSQL, "Frontend/Backend Protocol"). The clients on
//! crates.io bring an async runtime, which this program has no other use for.

use crate::authentication::{Authentication, Credentials};
use crate::error::{CONNECT, PostgresError};
use crate::stream::ServerStream;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether a wait for the server should end.
pub type StopCheck = Arc<dyn Fn() -> bool + Send + Sync>;

const PROTOCOL_3_0: i32 = 196_608;
/// How often a wait for the server looks whether it should end.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longer than any answer that a load gets.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// A session.
pub struct PostgresClient {
    stream: ServerStream,
    stop: StopCheck,
    /// When a wait ends as an error. The session is of no use after that.
    deadline: Option<Instant>,
    /// Received and not read yet.
    received: Vec<u8>,
    start: usize,
}

/// One row of a result; `None` is NULL.
pub(crate) type ResultRow = Vec<Option<String>>;

impl PostgresClient {
    /// Connects to the server of a temporary cluster, which trusts its user.
    pub(crate) fn connect(
        socket: &Path,
        user: &str,
        stop: StopCheck,
    ) -> Result<Self, PostgresError> {
        let stream = ServerStream::Unix(UnixStream::connect(socket)?);
        let who = Credentials {
            user,
            password: None,
            without_password: None,
            is_private: true,
        };
        Self::log_in((stream, stop), None, &who, &[("database", "postgres")])
    }

    /// Logs in over a connected socket, with parameters of the session.
    pub(crate) fn log_in(
        (stream, stop): (ServerStream, StopCheck),
        deadline: Option<Instant>,
        who: &Credentials<'_>,
        parameters: &[(&str, &str)],
    ) -> Result<Self, PostgresError> {
        stream.set_timeouts(LOOK_EVERY)?;
        let mut client = Self {
            stream,
            stop,
            deadline,
            received: Vec::new(),
            start: 0,
        };
        let mut body = PROTOCOL_3_0.to_be_bytes().to_vec();
        let user = [("user", who.user)];
        for (name, value) in user.iter().chain(parameters) {
            for word in [name, value] {
                body.extend(word.bytes().filter(|byte| *byte != 0).chain([0]));
            }
        }
        body.push(0);
        let length = (body.len() as i32 + 4).to_be_bytes();
        client.send(&[&length[..], &body].concat())?;
        let mut login = Authentication::new(who, deadline);
        client.read_until_ready(CONNECT, Some(&mut login))?;
        Ok(client)
    }

    /// Ends every wait from now on at this time.
    pub(crate) fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// Runs a statement and returns its rows.
    pub fn query(&mut self, statement: &str) -> Result<Vec<ResultRow>, PostgresError> {
        self.send(&message(b'Q', &[statement.as_bytes(), &[0]].concat()))?;
        self.read_until_ready(statement, None)
    }

    /// The first value of a statement.
    pub fn value(&mut self, statement: &str) -> Result<String, PostgresError> {
        let rows = self.query(statement)?;
        let value = rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next());
        value
            .flatten()
            .ok_or_else(|| PostgresError::Protocol(format!("no value for '{statement}'")))
    }

    /// Prepares a statement without parameters.
    pub(crate) fn prepare(&mut self, statement: &str) -> Result<PreparedRun, PostgresError> {
        let parse = [b"run\0", statement.as_bytes(), b"\0\0\0"].concat();
        self.send(&[message(b'P', &parse), message(b'S', &[])].concat())?;
        self.read_until_ready(statement, None)?;
        // The unnamed portal of "run", with no formats, parameters and result formats; all rows.
        let bind = message(b'B', b"\0run\0\0\0\0\0\0\0");
        let execute = message(b'E', b"\0\0\0\0\0");
        Ok(PreparedRun {
            messages: [bind, execute, message(b'S', &[])].concat(),
            statement: statement.to_owned(),
        })
    }

    /// Runs a prepared statement in a separate transaction. When it returns, the server has
    /// acknowledged the commit.
    pub(crate) fn run(&mut self, prepared: &PreparedRun) -> Result<(), PostgresError> {
        self.send(&prepared.messages)?;
        self.read_until_ready(&prepared.statement, None).map(drop)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), PostgresError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if is_timeout(&error) => self.check_wait()?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether a wait may go on.
    fn check_wait(&self) -> Result<(), PostgresError> {
        if (self.stop)() {
            return Err(PostgresError::Stopped);
        }
        match self.is_late() {
            true => Err(PostgresError::TimedOut),
            false => Ok(()),
        }
    }

    /// Whether the deadline has passed, also for a server that sends a byte now and then.
    fn is_late(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Reads messages up to ReadyForQuery. An error of the server ends the statement, not the
    /// session.
    fn read_until_ready(
        &mut self,
        statement: &str,
        mut login: Option<&mut Authentication<'_>>,
    ) -> Result<Vec<ResultRow>, PostgresError> {
        let (mut rows, mut refused) = (Vec::new(), None);
        loop {
            let (kind, body) = match self.read_message() {
                // The server sends the reason and hangs up.
                Err(PostgresError::Connection(error)) => {
                    return Err(refused.unwrap_or(PostgresError::Connection(error)));
                }
                other => other?,
            };
            match kind {
                b'Z' => return refused.map_or(Ok(rows), Err),
                b'D' => rows.push(data_row(&body)?),
                b'E' => {
                    refused.get_or_insert(PostgresError::Statement {
                        statement: statement.to_owned(),
                        message: error_text(&body),
                        code: error_field(&body, b'C').unwrap_or_default(),
                    });
                }
                b'R' => {
                    let answer = match &mut login {
                        Some(login) => login.answer(&body)?,
                        None => None,
                    };
                    if let Some(answer) = answer {
                        self.send(&message(b'p', &answer))?;
                    }
                }
                // Parameters, notices, and how far a statement has got.
                _ => {}
            }
        }
    }

    fn read_message(&mut self) -> Result<(u8, Vec<u8>), PostgresError> {
        self.fill(5)?;
        let head = &self.received[self.start..self.start + 5];
        let (kind, length) = (head[0], [head[1], head[2], head[3], head[4]]);
        let length = u32::from_be_bytes(length) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(PostgresError::Protocol(format!(
                "a message of {length} bytes"
            )));
        }
        self.fill(1 + length)?;
        let body = self.received[self.start + 5..self.start + 1 + length].to_vec();
        self.start += 1 + length;
        Ok((kind, body))
    }

    /// Receives until this many bytes are there.
    fn fill(&mut self, wanted: usize) -> Result<(), PostgresError> {
        let mut buffer = [0; 8192];
        while self.received.len() - self.start < wanted {
            if self.start > 0 {
                self.received.drain(..self.start);
                self.start = 0;
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(_) if self.is_late() => return Err(PostgresError::TimedOut),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if is_timeout(&error) => self.check_wait()?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for PostgresClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresClient").finish_non_exhaustive()
    }
}

/// The messages that run a prepared statement once.
pub(crate) struct PreparedRun {
    messages: Vec<u8>,
    statement: String,
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind][..], &length, body].concat()
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

fn data_row(body: &[u8]) -> Result<ResultRow, PostgresError> {
    let short = || PostgresError::Protocol("a row that is too short".to_owned());
    let (count, mut rest) = body.split_first_chunk().ok_or_else(short)?;
    let mut row = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk().ok_or_else(short)?;
        rest = after;
        row.push(match i32::from_be_bytes(*length) {
            -1 => None,
            length => {
                let length = usize::try_from(length).map_err(|_| short())?;
                let (value, after) = rest.split_at_checked(length).ok_or_else(short)?;
                rest = after;
                Some(String::from_utf8_lossy(value).into_owned())
            }
        });
    }
    Ok(row)
}

/// The severity and the message of an error: fields S and M.
fn error_text(body: &[u8]) -> String {
    let parts = [b'S', b'M'].map(|kind| error_field(body, kind));
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(": ")
}

fn error_field(body: &[u8], kind: u8) -> Option<String> {
    let mut fields = body.split(|byte| *byte == 0);
    let found = fields.find(|field| field.first() == Some(&kind));
    found.map(|field| String::from_utf8_lossy(&field[1..]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_errors_are_read_and_broken_ones_refused() {
        let row = b"\0\x02\0\0\0\x02ab\xff\xff\xff\xff";
        assert_eq!(data_row(row).unwrap(), [Some("ab".to_owned()), None]);
        for broken in [&row[..1], &row[..7], &row[..10], b"\0\x01\x80\0\0\0"] {
            assert!(data_row(broken).is_err(), "{broken:?}");
        }
        let error = b"SERROR\0C53100\0Mdisk full\0\0";
        assert_eq!(error_text(error), "ERROR: disk full");
        assert_eq!(error_text(b""), "");
    }

    #[test]
    fn message_has_its_length_behind_its_kind() {
        assert_eq!(message(b'Q', b"x\0"), b"Q\0\0\0\x06x\0");
        assert_eq!(message(b'S', b""), b"S\0\0\0\x04");
    }
}
