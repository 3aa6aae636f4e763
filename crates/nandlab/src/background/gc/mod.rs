//! Garbage collection: which block of a plane is emptied next.
//!
//! A victim policy looks at one plane's blocks and names one of them; the plane's job moves its valid pages and erases
//! it. Policies are listed in [`POLICIES`], one line each; a policy is one file in this folder.

pub use crate::ftl::{Candidates, VictimPolicy};

use crate::base::policy::{Choice, PolicyInfo};
use crate::base::rng::Stream;

/// What a policy is made from.
#[derive(Debug)]
pub struct Context {
    /// Planes of the drive.
    pub planes: u32,
    /// The policy's own random stream.
    pub stream: Stream,
}

type Make = fn(&Choice, Context) -> Box<dyn VictimPolicy>;

/// Makes a module and a table entry of each line.
macro_rules! policies {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// Every victim policy: what it says of itself and how it is made. Names, spec keys, errors and listings come
        /// from here.
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

/// The policy chosen by `gc.victim`.
///
/// # Panics
/// When the choice names no policy of the table; the spec only makes choices from it.
pub fn make(choice: &Choice, context: Context) -> Box<dyn VictimPolicy> {
    let (_, make) =
        POLICIES.iter().find(|(info, _)| info.name == choice.name).expect("a policy of the table");
    make(choice, context)
}
