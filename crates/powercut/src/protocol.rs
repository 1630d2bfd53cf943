//! Encodes the messages between writer, log and verifier in frames, and decodes them: a fixed head
//! and a short body. A head states version, kind, length and checksum. A receiver refuses a frame
//! that does not fit before it takes any memory for it. Pure: reads and writes any stream of bytes.

use crate::page::crc32;
use crate::run::{LogEnd, RunDescription, RunProgress, STREAMS_MAX, parse_run};
use crate::token::PROOF_BYTES;
use std::io::{self, Read, Write};

/// The version of the protocol and of the log. Any change of a frame needs another one, since a
/// writer, a log and a verifier may be different builds: the head, the kinds, the JSON of
/// [`RunDescription`], the order of its streams.
pub(crate) const VERSION: u16 = 1;
/// Begins each frame.
const MAGIC: &[u8; 4] = b"DPPC";
/// Bytes of a frame before its body: magic, version, kind, length of the body, checksum.
const HEAD_BYTES: usize = 16;
/// Bytes of the head that the checksum covers.
const HEAD_CHECKED: usize = 12;
/// The byte of the head that follows the kind. It is always this; a receiver refuses another.
const RESERVED: u8 = 0;
/// Longest body: a description with three paths of PATH_MAX stays below.
const BODY_BYTES_MAX: usize = 32 << 10;
/// Bytes of each number in a report of progress.
const WORD_BYTES: usize = size_of::<u64>();
/// Bytes of the longest refusal that is sent or accepted. A longer one is cut off when sent: it is
/// a line for the user's terminal.
const REFUSAL_BYTES_MAX: usize = 512;
/// The body of [`WireMessage::LogEnd`] where the writer fell silent.
const END_SILENCE: u8 = 0;
/// The body of [`WireMessage::LogEnd`] where the writer stopped.
const END_STOPPED: u8 = 1;

/// The numbers of the kinds of messages. They are part of the protocol and of every log, so none
/// changes while `VERSION` stays.
mod kind {
    pub(super) const CHALLENGE: u8 = 1;
    pub(super) const HELLO: u8 = 2;
    pub(super) const WELCOME: u8 = 3;
    pub(super) const REFUSED: u8 = 4;
    pub(super) const RUN: u8 = 5;
    pub(super) const PROGRESS: u8 = 6;
    pub(super) const STOP: u8 = 7;
    pub(super) const LOGGED: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const LIST_END: u8 = 10;
    pub(super) const FETCH: u8 = 11;
    pub(super) const LOG_END: u8 = 12;
}

/// The content of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WireMessage {
    /// Log: a random number, to be answered by a proof of the token.
    Challenge([u8; PROOF_BYTES]),
    /// Client: the proof that it has the token.
    Hello([u8; PROOF_BYTES]),
    /// Log: the proof is right.
    Welcome,
    /// Log: why the connection ends.
    Refused(String),
    /// Writer: a run starts. Log: a run that it holds.
    Run(Box<RunDescription>),
    /// Writer: how far it is. Log: what the writer reported.
    Progress(RunProgress),
    /// Writer: the run ends without a cut.
    Stop,
    /// Log: what was reported is on its disk.
    Logged,
    /// Verifier: which runs are there?
    List,
    /// Log: no more runs.
    ListEnd,
    /// Verifier: send the log of this run.
    Fetch(u128),
    /// Log: no more of this run.
    LogEnd(LogEnd),
}

/// The reason why a frame cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    /// The other side closed between two frames.
    #[error("the connection was closed")]
    Closed,
    /// Too slow, closed inside of a frame, or a failure of the network.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The other side does not speak this protocol.
    #[error("this is not the protocol of diskproof powercut")]
    Magic,
    /// The other side speaks this version of it.
    #[error("protocol version {0}; this program speaks version {VERSION}. Use the same diskproof")]
    Version(u16),
    /// A length beyond the limit.
    #[error("a message of {0} bytes is too long for this protocol")]
    Length(u32),
    /// The checksum is wrong.
    #[error("the checksum of a message is wrong")]
    Checksum,
    /// The body makes no sense.
    #[error("a message is malformed: {0}")]
    Body(&'static str),
}

