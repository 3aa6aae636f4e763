//! Tests of the spec, without drives.

mod spec;
mod spec_errors;
mod spec_fuzz;
