//! Integration tests of the readers, writers and generators of traces; each file of tests is a module here.

mod any_bytes;
mod columns;
mod common;
mod compressed;
mod damaged;
mod distributed;
mod profiles;
mod real_traces;
mod recorded;
mod round_trip;
mod traps;