impl WireMessage {
    /// The number of the message's kind in the head of its frame.
    fn kind(&self) -> u8 {
        match self {
            Self::Challenge(_) => kind::CHALLENGE,
            Self::Hello(_) => kind::HELLO,
            Self::Welcome => kind::WELCOME,
            Self::Refused(_) => kind::REFUSED,
            Self::Run(_) => kind::RUN,
            Self::Progress(_) => kind::PROGRESS,
            Self::Stop => kind::STOP,
            Self::Logged => kind::LOGGED,
            Self::List => kind::LIST,
            Self::ListEnd => kind::LIST_END,
            Self::Fetch(_) => kind::FETCH,
            Self::LogEnd(_) => kind::LOG_END,
        }
    }

    fn encode_body(&self) -> io::Result<Vec<u8>> {
        let body = match self {
            Self::Challenge(bytes) | Self::Hello(bytes) => bytes.to_vec(),
            Self::Refused(text) => text.as_bytes().to_vec(),
            Self::Run(run) => serde_json::to_vec(run)?,
            Self::Progress(progress) => encode_progress(progress),
            Self::Fetch(run) => format!("{run:032x}").into_bytes(),
            Self::LogEnd(LogEnd::Silence) => vec![END_SILENCE],
            Self::LogEnd(LogEnd::Stopped) => vec![END_STOPPED],
            Self::Welcome | Self::Stop | Self::Logged | Self::List | Self::ListEnd => Vec::new(),
        };
        Ok(body)
    }

    /// Returns the frame in bytes. Fails for a message whose body is longer than a receiver takes,
    /// so that the sender learns it before anything is sent.
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        let body = self.encode_body()?;
        if body.len() > BODY_BYTES_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                WireError::Length(body.len() as u32),
            ));
        }
        let mut frame = Vec::with_capacity(HEAD_BYTES + body.len());
        frame.extend(MAGIC);
        frame.extend(VERSION.to_le_bytes());
        frame.extend([self.kind(), RESERVED]);
        frame.extend((body.len() as u32).to_le_bytes());
        let sum = crc32(&[&frame, &body]);
        frame.extend(sum.to_le_bytes());
        frame.extend(body);
        Ok(frame)
    }

    /// Writes the frame to a connection.
    pub(crate) fn send(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.encode()?)
    }

    /// Reads one frame, and nothing behind it.
    pub(crate) fn receive(from: &mut impl Read) -> Result<Self, WireError> {
        let mut head = [0; HEAD_BYTES];
        match from.read(&mut head[..1]) {
            Ok(0) => return Err(WireError::Closed),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        from.read_exact(&mut head[1..])?;
        let (checked, sum) = head.split_at(HEAD_CHECKED);
        if &checked[..4] != MAGIC {
            return Err(WireError::Magic);
        }
        let version = u16::from_le_bytes([checked[4], checked[5]]);
        if version != VERSION {
            return Err(WireError::Version(version));
        }
        let length = u32::from_le_bytes([checked[8], checked[9], checked[10], checked[11]]);
        if length as usize > BODY_BYTES_MAX {
            return Err(WireError::Length(length));
        }
        let mut body = vec![0; length as usize];
        from.read_exact(&mut body)?;
        if crc32(&[checked, &body]).to_le_bytes() != sum {
            return Err(WireError::Checksum);
        }
        if checked[7] != RESERVED {
            return Err(WireError::Body("a reserved byte is set"));
        }
        Self::decode(checked[6], &body).map_err(WireError::Body)
    }

    fn decode(kind: u8, body: &[u8]) -> Result<Self, &'static str> {
        match kind {
            kind::CHALLENGE => Ok(Self::Challenge(decode_proof(body)?)),
            kind::HELLO => Ok(Self::Hello(decode_proof(body)?)),
            kind::WELCOME => without_body(Self::Welcome, body),
            kind::REFUSED => decode_refusal(body),
            kind::RUN => decode_run(body),
            kind::PROGRESS => decode_progress(body),
            kind::STOP => without_body(Self::Stop, body),
            kind::LOGGED => without_body(Self::Logged, body),
            kind::LIST => without_body(Self::List, body),
            kind::LIST_END => without_body(Self::ListEnd, body),
            kind::FETCH => decode_fetch(body),
            kind::LOG_END => decode_log_end(body),
            _ => Err("an unknown kind"),
        }
    }
}

