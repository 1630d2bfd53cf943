//! What writer, log and verifier say to each other: frames of a fixed head and a short body. A head
//! states version, kind, length and checksum; whatever does not fit is an error before any memory
//! is taken for it. The secret that writer and log share never crosses the network: the client
//! proves that it knows it by an HMAC of the log's random number (RFC 2104). Pure: reads and writes
//! any stream of bytes.

use crate::page::crc32;
use crate::run::{LogEnd, RunDescription, RunProgress, STREAMS_MAX, parse_run};
use sha2::{Digest as _, Sha256};
use std::io::{self, Read, Write};

/// The version of the protocol and of the log.
const VERSION: u16 = 1;
/// Begins each frame.
const MAGIC: &[u8; 4] = b"DPPC";
/// Bytes of a frame before its body: magic, version, kind, length of the body, checksum.
const HEAD_BYTES: usize = 16;
/// Bytes of the head that the checksum covers.
const HEAD_CHECKED: usize = 12;
/// Longest body: a description with three paths of PATH_MAX stays below.
const BODY_BYTES_MAX: usize = 32 << 10;
/// Bytes of a nonce and of the proof of a token.
pub(crate) const PROOF_BYTES: usize = 32;
/// Longest text of a refusal.
const REFUSAL_BYTES_MAX: usize = 512;

/// The content of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WireMessage {
    /// Log: a random number, to be answered by a proof of the token.
    Challenge([u8; PROOF_BYTES]),
    /// From the client: the proof that it knows the token.
    Hello([u8; PROOF_BYTES]),
    /// Log: the proof is right.
    Welcome,
    /// Log: why the connection ends.
    Refused(String),
    /// Writer: a run starts. Log: a run that it holds.
    Run(Box<RunDescription>),
    /// Writer: how far it is. Log: what it was told.
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
    /// The kind's number and the body.
    fn parts(&self) -> (u8, Vec<u8>) {
        match self {
            Self::Challenge(bytes) => (1, bytes.to_vec()),
            Self::Hello(bytes) => (2, bytes.to_vec()),
            Self::Welcome => (3, Vec::new()),
            Self::Refused(text) => (4, text.as_bytes().to_vec()),
            Self::Run(run) => (5, serde_json::to_vec(run).unwrap_or_default()),
            Self::Progress(progress) => {
                let words = std::iter::once(&progress.elapsed_ns).chain(&progress.counts);
                (6, words.flat_map(|word| word.to_le_bytes()).collect())
            }
            Self::Stop => (7, Vec::new()),
            Self::Logged => (8, Vec::new()),
            Self::List => (9, Vec::new()),
            Self::ListEnd => (10, Vec::new()),
            Self::Fetch(run) => (11, format!("{run:032x}").into_bytes()),
            Self::LogEnd(end) => (12, vec![u8::from(*end == LogEnd::Stopped)]),
        }
    }

    /// The frame in bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, body) = self.parts();
        let mut frame = Vec::with_capacity(HEAD_BYTES + body.len());
        frame.extend(MAGIC);
        frame.extend(VERSION.to_le_bytes());
        frame.extend([kind, 0]);
        frame.extend((body.len() as u32).to_le_bytes());
        let sum = crc32(&[&frame, &body]);
        frame.extend(sum.to_le_bytes());
        frame.extend(body);
        frame
    }

    /// Writes the frame to a connection.
    pub(crate) fn send(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.encode())
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
        if checked[7] != 0 {
            return Err(WireError::Body("a reserved byte is set"));
        }
        Self::decode(checked[6], &body).map_err(WireError::Body)
    }

    fn decode(kind: u8, body: &[u8]) -> Result<Self, &'static str> {
        match (kind, body) {
            (1, _) => Ok(Self::Challenge(decode_proof(body)?)),
            (2, _) => Ok(Self::Hello(decode_proof(body)?)),
            (3, []) => Ok(Self::Welcome),
            (4, _) => decode_refusal(body),
            (5, _) => decode_run(body),
            (6, _) => decode_progress(body),
            (7, []) => Ok(Self::Stop),
            (8, []) => Ok(Self::Logged),
            (9, []) => Ok(Self::List),
            (10, []) => Ok(Self::ListEnd),
            (11, _) => decode_fetch(body),
            (12, [0]) => Ok(Self::LogEnd(LogEnd::Silence)),
            (12, [1]) => Ok(Self::LogEnd(LogEnd::Stopped)),
            (12, _) => Err("the end of a log is malformed"),
            (3 | 7..=10, _) => Err("a message of this kind has no body"),
            _ => Err("an unknown kind"),
        }
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

