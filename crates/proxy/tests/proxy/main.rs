//! The proxy before a real service on real sockets: its counts against the service's and the clients' own.

mod admission;
mod faults;
mod harness;
mod misbehaviour;
mod passing;
mod together;
