//! Tests of the server and of its parts, from outside.

mod any_bytes;
#[cfg(unix)]
mod checkpoint;
#[cfg(target_os = "linux")]
mod clients;
mod handshake;
#[cfg(target_os = "linux")]
mod image;
mod memory;
#[cfg(unix)]
mod recording;
#[cfg(target_os = "linux")]
mod server;
#[cfg(unix)]
mod simulated;
mod transmission;
mod wire;
