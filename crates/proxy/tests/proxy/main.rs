//! The proxy before a real service on real sockets: its books against the service's and the clients' own.

mod admission;
mod faults;
mod harness;
mod misbehaviour;
mod passing;
mod together;
