//! Scripts on the engine's threads, against the origin, whose counts are the truth.

mod faults;
mod harness;
mod hooks;
mod phases;
mod requests;
