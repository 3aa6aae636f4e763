//! Migration policies: whether GC and wear levelling move a page off-chip (to the controller and back) or inside its
//! plane (by copyback).
//!
//! D. Hong, M. Kim, J. Park, M. Jung and J. Kim, "Revitalizing copybacks in modern SSDs: why and how", DAC 2018. A
//! copyback moves a page with its bit errors, so the number of copybacks in a row is limited; the limit depends on the
//! P/E cycles of the destination. Copybacks are counted by block (EPM of the paper, Section 4.1): a page of a block
//! with count c is copied back to an open block with count c + 1 of the same plane; at the limit, or off-chip, it goes
//! to a block with count 0.
//!
//! A policy is one file in this folder; it decides for each victim whether copybacks are used. The limit is checked for
//! every page.

use crate::base::policy::PolicyInfo;

pub use crate::ftl::COPYBACKS_MAX;

/// The state that a policy may look at when a victim is going to be emptied.
#[derive(Clone, Copy, Debug)]
pub struct VictimView {
    /// Whether the job is urgent: space is short.
    pub is_urgent: bool,
    /// Share of the write buffer's pages that are being written back (0 to 1), averaged over the last block write time.
    pub buffer: f64,
}

/// Decides how the pages of a victim are moved.
pub trait MigrationPolicy: std::fmt::Debug + Send + Sync {
    /// Whether the victim's pages are moved by copyback where the limit allows it.
    fn copies_back(&self, view: &VictimView) -> bool;

    /// Whether the policy looks at [`VictimView::buffer`].
    fn watches_buffer(&self) -> bool {
        false
    }
}

type Make = fn() -> Box<dyn MigrationPolicy>;

/// Declares a module and a table entry for each line.
macro_rules! policies {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// Every migration policy: its description and its constructor.
        pub const POLICIES: &[(PolicyInfo, Make)] = &[$(($file::INFO, $file::make),)*];
    };
}

policies! {
    off_chip,
    rcopyback,
    rcopyback_greedy,
}

/// The policy called `name`.
///
/// # Panics
/// When no policy of the table has this name; the spec reader accepts only policies of the table.
pub fn make(name: &str) -> Box<dyn MigrationPolicy> {
    let (_, make) = POLICIES
        .iter()
        .find(|(info, _)| info.name == name)
        .expect("the spec reader accepts only policies of the table");
    make()
}
