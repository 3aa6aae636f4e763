//! Garbage collection: the victim policies, which choose the superblock of a lane that is emptied next.
//!
//! A policy examines the superblocks of one lane and picks a victim. The lane's job moves the valid units of the victim
//! and erases it. Each policy is one file in this folder and one line of `policies!`.

pub use crate::ftl::{Candidates, VictimPolicy};

use crate::base::policy::{Choice, PolicyInfo, maker};
use crate::base::rng::Stream;

/// The arguments from which a policy is made.
#[derive(Debug)]
pub struct Context {
    /// Number of lanes of the drive.
    pub lanes: u32,
    /// The policy's own random stream.
    pub stream: Stream,
}

type Make = fn(&Choice, Context) -> Box<dyn VictimPolicy>;

/// Declares a module and a table entry for each line.
macro_rules! policies {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// Every victim policy: its description and its constructor. Names, spec keys, error texts and listings are
        /// made from this table.
        pub const POLICIES: &[(PolicyInfo, Make)] = &[$(($file::INFO, $file::make),)*];
    };
}

policies! {
    greedy,
    cost_benefit,
    fifo,
    random,
    partial_aware,
}

/// The policy chosen by `gc.victim`. See [`maker`] for the name of a policy from outside.
pub fn make(choice: &Choice, context: Context) -> Box<dyn VictimPolicy> {
    maker(POLICIES, choice.name)(choice, context)
}
