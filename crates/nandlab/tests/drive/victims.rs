//! Each victim policy, compared with a naive twin on superblock tables made by random writes, TRIMs, GC and wear
//! levelling.
//!
//! A table is an [`Ftl`] of one or two lanes without a drive. After every operation the victim of the policy is
//! compared with the result of a search over all superblocks.

use crate::common::{ns, spec};
use nandlab::background::gc;
use nandlab::base::geometry::{Geometry, LaneId, Lpn, SuperblockId};
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::flash::{Array, Keeps, SuperblockState};
use nandlab::ftl::placement::Placements;
use nandlab::ftl::{AllocatedUnit, Config, Ftl, StreamId};
use nandlab::host::Request;

struct Table {
    geometry: Geometry,
    array: Array,
    ftl: Ftl,
    now: Time,
    /// State of the twin: the superblocks of each lane in the order in which they were filled.
    filled: Vec<Vec<u32>>,
    /// Units that are allocated and not yet programmed.
    pending: std::collections::VecDeque<nandlab::base::geometry::UnitId>,
    stream: Stream,
}

impl Table {
    fn new(seed: u64, victim: &str, planes: u32, blocks: u32, pages: u32) -> Self {
        let text = format!(
            "seed = {seed}\n[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = {planes}\n\
             blocks_per_plane = {blocks}\npages_per_block = {pages}\npage_size = '4KiB'\nop = {}\nendurance = 1000000\n\
             [gc]\nvictim = {victim}\n[ftl]\nwear_levelling = 'static'\n",
            8.0 / (f64::from(blocks) - 8.0)
        );
        let spec = spec(&text, &[]);
        let geometry = Geometry::new(&spec.drive);
        let array = Array::new(&geometry, spec.shapes(&geometry), 0, Keeps::default());
        let context = gc::Context { lanes: geometry.lanes, stream: Stream::new(spec.seed, "gc.victim") };
        let config = Config {
            allocation: spec.ftl.allocation,
            levelling: spec.ftl.wear_levelling,
            victim: gc::make(&spec.gc.victim, context),
            needs: nandlab::drive::spec::superblock_needs(&spec),
            streams: nandlab::drive::spec::streams(&spec),
            placements: Placements::of(&spec.placement, geometry.lanes),
        };
        let ftl = Ftl::new(config, &geometry, &array);
        Self {
            filled: vec![Vec::new(); planes as usize],
            pending: std::collections::VecDeque::new(),
            stream: Stream::new(seed, "victims"),
            now: Time::START,
            geometry,
            array,
            ftl,
        }
    }

    fn lanes(&self) -> impl Iterator<Item = LaneId> + use<> {
        (0..self.geometry.lanes).map(LaneId)
    }

    fn superblocks(&self, lane: LaneId) -> &[nandlab::flash::Superblock] {
        let first = self.geometry.first_superblock(lane).index();
        &self.array.superblocks[first..first + self.geometry.superblocks_per_lane as usize]
    }

    /// Ends the oldest program under way.
    fn end_program(&mut self) {
        let Some(unit) = self.pending.pop_front() else { return };
        let (superblock, index) = self.geometry.split(unit);
        if self.array.program(superblock, index) == self.geometry.units_per_superblock {
            self.ftl.close(&mut self.array, superblock, self.now);
            let lane = self.geometry.lane_of(superblock);
            self.filled[lane.index()].push(superblock.0 - self.geometry.first_superblock(lane).0);
        }
    }

    fn program(&mut self, lane: LaneId, stream: StreamId, lpn: Lpn) -> bool {
        let Some(AllocatedUnit { unit, .. }) = self.ftl.allocate(&mut self.array, lane, stream) else {
            return false;
        };
        self.array.stage(unit, lpn, nandlab::flash::Stamp::default());
        self.ftl.remap(&mut self.array, lpn, unit);
        self.pending.push_back(unit);
        true
    }

    fn empty(&mut self, lane: LaneId, within: u32, stream: StreamId) {
        let superblock = SuperblockId(self.geometry.first_superblock(lane).0 + within);
        if self.array.superblock(superblock).valid > self.ftl.stream_room(lane, stream) {
            return;
        }
        self.filled[lane.index()].retain(|&other| other != within);
        self.ftl.begin_emptying(&mut self.array, superblock);
        while let Some(index) = self.ftl.next_valid(superblock, 0) {
            let lpn = self.array.lpn(self.geometry.unit(superblock, index));
            assert!(self.program(lane, stream, lpn));
        }
        self.array.erase(&self.geometry, superblock);
        self.ftl.release(&mut self.array, superblock, u32::MAX);
    }

