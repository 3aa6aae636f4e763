//! The trait of victim policies, the view that is a policy's input, and the index that finds the superblock with the
//! fewest valid units.

use crate::base::geometry::LaneId;
use crate::base::policy::PolicyError;
use crate::base::state::{State, StateError, StateReader, StateWriter, state};
use crate::base::units::Time;
use crate::flash::{Array, ShapesOf, Superblock, SuperblockState};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A policy that picks victims. One object serves all lanes of a drive.
pub trait VictimPolicy: Send {
    /// The superblock to empty next, counted within the lane; `None` if the policy picks none. The superblock must be
    /// in [`SuperblockState::Full`]. The drive may take another superblock, or none, so a policy must not assume that
    /// its pick is emptied.
    ///
    /// # Errors
    /// When the policy has failed. This ends the run, and so does the pick of a superblock that is not full.
    fn pick(&mut self, lane: &Candidates) -> Result<Option<u32>, PolicyError>;

    /// `superblock`, counted within `lane`, has become full.
    fn on_closed(&mut self, _lane: LaneId, _superblock: u32) {}

    /// Whether the policy remembers in which order the superblocks have become full. If not, the calls of
    /// [`VictimPolicy::on_closed`] after a recovery come in any order.
    fn remembers_order(&self) -> bool {
        true
    }

    /// A copy of the policy with its state, for another drive that goes on from the same state.
    fn fork(&self) -> Box<dyn VictimPolicy>;

    /// Writes what the policy remembers from one call to the next, its random stream included. A policy that remembers
    /// nothing has nothing to write. A drive with a policy from outside has no checkpoints.
    fn save(&self, _out: &mut StateWriter<'_>) {}

    /// Restores what [`VictimPolicy::save`] has written.
    ///
    /// # Errors
    /// When reading fails, or the bytes are not such a state.
    fn load(&mut self, _from: &mut StateReader<'_>) -> Result<(), StateError> {
        Ok(())
    }
}

impl std::fmt::Debug for dyn VictimPolicy + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VictimPolicy")
    }
}

/// The victim policy of a drive, compared with `greedy`.
#[derive(Debug)]
pub(crate) struct Picks {
    /// The lock is never waited for: only a fork locks it. It lets threads share a drive whose policy they may not
    /// share.
    policy: Mutex<Box<dyn VictimPolicy>>,
    /// Whether every superblock that the policy has picked so far, in preconditioning too, is the one that `greedy`
    /// would have picked.
    pub(crate) are_as_greedy: bool,
}

impl Clone for Picks {
    fn clone(&self) -> Self {
        let policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner).fork();
        Self { policy: Mutex::new(policy), are_as_greedy: self.are_as_greedy }
    }
}

impl Picks {
    pub(super) fn new(policy: Box<dyn VictimPolicy>) -> Self {
        Self { policy: Mutex::new(policy), are_as_greedy: true }
    }

    fn policy(&mut self) -> &mut dyn VictimPolicy {
        &mut **self.policy.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn pick(&mut self, lane: &Candidates) -> Result<Option<u32>, PolicyError> {
        let Some(within) = lane.picked_by(self.policy())? else { return Ok(None) };
        self.are_as_greedy = self.are_as_greedy && lane.least_valid() == Some(within);
        Ok(Some(within))
    }

    pub(super) fn remember_order(&mut self) -> bool {
        self.policy().remembers_order()
    }

    pub(super) fn on_closed(&mut self, lane: LaneId, superblock: u32) {
        self.policy().on_closed(lane, superblock);
    }
}

/// The number of superblocks in a group of [`LeastValid`], and of groups in a row.
const GROUP: usize = 64;

/// An index of full superblocks by valid units: for each group of 64 superblocks of a lane, and for each row of 64
/// groups, the fewest valid units of any full superblock.
///
/// The index is always exact. The number of valid units of a full superblock only decreases, so a change takes one
/// `min`, and another one if it is the lowest of its group. Only when a superblock ceases to be full are its group and
/// its row searched. To find the superblock with the fewest valid units among the n superblocks of a lane, n / 4096
/// rows, one row and one group are searched.
#[derive(Clone, Debug)]
pub struct LeastValid {
    groups: Box<[u32]>,
    groups_per_lane: usize,
    rows: Box<[u32]>,
    rows_per_lane: usize,
}

impl LeastValid {
    /// Bytes of the index.
    pub fn bytes(&self) -> u64 {
        (size_of_val(&*self.groups) + size_of_val(&*self.rows)) as u64
    }

