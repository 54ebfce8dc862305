//! The data plane of Loadlens: a frozen plan in, counters and histograms out. It knows no Python.
//!
//! Floors, low to high: `units` `error` `random`; `plan`; `arrival` `program` `estimate`; `http1`;
//! then the parts with sockets and clocks. A module uses only what stands below it.

pub mod arrival;
mod bounded;
pub mod calibrate;
pub mod clock;
pub mod cookies;
pub mod error;
pub mod estimate;
pub mod feeding;
pub mod health;
pub mod http1;
pub mod plan;
pub mod program;
pub mod random;
pub mod record;
pub mod run;
pub mod script;
pub mod transport;
pub mod units;
pub mod user;
pub mod validate;
pub mod worker;
