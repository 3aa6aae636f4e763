//! Migration policies: whether GC, wear levelling and folding move units off-chip (to the controller and back) or inside
//! their plane (by copyback).
//!
//! D. Hong, M. Kim, J. Park, M. Jung and J. Kim, "Revitalizing copybacks in modern SSDs: why and how", DAC 2018. A
//! copyback moves a page with its bit errors, so the number of copybacks in a row is limited; the limit depends on the
//! P/E cycles of the destination. Copybacks are counted by superblock (EPM of the paper, Section 4.1): a unit of a
//! superblock with count c is copied back to an open superblock with count c + 1 of the same lane; at the limit, or
//! off-chip, it goes to a superblock with count 0.
//!
//! A policy is one file in this folder. The policy decides for each victim whether copybacks are used; the limit is
//! checked for every unit.

use crate::base::policy::{PolicyError, PolicyInfo, maker};

pub use crate::ftl::COPYBACKS_MAX;

/// The inputs of a policy for a victim that is going to be emptied.
#[derive(Clone, Copy, Debug)]
pub struct VictimView {
    /// Whether the job of the victim is urgent because space is short.
    pub is_urgent: bool,
    /// Share of the write buffer that is in use (0 to 1), by `migration.policy.rcopyback.occupancy`: a moving average
    /// over the time that writing a superblock takes.
    pub buffer: f64,
}

/// Decides how the units of a victim are moved.
pub trait MigrationPolicy: std::fmt::Debug + Send + Sync {
    /// Whether the victim's units are moved by copyback where the limit allows copybacks.
    ///
    /// # Errors
    /// When the policy has failed. This ends the run.
    fn copies_back(&mut self, view: &VictimView) -> Result<bool, PolicyError>;

    /// Whether the policy uses [`VictimView::buffer`].
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

/// Returns the policy called `name`. See [`maker`] for the name of a policy from outside.
pub fn make(name: &str) -> Box<dyn MigrationPolicy> {
    maker(POLICIES, name)()
}