    /// An index of `lanes` lanes without full superblocks.
    pub fn new(lanes: u32, superblocks_per_lane: u32) -> Self {
        let groups_per_lane = (superblocks_per_lane as usize).div_ceil(GROUP);
        let rows_per_lane = groups_per_lane.div_ceil(GROUP);
        let without = |count: usize| vec![u32::MAX; count * lanes as usize].into();
        Self {
            groups: without(groups_per_lane),
            groups_per_lane,
            rows: without(rows_per_lane),
            rows_per_lane,
        }
    }

    #[inline(always)]
    fn group(&self, lane: LaneId, superblock: u32) -> usize {
        lane.index() * self.groups_per_lane + superblock as usize / GROUP
    }

    #[inline(always)]
    fn row(&self, lane: LaneId, superblock: u32) -> usize {
        lane.index() * self.rows_per_lane + superblock as usize / (GROUP * GROUP)
    }

    /// Records that `superblock` of `lane` is full and has `valid` valid units, fewer than before if it was full
    /// already.
    #[inline(always)]
    pub fn lower(&mut self, lane: LaneId, superblock: u32, valid: u32) {
        let group = &mut self.groups[self.group(lane, superblock)];
        if valid < *group {
            *group = valid;
            let row = &mut self.rows[self.row(lane, superblock)];
            *row = (*row).min(valid);
        }
    }

    /// Removes `superblock` of `lane`, which is no longer full. `superblocks` are those of the lane.
    pub fn leave(&mut self, lane: LaneId, superblock: u32, superblocks: &[Superblock]) {
        let first = superblock as usize / GROUP * GROUP;
        let group = superblocks[first..].iter().take(GROUP);
        let group = group.filter(|b| b.state == SuperblockState::Full).map(|b| b.valid).min();
        self.groups[self.group(lane, superblock)] = group.unwrap_or(u32::MAX);
        let least = self.of_row(lane, superblock as usize / (GROUP * GROUP)).iter().copied().min();
        self.rows[self.row(lane, superblock)] = least.unwrap_or(u32::MAX);
    }

    /// Whether the index of `lane` equals `fewest`, which has the fewest valid units of each group.
    pub fn agrees(&self, lane: LaneId, fewest: &[u32]) -> bool {
        let rows = fewest.chunks(GROUP).map(|row| row.iter().copied().min().unwrap_or(u32::MAX));
        self.of(lane) == fewest && self.rows_of(lane).iter().copied().eq(rows)
    }

    /// The fewest valid units of any full superblock of `lane`; `u32::MAX` if no superblock is full.
    pub fn fewest(&self, lane: LaneId) -> u32 {
        self.rows_of(lane).iter().copied().min().unwrap_or(u32::MAX)
    }

    /// The first group of `lane` that has a superblock with `valid` valid units, the fewest of any full superblock.
    fn first_group(&self, lane: LaneId, valid: u32) -> Option<usize> {
        let row = self.rows_of(lane).iter().position(|&least| least == valid)?;
        let group = self.of_row(lane, row).iter().position(|&least| least == valid)?;
        Some(row * GROUP + group)
    }

    fn of(&self, lane: LaneId) -> &[u32] {
        &self.groups[lane.index() * self.groups_per_lane..][..self.groups_per_lane]
    }

    fn rows_of(&self, lane: LaneId) -> &[u32] {
        &self.rows[lane.index() * self.rows_per_lane..][..self.rows_per_lane]
    }

    /// The groups of a row of `lane`.
    fn of_row(&self, lane: LaneId, row: usize) -> &[u32] {
        let groups = &self.of(lane)[row * GROUP..];
        &groups[..groups.len().min(GROUP)]
    }
}

/// The superblocks of a lane: the input of a victim policy.
#[derive(Debug)]
pub struct Candidates<'a> {
    /// The lane.
    pub lane: LaneId,
    /// The lane's superblocks; a superblock in [`SuperblockState::Full`] may be picked.
    pub superblocks: &'a [Superblock],
    /// The shapes of the superblocks.
    pub shapes: ShapesOf<'a>,
    /// The current simulated time.
    pub now: Time,
    pub(crate) index: &'a LeastValid,
}

