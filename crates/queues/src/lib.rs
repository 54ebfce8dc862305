//! Simulates a queueing model of a service under load: a model goes in, rates and times come out.
//!
//! A model is stations (FIFO servers, processor sharing, semaphores), the routes that requests of each class
//! take through them, and the streams that send them: closed users who think, and open arrivals, together.
//! `model` holds the types and their faults, `simulation` the one loop, `outcome` its results. The same model
//! and seed give the same outcome, and a run is bounded in simulated time, in events and in requests at once.
//! Closed forms (Python, `estimate/queues.py`) are the oracle of the tests.

mod compiled;
pub mod law;
pub mod model;
pub mod outcome;
mod place;
mod simulation;

pub use model::Model;
pub use outcome::Outcome;
pub use simulation::simulate;

use loadlens_base::Fault;

/// Simulates a model given as JSON and returns the outcome as JSON.
///
/// # Errors
///
/// Every fault of the model at once.
pub fn simulate_json(text: &str) -> Result<String, Vec<Fault>> {
    let model: Model =
        serde_json::from_str(text).map_err(|error| vec![Fault::new("model", error.to_string())])?;
    let outcome = simulate(&model)?;
    serde_json::to_string(&outcome).map_err(|error| vec![Fault::new("outcome", error.to_string())])
}
