//! Talks to the log over the network: for the writer, which reports, and for the verifier, which
//! fetches what was reported.

use crate::deadline_stream::DeadlineStream;
use crate::kept_reports::KeptReports;
use crate::log_store::{LISTED_MAX, LOG_BYTES_MAX, check_follows, reports_within};
use crate::protocol::{WireError, WireMessage};
use crate::run::{RunDescription, RunLog, RunProgress, parse_run};
use crate::token::Token;
use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// The TCP port of a log where the command line names none. Chosen. With another one, a writer of
/// an older build would not find the log.
pub const PORT_DEFAULT: u16 = 5447;
/// The time for a log to accept the connection. A longer one lets a user wait at a wrong address; a
/// shorter one gives up on a slow network.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for each answer. A log on a busy disk may need seconds for its own sync.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection to a log.
#[derive(Debug)]
pub struct LogClient {
    stream: DeadlineStream,
    server: String,
}

/// The reason why the log cannot be reached or used, in words for the user.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The name or address of the log leads nowhere.
    #[error(
        "cannot reach the log at {0}: {1}. Start it on a second machine with: diskproof powercut \
         serve"
    )]
    Connect(String, io::Error),
    /// The log refuses the request.
    #[error("the log at {0} refused: {1}")]
    Refused(String, String),
    /// The connection failed, or the answer makes no sense.
    #[error("the connection to the log at {0} was lost: {1}")]
    Gone(String, String),
    /// The log sends more reports than a log can hold.
    #[error("the log at {0} sent more than {1} reports of one run; no log of diskproof holds more")]
    Endless(String, u64),
}

impl LogClient {
    /// Connects to `HOST` or `HOST:PORT` and proves the token.
    pub fn connect(server: &str, token: &Token) -> Result<Self, LogError> {
        let named = with_port(server);
        let stream = match connect(&named) {
            Ok(stream) => stream,
            Err(error) => return Err(LogError::Connect(named, error)),
        };
        let mut client = Self {
            stream: DeadlineStream::new(stream),
            server: named,
        };
        let WireMessage::Challenge(nonce) = client.receive()? else {
            return Err(client.unexpected());
        };
        client.ask(
            &WireMessage::Hello(token.proof(&nonce)),
            &WireMessage::Welcome,
        )?;
        Ok(client)
    }

    /// Returns the address of the log, with its port.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Announces a run; no other one follows on this connection.
    pub fn start(&mut self, run: &RunDescription) -> Result<(), LogError> {
        let message = WireMessage::Run(Box::new(run.clone()));
        self.ask(&message, &WireMessage::Logged)
    }

    /// Reports progress; returns when the log has made it durable.
    pub fn report(&mut self, progress: &RunProgress) -> Result<(), LogError> {
        let message = WireMessage::Progress(progress.clone());
        self.ask(&message, &WireMessage::Logged)
    }

    /// Reports to the log that the run ends without a cut.
    pub fn stop(&mut self) -> Result<(), LogError> {
        self.ask(&WireMessage::Stop, &WireMessage::Logged)
    }

