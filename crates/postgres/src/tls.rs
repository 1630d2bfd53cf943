//! Decides about TLS of a session: if it is needed, and which certificates are accepted, by the
//! parameters of libpq (documentation of PostgreSQL, "SSL Support"). rustls does the rest.

use diskproof_device::{SmallFile, read_small_file};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::fmt::Display;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio_postgres::config::{ChannelBinding, SslMode, SslNegotiation};
use x509_cert::der::Decode as _;

/// The most bytes that are read of a file of certificates. All authorities of a system have some
/// hundred kB.
const PEM_BYTES_MAX: u64 = 16 << 20;
/// The value of sslrootcert that stands for the authorities that the system trusts.
const SYSTEM: &str = "system";

/// The rules for TLS of a session.
#[derive(Debug, Clone)]
pub(crate) struct TlsUse {
    /// Over TCP a session tries these modes, one after the other.
    pub attempts: &'static [SslMode],
    pub negotiation: SslNegotiation,
    pub channel_binding: ChannelBinding,
    pub config: ClientConfig,
}

/// The values of sslmode, in ascending order of what they demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TlsMode {
    /// Never TLS.
    Disable,
    /// TLS where the server demands it.
    Allow,
    /// TLS where the server has it: libpq's default.
    Prefer,
    /// TLS, with any certificate.
    Require,
    /// TLS, with a certificate of a trusted authority.
    VerifyCa,
    /// As `VerifyCa`, and the certificate has the name of the host.
    VerifyFull,
}

impl TlsMode {
    const ALL: [Self; 6] = [
        Self::Disable,
        Self::Allow,
        Self::Prefer,
        Self::Require,
        Self::VerifyCa,
        Self::VerifyFull,
    ];

    /// libpq's name of the mode.
    fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Allow => "allow",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }

    fn parse(name: &str) -> Result<Self, String> {
        match Self::ALL.into_iter().find(|mode| mode.name() == name) {
            Some(mode) => Ok(mode),
            None => Err(
                "sslmode is none of disable, allow, prefer, require, verify-ca, verify-full"
                    .to_owned(),
            ),
        }
    }

    /// The ways that a session tries one after the other.
    fn attempts(self) -> &'static [SslMode] {
        match self {
            Self::Disable => &[SslMode::Disable],
            Self::Allow => &[SslMode::Disable, SslMode::Require],
            Self::Prefer => &[SslMode::Prefer, SslMode::Disable],
            Self::Require | Self::VerifyCa | Self::VerifyFull => &[SslMode::Require],
        }
    }
}

/// The value of a parameter of libpq by its name; `None` where it is not set.
type Setting<'a> = &'a dyn Fn(&str) -> Option<String>;

impl TlsUse {
    /// From the settings of the connection; `home` has the files that need no naming.
    pub(crate) fn from_settings(setting: Setting<'_>, home: Option<&Path>) -> Result<Self, String> {
        let demand = TlsDemand::from_settings(setting)?;
        Self::new(demand, demand.mode, setting, home)
    }

    /// The same for a connection over Unix sockets, which have no TLS: values are checked, and no
    /// file is needed.
    pub(crate) fn for_sockets(setting: Setting<'_>) -> Result<Self, String> {
        let demand = TlsDemand::from_settings(setting)?;
        Self::new(demand, TlsMode::Disable, setting, None)
    }

    /// The rules by these demands; `mode` decides which files are read.
    fn new(
        demand: TlsDemand,
        mode: TlsMode,
        setting: Setting<'_>,
        home: Option<&Path>,
    ) -> Result<Self, String> {
        let root = setting("sslrootcert").map(PathBuf::from);
        let check = CertificateCheck::new(root, mode, home)?;
        let mut config = with_own_certificate(check, setting, mode, home)?;
        config.enable_sni = setting("sslsni").as_deref() != Some("0");
        // A server of version 17 or later demands it of a direct handshake.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self {
            attempts: demand.mode.attempts(),
            negotiation: demand.negotiation,
            channel_binding: demand.channel_binding,
            config,
        })
    }
}

/// The values of a connection string that demand something of TLS.
#[derive(Clone, Copy)]
struct TlsDemand {
    mode: TlsMode,
    negotiation: SslNegotiation,
    channel_binding: ChannelBinding,
}

