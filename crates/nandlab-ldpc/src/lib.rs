//! LDPC codes for flash memory.
//!
//! A [`Code`] comes from a [`Description`] or from a file ([`files`]). An [`Encoder`] makes codewords, a [`Decoder`]
//! corrects words.

mod bits;
mod code;
mod construct;
mod decode;
mod error;

pub use bits::Bits;
pub use code::{BITS_MAX, Circulant, Code, FourCycle};
pub use construct::Description;
pub use decode::{Decoder, MinSum, Outcome, Workspace};
pub use error::LdpcError;
