//! The client's side of SCRAM-SHA-256 without channel binding (RFC 5802, RFC 7677): both sides
//! prove that they know the password, and neither sends it. Pure, except for the random nonce.

use crate::error::PostgresError;
use crate::password::Password;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};
use std::time::Instant;

/// The name of the mechanism.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";
/// "n,,": this client supports no channel binding, as it has no TLS.
const NO_BINDING: &str = "n,,";
const NONCE_BYTES: usize = 18;
const HASH_BYTES: usize = 32;
/// Block of SHA-256 (FIPS 180-4).
const BLOCK_BYTES: usize = 64;
/// Iterations between two looks at the clock: about a millisecond.
const ITERATIONS_PER_LOOK: u32 = 2048;

type Hash = [u8; HASH_BYTES];

/// A login that has begun.
pub(crate) struct ScramLogin {
    /// The first message without the binding: an empty user, as the server knows it already.
    first_bare: String,
    nonce: String,
    /// What the server must send at the end.
    signature: Option<Hash>,
}

impl ScramLogin {
    pub(crate) fn new() -> Result<Self, PostgresError> {
        let mut random = [0; NONCE_BYTES];
        let flags = rustix::rand::GetRandomFlags::empty();
        let count = rustix::rand::getrandom(&mut random[..], flags);
        if count != Ok(NONCE_BYTES) {
            let why = "the kernel provides no random numbers (getrandom)";
            return Err(PostgresError::Login(why.to_owned()));
        }
        Ok(Self::with_nonce(&BASE64.encode(random)))
    }

    fn with_nonce(nonce: &str) -> Self {
        Self {
            first_bare: format!("n=,r={nonce}"),
            nonce: nonce.to_owned(),
            signature: None,
        }
    }

    /// The client's first message.
    pub(crate) fn first(&self) -> String {
        format!("{NO_BINDING}{}", self.first_bare)
    }

    /// The answer to the server's first message: the proof.
    pub(crate) fn proof(
        &mut self,
        server_first: &[u8],
        password: &Password,
        deadline: Option<Instant>,
    ) -> Result<String, PostgresError> {
        let server_first = text(server_first)?;
        let nonce = attribute(server_first, 'r')?;
        let salt = BASE64
            .decode(attribute(server_first, 's')?)
            .map_err(|_| broken())?;
        let iterations: u32 = attribute(server_first, 'i')?
            .parse()
            .map_err(|_| broken())?;
        // A server that does not return our nonce answers another login.
        if !nonce.starts_with(&self.nonce) || nonce.len() <= self.nonce.len() || iterations == 0 {
            return Err(broken());
        }
        let salted = salted_password(password.as_bytes(), &salt, iterations, deadline)?;
        let without_proof = format!("c={},r={nonce}", BASE64.encode(NO_BINDING));
        let signed = format!("{},{server_first},{without_proof}", self.first_bare);
        let client_key = hmac(&salted, &[b"Client Key"]);
        let stored_key: Hash = Sha256::digest(client_key).into();
        let client_signature = hmac(&stored_key, &[signed.as_bytes()]);
        let server_key = hmac(&salted, &[b"Server Key"]);
        self.signature = Some(hmac(&server_key, &[signed.as_bytes()]));
        let proof = BASE64.encode(xor(client_key, &client_signature));
        Ok(format!("{without_proof},p={proof}"))
    }

    /// Checks the server's last message, which proves that it knows the password, too.
    pub(crate) fn check(&mut self, server_last: &[u8]) -> Result<(), PostgresError> {
        let sent = BASE64
            .decode(attribute(text(server_last)?, 'v')?)
            .map_err(|_| broken())?;
        match self.signature.take() {
            Some(right) if sent == right => Ok(()),
            _ => Err(PostgresError::Login(
                "the server cannot prove that it knows the password; check that it is the right \
                 server"
                    .to_owned(),
            )),
        }
    }
}

fn broken() -> PostgresError {
    PostgresError::Protocol("an invalid SCRAM message".to_owned())
}

fn text(bytes: &[u8]) -> Result<&str, PostgresError> {
    std::str::from_utf8(bytes).map_err(|_| broken())
}