    /// Returns the newest runs, newest first, at most a thousand (`LISTED_MAX`).
    pub fn list(mut self) -> Result<Vec<RunDescription>, LogError> {
        self.send(&WireMessage::List)?;
        let mut runs = Vec::new();
        loop {
            match self.receive()? {
                WireMessage::Run(run) if runs.len() < LISTED_MAX => runs.push(*run),
                WireMessage::ListEnd => return Ok(runs),
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// Returns the log of a run, by the 32 digits of its name, with every nth report of a long run
    /// and always the last one. Each of its frames has its own deadline, and all of them together
    /// are no more than a log can hold.
    pub fn fetch(self, run: &str) -> Result<RunLog, LogError> {
        self.fetch_within(LOG_BYTES_MAX, run)
    }

    fn fetch_within(mut self, bytes_max: u64, run: &str) -> Result<RunLog, LogError> {
        let number = parse_run(run).ok_or_else(|| self.unexpected())?;
        self.send(&WireMessage::Fetch(number))?;
        let WireMessage::Run(description) = self.receive()? else {
            return Err(self.malformed("a log without the description of its run"));
        };
        let streams = description.streams.len();
        let mut reports = KeptReports::new();
        let reports_max = reports_within(bytes_max, streams);
        loop {
            match self.receive()? {
                WireMessage::Progress(_) if reports.pushed() >= reports_max => {
                    return Err(LogError::Endless(self.server, reports_max));
                }
                WireMessage::Progress(next) => {
                    check_follows(streams, reports.last(), &next)
                        .map_err(|why| self.malformed(why))?;
                    reports.push(next);
                }
                WireMessage::LogEnd(end) => {
                    return Ok(RunLog {
                        description: *description,
                        progress: reports.into_reports(),
                        end,
                    });
                }
                _ => return Err(self.malformed("a log with a message that is no part of one")),
            }
        }
    }

    /// Sends a message, and fails unless the log answers it with `answer`.
    fn ask(&mut self, question: &WireMessage, answer: &WireMessage) -> Result<(), LogError> {
        self.send(question)?;
        match self.receive()? {
            got if got == *answer => Ok(()),
            _ => Err(self.unexpected()),
        }
    }

    fn send(&mut self, message: &WireMessage) -> Result<(), LogError> {
        self.stream.send(message).map_err(|error| self.gone(error))
    }

    fn receive(&mut self) -> Result<WireMessage, LogError> {
        match self.stream.receive(ANSWER_TIMEOUT) {
            Ok(WireMessage::Refused(why)) => Err(LogError::Refused(self.server.clone(), why)),
            Ok(message) => Ok(message),
            Err(error) => Err(self.gone(error)),
        }
    }

    fn gone(&self, why: impl std::fmt::Display) -> LogError {
        LogError::Gone(self.server.clone(), why.to_string())
    }

    fn malformed(&self, why: &'static str) -> LogError {
        self.gone(WireError::Body(why))
    }

    fn unexpected(&self) -> LogError {
        self.gone("its answer is invalid")
    }
}

/// Tries the addresses of a name one after the other. Returns the error of the last one if none
/// accepts.
fn connect(named: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in named.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Returns the server as HOST:PORT, with the default port where none is named. An IPv6 address with
/// a port stands in brackets.
fn with_port(server: &str) -> String {
    let is_bare_v6 = server.parse::<std::net::Ipv6Addr>().is_ok();
    match server.rsplit_once(':') {
        _ if is_bare_v6 => format!("[{server}]:{PORT_DEFAULT}"),
        Some((_, port)) if port.parse::<u16>().is_ok() => server.to_owned(),
        _ => format!("{server}:{PORT_DEFAULT}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{LogEnd, example};
    use crate::token::PROOF_BYTES;
    use std::net::TcpListener;

    /// A server that lets everybody in and answers the request for a log with `reports` reports, or
    /// with as many as the other side takes.
    fn serve_reports(reports: Option<u64>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            WireMessage::Challenge([1; PROOF_BYTES])
                .send(&mut stream)
                .unwrap();
            WireMessage::receive(&mut stream).unwrap();
            WireMessage::Welcome.send(&mut stream).unwrap();
            WireMessage::receive(&mut stream).unwrap();
            let run = WireMessage::Run(Box::new(example()));
            run.send(&mut stream).unwrap();
            let counts = vec![0; example().streams.len()];
            for elapsed_ns in 0..reports.unwrap_or(u64::MAX) {
                let counts = counts.clone();
                let report = WireMessage::Progress(RunProgress { elapsed_ns, counts });
                if report.send(&mut stream).is_err() {
                    return;
                }
            }
            WireMessage::LogEnd(LogEnd::Silence)
                .send(&mut stream)
                .unwrap();
        });
        address
    }

    #[test]
    fn log_without_end_is_refused_and_a_full_one_is_read() {
        // A head, a time and a count of each of the example's five streams.
        const REPORT_BYTES: u64 = 16 + 8 + 5 * 8;
        let fetch = |reports| {
            let client = LogClient::connect(&serve_reports(reports), &Token::default());
            client
                .unwrap()
                .fetch_within(100 * REPORT_BYTES, &example().run)
        };
        assert_eq!(fetch(Some(100)).unwrap().progress.len(), 100);
        for reports in [Some(101), None] {
            let error = fetch(reports).unwrap_err();
            assert!(matches!(error, LogError::Endless(_, 100)), "{error}");
        }
    }

    #[test]
    fn server_without_a_port_gets_the_default() {
        assert_eq!(with_port("db2"), "db2:5447");
        assert_eq!(with_port("db2:99"), "db2:99");
        assert_eq!(with_port("::1"), "[::1]:5447");
        assert_eq!(with_port("[::1]:7"), "[::1]:7");
        assert_eq!(with_port("10.0.0.1"), "10.0.0.1:5447");
    }
}
