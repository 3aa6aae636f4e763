//! The cache, compared with literal transcriptions of its eviction policies.

use super::*;
use crate::base::rng::Stream;

/// Algorithm 1 of the LaLDPC paper, line by line, on a list; position 1 is the most recently used entry. The numbers in
/// comments are the lines of the algorithm.
struct Algorithm1 {
    init_mc: Vec<(u32, u8)>,
    len_mc: usize,
    len_fix: usize,
    l_max: u8,
}

impl Algorithm1 {
    fn request(&mut self, lpn: u32, level: u8) -> (bool, Option<u32>) {
        // 3: search LPN in initial cache list InitMC.
        if let Some(at) = self.init_mc.iter().position(|&(cached, _)| cached == lpn) {
            // 15: directly insert LPN into InitMC by LRU rule.
            let entry = self.init_mc.remove(at);
            self.init_mc.insert(0, entry);
            return (true, None);
        }
        let mut evicted = None;
        // 4: LPN is not found and InitMC is full.
        if self.init_mc.len() == self.len_mc {
            let mut ind = None;
            // 6: for i = 0 to L_max and j = Len_MC to 1; the break leaves both loops.
            'found: for i in 0..=self.l_max {
                for j in (1..=self.len_mc).rev() {
                    // 7: RL_j <= i and j >= Len_fix.
                    if self.init_mc[j - 1].1 <= i && j >= self.len_fix {
                        ind = Some(j);
                        break 'found;
                    }
                }
            }
            // 13: remove the ind-th item; if there is none, the last item.
            evicted = Some(self.init_mc.remove(ind.unwrap_or(self.len_mc) - 1).0);
        }
        self.init_mc.insert(0, (lpn, level));
        (false, evicted)
    }

    fn set_level(&mut self, lpn: u32, level: u8) {
        if let Some(entry) = self.init_mc.iter_mut().find(|entry| entry.0 == lpn) {
            entry.1 = level;
        }
    }
}

/// Compares the cache with Algorithm 1 on random steps: on average `changes` of 8 steps set a level, the others are
/// requests.
fn compare(seed: u64, len_mc: u32, len_fix: u32, lpns: u32, changes: u64, steps: u32) {
    let mut stream = Stream::new(seed, "cache");
    let eviction = Eviction::ReadLevel { fixed: len_fix };
    let mut cache = Cache::new(u64::from(len_mc) * ENTRY_BYTES, lpns, eviction);
    let mut literal =
        Algorithm1 { init_mc: Vec::new(), len_mc: len_mc as usize, len_fix: len_fix as usize, l_max: 7 };
    for step in 0..steps {
        // The square of the random number favours low LPNs, so that there are hits.
        let draw = stream.unit();
        let lpn = (draw * draw * f64::from(lpns)) as u32;
        let level = 1 + stream.below(7) as u8;
        if stream.below(8) < changes {
            cache.set_level(Lpn(lpn), level);
            literal.set_level(lpn, level);
        } else {
            let hit = cache.touch(Lpn(lpn));
            let evicted = if hit { None } else { cache.insert(Lpn(lpn), level).unwrap() };
            assert_eq!(
                (hit, evicted.map(|lpn| lpn.0)),
                literal.request(lpn, level),
                "step {step}, seed {seed}, {len_mc} entries, {len_fix} fixed"
            );
        }
        if step % 64 == 0 {
            cache.audit().unwrap();
        }
    }
    let cached = |lpn| literal.init_mc.iter().find(|entry| entry.0 == lpn).map(|entry| entry.1);
    for lpn in 0..lpns {
        assert_eq!(cache.level(Lpn(lpn)), cached(lpn));
    }
}

#[test]
fn read_level_evicts_the_same_victims_as_algorithm_1() {
    for (seed, len_mc) in (0..).zip([1, 2, 3, 5, 8, 33, 100]) {
        for len_fix in [1, 2, 3, len_mc / 2 + 1, len_mc, len_mc + 1, 2 * len_mc + 7] {
            for changes in [0, 1, 4, 7] {
                compare(seed, len_mc, len_fix, 3 * len_mc + 2, changes, 2000);
            }
        }
    }
}

#[test]
fn read_level_evicts_as_algorithm_1_after_many_level_changes_of_unfixed_entries() {
    compare(99, 200, 20, 300, 7, 40_000);
}

#[test]
fn read_level_evicts_the_victims_of_the_two_cases_of_figure_8() {
    // LaLDPC, Figure 8, with positions from 1 and Len_fix = 3. Case 1: an unfixed entry has the lowest level of all.
    // Case 2: only fixed entries have the lowest level, so the least recently used unfixed entry of the next level is
    // evicted.
    for (levels, victim) in [([1, 3, 2, 1, 3, 1, 2], 6), ([1, 1, 3, 2, 3, 2, 3], 6)] {
        let mut cache = Cache::new(7 * ENTRY_BYTES, 16, Eviction::ReadLevel { fixed: 3 });
        for position in (1..=7).rev() {
            assert_eq!(cache.insert(Lpn(position), levels[position as usize - 1]), Ok(None));
        }
        assert_eq!(cache.insert(Lpn(9), 1), Ok(Some(Lpn(victim))));
    }
}

#[test]
fn lru_evicts_the_least_recently_used() {
    let mut stream = Stream::new(7, "cache");
    let mut cache = Cache::new(20 * ENTRY_BYTES, 64, Eviction::Lru);
    let mut literal: Vec<u32> = Vec::new();
    for _ in 0..5000 {
        let lpn = stream.below(40) as u32;
        let at = literal.iter().position(|&cached| cached == lpn);
        assert_eq!(cache.touch(Lpn(lpn)), at.is_some());
        match at {
            Some(at) => _ = literal.remove(at),
            None => {
                let expected = if literal.len() == 20 { literal.pop() } else { None };
                assert_eq!(cache.insert(Lpn(lpn), 1).unwrap().map(|lpn| lpn.0), expected);
            }
        }
        literal.insert(0, lpn);
    }
    cache.audit().unwrap();
}