/// The value of `name=…` in a message.
fn attribute(message: &str, name: char) -> Result<&str, PostgresError> {
    message
        .split(',')
        .find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
        .ok_or_else(broken)
}

/// `Hi` of the standard: PBKDF2 with one block. The server chooses the iterations, so the deadline
/// ends it, too.
fn salted_password(
    password: &[u8],
    salt: &[u8],
    iterations: u32,
    deadline: Option<Instant>,
) -> Result<Hash, PostgresError> {
    let key = HmacKey::new(password);
    let mut last = key.sign(&[salt, &1u32.to_be_bytes()]);
    let mut sum = last;
    for round in 1..iterations {
        if round % ITERATIONS_PER_LOOK == 0 && deadline.is_some_and(|end| Instant::now() >= end) {
            return Err(PostgresError::Login(format!(
                "the server requests {iterations} iterations for the password, which takes too long"
            )));
        }
        last = key.sign(&[&last]);
        sum = xor(sum, &last);
    }
    Ok(sum)
}

fn xor(left: Hash, right: &Hash) -> Hash {
    let mut sum = left;
    for (sum, byte) in sum.iter_mut().zip(right) {
        *sum ^= byte;
    }
    sum
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Hash {
    HmacKey::new(key).sign(parts)
}

/// HMAC (RFC 2104) with the blocks of the key hashed already, which halves thousands of rounds.
struct HmacKey {
    inner: Sha256,
    outer: Sha256,
}

impl HmacKey {
    fn new(key: &[u8]) -> Self {
        let mut block = [0; BLOCK_BYTES];
        if key.len() > BLOCK_BYTES {
            block[..HASH_BYTES].copy_from_slice(&Sha256::digest(key));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let with = |pad: u8| Sha256::new().chain_update(block.map(|byte| byte ^ pad));
        Self {
            inner: with(0x36),
            outer: with(0x5c),
        }
    }

    fn sign(&self, parts: &[&[u8]]) -> Hash {
        let mut inner = self.inner.clone();
        for part in parts {
            inner.update(part);
        }
        let outer = self.outer.clone().chain_update(inner.finalize());
        outer.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER_FIRST: &str = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                                s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    /// The example of RFC 7677, whose first message names a user; PostgreSQL's is empty.
    fn example() -> ScramLogin {
        ScramLogin {
            first_bare: "n=user,r=rOprNGfwEbeRWgbNEkqO".to_owned(),
            ..ScramLogin::with_nonce("rOprNGfwEbeRWgbNEkqO")
        }
    }

    fn password() -> Password {
        Password::new("pencil")
    }

    #[test]
    fn proof_and_signature_are_those_of_the_standard() {
        let mut login = example();
        let proof = login.proof(SERVER_FIRST.as_bytes(), &password(), None);
        assert_eq!(
            proof.unwrap(),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        let last = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert!(login.check(last).is_ok());
        // Only once, and only that one.
        assert!(login.check(last).is_err());
    }

    #[test]
    fn server_without_the_password_or_our_nonce_is_refused() {
        let mut login = example();
        login
            .proof(SERVER_FIRST.as_bytes(), &password(), None)
            .unwrap();
        assert!(login.check(b"v=AAAA").is_err());
        for wrong in [
            "r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0",
            "r=rOprNGfwEbeRWgbNEkqOx,s=?,i=1",
            "",
        ] {
            let proof = example().proof(wrong.as_bytes(), &password(), None);
            assert!(proof.is_err(), "{wrong}");
        }
        assert!(example().proof(b"\xff", &password(), None).is_err());
    }

    #[test]
    fn long_password_is_hashed_before_it_is_a_key() {
        // printf x | openssl dgst -sha256 -hmac "$(printf '%080d' 0)"
        let key = HmacKey::new("0".repeat(80).as_bytes());
        let hex: String = key
            .sign(&[b"x"])
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(hex, HMAC_OF_LONG_KEY);
    }

    const HMAC_OF_LONG_KEY: &str =
        "b9823a86c9fa3fa3586b629f6cf6695703e2ab10fbdba437e293c25295124ee5";
}
