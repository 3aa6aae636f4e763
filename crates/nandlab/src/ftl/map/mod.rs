//! The mapping from LPN to PPN.

mod cache;
mod demand;
mod page;

pub use cache::{Cache, ENTRY_BYTES};
pub use demand::{DemandMap, TranslationPage, Tvpn, WriteBack};
pub use page::PageMap;
