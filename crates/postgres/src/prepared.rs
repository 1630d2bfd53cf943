//! Runs a prepared statement over and over: the one request whose own cost is a part of what is
//! measured. It takes a write and a read, and allocates nothing; everything else goes through
//! tokio-postgres, on the same socket, never at the same time. Its messages are made and read by
//! the crate that tokio-postgres uses for its own.

use crate::error::PostgresError;
use crate::stream::StopCheck;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::IsNull;
use postgres_protocol::message::backend::{self, ErrorResponseBody, Header, Message};
use postgres_protocol::message::frontend;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

/// The name of the prepared statement in its session.
pub(crate) const STATEMENT_NAME: &str = "run";
/// The most bytes of an answer, which has about 40, or as an error some hundred.
const ANSWER_BYTES_MAX: usize = 8 << 10;

/// The part of an answer that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerProgress {
    /// All of it: it ends with ReadyForQuery.
    Complete,
    /// More follows.
    Partial,
}

/// A prepared statement without parameters and rows.
pub(crate) struct PreparedRun {
    socket: UnixStream,
    stop: StopCheck,
    statement: String,
    /// The bytes of each request ([`request`]).
    request: BytesMut,
    answer: Box<[u8; ANSWER_BYTES_MAX]>,
}

impl PreparedRun {
    /// The statement of a session that has prepared it as [`STATEMENT_NAME`]. A read from its
    /// socket must have a timeout, after which `stop` decides whether to go on.
    pub(crate) fn new(
        socket: UnixStream,
        stop: StopCheck,
        statement: &str,
    ) -> Result<Self, PostgresError> {
        Ok(Self {
            socket,
            stop,
            statement: statement.to_owned(),
            request: request()?,
            answer: Box::new([0; ANSWER_BYTES_MAX]),
        })
    }

    /// Runs it in a separate transaction. When it returns, the server has acknowledged the commit.
    /// After an error the session is of no use.
    pub(crate) fn run(&mut self) -> Result<(), PostgresError> {
        let mut sent = 0;
        while sent < self.request.len() {
            match self.socket.write(&self.request[sent..]) {
                Ok(count) => sent += count,
                Err(error) => self.check_wait(error)?,
            }
        }
        let mut length = 0;
        loop {
            match self.socket.read(&mut self.answer[length..]) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(count) => length += count,
                Err(error) => self.check_wait(error)?,
            }
            if self.answer_progress(length)? == AnswerProgress::Complete {
                return Ok(());
            }
            if length == ANSWER_BYTES_MAX {
                return Err(unexpected(format!("more than {ANSWER_BYTES_MAX} bytes")));
            }
        }
    }

    /// `Ok` if a wait may go on, else the error that ends it.
    fn check_wait(&self, error: io::Error) -> Result<(), PostgresError> {
        use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
        match error.kind() {
            WouldBlock | TimedOut | Interrupted if (self.stop)() => Err(PostgresError::Stopped),
            WouldBlock | TimedOut | Interrupted => Ok(()),
            _ => Err(error.into()),
        }
    }

    /// Checks the messages in the first `length` bytes of the answer. Fails where one of them
    /// refuses the statement, or is none that a server may send.
    fn answer_progress(&self, length: usize) -> Result<AnswerProgress, PostgresError> {
        let mut rest = &self.answer[..length];
        while let Some(header) = Header::parse(rest).map_err(|e| unexpected(e.to_string()))? {
            let whole = usize::try_from(header.len()).map_or(usize::MAX, |length| length + 1);
            let Some((message, after)) = rest.split_at_checked(whole) else {
                break;
            };
            match header.tag() {
                backend::READY_FOR_QUERY_TAG if after.is_empty() => {
                    return Ok(AnswerProgress::Complete);
                }
                backend::BIND_COMPLETE_TAG
                | backend::COMMAND_COMPLETE_TAG
                | backend::NOTICE_RESPONSE_TAG
                | backend::PARAMETER_STATUS_TAG => {}
                backend::ERROR_RESPONSE_TAG => return Err(self.refusal(message)),
                tag => return Err(unexpected(format!("a message of the kind {tag}"))),
            }
            rest = after;
        }
        Ok(AnswerProgress::Partial)
    }

    /// The error with the server's words.
    fn refusal(&self, message: &[u8]) -> PostgresError {
        match Message::parse(&mut BytesMut::from(message)) {
            Ok(Some(Message::ErrorResponse(body))) => PostgresError::Statement {
                statement: self.statement.clone(),
                message: format!("{}: {}", field(&body, b'S'), field(&body, b'M')),
                code: field(&body, b'C'),
            },
            _ => unexpected("an error without fields".to_owned()),
        }
    }
}