    /// Executes a random operation.
    fn step(&mut self) {
        self.now += ns(self.stream.below(1000));
        let lpn = Lpn(self.stream.below(u64::from(self.geometry.logical_units)) as u32);
        let lane = self.ftl.allocator.home(lpn);
        match self.stream.below(16) {
            0 => drop(self.ftl.unmap(&mut self.array, lpn)),
            // Empties a random full superblock, as static wear levelling may do.
            1 => {
                let full: Vec<u32> = (0..self.geometry.superblocks_per_lane)
                    .filter(|&b| self.superblocks(lane)[b as usize].state == SuperblockState::Full)
                    .collect();
                if !full.is_empty() && self.ftl.has_room(lane, StreamId::HOST) {
                    let wear = self.ftl.streams.named("wear");
                    let within = full[self.stream.below(full.len() as u64) as usize];
                    self.empty(lane, within, wear);
                }
            }
            _ => {
                if !self.program(lane, StreamId::HOST, lpn) {
                    let victim = self.ftl.pick_victim(&self.array, lane, self.now).unwrap();
                    if let Some(victim) = victim {
                        self.empty(lane, victim.0 - self.geometry.first_superblock(lane).0, StreamId::GC);
                    }
                }
            }
        }
        while self.pending.len() as u64 > self.stream.below(6) {
            self.end_program();
        }
    }

    fn pick(&mut self, lane: LaneId) -> Option<u32> {
        let first = self.geometry.first_superblock(lane).0;
        self.ftl.pick_victim(&self.array, lane, self.now).unwrap().map(|superblock| superblock.0 - first)
    }

    /// Returns (superblock, valid units) of every full superblock.
    fn full(&self, lane: LaneId) -> Vec<(u32, u32)> {
        let superblocks = self.superblocks(lane).iter().enumerate();
        superblocks
            .filter(|(_, b)| b.state == SuperblockState::Full)
            .map(|(i, b)| (i as u32, b.valid))
            .collect()
    }

    fn has_garbage(&self, lane: LaneId) -> bool {
        self.full(lane).iter().any(|&(_, valid)| valid < self.geometry.units_per_superblock)
    }
}

/// Runs random tables under `victim`, and calls `check` for every lane after every step.
fn for_tables(victim: &str, mut check: impl FnMut(&mut Table, LaneId, Option<u32>)) {
    let mut picks = 0;
    for (seed, (planes, blocks, pages)) in
        [(1, 12, 4), (2, 20, 7), (1, 63, 3), (1, 64, 3), (1, 65, 3), (2, 150, 2), (1, 30, 64), (1, 14, 130)]
            .into_iter()
            .enumerate()
    {
        let mut table = Table::new(seed as u64 + 1, victim, planes, blocks, pages);
        for step in 0..6000 {
            table.step();
            for lane in table.lanes() {
                let picked = table.pick(lane);
                assert_eq!(
                    picked.is_some(),
                    table.has_garbage(lane),
                    "a victim is picked if and only if there is garbage"
                );
                if let Some(superblock) = picked {
                    assert_eq!(table.superblocks(lane)[superblock as usize].state, SuperblockState::Full);
                    picks += 1;
                }
                check(&mut table, lane, picked);
            }
            if step % 500 == 0 {
                while !table.pending.is_empty() {
                    table.end_program();
                }
                table.ftl.audit(&table.array).unwrap();
            }
        }
    }
    assert!(picks > 50_000, "only {picks} victims were picked");
    println!("{victim}: {picks} victims compared");
}

#[test]
fn greedy_picks_the_lowest_numbered_of_the_least_valid() {
    for_tables("'greedy'", |table, lane, picked| {
        if let Some(picked) = picked {
            let naive = table.full(lane).into_iter().min_by_key(|&(superblock, valid)| (valid, superblock));
            assert_eq!(Some(picked), naive.map(|(superblock, _)| superblock));
        }
    });
}

#[test]
fn fifo_picks_the_superblock_filled_first() {
    for_tables("'fifo'", |table, lane, picked| {
        if picked.is_some() {
            assert_eq!(picked, table.filled[lane.index()].first().copied());
        }
    });
}

