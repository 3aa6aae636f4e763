//! The host's side of the drive: what a request is, how requests arrive, and what the host may expect to read.

mod oracle;
mod prefill;
mod request;
mod runner;

pub use oracle::Oracle;
pub use prefill::map_reads;
pub use request::{Op, Request};
pub use runner::{Progress, Runner, Source, Stopped};
