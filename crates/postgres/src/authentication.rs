//! How a session proves who it is: the methods trust, peer, password, md5 and scram-sha-256 of
//! pg_hba.conf.

use crate::error::PostgresError;
use crate::md5::md5_hex;
use crate::password::Password;
use crate::scram::{MECHANISM, ScramLogin};
use std::time::Instant;

/// What the server demands, by the number in its message.
mod demand {
    pub(super) const NOTHING_MORE: u32 = 0;
    pub(super) const CLEARTEXT: u32 = 3;
    pub(super) const MD5: u32 = 5;
    pub(super) const GSSAPI: u32 = 7;
    pub(super) const SSPI: u32 = 9;
    pub(super) const SASL: u32 = 10;
    pub(super) const SASL_CONTINUE: u32 = 11;
    pub(super) const SASL_FINAL: u32 = 12;
}

/// Who logs in.
#[derive(Debug, Clone)]
pub(crate) struct Credentials<'a> {
    pub user: &'a str,
    pub password: Option<&'a Password>,
    /// Why there is none, where a file was meant to give it.
    pub without_password: Option<&'a str>,
    /// Whether only this machine can read what is sent.
    pub is_private: bool,
}

/// A login in progress.
pub(crate) struct Authentication<'a> {
    who: &'a Credentials<'a>,
    deadline: Option<Instant>,
    scram: Option<ScramLogin>,
    is_server_proven: bool,
}

impl<'a> Authentication<'a> {
    pub(crate) fn new(who: &'a Credentials<'a>, deadline: Option<Instant>) -> Self {
        Self {
            who,
            deadline,
            scram: None,
            is_server_proven: false,
        }
    }

    /// The answer to a message `R`; `None` where it needs none.
    pub(crate) fn answer(&mut self, body: &[u8]) -> Result<Option<Vec<u8>>, PostgresError> {
        let (number, rest) = body
            .split_first_chunk()
            .ok_or_else(|| broken("too short"))?;
        match u32::from_be_bytes(*number) {
            demand::NOTHING_MORE if self.scram.is_some() && !self.is_server_proven => {
                Err(broken("it ends before the server has authenticated itself"))
            }
            demand::NOTHING_MORE => Ok(None),
            demand::CLEARTEXT if !self.who.is_private => Err(PostgresError::Login(
                "the server requests the password in clear text (method 'password'), which the \
                 network could read. Connect over its Unix socket or loopback, or use \
                 scram-sha-256 in pg_hba.conf"
                    .to_owned(),
            )),
            demand::CLEARTEXT => Ok(Some(with_end(self.password()?.as_bytes()))),
            demand::MD5 => Ok(Some(with_end(self.md5(rest)?.as_bytes()))),
            demand::SASL => self.begin_scram(rest).map(Some),
            demand::SASL_CONTINUE => {
                let (password, deadline) = (self.password()?, self.deadline);
                let scram = self.scram.as_mut().ok_or_else(|| broken("out of order"))?;
                Ok(Some(scram.proof(rest, password, deadline)?.into_bytes()))
            }
            demand::SASL_FINAL => {
                let scram = self.scram.as_mut().ok_or_else(|| broken("out of order"))?;
                scram.check(rest)?;
                self.is_server_proven = true;
                Ok(None)
            }
            other => Err(unsupported(match other {
                demand::GSSAPI => "GSSAPI (Kerberos)",
                demand::SSPI => "SSPI",
                _ => "an unknown method",
            })),
        }
    }

