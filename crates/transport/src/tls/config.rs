//! From a plan's TLS settings to rustls configurations: certificates, verification, sessions to resume.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::crypto::{ring, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, NamedGroup, RootCertStore, SignatureScheme,
};

use loadlens_base::{Fault, Faults};
use loadlens_plan::{read_planned, PemFile, Plan, Target, Tls};

/// The largest file of certificates.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Tickets that a stream keeps on each thread at most.
const MOST_TICKETS: usize = 4096;
/// And at least.
const FEWEST_TICKETS: usize = 8;

/// TLS settings of the connections of one stream.
#[derive(Clone, Debug)]
pub struct Secured {
    /// Everything about the handshake.
    pub config: Arc<ClientConfig>,
    /// The name that is asked for and verified.
    pub name: ServerName<'static>,
    /// True if sessions are resumed.
    pub resumes: bool,
}

/// By stream; none: without TLS.
#[derive(Clone, Debug)]
pub struct Configs(Vec<Option<Secured>>);

impl Configs {
    /// True if no stream has TLS.
    pub fn is_plain(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// For one thread with so many connections: sessions are kept for each thread, so that none waits for another.
    pub(super) fn of_thread(&self, connections: usize) -> Vec<Option<Secured>> {
        let own = |secured: &Secured| {
            let mut config = ClientConfig::clone(&secured.config);
            config.resumption = if secured.resumes {
                Resumption::store(Arc::new(Sessions::new(connections)))
            } else {
                Resumption::disabled()
            };
            Secured {
                config: Arc::new(config),
                ..secured.clone()
            }
        };
        self.0.iter().map(|of| of.as_ref().map(own)).collect()
    }
}

/// Reads what the plan names, or gives every fault of it.
pub fn configure(plan: &Plan) -> Result<Configs, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut system = None;
    let mut configs = Vec::new();
    for (index, stream) in plan.streams.iter().enumerate() {
        let mut faults = Faults::new(&mut faults, format!("streams[{index}].target.tls"));
        let tls = stream.target.tls.as_ref();
        let secured = tls.and_then(|tls| secured(&stream.target, tls, &mut system, &mut faults));
        configs.push(secured);
    }
    if faults.is_empty() {
        Ok(Configs(configs))
    } else {
        Err(faults)
    }
}

fn secured(
    target: &Target,
    tls: &Tls,
    system: &mut Option<RootCertStore>,
    faults: &mut Faults,
) -> Option<Secured> {
    let name = tls.server_name.as_ref().unwrap_or(&target.host);
    let is_name = ServerName::try_from(name.clone());
    let what = format_args!("{name:?} is neither a host name nor an address");
    faults.want(is_name.is_ok(), "server_name", what);
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| faults.add("", error))
        .ok();
    let identity = identity(tls, faults);
    let builder = if tls.insecure {
        let verifier = Arc::new(Unverified(provider));
        builder.map(|builder| {
            builder
                .dangerous()
                .with_custom_certificate_verifier(verifier)
        })
    } else {
        let roots = match &tls.ca {
            Some(file) => roots_of(file).map_err(|what| faults.add("ca", what)),
            None => system_roots(system).map_err(|what| faults.add("ca", what)),
        };
        builder
            .zip(roots.ok())
            .map(|(builder, roots)| builder.with_root_certificates(roots))
    };
    let mut config = match identity? {
        None => builder?.with_no_client_auth(),
        Some((chain, key)) => builder?
            .with_client_auth_cert(chain, key)
            .map_err(|error| {
                let what = format_args!("key and certificate do not go together: {error}");
                faults.add("key", what);
            })
            .ok()?,
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.enable_secret_extraction = true;
    Some(Secured {
        config: Arc::new(config),
        name: is_name.ok()?,
        resumes: tls.resume,
    })
}

type Identity = Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>;

/// Certificate and key of the client; none in the outer place: a fault.
fn identity(tls: &Tls, faults: &mut Faults) -> Option<Identity> {
    let (certificate, key) = match (&tls.certificate, &tls.key) {
        (None, None) => return Some(None),
        (Some(certificate), key) => (certificate, key.as_ref().unwrap_or(certificate)),
        (None, Some(_)) => {
            faults.add("certificate", "a key without its certificate");
            return None;
        }
    };
    let chain = certificates(certificate).map_err(|what| faults.add("certificate", what));
    let key = read(key).and_then(|bytes| {
        PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
            format!(
                "{} holds no private key in PEM form that can be read (encrypted keys cannot: openssl pkey -in {} -out plain.pem)",
                key.path, key.path
            )
        })
    });
    let key = key.map_err(|what| faults.add("key", what));
    Some(Some((chain.ok()?, key.ok()?)))
}

fn read(file: &PemFile) -> Result<Vec<u8>, String> {
    let planned = (file.path.as_str(), file.digest.as_str());
    read_planned(&file.path, planned, MAX_FILE_BYTES, "read")
}

fn certificates(file: &PemFile) -> Result<Vec<CertificateDer<'static>>, String> {
    let none = |why: &str| {
        format!(
            "{} {why}: a file of certificates in PEM form begins with -----BEGIN CERTIFICATE-----",
            file.path
        )
    };
    let bytes = read(file)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(none("holds no certificate")),
        Ok(chain) => Ok(chain),
        Err(_) => Err(none("cannot be read")),
    }
}

fn roots_of(file: &PemFile) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let (_, unusable) = roots.add_parsable_certificates(certificates(file)?);
    if roots.is_empty() {
        return Err(format!(
            "none of the {unusable} certificates in {} can be used as a CA",
            file.path
        ));
    }
    Ok(roots)
}

/// The CAs that the operating system trusts, read once.
fn system_roots(system: &mut Option<RootCertStore>) -> Result<RootCertStore, String> {
    if let Some(roots) = system {
        return Ok(roots.clone());
    }
    let of_system = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(of_system.certs);
    if roots.is_empty() {
        return Err(
            "this machine trusts no CA: install the package ca-certificates, or give a file of CAs"
                .to_owned(),
        );
    }
    *system = Some(roots.clone());
    Ok(roots)
}

/// Takes any certificate; that the server holds its key is still verified.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Sessions of one stream on one thread, for its new connections to take up again.
///
/// rustls' own store keeps eight tickets for a server, fewer than there are connections; here is one for each.
#[derive(Debug)]
struct Sessions {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl Sessions {
    fn new(connections: usize) -> Sessions {
        Sessions {
            most: connections.clamp(FEWEST_TICKETS, MOST_TICKETS),
            kept: Mutex::default(),
        }
    }
}

// One store serves one server name: that of its stream.
impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.kept.lock().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept.lock().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.kept.lock().tls12 = Some(value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept.lock().tls12.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.kept.lock().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut kept = self.kept.lock();
        if kept.tickets.len() == self.most {
            kept.tickets.pop_front();
        }
        kept.tickets.push_back(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.kept.lock().tickets.pop_back() // the newest is the last to expire
    }
}
