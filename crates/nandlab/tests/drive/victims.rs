//! Each victim policy, compared with a naive twin on block tables made by random writes, TRIMs, GC and wear levelling.
//!
//! A table is an [`Ftl`] of one or two planes without a drive. After every operation the victim of the policy is
//! compared with the result of a search over all blocks.

use crate::common::{ns, spec};
use nandlab::background::gc;
use nandlab::base::geometry::{BlockId, Geometry, Lpn, PlaneId};
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::flash::{Array, BlockState, Keeps};
use nandlab::ftl::{AllocatedPage, Config, Ftl, WriteStream};
use nandlab::host::{Op, Request};

struct Table {
    geometry: Geometry,
    array: Array,
    ftl: Ftl,
    now: Time,
    /// State of the twin: the blocks of each plane in the order in which they were filled.
    filled: Vec<Vec<u32>>,
    /// Pages that are allocated and not yet programmed.
    pending: std::collections::VecDeque<nandlab::base::geometry::Ppn>,
    stream: Stream,
}

impl Table {
    fn new(seed: u64, victim: &str, planes: u32, blocks: u32, pages: u32) -> Self {
        let text = format!(
            "seed = {seed}\n[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = {planes}\n\
             blocks_per_plane = {blocks}\npages_per_block = {pages}\npage_size = '4KiB'\nop = {}\nendurance = 1000000\n\
             [gc]\nvictim = {victim}\n",
            8.0 / (f64::from(blocks) - 8.0)
        );
        let spec = spec(&text, &[]);
        let geometry = Geometry::new(&spec.drive);
        let array = Array::new(&geometry, 0, Keeps::default());
        let context = gc::Context { planes: geometry.planes, stream: Stream::new(spec.seed, "gc.victim") };
        let config = Config {
            allocation: spec.ftl.allocation,
            levelling: spec.ftl.wear_levelling,
            victim: gc::make(&spec.gc.victim, context),
            needs: nandlab::drive::spec::block_needs(&spec),
            translation_pages: 0,
            combination_pages: 0,
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

    fn planes(&self) -> impl Iterator<Item = PlaneId> + use<> {
        (0..self.geometry.planes).map(PlaneId)
    }

    fn blocks(&self, plane: PlaneId) -> &[nandlab::flash::Block] {
        let first = self.geometry.first_block(plane).index();
        &self.array.blocks[first..first + self.geometry.blocks_per_plane as usize]
    }

    /// Ends the oldest program under way.
    fn end_program(&mut self) {
        let Some(ppn) = self.pending.pop_front() else { return };
        let (block, page) = self.geometry.split(ppn);
        if self.array.program(block, page) == self.geometry.pages_per_block {
            self.ftl.close(&self.geometry, &mut self.array, block, self.now);
            let plane = self.geometry.plane_of(block);
            self.filled[plane.index()].push(block.0 - self.geometry.first_block(plane).0);
        }
    }

    fn program(&mut self, plane: PlaneId, stream: WriteStream, lpn: Lpn) -> bool {
        let Some(AllocatedPage { ppn, .. }) =
            self.ftl.allocate(&self.geometry, &mut self.array, plane, stream)
        else {
            return false;
        };
        self.array.stage(ppn, lpn, nandlab::flash::Stamp::default());
        self.ftl.remap(&self.geometry, &mut self.array, lpn, ppn);
        self.pending.push_back(ppn);
        true
    }

    fn empty(&mut self, plane: PlaneId, within: u32, stream: WriteStream) {
        let block = BlockId(self.geometry.first_block(plane).0 + within);
        if self.array.block(block).valid > self.ftl.stream_room(&self.geometry, plane, stream) {
            return;
        }
        self.filled[plane.index()].retain(|&other| other != within);
        self.ftl.begin_emptying(&self.geometry, &mut self.array, block);
        while let Some(page) = self.ftl.next_valid(&self.geometry, block, 0) {
            let lpn = self.array.lpn(self.geometry.page(block, page));
            assert!(self.program(plane, stream, lpn));
        }
        self.array.erase(&self.geometry, block);
        self.ftl.release(&self.geometry, &mut self.array, block, u32::MAX);
    }

    /// Executes a random operation.
    fn step(&mut self) {
        self.now += ns(self.stream.below(1000));
        let lpn = Lpn(self.stream.below(u64::from(self.geometry.logical_pages)) as u32);
        let plane = self.ftl.allocator.home(lpn, &self.geometry);
        match self.stream.below(16) {
            0 => drop(self.ftl.unmap(&self.geometry, &mut self.array, lpn)),
            // Empties a random full block, as static wear levelling may do.
            1 => {
                let full: Vec<u32> = (0..self.geometry.blocks_per_plane)
                    .filter(|&b| self.blocks(plane)[b as usize].state == BlockState::Full)
                    .collect();
                if !full.is_empty() && self.ftl.has_room(plane) {
                    let within = full[self.stream.below(full.len() as u64) as usize];
                    self.empty(plane, within, WriteStream::Wear);
                }
            }
            _ => {
                if !self.program(plane, WriteStream::Host, lpn) {
                    let victim = self.ftl.pick_victim(&self.geometry, &self.array, plane, self.now);
                    if let Some(victim) = victim {
                        self.empty(plane, victim.0 - self.geometry.first_block(plane).0, WriteStream::Gc);
                    }
                }
            }
        }
        while self.pending.len() as u64 > self.stream.below(6) {
            self.end_program();
        }
    }

    fn pick(&mut self, plane: PlaneId) -> Option<u32> {
        let first = self.geometry.first_block(plane).0;
        self.ftl.pick_victim(&self.geometry, &self.array, plane, self.now).map(|block| block.0 - first)
    }

    /// Returns (block, valid pages) of every full block.
    fn full(&self, plane: PlaneId) -> Vec<(u32, u32)> {
        let blocks = self.blocks(plane).iter().enumerate();
        blocks.filter(|(_, b)| b.state == BlockState::Full).map(|(i, b)| (i as u32, b.valid)).collect()
    }

    fn has_garbage(&self, plane: PlaneId) -> bool {
        self.full(plane).iter().any(|&(_, valid)| valid < self.geometry.pages_per_block)
    }
}

/// Runs random tables under `victim`, and calls `check` for every plane after every step.
fn for_tables(victim: &str, mut check: impl FnMut(&mut Table, PlaneId, Option<u32>)) {
    let mut picks = 0;
    for (seed, (planes, blocks, pages)) in
        [(1, 12, 4), (2, 20, 7), (1, 63, 3), (1, 64, 3), (1, 65, 3), (2, 150, 2), (1, 30, 64), (1, 14, 130)]
            .into_iter()
            .enumerate()
    {
        let mut table = Table::new(seed as u64 + 1, victim, planes, blocks, pages);
        for step in 0..6000 {
            table.step();
            for plane in table.planes() {
                let picked = table.pick(plane);
                assert_eq!(
                    picked.is_some(),
                    table.has_garbage(plane),
                    "a victim is picked if and only if there is garbage"
                );
                if let Some(block) = picked {
                    assert_eq!(table.blocks(plane)[block as usize].state, BlockState::Full);
                    picks += 1;
                }
                check(&mut table, plane, picked);
            }
            if step % 500 == 0 {
                while !table.pending.is_empty() {
                    table.end_program();
                }
                table.ftl.audit(&table.geometry, &table.array).unwrap();
            }
        }
    }
    assert!(picks > 50_000, "only {picks} victims were picked");
    println!("{victim}: {picks} victims compared");
}

#[test]
fn greedy_picks_the_lowest_numbered_of_the_least_valid() {
    for_tables("'greedy'", |table, plane, picked| {
        if let Some(picked) = picked {
            let naive = table.full(plane).into_iter().min_by_key(|&(block, valid)| (valid, block));
            assert_eq!(Some(picked), naive.map(|(block, _)| block));
        }
    });
}

#[test]
fn fifo_picks_the_block_filled_first() {
    for_tables("'fifo'", |table, plane, picked| {
        if picked.is_some() {
            assert_eq!(picked, table.filled[plane.index()].first().copied());
        }
    });
}

/// The twin compares the ratios exactly, as integer fractions.
#[test]
fn cost_benefit_picks_the_best_ratio_of_benefit_to_cost() {
    for_tables("'cost-benefit'", |table, plane, picked| {
        let Some(picked) = picked else { return };
        let pages = u128::from(table.geometry.pages_per_block);
        // age (1 - u) / (2 u) = age (pages - valid) / (2 valid), as numerator and denominator.
        let score = |block: u32| {
            let block = &table.blocks(plane)[block as usize];
            let (age, valid) = (u128::from((table.now - block.closed_at).ns() + 1), u128::from(block.valid));
            (age * (pages - valid), 2 * valid)
        };
        let (best, cost) = score(picked);
        for (other, _) in table.full(plane) {
            let (other_best, other_cost) = score(other);
            let (mine, theirs) = (best * other_cost, other_best * cost);
            // A block without valid pages has no cost. If there are several such blocks, the lowest-numbered is picked.
            if cost == 0 {
                assert!(other_cost != 0 || other >= picked);
            } else {
                assert!(other_cost != 0 && mine >= theirs, "block {other} beats {picked}");
                assert!(mine > theirs || other >= picked || score(other) != score(picked));
            }
        }
    });
}

#[test]
fn random_with_many_draws_picks_a_block_with_the_fewest_valid_pages() {
    for_tables("{ random = { k = 2000 } }", |table, plane, picked| {
        if let Some(picked) = picked {
            let full = table.full(plane);
            let least = full.iter().map(|f| f.1).min();
            // 2000 draws miss one of at most 150 blocks with probability (149/150)^2000 = 2e-6.
            assert_eq!(Some(table.blocks(plane)[picked as usize].valid), least);
        }
    });
}

/// Among n full blocks with different numbers of valid pages, the policy picks the block of rank r (from 0, the fewest
/// valid pages first) with probability ((n - r)^k - (n - r - 1)^k) / n^k.
#[test]
fn random_draws_follow_the_law_of_d_choices() {
    for k in [1, 2, 5] {
        let mut table = Table::new(9, &format!("{{ random = {{ k = {k} }} }}"), 1, 24, 32);
        for _ in 0..4000 {
            table.step();
        }
        let plane = PlaneId(0);
        let mut full = table.full(plane);
        full.sort_by_key(|f| f.1);
        let draws = 200_000;
        let mut by_valid = std::collections::BTreeMap::new();
        for _ in 0..draws {
            let picked = table.pick(plane).unwrap();
            *by_valid.entry(table.blocks(plane)[picked as usize].valid).or_insert(0u32) += 1;
        }
        let n = full.len() as f64;
        let mut seen = 0.0;
        for (rank, group) in full.chunk_by(|a, b| a.1 == b.1).enumerate() {
            // Blocks with equal numbers of valid pages form one rank.
            let below = n - seen;
            seen += group.len() as f64;
            let expected = ((below / n).powi(k) - ((n - seen) / n).powi(k)) * f64::from(draws);
            let got = f64::from(by_valid.get(&group[0].1).copied().unwrap_or(0));
            let sigma = expected.sqrt().max(1.0);
            assert!((got - expected).abs() < 5.0 * sigma, "k {k}, rank {rank}: {got} of {expected}");
        }
    }
}

/// Returns a table of one plane whose first blocks are full, with these numbers of valid pages of four.
fn full_blocks(victim: &str, valid: &[u32]) -> Table {
    let mut table = Table::new(1, victim, 1, 20, 4);
    for (block, &valid) in (0..).zip(valid) {
        for page in 0..4 {
            // An LPN that is written again in the block leaves an invalid page.
            let lpn = Lpn(4 * block + if page < valid { page } else { 0 });
            assert!(table.program(PlaneId(0), WriteStream::Host, lpn));
            table.end_program();
        }
    }
    table
}

/// Returns the victim when the first blocks have these numbers of linked pages.
fn pick_with(table: &mut Table, linked: &[u16]) -> Option<u32> {
    for (block, &linked) in linked.iter().enumerate() {
        table.array.blocks[block].linked = linked;
    }
    table.pick(PlaneId(0))
}

/// Full blocks with 3, 2, 2, 4 and 2 valid pages of four. At first 0, 2, 1, 0 and 1 of these pages are linked.
#[test]
fn partial_aware_picks_the_expected_blocks_of_a_table_made_by_hand() {
    let mut table = full_blocks("'partial-aware'", &[3, 2, 2, 4, 2]);
    let plane = PlaneId(0);
    assert_eq!(table.full(plane), [(0, 3), (1, 2), (2, 2), (3, 4), (4, 2)]);
    let mut pick = |linked: [u16; 5]| pick_with(&mut table, &linked);
    assert_eq!(
        pick([0, 2, 1, 0, 1]),
        Some(2),
        "not the fewest valid pages, then the fewest linked pages, then the lowest number"
    );
    assert_eq!(pick([0, 2, 1, 0, 0]), Some(4));
    assert_eq!(pick([0, 0, 1, 0, 1]), Some(1));
    // The number of valid pages is compared first, for any number of linked pages.
    assert_eq!(pick([0, 2, 2, 0, 2]), Some(1));
}

#[test]
fn partial_aware_with_a_cost_picks_the_smallest_sum_of_valid_and_linked_pages() {
    let pick = |cost: &str, linked: [u16; 3]| {
        let victim = format!("{{ partial-aware = {{ linked_cost = {cost} }} }}");
        pick_with(&mut full_blocks(&victim, &[3, 2, 4]), &linked)
    };
    // Costs 3 + 0, 2 + 2 and 4 + 0.
    assert_eq!(pick("1.0", [0, 2, 0]), Some(0));
    assert_eq!(pick("1.0", [2, 2, 0]), Some(1), "costs 5, 4 and 4: the lower number");
    assert_eq!(pick("1.0", [3, 2, 1]), Some(1), "costs 6, 4 and 5");
    // Costs 3, 2.5 and 4.
    assert_eq!(pick("0.25", [0, 2, 0]), Some(1));
    assert_eq!(pick("0.0", [0, 2, 0]), Some(1), "without a cost the fewest valid pages decide");
}

#[test]
fn partial_aware_picks_the_fewest_valid_then_the_fewest_partially_refreshed() {
    let (mut stream, mut by_links, mut compared) = (Stream::new(4, "links"), 0, 0);
    for_tables("'partial-aware'", |table, plane, picked| {
        // Without linked pages the policy is greedy.
        let full = table.full(plane);
        let greedy = full.iter().map(|&(block, valid)| (valid, block)).min();
        assert!(picked.is_none() || picked == greedy.map(|(_, block)| block));
        if picked.is_none() {
            return;
        }
        let first = table.geometry.first_block(plane).0;
        let linked: Vec<u16> =
            full.iter().map(|&(_, valid)| stream.below(u64::from(valid) + 1) as u16).collect();
        for (&(block, _), &linked) in full.iter().zip(&linked) {
            table.array.block_mut(BlockId(first + block)).linked = linked;
        }
        let best = full.iter().zip(&linked).map(|(&(block, valid), &linked)| (valid, linked, block)).min();
        let picked = table.pick(plane);
        assert_eq!(picked, best.map(|(_, _, block)| block));
        by_links += u32::from(picked != greedy.map(|(_, block)| block));
        compared += 1;
        for (block, _) in full {
            table.array.block_mut(BlockId(first + block)).linked = 0;
        }
    });
    assert!(
        compared > 50_000 && by_links > 5_000,
        "linked pages decided only {by_links} of {compared} picks"
    );
}

#[test]
fn every_twin_has_its_policy_in_the_table() {
    let names: Vec<&str> = nandlab::background::gc::POLICIES.iter().map(|(info, _)| info.name).collect();
    for twin in ["greedy", "cost-benefit", "fifo", "random", "partial-aware"] {
        assert!(names.contains(&twin), "{twin} has a twin, but is no policy of the table");
    }
}

/// Moving a block whose pages are all valid gains nothing. While the host is busy it lets `fifo` proceed to other
/// blocks; idle GC takes the block with the fewest valid pages instead.
#[test]
fn idle_gc_moves_no_block_whose_pages_are_all_valid() {
    let text = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 16\npages_per_block = 8\npage_size = '4KiB'\nop = 1.0\n\
                endurance = 1000000\n[gc]\nvictim = 'fifo'\nforeground_free = 0.0\nbackground_free = 0.9999\n\
                idle_valid_max = 1.0\n[ftl]\nwear_levelling = 'none'\n";
    let mut drive: Drive = Drive::new(&spec(text, &[]));
    // Four blocks in this order: LPNs 0 to 7 (all valid), 8 to 15 and 16 to 23 (one valid page each), and the fourteen
    // pages of the second and third block that are written again.
    let again = (9..16).chain(17..24);
    (0..24).chain(again).for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
    let first = drive.ftl().map.get(Lpn(0));
    // The end of a request begins the time after which the drive is idle.
    drive.submit(&Request { arrival: drive.now(), op: Op::Read, fua: false, offset: 0, len: 4096 }).unwrap();
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.advance(Time::START + nandlab::base::units::SECOND);
    let gc = &drive.stats().gc;
    assert!(gc.victims > 0 && gc.victims == gc.victims_forced, "{gc:?}");
    assert_eq!((gc.victim_valid_pages, drive.ftl().map.get(Lpn(0))), (gc.victims, first));
}