/// The twin compares the ratios exactly, as integer fractions.
#[test]
fn cost_benefit_picks_the_best_ratio_of_benefit_to_cost() {
    for_tables("'cost-benefit'", |table, lane, picked| {
        let Some(picked) = picked else { return };
        let units = u128::from(table.geometry.units_per_superblock);
        // age (1 - u) / (2 u) = age (units - valid) / (2 valid), as numerator and denominator.
        let score = |superblock: u32| {
            let superblock = &table.superblocks(lane)[superblock as usize];
            let (age, valid) =
                (u128::from((table.now - superblock.closed_at).ns() + 1), u128::from(superblock.valid));
            (age * (units - valid), 2 * valid)
        };
        let (best, cost) = score(picked);
        for (other, _) in table.full(lane) {
            let (other_best, other_cost) = score(other);
            let (mine, theirs) = (best * other_cost, other_best * cost);
            // A superblock without valid units has no cost. If there are several such superblocks, the lowest-numbered
            // is picked.
            if cost == 0 {
                assert!(other_cost != 0 || other >= picked);
            } else {
                assert!(other_cost != 0 && mine >= theirs, "superblock {other} beats {picked}");
                assert!(mine > theirs || other >= picked || score(other) != score(picked));
            }
        }
    });
}

#[test]
fn random_with_many_draws_picks_a_superblock_with_the_fewest_valid_units() {
    for_tables("{ random = { k = 2000 } }", |table, lane, picked| {
        if let Some(picked) = picked {
            let full = table.full(lane);
            let least = full.iter().map(|f| f.1).min();
            // 2000 draws miss one of at most 150 superblocks with probability (149/150)^2000 = 2e-6.
            assert_eq!(Some(table.superblocks(lane)[picked as usize].valid), least);
        }
    });
}

/// Among n full superblocks with different numbers of valid units, the policy picks the superblock of rank r (from 0,
/// the fewest valid units first) with probability ((n - r)^k - (n - r - 1)^k) / n^k.
#[test]
fn random_draws_follow_the_law_of_d_choices() {
    for k in [1, 2, 5] {
        let mut table = Table::new(9, &format!("{{ random = {{ k = {k} }} }}"), 1, 24, 32);
        for _ in 0..4000 {
            table.step();
        }
        let lane = LaneId(0);
        let mut full = table.full(lane);
        full.sort_by_key(|f| f.1);
        let draws = 200_000;
        let mut by_valid = std::collections::BTreeMap::new();
        for _ in 0..draws {
            let picked = table.pick(lane).unwrap();
            *by_valid.entry(table.superblocks(lane)[picked as usize].valid).or_insert(0u32) += 1;
        }
        let n = full.len() as f64;
        let mut seen = 0.0;
        for (rank, group) in full.chunk_by(|a, b| a.1 == b.1).enumerate() {
            // Superblocks with equal numbers of valid units form one rank.
            let below = n - seen;
            seen += group.len() as f64;
            let expected = ((below / n).powi(k) - ((n - seen) / n).powi(k)) * f64::from(draws);
            let got = f64::from(by_valid.get(&group[0].1).copied().unwrap_or(0));
            let sigma = expected.sqrt().max(1.0);
            assert!((got - expected).abs() < 5.0 * sigma, "k {k}, rank {rank}: {got} of {expected}");
        }
    }
}

/// Returns a table of one lane whose first superblocks are full, with these numbers of valid units of four.
fn full_superblocks(victim: &str, valid: &[u32]) -> Table {
    let mut table = Table::new(1, victim, 1, 20, 4);
    for (superblock, &valid) in (0..).zip(valid) {
        for unit in 0..4 {
            // An LPN that is written again in the superblock leaves an invalid unit.
            let lpn = Lpn(4 * superblock + if unit < valid { unit } else { 0 });
            assert!(table.program(LaneId(0), StreamId::HOST, lpn));
            table.end_program();
        }
    }
    table
}

/// Returns the victim when the first superblocks have these numbers of linked units.
fn pick_with(table: &mut Table, linked: &[u16]) -> Option<u32> {
    for (superblock, &linked) in linked.iter().enumerate() {
        table.array.superblocks[superblock].linked = linked;
    }
    table.pick(LaneId(0))
}

/// Full superblocks with 3, 2, 2, 4 and 2 valid units of four. At first 0, 2, 1, 0 and 1 of these units are linked.
#[test]
fn partial_aware_picks_the_expected_superblocks_of_a_table_made_by_hand() {
    let mut table = full_superblocks("'partial-aware'", &[3, 2, 2, 4, 2]);
    let lane = LaneId(0);
    assert_eq!(table.full(lane), [(0, 3), (1, 2), (2, 2), (3, 4), (4, 2)]);
    let mut pick = |linked: [u16; 5]| pick_with(&mut table, &linked);
    assert_eq!(
        pick([0, 2, 1, 0, 1]),
        Some(2),
        "not the fewest valid units, then the fewest linked units, then the lowest number"
    );
    assert_eq!(pick([0, 2, 1, 0, 0]), Some(4));
    assert_eq!(pick([0, 0, 1, 0, 1]), Some(1));
    // The number of valid units is compared first, for any number of linked units.
    assert_eq!(pick([0, 2, 2, 0, 2]), Some(1));
}

