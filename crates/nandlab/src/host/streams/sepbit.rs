//! `ftl.streams = "sepbit"`: separation by the block invalidation time that the last lifespan of the data lets expect.
//!
//! Q. Wang, J. Li, P. P. C. Lee, T. Ouyang, C. Shi and L. Huang, "Separating Data via Block Invalidation Time Inference for
//! Write Amplification Reduction in Log-Structured Storage", FAST 2022, Section 3, Algorithm 1. A write invalidates the
//! data that was written to the LBA before. The lifespan of that data is the number of units which the host has written
//! since. If it is below l, the new data is expected to be short-lived as well and goes to Class 1, else to Class 2, as
//! does data written for the first time. l is the mean lifespan of the last 16 superblocks of Class 1 that have been
//! collected: the units written from the first unit in the superblock to its erase. Before, l is infinite. GC moves data
//! of Class 1 to Class 3.
//!
//! Class 1 of the paper is class 1 here, Class 2 is class 0, and Class 3 a stream of GC. Deviations:
//!
//! - The paper tells the other data that GC moves to Classes 4 to 6 by its age. Here it shares the stream of GC.
//! - The paper bounds its memory by a queue of the last LBAs written; here the time of the last write of every logical
//!   unit is known.
//! - A segment of the paper is a superblock, of which every lane has open ones.
//!
//! The policy has no parameters: 16 is the paper's.

use crate::base::geometry::{Lpn, SuperblockId};
use crate::base::policy::PolicyInfo;
use crate::base::state::state;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "sepbit",
    description: "data whose predecessor was short-lived apart, as written and as moved by GC (SepBIT)",
    params: &[],
};

/// Superblocks of class 1 over whose lifespans the mean is taken.
const COLLECTED: u32 = 16;

/// The class of short-lived data.
const SHORT: u8 = 1;

#[derive(Debug)]
pub(super) struct SepBit {
    /// By logical unit, the number of the last write of the host, from 1 on; 0: not written yet.
    last: Box<[u64]>,
    /// By superblock, the number of the write that opened it for class 1; 0: it is not of class 1.
    opened: Box<[u64]>,
    /// The mean lifespan l; `u64::MAX`: infinite.
    limit: u64,
    /// Superblocks of class 1 that have been erased since l was computed, and the sum of their lifespans.
    collected: u32,
    lifespans: u64,
}

impl SepBit {
    pub(super) fn new(logical: u32, superblocks: u32) -> Self {
        Self {
            last: vec![0; logical as usize].into(),
            opened: vec![0; superblocks as usize].into(),
            limit: u64::MAX,
            collected: 0,
            lifespans: 0,
        }
    }

    #[inline]
    pub(super) fn class(&self, lpn: Lpn, written: u64) -> u8 {
        let last = self.last[lpn.index()];
        // The write that is asked about has the number written + 1.
        let is_short = last > 0 && written + 1 - last < self.limit;
        if is_short { SHORT } else { 0 }
    }

    #[inline]
    pub(super) fn on_written(
        &mut self,
        lpn: Lpn,
        class: u8,
        superblock: SuperblockId,
        opened: bool,
        written: u64,
    ) {
        self.last[lpn.index()] = written + 1;
        if opened && class == SHORT {
            self.opened[superblock.index()] = written + 1;
        }
    }

    pub(super) fn on_erased(&mut self, superblock: SuperblockId, written: u64) {
        let opened = std::mem::take(&mut self.opened[superblock.index()]);
        if opened == 0 {
            return;
        }
        self.lifespans += written + 1 - opened;
        self.collected += 1;
        if self.collected == COLLECTED {
            self.limit = self.lifespans / u64::from(COLLECTED);
            (self.collected, self.lifespans) = (0, 0);
        }
    }
}

state! { SepBit { last, opened, limit, collected, lifespans } }

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition without arrays: a list of all writes, and of the superblocks of class 1.
    #[derive(Default)]
    struct Twin {
        writes: Vec<u32>,
        open: Vec<(u32, usize)>,
        lifespans: Vec<usize>,
        limit: Option<f64>,
    }

    impl Twin {
        fn class(&self, lpn: u32) -> u8 {
            let Some(last) = self.writes.iter().rposition(|&other| other == lpn) else { return 0 };
            let lifespan = self.writes.len() - last;
            u8::from(self.limit.is_none_or(|limit| (lifespan as f64) < limit.floor()))
        }

        fn erased(&mut self, superblock: u32) {
            let Some(at) = self.open.iter().position(|&(other, _)| other == superblock) else { return };
            let (_, opened) = self.open.remove(at);
            self.lifespans.push(self.writes.len() - opened);
            if self.lifespans.len() == 16 {
                self.limit = Some(self.lifespans.drain(..).sum::<usize>() as f64 / 16.0);
            }
        }
    }

    #[test]
    fn classes_are_those_of_the_naive_twin() {
        let mut stream = crate::base::rng::Stream::new(3, "sepbit");
        let (mut policy, mut twin) = (SepBit::new(50, 12), Twin::default());
        let (mut short, mut limits) = (0, 0);
        for written in 0..4000u64 {
            let lpn = if stream.below(4) > 0 { stream.below(5) } else { stream.below(50) } as u32;
            let class = policy.class(Lpn(lpn), written);
            assert_eq!(class, twin.class(lpn), "write {written} of {lpn}");
            short += u32::from(class == SHORT);
            let superblock = stream.below(12) as u32;
            let opened = stream.below(6) == 0 && !twin.open.iter().any(|&(other, _)| other == superblock);
            policy.on_written(Lpn(lpn), class, SuperblockId(superblock), opened, written);
            if opened && class == SHORT {
                twin.open.push((superblock, twin.writes.len()));
            }
            twin.writes.push(lpn);
            if stream.below(5) == 0 {
                let erased = stream.below(12) as u32;
                let before = policy.limit;
                policy.on_erased(SuperblockId(erased), written + 1);
                twin.erased(erased);
                limits += u32::from(policy.limit != before);
            }
        }
        assert!(short > 500 && short < 3900 && limits > 5, "{short} {limits}");
    }

    /// By hand: the first write of an LPN has no lifespan. 16 superblocks of class 1 that live for 10 writes make l 10.
    #[test]
    fn the_limit_is_the_mean_lifespan_of_sixteen_superblocks() {
        let mut policy = SepBit::new(4, 16);
        assert_eq!(policy.class(Lpn(0), 0), 0, "data written for the first time is of Class 2");
        policy.on_written(Lpn(0), 0, SuperblockId(0), true, 0);
        assert_eq!(policy.class(Lpn(0), 1000), SHORT, "l is infinite");
        for superblock in 0..16 {
            policy.on_written(Lpn(1), SHORT, SuperblockId(superblock), true, 100);
            // Written number 101, erased when 110 writes are done: ten writes, its own included.
            policy.on_erased(SuperblockId(superblock), 110);
        }
        assert_eq!(policy.limit, 10);
        policy.on_written(Lpn(2), 0, SuperblockId(1), false, 200);
        let class = |written| policy.class(Lpn(2), written);
        assert_eq!([201, 209, 210, 300].map(class), [SHORT, SHORT, 0, 0]);
    }
}
