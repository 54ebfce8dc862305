//! Scripts of wrk: one LuaJIT state for each thread of the engine.
//!
//! This is the only crate that knows Lua. The engine knows a script as a source of requests and a sink of answers
//! (`loadlens_engine::script`), the control plane as a session of three phases: prepared, running on the engine's
//! threads, done. Each thread has a Lua state of its own; one more is for `setup` and `done`.

mod address;
mod fault;
mod running;
mod session;
mod state;
mod stats;
mod tally;
mod thread;
mod transfer;

pub use fault::Fault;
pub use running::Running;
pub use session::{Asked, Errors, Figures, Session, Summary};
pub use stats::{Line, Stats};
pub use tally::Tally;