#[test]
fn partial_aware_with_a_cost_picks_the_smallest_sum_of_valid_and_linked_units() {
    let pick = |cost: &str, linked: [u16; 3]| {
        let victim = format!("{{ partial-aware = {{ linked_cost = {cost} }} }}");
        pick_with(&mut full_superblocks(&victim, &[3, 2, 4]), &linked)
    };
    // Costs 3 + 0, 2 + 2 and 4 + 0.
    assert_eq!(pick("1.0", [0, 2, 0]), Some(0));
    assert_eq!(pick("1.0", [2, 2, 0]), Some(1), "costs 5, 4 and 4: the lower number");
    assert_eq!(pick("1.0", [3, 2, 1]), Some(1), "costs 6, 4 and 5");
    // Costs 3, 2.5 and 4.
    assert_eq!(pick("0.25", [0, 2, 0]), Some(1));
    assert_eq!(pick("0.0", [0, 2, 0]), Some(1), "without a cost the fewest valid units decide");
}

#[test]
fn partial_aware_picks_the_fewest_valid_then_the_fewest_partially_refreshed() {
    let (mut stream, mut by_links, mut compared) = (Stream::new(4, "links"), 0, 0);
    for_tables("'partial-aware'", |table, lane, picked| {
        // Without linked units the policy is greedy.
        let full = table.full(lane);
        let greedy = full.iter().map(|&(superblock, valid)| (valid, superblock)).min();
        assert!(picked.is_none() || picked == greedy.map(|(_, superblock)| superblock));
        if picked.is_none() {
            return;
        }
        let first = table.geometry.first_superblock(lane).0;
        let linked: Vec<u16> =
            full.iter().map(|&(_, valid)| stream.below(u64::from(valid) + 1) as u16).collect();
        for (&(superblock, _), &linked) in full.iter().zip(&linked) {
            table.array.superblock_mut(SuperblockId(first + superblock)).linked = linked;
        }
        let best =
            full.iter().zip(&linked).map(|(&(superblock, valid), &linked)| (valid, linked, superblock)).min();
        let picked = table.pick(lane);
        assert_eq!(picked, best.map(|(_, _, superblock)| superblock));
        by_links += u32::from(picked != greedy.map(|(_, superblock)| superblock));
        compared += 1;
        for (superblock, _) in full {
            table.array.superblock_mut(SuperblockId(first + superblock)).linked = 0;
        }
    });
    assert!(
        compared > 50_000 && by_links > 5_000,
        "linked units decided only {by_links} of {compared} picks"
    );
}

#[test]
fn every_twin_has_its_policy_in_the_table() {
    let names: Vec<&str> = nandlab::background::gc::POLICIES.iter().map(|(info, _)| info.name).collect();
    for twin in ["greedy", "cost-benefit", "fifo", "random", "partial-aware"] {
        assert!(names.contains(&twin), "{twin} has a twin, but is no policy of the table");
    }
}

/// Moving a superblock whose units are all valid gains nothing. While the host is busy it lets `fifo` proceed to other
/// superblocks; idle GC takes the superblock with the fewest valid units instead.
#[test]
fn idle_gc_moves_no_superblock_whose_units_are_all_valid() {
    let text = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 16\npages_per_block = 8\npage_size = '4KiB'\nop = 1.0\n\
                endurance = 1000000\n[gc]\nvictim = 'fifo'\nforeground_free = 0.0\nbackground_free = 0.9999\n\
                idle_valid_max = 1.0\n[ftl]\nwear_levelling = 'none'\n";
    let mut drive: Drive = Drive::new(&spec(text, &[]));
    // Four superblocks in this order: LPNs 0 to 7 (all valid), 8 to 15 and 16 to 23 (one valid unit each), and the
    // fourteen units of the second and third superblock that are written again.
    let again = (9..16).chain(17..24);
    (0..24).chain(again).for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
    let first = drive.ftl().map.get(Lpn(0));
    // The end of a request begins the time after which the drive is idle.
    drive.submit(&Request::read(0, 4096).at(drive.now())).unwrap();
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.advance(Time::START + nandlab::base::units::SECOND);
    let gc = &drive.stats().gc;
    assert!(gc.victims > 0 && gc.victims == gc.victims_forced, "{gc:?}");
    assert_eq!((gc.victim_valid_pages, drive.ftl().map.get(Lpn(0))), (gc.victims, first));
}
