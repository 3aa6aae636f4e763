//! Allocation: the choice of the lane for a host write.

use crate::base::geometry::{DieId, Divisor, Geometry, LaneId, Lpn};
use crate::base::state::{State, StateError, StateReader, StateWriter};
use crate::sched::Device;

/// `ftl.allocation`: the choice of the lane for a host write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// A static order: the letters C, W, D and P, fastest-varying first.
    Static([u8; 4]),
    /// The least-loaded die.
    Dynamic,
}

/// The allocator of a drive, with its state.
#[derive(Clone, Debug)]
pub enum Allocator {
    /// The lane follows from the LPN: `lanes[lpn / units % lanes.len()]`, with `units` units in a page.
    Static {
        /// The lanes in the order in which consecutive LPNs visit them, as many LPNs as a page has units at a time.
        lanes: Box<[LaneId]>,
        /// Binary logarithm of the units of a page.
        unit_bits: u32,
        /// The number of lanes, as a fast divisor.
        count: Divisor,
    },
    /// The die with the fewest transactions queued or under way. Of several such dies, the first one after the die that
    /// was chosen last.
    Dynamic {
        /// The die chosen last.
        last: u32,
        /// By placement, the lane chosen last.
        lanes: Box<[Option<LaneId>]>,
        /// As in a static allocation.
        unit_bits: u32,
        /// As in a static allocation.
        count: Divisor,
    },
}

impl Allocator {
    /// The allocator of `ftl.allocation`, for a number of placements.
    pub fn new(allocation: Allocation, geometry: &Geometry, placements: usize) -> Self {
        let (unit_bits, count) = (geometry.units_per_page.trailing_zeros(), Divisor::new(geometry.lanes));
        match allocation {
            Allocation::Static(order) => {
                Self::Static { lanes: static_order(order, geometry), unit_bits, count }
            }
            Allocation::Dynamic => {
                let lanes = vec![None; placements].into();
                Self::Dynamic { last: geometry.dies - 1, lanes, unit_bits, count }
            }
        }
    }

    /// Whether the lane of a unit follows from its LPN alone.
    pub fn is_static(&self) -> bool {
        matches!(self, Self::Static { .. })
    }

    /// A hash of the static order; 0 under dynamic allocation.
    pub fn order_hash(&self) -> u64 {
        match self {
            Self::Static { lanes, .. } => lanes
                .iter()
                .fold(0xcbf2_9ce4_8422_2325, |h, p| (h ^ u64::from(p.0)).wrapping_mul(0x0000_0100_0000_01b3)),
            Self::Dynamic { .. } => 0,
        }
    }

    /// The home lane of `lpn`. Under dynamic allocation this is the lane to which preconditioning writes `lpn`,
    /// round-robin over all lanes.
    #[inline(always)]
    pub fn home(&self, lpn: Lpn) -> LaneId {
        match self {
            Self::Static { lanes, unit_bits, count } => lanes[count.split(lpn.0 >> *unit_bits).1 as usize],
            Self::Dynamic { unit_bits, count, .. } => LaneId(count.split(lpn.0 >> *unit_bits).1),
        }
    }

    /// The lane for a write with the placement of this number under dynamic allocation, which considers only lanes for
    /// which `room` is not `None`: it chooses the least-loaded die with such a lane, and on this die the lane with the
    /// most room. It returns `None` if no lane has room.
    ///
    /// # Panics
    /// If the allocation is static.
    #[inline]
    pub fn choose(
        &mut self,
        geometry: &Geometry,
        device: &Device,
        placement: usize,
        mut room: impl FnMut(LaneId) -> Option<u32>,
    ) -> Option<LaneId> {
        let Self::Dynamic { last, .. } = self else { panic!("the home lane takes all writes") };
        let (mut least, mut best) = (u32::MAX, None);
        let mut die = DieId(*last);
        for _ in 0..geometry.dies {
            die = DieId(if die.0 + 1 == geometry.dies { 0 } else { die.0 + 1 });
            let load = device.load(die);
            if load >= least {
                continue;
            }
            let mut most = None;
            for lane in geometry.lanes_of(die) {
                let room = room(lane);
                // `None` is less than any room.
                if room > most {
                    (most, least, best) = (room, load, Some((die, lane)));
                }
            }
        }
        let (die, lane) = best?;
        Some(self.take(die, lane, placement))
    }

    /// Chooses a lane and its die under dynamic allocation.
    #[inline]
    pub fn take(&mut self, die: DieId, lane: LaneId, placement: usize) -> LaneId {
        if let Self::Dynamic { last, lanes, .. } = self {
            (*last, lanes[placement]) = (die.0, Some(lane));
        }
        lane
    }
}

/// The lanes in the order in which consecutive LPNs visit them under static allocation. The letters are channel, way
/// (chip), die and plane; a lane of several planes counts as one plane. The dimension of the first letter varies
/// fastest. Y. Hu et al., "Performance impact and interplay of SSD parallelism through advanced commands, allocation
/// strategy and data granularity", ICS 2011.
fn static_order(order: [u8; 4], geometry: &Geometry) -> Box<[LaneId]> {
    let size = |letter: u8| match letter {
        b'C' => geometry.channels,
        b'W' => geometry.chips_per_channel,
        b'D' => geometry.dies_per_chip,
        b'P' => geometry.lanes_per_die,
        other => panic!("{:?} is not one of C, W, D, P", other as char),
    };
    let lane = |mut index: u32| {
        let mut at = [0; 256];
        for letter in order {
            at[letter as usize] = index % size(letter);
            index /= size(letter);
        }
        let [c, w, d, p] = [b'C', b'W', b'D', b'P'].map(|letter| at[letter as usize]);
        let chip = c * geometry.chips_per_channel + w;
        LaneId((chip * geometry.dies_per_chip + d) * geometry.lanes_per_die + p)
    };
    (0..geometry.lanes).map(lane).collect()
}

/// A static allocator has no state.
impl State for Allocator {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        match self {
            Self::Static { lanes: _, unit_bits: _, count: _ } => {}
            Self::Dynamic { last, lanes, unit_bits: _, count: _ } => {
                last.save_state(out);
                lanes.save_state(out);
            }
        }
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        match self {
            Self::Static { .. } => Ok(()),
            Self::Dynamic { last, lanes, .. } => {
                last.load_state(from)?;
                lanes.load_state(from)
            }
        }
    }
}