/// Returns the message if its body is empty, as it must be.
fn without_body(message: WireMessage, body: &[u8]) -> Result<WireMessage, &'static str> {
    if body.is_empty() {
        Ok(message)
    } else {
        Err("a message of this kind has no body")
    }
}

fn decode_log_end(body: &[u8]) -> Result<WireMessage, &'static str> {
    match body {
        [END_SILENCE] => Ok(WireMessage::LogEnd(LogEnd::Silence)),
        [END_STOPPED] => Ok(WireMessage::LogEnd(LogEnd::Stopped)),
        _ => Err("the end of a log is malformed"),
    }
}

fn decode_proof(body: &[u8]) -> Result<[u8; PROOF_BYTES], &'static str> {
    body.try_into().map_err(|_| "a proof of the wrong length")
}

fn decode_fetch(body: &[u8]) -> Result<WireMessage, &'static str> {
    match str::from_utf8(body).ok().and_then(parse_run) {
        Some(run) => Ok(WireMessage::Fetch(run)),
        None => Err("the name of a run is malformed"),
    }
}

fn decode_refusal(body: &[u8]) -> Result<WireMessage, &'static str> {
    let text = std::str::from_utf8(body).map_err(|_| "a refusal that is no text")?;
    if body.len() > REFUSAL_BYTES_MAX || text.contains(char::is_control) {
        return Err("a refusal too long, or with control characters");
    }
    Ok(WireMessage::Refused(text.to_owned()))
}

fn decode_run(body: &[u8]) -> Result<WireMessage, &'static str> {
    let run: RunDescription =
        serde_json::from_slice(body).map_err(|_| "the description of a run is malformed")?;
    run.check()?;
    Ok(WireMessage::Run(Box::new(run)))
}

/// The time, then one count for each stream: words of eight bytes, the lowest byte first.
fn encode_progress(progress: &RunProgress) -> Vec<u8> {
    let mut body = progress.elapsed_ns.to_le_bytes().to_vec();
    for count in &progress.counts {
        body.extend(count.to_le_bytes());
    }
    body
}

/// Bytes of the frame in which a run of so many streams reports its progress.
pub(crate) fn progress_frame_bytes(streams: usize) -> usize {
    HEAD_BYTES + WORD_BYTES + streams * WORD_BYTES
}

fn decode_progress(body: &[u8]) -> Result<WireMessage, &'static str> {
    let (words, rest) = body.as_chunks::<WORD_BYTES>();
    let mut numbers = words.iter().map(|word| u64::from_le_bytes(*word));
    let elapsed_ns = numbers.next().ok_or("a report without a time")?;
    let counts: Vec<u64> = numbers.collect();
    if !rest.is_empty() || counts.is_empty() || counts.len() > STREAMS_MAX {
        return Err("a report of the wrong length");
    }
    Ok(WireMessage::Progress(RunProgress { elapsed_ns, counts }))
}

