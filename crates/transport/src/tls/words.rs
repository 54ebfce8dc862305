//! Faults of TLS, in words that say what to try.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerMisbehaved};

use crate::NetError;

pub const NOT_A_RECORD: &str = "what came is not TLS";
pub const BAD_RECORD: &str = "a TLS record could not be decrypted";
pub const WRONG_RECORD: &str = "a TLS record of a wrong type came";
pub const WRONG_MESSAGE: &str = "a TLS message came that is not allowed after the handshake";
pub const TOO_LONG: &str = "the TLS handshake does not end";
pub const CLOSED: &str = "the connection was closed in the TLS handshake";
pub const RESET: &str = "the connection was reset in the TLS handshake";
pub const CIPHER: &str = "the server chose a cipher that is not supported";
const NOT_TLS: &str =
    "the server does not speak TLS on this port: an http:// URL, or another port?";
const EARLY: &str = "the server sent data before any request, or ended TLS in the handshake";

/// A failure of rustls as an error of the network.
pub fn failure(error: &Error) -> NetError {
    NetError::tls(reason(error))
}

fn reason(error: &Error) -> &'static str {
    match error {
        Error::InvalidCertificate(fault) => certificate(fault),
        Error::NoCertificatesPresented => "the server sent no certificate",
        Error::AlertReceived(description) => alert(*description),
        Error::InvalidMessage(InvalidMessage::InvalidContentType)
        | Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion)
        | Error::InvalidMessage(InvalidMessage::MessageTooLarge) => NOT_TLS,
        Error::InvalidMessage(_) => "the server sent a TLS message that cannot be read",
        Error::PeerIncompatible(_) => {
            "the server offers no version or cipher of TLS that is supported (TLS 1.2 and 1.3 are)"
        }
        Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedApplicationProtocol) => {
            "the server chose a protocol other than http/1.1 (ALPN)"
        }
        Error::NoApplicationProtocol => "the server does not speak http/1.1 (ALPN)",
        Error::PeerMisbehaved(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. } => "the server broke the rules of TLS",
        Error::DecryptError => BAD_RECORD,
        Error::PeerSentOversizedRecord => "the server sent a TLS record over the bound",
        Error::HandshakeNotComplete => EARLY,
        Error::FailedToGetCurrentTime => "this machine's clock cannot be read",
        Error::FailedToGetRandomBytes => "this machine gives no random bytes",
        _ => "the TLS handshake failed",
    }
}

fn certificate(fault: &CertificateError) -> &'static str {
    use CertificateError as Fault;
    match fault {
        Fault::UnknownIssuer => {
            "the certificate's issuer is not trusted: give its CA (--cacert), or --insecure"
        }
        Fault::Expired | Fault::ExpiredContext { .. } => "the certificate has expired",
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => {
            "the certificate is not valid yet: is this machine's clock right?"
        }
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => {
            "the certificate is for another name: give the name to ask for (--servername)"
        }
        Fault::Revoked => "the certificate was revoked",
        Fault::BadSignature => "the certificate's signature is wrong",
        Fault::BadEncoding => "the certificate cannot be read",
        Fault::InvalidPurpose | Fault::InvalidPurposeContext { .. } => {
            "the certificate is not one for servers"
        }
        // webpki says so of a certificate that is its own CA.
        Fault::Other(_) => {
            "the certificate is not acceptable: a CA's own certificate, or one of version 1?"
        }
        _ => "the certificate is not valid",
    }
}

/// Meaning of an alert of the server.
pub fn alert(alert: AlertDescription) -> &'static str {
    use AlertDescription as A;
    match alert {
        A::HandshakeFailure => "the server refused the handshake (alert handshake_failure)",
        A::ProtocolVersion => "the server does not speak TLS 1.2 or 1.3 (alert protocol_version)",
        A::UnrecognisedName => {
            "the server does not know the name asked for (alert unrecognized_name; --servername)"
        }
        A::CertificateRequired => {
            "the server wants a client certificate (alert certificate_required; --cert and --key)"
        }
        A::BadCertificate => "the server refused the client certificate (alert bad_certificate)",
        A::UnknownCA => {
            "the server does not trust the client certificate's issuer (alert unknown_ca)"
        }
        A::CertificateExpired => {
            "the server says that the client certificate has expired (alert certificate_expired)"
        }
        A::CertificateUnknown => {
            "the server refused the client certificate (alert certificate_unknown)"
        }
        A::UnsupportedCertificate => {
            "the server does not support the client certificate (alert unsupported_certificate)"
        }
        A::CertificateRevoked => {
            "the server says that the client certificate was revoked (alert certificate_revoked)"
        }
        A::AccessDenied => "the server denied access (alert access_denied)",
        A::NoApplicationProtocol => {
            "the server does not speak http/1.1 (alert no_application_protocol)"
        }
        A::InsufficientSecurity => {
            "the server wants stronger ciphers (alert insufficient_security)"
        }
        A::DecryptError => "the server could not verify a signature (alert decrypt_error)",
        A::BadRecordMac => "the server could not decrypt a record (alert bad_record_mac)",
        A::UnexpectedMessage => "the server got an unexpected message (alert unexpected_message)",
        A::InternalError => "the server failed (alert internal_error)",
        A::CloseNotify => CLOSED,
        _ => "the server ended TLS with an alert",
    }
}
