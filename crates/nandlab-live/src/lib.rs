//! The live side of nandlab: an NBD server for a simulated drive, and the contents that the drive does not keep.
//!
//! - [`nbd`]: the protocol as a state machine without I/O. Bytes go in; requests, and bytes to be sent, come out.
//! - [`backend`]: what the server asks of the drive behind it, and how the drive answers.
//! - `image` (Unix): an image in a file, units of which cannot be read.
//! - [`memory`]: a drive that is nothing but memory: the server without a simulation.
//! - `recording` (Unix): the file that records what a drive was given, as its journal.
//! - [`player`]: playing such a file on a drive.
//! - [`moments`]: the moments of a session at which a power cut is worth trying.
//! - `contents` (Unix): the data of a simulated drive, keyed by LPN and version.
//! - `simulated` (Unix): a simulated drive behind the server.
//! - [`snapshot`]: what a window on the drive shows.
//! - `http` (Linux): a page that shows it, and metrics, over HTTP.
//! - `server` (Linux): one thread that serves many connections over Unix sockets and TCP.
//!
//! The protocol is that of <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>, which the comments call
//! "the protocol document".

mod arena;
pub mod backend;
#[cfg(unix)]
pub mod contents;
#[cfg(target_os = "linux")]
pub mod http;
#[cfg(unix)]
pub mod image;
pub mod memory;
pub mod moments;
pub mod nbd;
#[cfg(unix)]
mod places;
pub mod player;
#[cfg(unix)]
pub mod recording;
#[cfg(target_os = "linux")]
pub mod server;
#[cfg(unix)]
pub mod simulated;
mod slots;
pub mod snapshot;
mod table;
