//! `ftl.streams.multi-hash = { counters = 4096, hashes = 2, threshold = 4, decay = 4096 }`: hot data by counters that
//! several hash functions share.
//!
//! J.-W. Hsieh, T.-W. Kuo and L.-P. Chang, "Efficient identification of hot data for flash memory storage systems", ACM
//! Transactions on Storage 2(1), 2006. Every write of an LBA adds 1 to the counters that `hashes` independent hash
//! functions of the LBA name; a counter has four bits and stays at 15. An LBA is hot if all its counters are at least
//! `threshold`: in the paper, if one of the upper bits of each is set, so 4 stands for two bits. After `decay` writes all
//! counters are halved, so that what is written no more cools down. Hot data is class 1.
//!
//! The counters are counted first and then looked at, so that the write that reaches the threshold is hot. Deviations and
//! assumptions: the paper leaves the hash functions open, here they follow from the seed. The number of counters and the
//! period of the decay have to fit the number of LBAs that are hot; the defaults are those of a small drive (assumption).

use crate::base::geometry::Lpn;
use crate::base::policy::{Choice, ParamInfo, PolicyInfo};
use crate::base::rng::{Stream, mixed};
use crate::base::state::state;

const fn number(
    name: &'static str,
    default: f64,
    min: f64,
    max: f64,
    description: &'static str,
) -> ParamInfo {
    ParamInfo { name, default: Some(default), min, max, whole: true, description }
}

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "multi-hash",
    description: "data that several counters by hash find written often apart (multi-hash framework)",
    params: &[
        number("counters", 4096.0, 16.0, 268_435_456.0, "number of counters, of four bits each"),
        number("hashes", 2.0, 1.0, HASHES_MAX as f64, "hash functions: counters of a page"),
        number("threshold", 4.0, 1.0, 15.0, "least value of all counters of a hot page"),
        number("decay", 4096.0, 1.0, 1e12, "writes after which all counters are halved"),
    ],
};

/// The largest number of hash functions.
const HASHES_MAX: usize = 8;

/// The largest value of a counter of four bits.
const COUNTER_MAX: u8 = 15;

#[derive(Debug)]
pub(super) struct MultiHash {
    /// The counters, a byte each.
    counters: Box<[u8]>,
    /// Writes since the counters were halved.
    since: u64,
    hashes: usize,
    threshold: u8,
    decay: u64,
    /// By hash function, the number that is mixed into the LPN.
    salts: [u64; HASHES_MAX],
}

impl MultiHash {
    pub(super) fn new(choice: &Choice, seed: u64) -> Self {
        let mut stream = Stream::new(seed, "ftl.streams");
        Self {
            counters: vec![0; choice.value(0) as usize].into(),
            since: 0,
            hashes: choice.value(1) as usize,
            threshold: choice.value(2) as u8,
            decay: choice.value(3) as u64,
            salts: std::array::from_fn(|_| stream.below(1 << 63)),
        }
    }

    pub(super) fn bytes(choice: &Choice) -> u64 {
        choice.value(0) as u64
    }

    /// The counters of an LPN.
    #[inline]
    fn of(&self, lpn: Lpn) -> impl Iterator<Item = usize> + use<> {
        let (salts, counters) = (self.salts, self.counters.len() as u64);
        (0..self.hashes).map(move |hash| (mixed(u64::from(lpn.0) ^ salts[hash]) % counters) as usize)
    }

    /// Hot if every counter, the write that is asked about included, has reached the threshold.
    #[inline]
    pub(super) fn class(&self, lpn: Lpn) -> u8 {
        u8::from(self.of(lpn).all(|at| self.counters[at] + 1 >= self.threshold))
    }

    #[inline]
    pub(super) fn on_written(&mut self, lpn: Lpn) {
        let of = self.of(lpn);
        for at in of {
            self.counters[at] = (self.counters[at] + 1).min(COUNTER_MAX);
        }
        self.since += 1;
        if self.since == self.decay {
            self.since = 0;
            self.counters.iter_mut().for_each(|counter| *counter /= 2);
        }
    }
}

state! { MultiHash { counters, since } fixed { hashes, threshold, decay, salts } }

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(counters: f64, hashes: f64, threshold: f64, decay: f64) -> MultiHash {
        let choice = Choice { name: "multi-hash", values: vec![counters, hashes, threshold, decay] };
        MultiHash::new(&choice, 1)
    }

    /// With more counters than LPNs can share, the definition by LPN: writes of an LPN, halved every `decay` writes.
    #[test]
    fn classes_are_those_of_counters_by_lpn_where_none_is_shared() {
        let mut policy = policy(1e6, 2.0, 4.0, 100.0);
        let mut stream = Stream::new(5, "multi-hash");
        let mut counts = [0u8; 40];
        let mut hot = 0;
        for written in 1..=5000 {
            let lpn = if stream.below(3) > 0 { stream.below(4) } else { stream.below(40) } as usize;
            let class = policy.class(Lpn(lpn as u32));
            assert_eq!(class, u8::from(counts[lpn] + 1 >= 4), "write {written} of {lpn}");
            hot += u32::from(class);
            policy.on_written(Lpn(lpn as u32));
            counts[lpn] = (counts[lpn] + 1).min(15);
            if written % 100 == 0 {
                counts = counts.map(|count| count / 2);
            }
        }
        assert!(hot > 2000 && hot < 4500, "{hot}");
    }

    /// By hand: the fourth write is hot; after a decay, 4 has become 2, and the second write after it is hot.
    #[test]
    fn the_fourth_write_is_hot_and_a_decay_halves() {
        let mut policy = policy(1e6, 2.0, 4.0, 4.0);
        let mut classes = Vec::new();
        for _ in 0..6 {
            classes.push(policy.class(Lpn(7)));
            policy.on_written(Lpn(7));
        }
        assert_eq!(classes, [0, 0, 0, 1, 0, 1]);
        assert_eq!(policy.class(Lpn(8)), 0);
    }

    /// All LPNs share 16 counters: other writes make an LPN hot, which the paper calls false identification.
    #[test]
    fn shared_counters_make_cold_data_hot() {
        let mut policy = policy(16.0, 1.0, 4.0, 1e6);
        for lpn in 0..1000 {
            policy.on_written(Lpn(lpn));
        }
        assert_eq!(policy.class(Lpn(5000)), 1);
    }
}
