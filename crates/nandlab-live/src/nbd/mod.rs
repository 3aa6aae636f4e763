//! The server's side of the NBD protocol, without I/O.
//!
//! A [`Session`] is one connection. It receives bytes, and gives out commands and bytes to be sent.

mod export;
mod haggling;
mod output;
mod session;
mod wire;

pub use export::{Export, ExportError, MAXIMUM_DEFAULT};
pub use session::{Call, Command, QUEUE_MAX, Session};