    fn password(&self) -> Result<&'a Password, PostgresError> {
        self.who.password.ok_or_else(|| {
            let file = self.who.without_password;
            PostgresError::Login(format!(
                "the server requests a password for user {}, but none is set. Put it into \
                 ~/.pgpass or PGPASSWORD{}",
                self.who.user,
                file.map_or(String::new(), |why| format!(" ({why})"))
            ))
        })
    }

    fn md5(&self, salt: &[u8]) -> Result<String, PostgresError> {
        if salt.len() != 4 {
            return Err(broken("its salt does not have four bytes"));
        }
        let user = self.who.user.as_bytes();
        let stored = md5_hex(&[self.password()?.as_bytes(), user].concat());
        Ok(format!(
            "md5{}",
            md5_hex(&[stored.as_bytes(), salt].concat())
        ))
    }

    fn begin_scram(&mut self, mechanisms: &[u8]) -> Result<Vec<u8>, PostgresError> {
        let mut offered = mechanisms.split(|byte| *byte == 0);
        if !offered.any(|name| name == MECHANISM.as_bytes()) {
            return Err(unsupported("OAuth, or SCRAM with channel binding only"));
        }
        // It asks for a password: without one, say so before anything is sent.
        self.password()?;
        let scram = ScramLogin::new()?;
        let first = scram.first();
        self.scram = Some(scram);
        let length = (first.len() as u32).to_be_bytes();
        Ok([MECHANISM.as_bytes(), &[0], &length, first.as_bytes()].concat())
    }
}

fn with_end(text: &[u8]) -> Vec<u8> {
    [text, &[0]].concat()
}

fn broken(why: &str) -> PostgresError {
    PostgresError::Protocol(format!("a message of its login: {why}"))
}

fn unsupported(method: &str) -> PostgresError {
    PostgresError::Login(format!(
        "the server requests {method}; diskproof supports trust, peer, password, md5 and \
         scram-sha-256 (pg_hba.conf)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u32, rest: &[u8]) -> Vec<u8> {
        [&number.to_be_bytes()[..], rest].concat()
    }

    fn answer(
        password: Option<&Password>,
        is_private: bool,
        body: &[u8],
    ) -> Result<Option<Vec<u8>>, String> {
        let who = Credentials {
            user: "ann",
            password,
            without_password: None,
            is_private,
        };
        let answer = Authentication::new(&who, None).answer(body);
        answer.map_err(|error| error.to_string())
    }

    #[test]
    fn cleartext_goes_only_where_no_network_listens() {
        let secret = Password::new("secret");
        let sent = answer(Some(&secret), true, &message(3, b""));
        assert_eq!(sent, Ok(Some(b"secret\0".to_vec())));
        let why = answer(Some(&secret), false, &message(3, b"")).unwrap_err();
        assert!(
            why.contains("in clear text") && !why.contains("secret"),
            "{why}"
        );
        let why = answer(None, true, &message(3, b"")).unwrap_err();
        assert!(
            why.contains("user ann") && why.contains("~/.pgpass"),
            "{why}"
        );
    }

    #[test]
    fn md5_answer_is_that_of_libpq() {
        // 'md5' || md5(md5('secret' || 'ann') || salt)
        let secret = Password::new("secret");
        let sent = answer(Some(&secret), false, &message(5, &[1, 2, 3, 4]));
        let sent = String::from_utf8(sent.unwrap().unwrap()).unwrap();
        assert_eq!(sent, "md59009ce60b9ca97f1e752376843d1309e\0");
        assert!(answer(Some(&secret), false, &message(5, &[1])).is_err());
    }

    #[test]
    fn unknown_methods_and_broken_messages_are_refused() {
        let secret = Password::new("secret");
        for body in [
            &b""[..],
            &message(7, b""),
            &message(99, b""),
            &message(10, b"SCRAM-SHA-256-PLUS\0\0"),
            &message(11, b"r=x"),
            &message(12, b"v=x"),
        ] {
            assert!(answer(Some(&secret), true, body).is_err(), "{body:?}");
        }
        assert_eq!(answer(None, true, &message(0, b"")), Ok(None));
    }

    #[test]
    fn server_that_skips_its_proof_is_refused() {
        let secret = Password::new("secret");
        let who = Credentials {
            user: "ann",
            password: Some(&secret),
            without_password: None,
            is_private: true,
        };
        let mut login = Authentication::new(&who, None);
        let first = login.answer(&message(10, b"SCRAM-SHA-256\0\0")).unwrap();
        assert!(first.unwrap().starts_with(b"SCRAM-SHA-256\0"));
        assert!(login.answer(&message(0, b"")).is_err());
    }
}
