//! LDPC codes for flash memory: construction, files, encoder, decoder and frame error rates. There is no drive in this
//! crate.
//!
//! A [`Code`] is a parity-check matrix of circulants. It comes from a [`Description`], or from a file ([`files`]). An
//! [`Encoder`] makes codewords, also if the rows of the matrix are linearly dependent. A [`Decoder`] corrects words
//! from LLRs of 8 bits, by layered normalised min-sum. [`Regions`] are what one to seven read references tell of a bit,
//! with their LLRs. [`measure`] sends frames over a [`Channel`] and counts those that are not decoded; [`Mixture`]
//! computes the frame error rate of hard decisions at any raw bit error rate from measurements at fixed numbers of
//! errors.
//!
//! ```
//! use nandlab_ldpc::{Bits, Decoder, Description, Encoder, MinSum};
//!
//! let description = Description { rows: 4, columns: 16, lifting: 64, column_weight: 3, seed: 1 };
//! let code = description.build()?;
//! let encoder = Encoder::new(&code)?;
//! let sent = encoder.encode(&Bits::zeros(encoder.data_bits()));
//!
//! // Hard decisions with two errors.
//! let mut llrs = vec![12i8; code.bits()];
//! llrs[3] = -12;
//! llrs[500] = -12;
//! let decoder = Decoder::new(&code, MinSum::default())?;
//! let mut work = decoder.workspace();
//! let outcome = decoder.decode(&llrs, &mut work);
//! assert!(outcome.decoded && outcome.corrected == 2);
//! assert_eq!(work.word(), sent);
//! # Ok::<(), nandlab_ldpc::LdpcError>(())
//! ```
//!
//! [`SHIPPED`] has codes with their measured tables.
//!
//! Reading order: `code`, `construct`, `encode`, `decode`, `llr`, `measure`, `mixture`, `shipped`.

mod bits;
mod code;
mod construct;
mod decode;
mod encode;
mod error;
pub mod files;
mod llr;
mod measure;
mod mixture;
mod shipped;

pub use bits::Bits;
pub use code::{BITS_MAX, Circulant, Code, FourCycle};
pub use construct::Description;
pub use decode::{Decoder, MinSum, Outcome, Workspace};
pub use encode::Encoder;
pub use error::LdpcError;
pub use llr::{REFERENCES_MAX, Regions, most_informative, most_informative_up_to, rber_of_difficulty};
pub use measure::{Channel, Codewords, Frames, measure};
pub use mixture::{Estimate, Mixture};
pub use shipped::{ITERATIONS_MAX, SHIPPED, Shipped};
