//! `ecc.start`: the level at which a read starts (LaLDPC, Section III-B).

use super::StartLevel;

/// The levels from which a policy may choose the start level of a read. Level 0 means unknown.
#[derive(Clone, Copy, Debug)]
pub struct Hints {
    /// The level in the page's map entry; 0 if the entry is not cached.
    pub page: u8,
    /// The level that last decoded a page of the same block.
    pub block: u8,
    /// The needed level of the page, which a real controller cannot know.
    pub needed: u8,
}

/// The level at which the policy starts the read; 0 if the policy has no hint.
#[inline]
pub(super) fn level(policy: StartLevel, hints: &Hints) -> u8 {
    match policy {
        StartLevel::First => 1,
        StartLevel::Ideal => hints.needed,
        StartLevel::LastLevel => hints.page,
        StartLevel::BlockLevel if hints.page == 0 => hints.block,
        StartLevel::BlockLevel => hints.page,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_uses_its_own_hint() {
        let hints = Hints { page: 0, block: 4, needed: 3 };
        let levels = |hints: &Hints| {
            use StartLevel::{BlockLevel, First, Ideal, LastLevel};
            [First, Ideal, LastLevel, BlockLevel].map(|policy| level(policy, hints))
        };
        assert_eq!(levels(&hints), [1, 3, 0, 4]);
        assert_eq!(levels(&Hints { page: 2, ..hints }), [1, 3, 2, 2]);
    }
}