fn decode_progress(body: &[u8]) -> Result<WireMessage, &'static str> {
    let (words, rest) = body.as_chunks::<8>();
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
    let elapsed_ns = words.next().ok_or("a report without a time")?;
    let counts: Vec<u64> = words.collect();
    if !rest.is_empty() || counts.is_empty() || counts.len() > STREAMS_MAX {
        return Err("a report of the wrong length");
    }
    Ok(WireMessage::Progress(RunProgress { elapsed_ns, counts }))
}

/// Shortens the text of a refusal to what a frame may hold.
pub(crate) fn refusal(text: &str) -> WireMessage {
    let mut text = text.replace(char::is_control, " ");
    while text.len() > REFUSAL_BYTES_MAX {
        text.pop();
    }
    WireMessage::Refused(text)
}

/// Shorter ones can be guessed.
const TOKEN_CHARS_MIN: usize = 16;
/// Block of SHA-256 (FIPS 180-4).
const BLOCK_BYTES: usize = 64;

/// A secret of at least 16 characters, or none, which only loopback accepts.
#[derive(Clone, Default)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Takes the text of a token file; spaces and line ends around it do not count.
    pub fn parse(text: &str) -> Result<Self, String> {
        let secret = text.trim();
        if secret.len() < TOKEN_CHARS_MIN {
            return Err(format!(
                "a token needs {TOKEN_CHARS_MIN} characters; create one with: openssl rand -hex 16"
            ));
        }
        Ok(Self(secret.to_owned()))
    }

    /// True if there is a secret.
    pub fn is_set(&self) -> bool {
        !self.0.is_empty()
    }

    /// The proof for this random number.
    pub(crate) fn proof(&self, nonce: &[u8; PROOF_BYTES]) -> [u8; PROOF_BYTES] {
        let key: Vec<u8> = if self.0.len() > BLOCK_BYTES {
            Sha256::digest(self.0.as_bytes()).to_vec()
        } else {
            self.0.as_bytes().to_vec()
        };
        let mut block = [0; BLOCK_BYTES];
        block[..key.len()].copy_from_slice(&key);
        let inner = Sha256::new()
            .chain_update(block.map(|byte| byte ^ 0x36))
            .chain_update(nonce)
            .finalize();
        Sha256::new()
            .chain_update(block.map(|byte| byte ^ 0x5c))
            .chain_update(inner)
            .finalize()
            .into()
    }

    /// True of the right proof. Takes the same time for every wrong one.
    pub(crate) fn accepts(&self, nonce: &[u8; PROOF_BYTES], proof: &[u8; PROOF_BYTES]) -> bool {
        let right = self.proof(nonce);
        let mut differing = 0;
        for (wanted, given) in right.iter().zip(proof) {
            differing |= wanted ^ given;
        }
        !self.is_set() || differing == 0
    }
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
            let frame = message.encode();
            assert_eq!(receive(&frame).ok(), Some(message));
        }
    }

    #[test]
    fn half_frame_is_an_error_at_every_length() {
        for message in all() {
            let frame = message.encode();
            for length in 0..frame.len() {
                assert!(receive(&frame[..length]).is_err());
            }
        }
    }

    #[test]
    fn oversized_length_is_refused_before_its_body_is_read() {
        let mut frame = WireMessage::Stop.encode();
        frame[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(receive(&frame), Err(WireError::Length(u32::MAX))));
        let mut other = WireMessage::Stop.encode();
        other[4] = 9;
        assert!(matches!(receive(&other), Err(WireError::Version(9))));
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
            let mut frame = all()[which].encode();
            let at = usize::from(at) % frame.len();
            frame[at] ^= 1 << bit;
            prop_assert!(receive(&frame).is_err());
        }
    }

    #[test]
    fn proof_is_the_hmac_that_openssl_computes() {
        // printf '%032d' 0 | openssl dgst -sha256 -hmac 0123456789abcdef
        let token = Token::parse(" 0123456789abcdef\n").unwrap();
        let proof = token.proof(&[b'0'; PROOF_BYTES]);
        let hex: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = "03f3b7238df868ffd3344ff58be58369f50b95c37e127a10a828c15569a94e66";
        assert_eq!(hex, expected);
    }

    #[test]
    fn wrong_token_is_rejected_and_no_token_accepts_everything() {
        let nonce = [7; PROOF_BYTES];
        let [one, other] = [16, 80].map(|length| Token::parse(&"a".repeat(length)).unwrap());
        assert!(one.accepts(&nonce, &one.proof(&nonce)));
        assert!(!one.accepts(&nonce, &other.proof(&nonce)));
        assert!(!one.accepts(&nonce, &Token::default().proof(&nonce)));
        assert!(!one.accepts(&[8; PROOF_BYTES], &one.proof(&nonce)));
        assert!(Token::default().accepts(&nonce, &[0; PROOF_BYTES]));
        assert!(Token::parse("short").is_err());
    }
}
