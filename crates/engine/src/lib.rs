//! The data plane of Loadlens: a frozen plan in, counters and histograms out. It knows no Python.
//!
//! # The idea
//!
//! Each request has a due time that follows from the plan alone. A [`worker`] (one per engine thread) repeats: send what is due,
//! wait for events, read answers, record. Response time runs from the due time, so a late generator lengthens a measurement and
//! never shortens or drops one. Nothing is allocated or locked per request: a worker counts into sets of its own, and a collector
//! thread merges and writes them. Clock and network are type parameters of the worker; the simulation in `tests/simulation` replaces both.
//!
//! # The crates
//!
//! Each arrow is a dependency; there are no others.
//!
//! ```text
//! loadlens-base        outcomes, faults, nanoseconds, random draws
//! loadlens-http        HTTP/1.1 and cookies, bytes only       -> base
//! loadlens-plan        plan, due times, compiled program      -> base, http
//! loadlens-estimate    intervals within one trial             -> base
//! loadlens-record      counters, histograms, record files     -> base, plan, estimate
//! loadlens-sys         system calls, shared with our servers
//! loadlens-transport   connections on epoll, TLS              -> base, plan, sys
//! loadlens-engine      users, workers, threads, the run       -> all of these
//! ```
//!
//! Within this crate: [`user`] is one virtual user as a state machine without I/O, [`feed_cursor`] the place of a thread in the feeds,
//! [`worker`] the loop, [`script`] what a program that makes requests must offer, [`run`] threads, start, end and result,
//! [`health`] the verdict on the generator, [`calibrate`] a server that does nothing.
//!
//! # Example
//!
//! Two hundred requests at 1,000 per second, against the server that does nothing:
//!
//! ```
//! use std::os::fd::AsRawFd;
//! use std::os::unix::net::UnixStream;
//! use std::time::Duration;
//!
//! use loadlens_engine::calibrate::Nothing;
//! use loadlens_engine::run::Run;
//! use serde_json::{json, Value};
//!
//! let server = Nothing::bind()?;
//! let port = server.port();
//! let (_end, ends) = UnixStream::pair()?; // the server ends when `_end` is dropped
//! std::thread::spawn(move || server.serve(ends.as_raw_fd(), &[0]));
//!
//! let plan = json!({
//!     "schema_version": 1,
//!     "seed": 1,
//!     "duration_ns": 200_000_000,
//!     "streams": [{
//!         "name": "load",
//!         "role": "load",
//!         "timeout_ns": 1_000_000_000,
//!         "target": {"host": "127.0.0.1", "port": port, "authority": "localhost"},
//!         "workload": {"kind": "open", "rate_per_s": 1000.0, "arrivals": "constant",
//!                      "max_in_flight": 64, "overflow": "queue"},
//!         "scenarios": [{"name": "visit", "weight": 1,
//!                        "steps": [{"name": "get", "method": "GET", "path": "/"}]}],
//!     }],
//! });
//! let mut run = Run::new(&plan.to_string()).expect("a good plan on a machine that can carry it");
//! run.start()?;
//! assert!(run.wait(Duration::from_secs(30)));
//!
//! let result: Value = serde_json::from_str(&run.result()?)?;
//! assert_eq!(result["streams"][0]["requests"]["due"], 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod calibrate;
pub mod clock;
pub mod feed_cursor;
pub mod health;
pub mod run;
pub mod script;
pub mod user;
pub mod worker;
