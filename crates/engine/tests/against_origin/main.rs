//! The engine against the origin, whose counts are the truth.
//!
//! Counts are compared exactly; times with formulas, or with what the server itself wrote down. Tests that
//! judge times run alone (`quiet`), because two of them on one machine would measure each other.

mod admission;
mod connections;
mod counting;
mod feeds;
mod harness;
mod life;
mod misbehaviour;
mod phases;
mod record;
mod secured;
mod templates;
mod times;
