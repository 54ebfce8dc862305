//! The cases, by theme.

mod chunked;
mod head;
mod length;
mod reuse;

use super::{Asked, Case, Ending, Then};

/// Every case.
pub(crate) fn all() -> Vec<Case> {
    [
        head::cases(),
        length::cases(),
        chunked::cases(),
        reuse::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The connection stays open, the request was a GET.
fn open(rfc: &'static str, name: &'static str, bytes: impl AsRef<[u8]>, ending: Ending) -> Case {
    Case {
        rfc,
        name,
        asked: Asked::Get,
        bytes: bytes.as_ref().to_vec(),
        then: Then::Open,
        ending,
    }
}

/// The server closes after these bytes.
fn closed(rfc: &'static str, name: &'static str, bytes: impl AsRef<[u8]>, ending: Ending) -> Case {
    Case {
        then: Then::Close,
        ..open(rfc, name, bytes, ending)
    }
}

/// The request was HEAD.
fn to_head(rfc: &'static str, name: &'static str, bytes: impl AsRef<[u8]>, ending: Ending) -> Case {
    Case {
        asked: Asked::Head,
        ..open(rfc, name, bytes, ending)
    }
}

/// A whole answer on a connection that may be used again.
fn kept(status: u16, body: &str) -> Ending {
    Ending::Answered {
        status,
        body: body.into(),
        kept: true,
        spare: 0,
    }
}

/// A whole answer on a connection that may not.
fn last(status: u16, body: &str) -> Ending {
    Ending::Answered {
        status,
        body: body.into(),
        kept: false,
        spare: 0,
    }
}

/// A whole answer with bytes after it that were not requested.
fn spare(status: u16, body: &str, spare: usize) -> Ending {
    Ending::Answered {
        status,
        body: body.into(),
        kept: true,
        spare,
    }
}
