//! TLS at the origin: certificates made at the start, good and bad ones, and a server that can misbehave.
//!
//! rustls with its own buffers, where the engine uses rustls for the handshake only: what both get wrong alike is
//! little, and OpenSSL is asked by hand.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::RawFd;
use std::sync::Arc;

use rcgen::{
    date_time_ymd, BasicConstraints, CertificateParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection};
use strum::{EnumString, VariantNames};

use crate::sys;

/// TLS settings of an origin; the default is a healthy server that takes every client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// Fault of its certificate.
    pub certificate: Certificate,
    /// Versions that it speaks.
    pub versions: Versions,
    /// Treatment of handshakes.
    pub handshake: Shake,
    /// It wants a client certificate of its own CA.
    pub wants_certificate: bool,
    /// Protocols that it speaks; none: it does not look at ALPN.
    pub alpn: Vec<String>,
    /// It ends connections without ending TLS.
    pub ends_rudely: bool,
    /// It hands its bytes to the kernel one by one.
    pub dribbles: bool,
    /// It changes its keys after so many answers; 0: never.
    pub rekeys_every: u64,
}

/// A certificate and what is wrong with it.
#[derive(Clone, Copy, Debug, Default, EnumString, Eq, PartialEq, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Certificate {
    /// Nothing: for `localhost`, 127.0.0.1 and ::1, of the origin's CA.
    #[default]
    Good,
    /// It has expired in 2001.
    Expired,
    /// It is for `elsewhere.test`.
    WrongName,
    /// It is of no CA.
    SelfSigned,
}

/// Versions of TLS.
#[derive(Clone, Copy, Debug, Default, EnumString, Eq, PartialEq, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Versions {
    /// 1.2 and 1.3.
    #[default]
    Both,
    /// 1.2 only.
    #[strum(serialize = "1.2")]
    Tls12,
    /// 1.3 only.
    #[strum(serialize = "1.3")]
    Tls13,
}

/// Treatment of handshakes.
#[derive(Clone, Copy, Debug, Default, EnumString, Eq, PartialEq, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Shake {
    /// They are made.
    #[default]
    Whole,
    /// The client's first message is taken and never answered.
    Stall,
    /// The connection is closed after the client's first message.
    Close,
    /// It is reset then.
    Reset,
}

/// Certificates and keys for clients, in PEM form.
#[derive(Clone, Debug)]
pub struct Pem {
    /// The origin's CA.
    pub ca: String,
    /// A client's certificate of that CA.
    pub client: String,
    /// Its key.
    pub client_key: String,
}

/// The server's side, shared by its connections.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    config: TlsConfig,
    server: Arc<ServerConfig>,
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}

/// Makes certificates, and the server that shows them.
pub(crate) fn prepare(config: &TlsConfig) -> io::Result<(Terms, Pem)> {
    let mut params = CertificateParams::new(Vec::new()).map_err(other)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "loadlens origin CA");
    let ca_key = KeyPair::generate().map_err(other)?;
    let ca = CertifiedIssuer::self_signed(params, ca_key).map_err(other)?;

    let names: &[&str] = match config.certificate {
        Certificate::WrongName => &["elsewhere.test"],
        _ => &["localhost", "127.0.0.1", "::1"],
    };
    let key = KeyPair::generate().map_err(other)?;
    let mut params = leaf(names, ExtendedKeyUsagePurpose::ServerAuth)?;
    if config.certificate == Certificate::Expired {
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
    }
    let certificate = if config.certificate == Certificate::SelfSigned {
        params.self_signed(&key)
    } else {
        params.signed_by(&key, &ca)
    }
    .map_err(other)?;

    let client_key = KeyPair::generate().map_err(other)?;
    let client = leaf(&["client.test"], ExtendedKeyUsagePurpose::ClientAuth)?
        .signed_by(&client_key, &ca)
        .map_err(other)?;
    let pem = Pem {
        ca: ca.pem(),
        client: client.pem(),
        client_key: client_key.serialize_pem(),
    };
    let server = server(config, ca.der(), certificate.der(), &key)?;
    let terms = Terms {
        config: config.clone(),
        server: Arc::new(server),
    };
    Ok((terms, pem))
}

fn leaf(names: &[&str], usage: ExtendedKeyUsagePurpose) -> io::Result<CertificateParams> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).map_err(other)?;
    params.extended_key_usages = vec![usage];
    params
        .distinguished_name
        .push(DnType::CommonName, "loadlens origin");
    Ok(params)
}