impl TlsDemand {
    fn from_settings(setting: Setting<'_>) -> Result<Self, String> {
        let is_system = setting("sslrootcert").as_deref() == Some(SYSTEM);
        let mode = match setting("sslmode") {
            Some(name) => TlsMode::parse(&name)?,
            None if is_system => TlsMode::VerifyFull,
            None => TlsMode::Prefer,
        };
        if is_system && mode != TlsMode::VerifyFull {
            // Everyone can get a certificate of such an authority for a name of his own.
            return Err(format!(
                "sslrootcert=system needs sslmode=verify-full, not {}",
                mode.name()
            ));
        }
        let negotiation = match setting("sslnegotiation").as_deref() {
            None | Some("postgres") => SslNegotiation::Postgres,
            Some("direct") if mode.attempts() == [SslMode::Require] => SslNegotiation::Direct,
            Some("direct") => return Err("sslnegotiation=direct needs sslmode=require".to_owned()),
            Some(_) => return Err("sslnegotiation is neither postgres nor direct".to_owned()),
        };
        let channel_binding = match setting("channel_binding").as_deref() {
            None | Some("prefer") => ChannelBinding::Prefer,
            Some("disable") => ChannelBinding::Disable,
            Some("require") => ChannelBinding::Require,
            Some(_) => return Err("channel_binding is none of disable, prefer, require".to_owned()),
        };
        Ok(Self {
            mode,
            negotiation,
            channel_binding,
        })
    }
}

/// The file of this name in the home directory, if there is one.
fn usual_file(home: Option<&Path>, name: &str) -> Option<PathBuf> {
    let path = home?.join(".postgresql").join(name);
    if path.exists() { Some(path) } else { None }
}

/// Returns the configuration of the client, with the certificate of the user where there is one.
fn with_own_certificate(
    check: CertificateCheck,
    setting: Setting<'_>,
    mode: TlsMode,
    home: Option<&Path>,
) -> Result<ClientConfig, String> {
    let provider = Arc::clone(&check.provider);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(check));
    if mode == TlsMode::Disable {
        return Ok(builder.with_no_client_auth());
    }
    let Some(certificate) = named_or_usual(setting("sslcert"), home, "postgresql.crt") else {
        return Ok(builder.with_no_client_auth());
    };
    let Some(key) = named_or_usual(setting("sslkey"), home, "postgresql.key") else {
        return Err(format!(
            "{}: its key is not there; name it: sslkey",
            certificate.display()
        ));
    };
    let key_file = read_pem(&key)?;
    refuse_readable_key(&key, &key_file.metadata)?;
    let chain = certificates(&certificate)?;
    let private = PrivateKeyDer::from_pem_slice(&key_file.content)
        .map_err(|error| unusable_key(&key, &key_file.content, &error))?;
    builder
        .with_client_auth_cert(chain, private)
        .map_err(|error| format!("{}: {error}", certificate.display()))
}

/// The error for a key that cannot be read. One with a password is named as such: libpq would use
/// sslpassword, which is never printed.
fn unusable_key(path: &Path, content: &[u8], error: &dyn Display) -> String {
    let path = path.display();
    if String::from_utf8_lossy(content).contains("ENCRYPTED") {
        format!(
            "{path}: this key has a password, and diskproof does not use sslpassword. Write it \
             without one: openssl pkey -in KEY -out NEWKEY"
        )
    } else {
        format!("{path}: no key in PEM form can be read: {error}")
    }
}

/// The file that a parameter names, else the one of the usual name, if there is one.
fn named_or_usual(named: Option<String>, home: Option<&Path>, name: &str) -> Option<PathBuf> {
    match named {
        Some(path) => Some(PathBuf::from(path)),
        None => usual_file(home, name),
    }
}

/// The files of certificates and keys that a connection reads, if its mode needs them.
pub(crate) fn tls_files(setting: Setting<'_>, home: Option<&Path>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for (name, usual) in [
        ("sslrootcert", "root.crt"),
        ("sslcert", "postgresql.crt"),
        ("sslkey", "postgresql.key"),
    ] {
        files.extend(named_or_usual(setting(name), home, usual));
    }
    // The word for the authorities of the system is no file.
    files.retain(|file| file.as_os_str() != SYSTEM);
    files
}

/// Refuses a key that others may read, as libpq does. The group may read a key of root.
fn refuse_readable_key(path: &Path, metadata: &Metadata) -> Result<(), String> {
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & forbidden != 0 {
        return Err(format!(
            "{}: other users may read this key; use chmod 600",
            path.display()
        ));
    }
    Ok(())
}

/// A file of certificates or of a key.
fn read_pem(path: &Path) -> Result<SmallFile, String> {
    read_small_file(path, PEM_BYTES_MAX).map_err(|error| format!("{}: {error}", path.display()))
}

/// Refuses the list of revoked certificates that libpq reads alongside a file of authorities.
fn refuse_revocation_list(home: Option<&Path>) -> Result<(), String> {
    match usual_file(home, "root.crl") {
        Some(list) => Err(format!(
            "{}: diskproof checks no revocation lists. Move the file away to connect without it",
            list.display()
        )),
        None => Ok(()),
    }
}

/// The certificates of a file in PEM form; at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let file = read_pem(path)?;
    let certificates = CertificateDer::pem_slice_iter(&file.content)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("{}: {error}", path.display()))?;
    if certificates.is_empty() {
        return Err(format!(
            "{}: it has no certificate in PEM form",
            path.display()
        ));
    }
    Ok(certificates)
}