/// The messages that run the statement once: bind the unnamed portal to it, execute that to its
/// end, sync.
fn request() -> io::Result<BytesMut> {
    let mut request = BytesMut::new();
    frontend::bind(
        "",
        STATEMENT_NAME,
        [],
        [],
        |(), _| Ok(IsNull::Yes),
        [],
        &mut request,
    )
    .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    frontend::execute("", 0, &mut request)?;
    frontend::sync(&mut request);
    Ok(request)
}

/// A field of an error; empty where it is absent.
fn field(body: &ErrorResponseBody, kind: u8) -> String {
    match body.fields().find(|field| Ok(field.type_() == kind)) {
        Ok(Some(field)) => String::from_utf8_lossy(field.value_bytes()).into_owned(),
        _ => String::new(),
    }
}

fn unexpected(what: String) -> PostgresError {
    PostgresError::Protocol(what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    const DONE: &[u8] = b"2\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0Z\0\0\0\x05I";

    /// One run at a server that sends these parts.
    fn answered(parts: &[&[u8]]) -> Result<(), PostgresError> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| part.to_vec()).collect();
        let server = std::thread::spawn(move || {
            let mut request = vec![0; request().unwrap().len()];
            theirs.read_exact(&mut request).unwrap();
            for part in parts {
                theirs.write_all(&part).unwrap();
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        let mut run = PreparedRun::new(ours, Arc::new(|| false), "INSERT").unwrap();
        let ran = run.run();
        server.join().unwrap();
        ran
    }

    #[test]
    fn answer_may_come_in_parts() {
        answered(&[DONE]).unwrap();
        for at in 1..DONE.len() {
            answered(&[&DONE[..at], &DONE[at..]]).unwrap();
        }
        let notice = b"N\0\0\0\x06x\0";
        answered(&[&[&notice[..], DONE].concat()]).unwrap();
    }

    #[test]
    fn refusals_and_broken_answers_are_errors() {
        let refused = b"E\0\0\0\x1bSERROR\0C53100\0Mdisk full\0\0Z\0\0\0\x05I";
        // The length of the fields above.
        let mut refused = refused.to_vec();
        refused[4] = 4 + 26;
        let error = answered(&[&refused]).unwrap_err();
        let PostgresError::Statement { message, code, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!((&message[..], &code[..]), ("ERROR: disk full", "53100"));
        let ended = answered(&[&DONE[..9]]).unwrap_err();
        assert!(matches!(ended, PostgresError::Connection(_)), "{ended:?}");
        for broken in [&b"D\0\0\0\x04"[..], b"C\0\0\0\0", b"T\0\0\0\x06\0\0"] {
            let error = answered(&[broken]).unwrap_err();
            assert!(matches!(error, PostgresError::Protocol(_)), "{error:?}");
        }
        let long = [&b"N\0\x01\0\0"[..], &[b'x'; ANSWER_BYTES_MAX]].concat();
        let error = answered(&[&long]).unwrap_err();
        assert!(matches!(error, PostgresError::Protocol(_)), "{error:?}");
    }

    #[test]
    fn stop_ends_the_wait_for_an_answer() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        let mut run = PreparedRun::new(ours, Arc::new(|| true), "INSERT").unwrap();
        assert!(matches!(run.run(), Err(PostgresError::Stopped)));
    }
}
