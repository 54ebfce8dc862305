//! Counting: what workers write into, how it comes together, and the files it goes to.
//!
//! Each worker counts into interval sets of its own (`recorder`, `interval`, `histogram`); full sets and
//! log rows travel to the collector thread over rings (`ring`, `rows`), which merges and writes them
//! (`merge`, `collector`, `series`, `files`). `sums` is the file by which other machines' counts
//! arrive, `packed` how they are kept until then.

pub mod collector;
pub mod files;
pub mod grid;
pub mod histogram;
pub mod interval;
pub mod merge;
mod packed;
pub mod recorder;
pub mod ring;
pub mod rows;
pub mod series;
pub mod sums;
