//! What the crates of nandlab share, whatever the drive does: units of measurement, ids, geometry, requests, containers and
//! random streams ([`base`]), the engine of specs ([`spec`]), and its section `[workload]`, which the readers of traces need too
//! ([`workload`], [`clients`], [`columns`]), and the file of a session of a live drive ([`recording`]).

pub mod base;
pub mod clients;
pub mod columns;
pub mod recording;
pub mod spec;
pub mod workload;
