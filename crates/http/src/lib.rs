//! HTTP/1.1 on the wire: what we send ([`request`], [`whole`]), what comes back ([`response`], [`known`]), and [`cookies`].
//!
//! Pure functions over bytes; no sockets. A response is read strictly by RFC 9112: a measuring
//! instrument that repairs what it reads hides what the service does wrong.

mod body;
pub mod cookies;
mod general;
pub mod known;
pub mod request;
pub mod response;
pub mod whole;
