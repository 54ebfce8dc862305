//! What holds for any input: histograms against sorted lists, readers against bytes that are nearly right.

mod histograms;
mod inputs;
#[path = "../responses/mutate.rs"]
mod mutate;
