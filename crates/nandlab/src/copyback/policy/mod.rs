//! How GC and wear levelling move a page: out to the controller and back, or inside its plane (copyback), and how often in
//! a row the latter.
//!
//! D. Hong, M. Kim, J. Park, M. Jung and J. Kim, "Revitalizing copybacks in modern SSDs: why and how", DAC 2018. A copyback
//! moves a page with its errors, so it may happen only so many times in a row; the limit depends on the P/E cycles of the
//! destination. Copybacks are counted by block (the paper's EPM, Section 4.1): a page of a block with count c goes to an
//! open block with count c + 1 of the same plane, and at the limit, or off-chip, to one with count 0.
//!
//! A policy is one file; it says for each victim whether copybacks are wanted. The limit is asked for every page.

use crate::base::policy::PolicyInfo;

pub use crate::ftl::COPYBACKS_MAX;

/// What a policy may look at when a victim is going to be emptied.
#[derive(Clone, Copy, Debug)]
pub struct VictimView {
    /// Something waits for the room.
    pub is_urgent: bool,
    /// Share of the write buffer that waits for flash or is being programmed; mean over the last block write time.
    pub buffer: f64,
}

/// Decides how the pages of a victim are moved.
pub trait MigrationPolicy: std::fmt::Debug + Send + Sync {
    /// Whether the victim's pages are moved by copyback, where their limit allows it.
    fn copies_back(&self, view: &VictimView) -> bool;

    /// Whether it looks at [`VictimView::buffer`].
    fn watches_buffer(&self) -> bool {
        false
    }
}

type Make = fn() -> Box<dyn MigrationPolicy>;

/// Makes a module and a table entry of each line.
macro_rules! policies {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// Every migration policy: what it says of itself and how it is made.
        pub const POLICIES: &[(PolicyInfo, Make)] = &[$(($file::INFO, $file::make),)*];
    };
}

policies! {
    off_chip,
    rcopyback,
    rcopyback_greedy,
}

/// The policy of this name.
///
/// # Panics
/// When there is none; the spec only knows those of the table.
pub fn make(name: &str) -> Box<dyn MigrationPolicy> {
    let (_, make) = POLICIES.iter().find(|(info, _)| info.name == name).expect("a policy of the table");
    make()
}