/// Returns the refusal with this text, on one line and cut off at the longest that a frame may
/// hold.
pub(crate) fn refusal(text: &str) -> WireMessage {
    let mut text = text.replace(char::is_control, " ");
    while text.len() > REFUSAL_BYTES_MAX {
        text.pop();
    }
    WireMessage::Refused(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::example;
    use proptest::prelude::*;

    fn receive(bytes: &[u8]) -> Result<WireMessage, WireError> {
        WireMessage::receive(&mut &bytes[..])
    }

    fn all() -> Vec<WireMessage> {
        let progress = RunProgress {
            elapsed_ns: 5,
            counts: vec![1, u64::MAX, 0],
        };
        vec![
            WireMessage::Challenge([3; PROOF_BYTES]),
            WireMessage::Hello([4; PROOF_BYTES]),
            WireMessage::Welcome,
            refusal(&"no\n".repeat(400)),
            WireMessage::Run(Box::new(example())),
            WireMessage::Progress(progress),
            WireMessage::Stop,
            WireMessage::Logged,
            WireMessage::List,
            WireMessage::ListEnd,
            WireMessage::Fetch(77),
            WireMessage::LogEnd(LogEnd::Silence),
            WireMessage::LogEnd(LogEnd::Stopped),
        ]
    }

    #[test]
    fn message_survives_its_frame() {
        for message in all() {
            let frame = message.encode().unwrap();
            assert_eq!(receive(&frame).ok(), Some(message));
        }
    }

    #[test]
    fn half_frame_is_an_error_at_every_length() {
        for message in all() {
            let frame = message.encode().unwrap();
            for length in 0..frame.len() {
                assert!(receive(&frame[..length]).is_err());
            }
        }
    }

    #[test]
    fn oversized_length_is_refused_before_its_body_is_read() {
        let mut frame = WireMessage::Stop.encode().unwrap();
        frame[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(receive(&frame), Err(WireError::Length(u32::MAX))));
        let mut other = WireMessage::Stop.encode().unwrap();
        other[4] = 9;
        assert!(matches!(receive(&other), Err(WireError::Version(9))));
    }

    #[test]
    fn longest_body_is_read_and_a_longer_one_is_not() {
        for (bytes, is_too_long) in [(BODY_BYTES_MAX, false), (BODY_BYTES_MAX + 1, true)] {
            let mut frame = WireMessage::Stop.encode().unwrap();
            frame[8..12].copy_from_slice(&(bytes as u32).to_le_bytes());
            frame.resize(HEAD_BYTES + bytes, 0);
            match receive(&frame) {
                Err(WireError::Length(_)) => assert!(is_too_long, "{bytes}"),
                Err(WireError::Checksum) => assert!(!is_too_long, "{bytes}"),
                other => panic!("{other:?}"),
            }
        }
    }

    /// A later version may use the byte.
    #[test]
    fn reserved_byte_of_a_sound_frame_is_refused() {
        let mut frame = WireMessage::Stop.encode().unwrap();
        frame[7] = RESERVED + 1;
        let sum = crc32(&[&frame[..HEAD_CHECKED]]);
        frame[HEAD_CHECKED..].copy_from_slice(&sum.to_le_bytes());
        assert!(matches!(receive(&frame), Err(WireError::Body(_))));
    }

    #[test]
    fn long_refusal_is_cut_between_characters() {
        let cut = refusal(&"é".repeat(REFUSAL_BYTES_MAX));
        let WireMessage::Refused(text) = &cut else {
            panic!("{cut:?}");
        };
        assert_eq!(text.len(), REFUSAL_BYTES_MAX);
        assert_eq!(receive(&cut.encode().unwrap()).ok().as_ref(), Some(&cut));
    }

    #[test]
    fn description_too_long_for_a_receiver_is_not_sent() {
        let mut run = example();
        run.host = "x".repeat(BODY_BYTES_MAX);
        let mut sent = Vec::new();
        let error = WireMessage::Run(Box::new(run)).send(&mut sent).unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
        assert!(sent.is_empty());
    }

    #[test]
    fn report_takes_as_many_bytes_as_logs_reckon_with() {
        for streams in [1, 5, STREAMS_MAX] {
            let progress = RunProgress {
                elapsed_ns: 7,
                counts: vec![0; streams],
            };
            let frame = WireMessage::Progress(progress).encode().unwrap();
            assert_eq!(frame.len(), progress_frame_bytes(streams));
        }
    }

    proptest! {
        #[test]
        fn garbage_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(receive(&bytes).is_err());
        }

        #[test]
        fn garbage_in_a_sound_frame_is_no_panic(
            kind in any::<u8>(),
            body in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let _ = WireMessage::decode(kind, &body);
        }

        #[test]
        fn changed_frame_is_an_error(which in 0..13usize, at in any::<u16>(), bit in 0..8u8) {
            let mut frame = all()[which].encode().unwrap();
            let at = usize::from(at) % frame.len();
            frame[at] ^= 1 << bit;
            prop_assert!(receive(&frame).is_err());
        }
    }
}
