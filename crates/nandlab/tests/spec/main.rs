//! The spec, without a drive.

mod spec;
mod spec_errors;
mod spec_fuzz;
