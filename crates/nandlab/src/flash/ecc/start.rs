//! `ecc.start`: the level at which a read starts (LaLDPC, Section III-B).

use super::StartLevel;

/// What the controller may know when it starts a read. Level 0: not known.
#[derive(Clone, Copy, Debug)]
pub struct Hints {
    /// The level bits of the page's map entry, while the entry is cached.
    pub page: u8,
    /// The level that last decoded a page of the same block.
    pub block: u8,
    /// The least level that decodes the page, which no real controller knows.
    pub needed: u8,
}

/// The level at which the policy starts; 0 when the policy does not know one.
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
    fn each_policy_uses_the_levels_it_may_know() {
        let hints = Hints { page: 0, block: 4, needed: 3 };
        let levels = |hints: &Hints| {
            use StartLevel::{BlockLevel, First, Ideal, LastLevel};
            [First, Ideal, LastLevel, BlockLevel].map(|policy| level(policy, hints))
        };
        assert_eq!(levels(&hints), [1, 3, 0, 4]);
        assert_eq!(levels(&Hints { page: 2, ..hints }), [1, 3, 2, 2]);
    }
}
