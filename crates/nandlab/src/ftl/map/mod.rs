//! The mapping from LPN to PPN.

mod page;

pub use page::PageMap;
