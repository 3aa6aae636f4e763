//! Readers, writers and generators of traces, in one program; a new file of tests is a line here.

mod any_bytes;
mod common;
mod compressed;
mod profiles;
mod real_traces;
mod round_trip;
mod traps;
