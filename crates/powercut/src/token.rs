//! Proves and checks the secret that writer and log share. It never crosses the network: the client
//! proves that it has it by an HMAC of the log's random number (RFC 2104).

use sha2::{Digest as _, Sha256};

/// Bytes of a nonce and of the proof of a token: one digest of SHA-256.
pub(crate) const PROOF_BYTES: usize = 32;
/// A shorter token can be guessed: 16 hexadecimal digits are 64 bits.
const TOKEN_CHARS_MIN: usize = 16;
/// Bytes of a block of SHA-256 (FIPS 180-4).
const BLOCK_BYTES: usize = 64;
/// Changes the key for the inner digest of an HMAC (RFC 2104, 2).
const INNER_PAD: u8 = 0x36;
/// Changes the key for the outer digest of an HMAC (RFC 2104, 2).
const OUTER_PAD: u8 = 0x5c;

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

    /// Returns the HMAC of the log's random number with this token as the key.
    pub(crate) fn proof(&self, nonce: &[u8; PROOF_BYTES]) -> [u8; PROOF_BYTES] {
        let key: Vec<u8> = if self.0.len() > BLOCK_BYTES {
            Sha256::digest(self.0.as_bytes()).to_vec()
        } else {
            self.0.as_bytes().to_vec()
        };
        let mut block = [0; BLOCK_BYTES];
        block[..key.len()].copy_from_slice(&key);
        let inner = Sha256::new()
            .chain_update(block.map(|byte| byte ^ INNER_PAD))
            .chain_update(nonce)
            .finalize();
        Sha256::new()
            .chain_update(block.map(|byte| byte ^ OUTER_PAD))
            .chain_update(inner)
            .finalize()
            .into()
    }

    /// True if the proof is that of this token, or if there is no token. Takes the same time for
    /// every wrong proof, so that the time shows nothing of the right one.
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