/// Accepts or refuses a server's certificate, as sslmode says.
#[derive(Debug)]
struct CertificateCheck {
    provider: Arc<CryptoProvider>,
    /// True if the certificate must have the name of the host.
    checks_name: bool,
    /// The authorities that may have signed it; `None` accepts all.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates of sslrootcert, of which the server may have one itself.
    trusted: Vec<CertificateDer<'static>>,
}

impl CertificateCheck {
    fn new(root: Option<PathBuf>, mode: TlsMode, home: Option<&Path>) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        // As libpq does: a file of authorities is used where TLS is a must.
        let file = match mode {
            TlsMode::Disable | TlsMode::Allow | TlsMode::Prefer => None,
            TlsMode::Require => root.or_else(|| usual_file(home, "root.crt")),
            TlsMode::VerifyCa | TlsMode::VerifyFull => {
                let found = root.or_else(|| usual_file(home, "root.crt")).ok_or(
                    "sslmode verifies the server's certificate, but there is no \
                     ~/.postgresql/root.crt; name the file of its authority: sslrootcert",
                )?;
                Some(found)
            }
        };
        let Some(file) = file else {
            return Ok(Self {
                provider,
                checks_name: false,
                authorities: None,
                trusted: Vec::new(),
            });
        };
        let trusted = match file.to_str() {
            Some(SYSTEM) => rustls_native_certs::load_native_certs().certs,
            _ => {
                refuse_revocation_list(home)?;
                certificates(&file)?
            }
        };
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(trusted.iter().cloned());
        let authorities =
            WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(&provider))
                .build()
                .map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Self {
            provider,
            checks_name: mode == TlsMode::VerifyFull,
            authorities: Some(authorities),
            trusted,
        })
    }

    fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.provider.signature_verification_algorithms
    }
}

impl ServerCertVerifier for CertificateCheck {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        // A self-signed certificate is its own authority, which a chain does not allow.
        let checked = if self.trusted.contains(certificate) {
            is_in_force(certificate, now)
                .and_then(|()| ParsedCertificate::try_from(certificate))
                .and_then(|parsed| rustls::client::verify_server_name(&parsed, name))
        } else {
            authorities
                .verify_server_cert(certificate, intermediates, name, ocsp, now)
                .map(drop)
        };
        match checked {
            // The name is the last that is checked.
            Err(Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }))
                if !self.checks_name => {}
            other => other?,
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, self.algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, self.algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms().supported_schemes()
    }
}

/// `Ok` within a certificate's time, else the error for the handshake.
fn is_in_force(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let parsed =
        x509_cert::Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let validity = parsed.tbs_certificate.validity;
    let time = UNIX_EPOCH + Duration::from_secs(now.as_secs());
    if time < validity.not_before.to_system_time() {
        return Err(CertificateError::NotValidYet.into());
    }
    if time > validity.not_after.to_system_time() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    /// A home directory with these files in .postgresql.
    fn home_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".postgresql");
        std::fs::create_dir(&folder).unwrap();
        for (name, content) in files {
            let path = folder.join(name);
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        }
        home
    }

    fn error_of(mode: &str, home: &Path) -> String {
        let setting = |name: &str| (name == "sslmode").then(|| mode.to_owned());
        match TlsUse::from_settings(&setting, Some(home)) {
            Ok(_) => String::new(),
            Err(why) => why,
        }
    }

    #[test]
    fn revocation_list_that_libpq_would_use_is_refused() {
        let both = home_with(&[("root.crt", ""), ("root.crl", "")]);
        for mode in ["require", "verify-ca", "verify-full"] {
            let why = error_of(mode, both.path());
            assert!(why.contains("root.crl"), "{mode}: {why}");
        }
        // No certificate is checked.
        assert_eq!(error_of("prefer", both.path()), "");
        let alone = home_with(&[("root.crl", "")]);
        assert_eq!(error_of("require", alone.path()), "");
    }

    #[test]
    fn key_with_a_password_is_named_as_the_reason() {
        let begin = ["-----BEGIN ", "ENCRYPTED ", "PRIVATE KEY-----"].concat();
        let end = ["-----END ", "ENCRYPTED ", "PRIVATE KEY-----"].concat();
        let encrypted = format!("{begin}\nMAA=\n{end}\n");
        let home = home_with(&[
            ("postgresql.crt", CERTIFICATE),
            ("postgresql.key", &encrypted),
        ]);
        let why = error_of("require", home.path());
        assert!(why.contains("sslpassword"), "{why}");
        let home = home_with(&[("postgresql.crt", CERTIFICATE), ("postgresql.key", "")]);
        let why = error_of("require", home.path());
        assert!(why.contains("no key in PEM form"), "{why}");
    }

    /// Only its form is read before the key.
    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
}
