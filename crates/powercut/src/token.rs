//! The secret that writer and log share. It never crosses the network: the client proves that it
//! knows it by an HMAC of the log's random number (RFC 2104). Pure.

use crate::protocol::PROOF_BYTES;
use sha2::{Digest as _, Sha256};

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
        let text = text.trim();
        if text.len() < TOKEN_CHARS_MIN {
            return Err(format!(
                "a token needs {TOKEN_CHARS_MIN} characters; create one with: openssl rand -hex 16"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether there is a secret.
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
        let with = |pad: u8| block.map(|byte| byte ^ pad);
        let inner = Sha256::new().chain_update(with(0x36)).chain_update(nonce);
        let outer = Sha256::new().chain_update(with(0x5c));
        outer.chain_update(inner.finalize()).finalize().into()
    }

    /// Whether a proof is right. Takes the same time for every wrong one.
    pub(crate) fn accepts(&self, nonce: &[u8; PROOF_BYTES], proof: &[u8; PROOF_BYTES]) -> bool {
        let right = self.proof(nonce);
        let pairs = right.iter().zip(proof);
        let differing = pairs.fold(0, |bits, (a, b)| bits | (a ^ b));
        !self.is_set() || differing == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_is_the_hmac_that_openssl_computes() {
        // printf '%032d' 0 | openssl dgst -sha256 -hmac 0123456789abcdef
        let token = Token::parse(" 0123456789abcdef\n").unwrap();
        let hex: String = token
            .proof(&[b'0'; PROOF_BYTES])
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            hex,
            "03f3b7238df868ffd3344ff58be58369f50b95c37e127a10a828c15569a94e66"
        );
    }

    #[test]
    fn wrong_token_is_rejected_and_no_token_accepts_everything() {
        let nonce = [7; PROOF_BYTES];
        let (one, other) = (
            Token::parse(&"a".repeat(16)).unwrap(),
            Token::parse(&"a".repeat(80)).unwrap(),
        );
        assert!(one.accepts(&nonce, &one.proof(&nonce)));
        assert!(!one.accepts(&nonce, &other.proof(&nonce)));
        assert!(!one.accepts(&nonce, &Token::default().proof(&nonce)));
        assert!(!one.accepts(&[8; PROOF_BYTES], &one.proof(&nonce)));
        assert!(Token::default().accepts(&nonce, &[0; PROOF_BYTES]));
        assert!(Token::parse("short").is_err());
    }
}
