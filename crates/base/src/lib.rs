//! Types shared by every crate of the data plane. No sockets, no clock, no plan.
//!
//! A request ends in one [`Outcome`], which enters the histograms as one [`Class`]. A wrong plan is a list of
//! [`Fault`]s. Time is in whole nanoseconds ([`units`]), and every random draw comes from [`Random`].

mod fault;
mod outcome;
mod random;
pub mod units;

pub use fault::{Fault, Faults};
pub use outcome::{Class, Outcome};
pub use random::{split_mix, Random};
