//! Destination of requests, its TLS settings, and the lifetime of connections.

use serde::{Deserialize, Serialize};

/// Destination of requests.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Host name or address literal, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Value of the Host header.
    pub authority: String,
    /// TLS settings; none: plain TCP.
    pub tls: Option<Tls>,
}

/// TLS settings. Versions 1.2 and 1.3, http/1.1 offered by ALPN.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The name asked for (SNI) and verified; none: the target's host.
    pub server_name: Option<String>,
    /// Certificates of the CAs that are trusted; none: those that the operating system trusts.
    pub ca: Option<PemFile>,
    /// The client's certificate and its chain; none: the client has none.
    pub certificate: Option<PemFile>,
    /// The client's private key; none: it stands in the file of the certificate.
    pub key: Option<PemFile>,
    /// Takes any certificate of the server.
    #[serde(default)]
    pub insecure: bool,
    /// New connections take up earlier sessions where the server lets them.
    #[serde(default = "default_resume")]
    pub resume: bool,
}

fn default_resume() -> bool {
    true
}

/// A file in PEM form, of which the plan holds no content.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PemFile {
    /// Path of the file.
    pub path: String,
    /// SHA-256 of its bytes, hex.
    pub digest: String,
}

/// Use of connections.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// End of a connection.
    #[serde(default)]
    pub reuse: Reuse,
    /// All users share this many connections (waiting for one is response time); none: one for each user.
    pub pool: Option<u32>,
}

/// End of a connection.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reuse {
    /// Kept until the run or the server ends it.
    #[default]
    Keep,
    /// A new connection for each request.
    New,
    /// Closed by us after so many requests.
    Requests {
        /// At least 1.
        requests: u32,
    },
}