fn server(
    config: &TlsConfig,
    ca: &CertificateDer<'_>,
    certificate: &CertificateDer<'_>,
    key: &KeyPair,
) -> io::Result<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = match config.versions {
        Versions::Both => rustls::ALL_VERSIONS,
        Versions::Tls12 => &[&rustls::version::TLS12],
        Versions::Tls13 => &[&rustls::version::TLS13],
    };
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(other)?;
    let builder = if config.wants_certificate {
        let mut roots = RootCertStore::empty();
        roots.add(ca.clone().into_owned()).map_err(other)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().map_err(other)?)
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let mut server = builder
        .with_single_cert(vec![certificate.clone().into_owned()], key)
        .map_err(other)?;
    server.alpn_protocols = config
        .alpn
        .iter()
        .map(|name| name.clone().into_bytes())
        .collect();
    Ok(server)
}

/// A socket as rustls wants it.
struct Wire {
    fd: RawFd,
    /// Bytes of one call at most.
    most: usize,
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        sys::receive(self.fd, buffer)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        sys::send(self.fd, &bytes[..bytes.len().min(self.most)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Outcome of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shaken {
    Full,
    Resumed,
    Failed,
}

/// TLS on one connection.
pub(crate) struct Server {
    connection: ServerConnection,
    terms: Terms,
    is_shaken: bool,
    /// Bytes taken and not yet reported as sent, because they are still on their way.
    pending: usize,
    sends: u64,
}

impl Server {
    pub fn new(terms: &Terms) -> io::Result<Server> {
        let connection = ServerConnection::new(terms.server.clone()).map_err(other)?;
        Ok(Server {
            connection,
            terms: terms.clone(),
            is_shaken: false,
            pending: 0,
            sends: 0,
        })
    }

    /// Receives the available bytes, decrypted. `note` gets the outcome of the handshake, once.
    ///
    /// An error of the kind `ConnectionAborted` says that the origin ends the connection.
    pub fn receive(
        &mut self,
        fd: RawFd,
        buffer: &mut [u8],
        note: &mut impl FnMut(Shaken),
    ) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The client ended its side with or without ending TLS; requests are delimited by themselves.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            if !self.is_shaken && self.terms.config.handshake != Shake::Whole {
                return self.misbehave(fd, buffer, note);
            }
            let mut wire = Wire {
                fd,
                most: usize::MAX,
            };
            if self.connection.read_tls(&mut wire)? == 0 {
                if !self.is_shaken {
                    self.is_shaken = true;
                    note(Shaken::Failed);
                }
                return Ok(0);
            }
            let processed = self.connection.process_new_packets();
            let _ = self.flush(fd); // what does not fit now goes with the next bytes
            if processed.is_err() {
                if !self.is_shaken {
                    note(Shaken::Failed);
                }
                return Err(ErrorKind::ConnectionAborted.into());
            }
            if !self.is_shaken && !self.connection.is_handshaking() {
                self.is_shaken = true;
                note(match self.connection.handshake_kind() {
                    Some(HandshakeKind::Resumed) => Shaken::Resumed,
                    _ => Shaken::Full,
                });
            }
        }
    }

    fn misbehave(
        &mut self,
        fd: RawFd,
        buffer: &mut [u8],
        note: &mut impl FnMut(Shaken),
    ) -> io::Result<usize> {
        if sys::receive(fd, buffer)? == 0 {
            note(Shaken::Failed);
            return Ok(0);
        }
        match self.terms.config.handshake {
            Shake::Reset => sys::reset_on_close(fd),
            Shake::Close => {}
            Shake::Stall | Shake::Whole => return Err(ErrorKind::WouldBlock.into()),
        }
        note(Shaken::Failed);
        Err(ErrorKind::ConnectionAborted.into())
    }

    /// Sends what fits; what was not reported as sent must be given again.
    pub fn send(&mut self, fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
        if self.pending == 0 {
            self.sends += 1;
            let every = self.terms.config.rekeys_every;
            if every > 0 && self.sends % every == 0 {
                // TLS 1.2 has no such thing.
                let _ = self.connection.refresh_traffic_keys();
            }
        }
        let mut sent = 0;
        // rustls takes a part at a time; only a full socket ends this, so that there will be an event.
        while sent < bytes.len() {
            if self.pending == 0 {
                self.pending = self.connection.writer().write(&bytes[sent..])?;
            }
            match self.flush(fd) {
                Ok(()) => sent += std::mem::take(&mut self.pending),
                Err(error) if error.kind() == ErrorKind::WouldBlock && sent > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    fn flush(&mut self, fd: RawFd) -> io::Result<()> {
        let most = if self.terms.config.dribbles {
            1
        } else {
            usize::MAX
        };
        let mut wire = Wire { fd, most };
        while self.connection.wants_write() {
            self.connection.write_tls(&mut wire)?;
        }
        Ok(())
    }

    /// Ends TLS, unless the origin is to be rude.
    pub fn say_goodbye(&mut self, fd: RawFd) {
        if !self.terms.config.ends_rudely {
            self.connection.send_close_notify();
            let _ = self.flush(fd); // the socket ends whether or not it went
        }
    }
}
