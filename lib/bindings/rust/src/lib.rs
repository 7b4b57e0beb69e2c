//! Sluice's malloc, linked statically.
//!
//! ```
//! #[global_allocator]
//! static GLOBAL: sluice_malloc::Sluice = sluice_malloc::Sluice;
//!
//! fn main() {
//!     let words: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
//!     assert!(sluice_malloc::stats().live_bytes >= words.iter().map(|word| word.len() as u64).sum());
//! }
//! ```
//!
//! A program that links this crate has Sluice for its `malloc`, `free` and C++ `new` and `delete` too, also where C code
//! or a shared library calls them: blocks may be handed from Rust to C and back. `SLUICE_…` variables of the environment
//! set its options, as with the preload. [`frame`] is for objects that end together.
#![warn(missing_docs)]

mod frame;
mod global;
mod statistics;

pub use frame::{frame, Frame};
pub use global::Sluice;
pub use statistics::{idle, stats, version, write_stats, Format, Stats};