impl<'a> Candidates<'a> {
    /// The superblocks of `lane`, whose ids as array indices are `of_lane`.
    pub(super) fn new(
        array: &'a Array,
        lane: LaneId,
        of_lane: Range<usize>,
        now: Time,
        index: &'a LeastValid,
    ) -> Self {
        let shapes = array.shapes_of(of_lane.clone());
        Self { lane, superblocks: &array.superblocks[of_lane], shapes, now, index }
    }

    /// Whether `superblock` exists and may be picked.
    #[inline(always)]
    pub fn is_full(&self, superblock: u32) -> bool {
        self.superblocks.get(superblock as usize).is_some_and(|b| b.state == SuperblockState::Full)
    }

    /// The superblock that a policy picks.
    ///
    /// # Errors
    /// When the policy fails or picks a superblock that is not full.
    pub(crate) fn picked_by(&self, policy: &mut dyn VictimPolicy) -> Result<Option<u32>, PolicyError> {
        let Some(superblock) = policy.pick(self)? else { return Ok(None) };
        if self.is_full(superblock) {
            return Ok(Some(superblock));
        }
        Err(PolicyError::new(match self.superblocks.get(superblock as usize).map(|b| b.state) {
            None => format!(
                "it picked block {superblock}, which does not exist: the blocks are 0 to {}",
                self.superblocks.len() - 1
            ),
            Some(SuperblockState::Victim) => {
                format!("it picked block {superblock}, which is the victim of a job already")
            }
            Some(state) => format!("it picked block {superblock}, which is {}, not full", state.name()),
        }))
    }

    /// The full superblock with the fewest valid units; if there are several, the one with the lowest number.
    pub fn least_valid(&self) -> Option<u32> {
        let fewest = self.index.fewest(self.lane);
        if fewest == u32::MAX {
            return None;
        }
        let first = self.index.first_group(self.lane, fewest)? * GROUP;
        let is_least = |b: &Superblock| b.state == SuperblockState::Full && b.valid == fewest;
        let within = self.superblocks[first..].iter().take(GROUP).position(is_least);
        Some((first + within.expect("the index agrees with the superblocks")) as u32)
    }
}

impl State for dyn VictimPolicy {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        self.save(out);
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        self.load(from)
    }
}

state! { Picks { policy, are_as_greedy } }
state! { LeastValid { groups, rows } fixed { groups_per_lane, rows_per_lane } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Stream;

    /// The naive twin of the index looks at every superblock.
    #[test]
    fn the_index_finds_the_first_superblock_with_the_fewest_valid_units() {
        let array = crate::core::testing::Setup::default().core().flash().clone();
        for superblocks_per_lane in [1, 63, 64, 65, 4096, 4097, 9000] {
            let mut stream = Stream::new(u64::from(superblocks_per_lane), "least valid");
            let mut superblocks = vec![Superblock::default(); 2 * superblocks_per_lane as usize];
            let mut index = LeastValid::new(2, superblocks_per_lane);
            for _ in 0..6000 {
                let lane = stream.below(2) as usize;
                let within = stream.below(superblocks_per_lane.into()) as u32;
                let of_lane =
                    &mut superblocks[lane * superblocks_per_lane as usize..][..superblocks_per_lane as usize];
                let superblock = &mut of_lane[within as usize];
                let lane = LaneId(lane as u32);
                if superblock.state != SuperblockState::Full {
                    (superblock.state, superblock.valid) =
                        (SuperblockState::Full, 100 + stream.below(400) as u32);
                    index.lower(lane, within, superblock.valid);
                } else if stream.below(3) > 0 && superblock.valid > 0 {
                    superblock.valid -= 1 + stream.below(superblock.valid.min(50).into()) as u32;
                    index.lower(lane, within, superblock.valid);
                } else {
                    superblock.state = SuperblockState::Open;
                    index.leave(lane, within, of_lane);
                }
                let full = of_lane
                    .iter()
                    .enumerate()
                    .filter(|(_, superblock)| superblock.state == SuperblockState::Full);
                let least =
                    full.min_by_key(|(_, superblock)| superblock.valid).map(|(within, _)| within as u32);
                let candidates = Candidates {
                    lane,
                    superblocks: of_lane,
                    shapes: array.shapes_of(0..1),
                    now: Time::START,
                    index: &index,
                };
                assert_eq!(candidates.least_valid(), least, "{superblocks_per_lane} superblocks");
            }
        }
    }
}
