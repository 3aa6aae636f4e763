//! `ftl.streams`: streams into which the drive itself divides what the host writes, without a placement handle of the
//! host.
//!
//! A policy tells each unit that the host writes with placement handle 0 to a *class*. Each class but class 0 fills an
//! open superblock of its own in every lane; class 0 is the stream that every drive has, to which preconditioning and the
//! emergency flush write too. A write that waits for room is asked about again when there may be room. Writes with
//! another handle are the host's own division, and no policy sees them.
//!
//! Time is counted in units that the host has written with handle 0 ([`Classes::written`]), as in the papers, and not in
//! seconds. Power loss destroys what a policy knows.
//!
//! Each policy is one file in this folder: its description, its parameters, its state and its choice.

mod multi_hash;
mod sepbit;

use crate::base::geometry::{Lpn, SuperblockId};
use crate::base::policy::{Choice, PolicyError, PolicyInfo};
use crate::base::state::{State, StateError, StateReader, StateWriter, state};
use crate::ftl::streams::CLASSES_MAX;
use multi_hash::MultiHash;
use sepbit::SepBit;

/// The policies: the first one, `none`, has one class.
pub const POLICIES: &[PolicyInfo] = &[
    PolicyInfo { name: "none", description: "all writes of a placement handle share a stream", params: &[] },
    sepbit::INFO,
    multi_hash::INFO,
];

/// The classes of a policy from outside that does not state their number.
const CLASSES_DEFAULT: u8 = 2;

/// The streams that a policy adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddedStreams {
    /// Classes of host writes beside class 0.
    pub classes: u8,
    /// Whether GC moves the data of class 1 to a stream of its own.
    pub has_gc: bool,
}

impl AddedStreams {
    /// The streams that the policy `name` adds. `classes`: the parameter `classes` of a policy from outside.
    pub fn of(name: &str, classes: Option<f64>) -> Self {
        match name {
            "none" => Self::default(),
            "sepbit" => Self { classes: 1, has_gc: true },
            "multi-hash" => Self { classes: 1, has_gc: false },
            _ => {
                let classes = classes.map_or(CLASSES_DEFAULT, |classes| classes as u8);
                Self { classes: classes.clamp(1, CLASSES_MAX + 1) - 1, has_gc: false }
            }
        }
    }

    /// The name of the parameter that has the number of classes of a policy from outside.
    pub const PARAM: &str = "classes";
}

/// A policy from outside that divides the writes of the host.
pub trait StreamPolicy: std::fmt::Debug + Send + Sync {
    /// The class of the unit `lpn` that the host is about to write; below the number of classes. `written`: the units
    /// written before.
    ///
    /// # Errors
    /// When the policy has failed. This ends the run, and so does a class that the drive does not have.
    fn class(&mut self, lpn: Lpn, written: u64) -> Result<u8, PolicyError>;

    /// A unit has been allocated to the write of `lpn` in `superblock`, in the stream of `class`. `opened`: it is the
    /// first unit of the superblock.
    fn on_written(&mut self, _lpn: Lpn, _class: u8, _superblock: SuperblockId, _opened: bool) {}

    /// A superblock has been erased. `written`: the units written before.
    fn on_erased(&mut self, _superblock: SuperblockId, _written: u64) {}
}

#[derive(Debug)]
enum Policy {
    SepBit(Box<SepBit>),
    MultiHash(Box<MultiHash>),
    Outside(Box<dyn StreamPolicy>),
}

/// The policy of a drive with what it has counted.
#[derive(Debug)]
pub(crate) struct Classes {
    policy: Policy,
    /// Units that the host has written with placement handle 0.
    written: u64,
    /// Number of classes, class 0 included.
    count: u8,
}

impl Classes {
    /// The built-in policy of a choice; `None` for `none`. `logical`: logical units of the drive, `superblocks`: its
    /// superblocks.
    pub(crate) fn new(choice: &Choice, seed: u64, logical: u32, superblocks: u32) -> Option<Self> {
        let policy = match choice.name {
            "sepbit" => Policy::SepBit(Box::new(SepBit::new(logical, superblocks))),
            "multi-hash" => Policy::MultiHash(Box::new(MultiHash::new(choice, seed))),
            _ => return None,
        };
        let count = AddedStreams::of(choice.name, None).classes + 1;
        Some(Self { policy, written: 0, count })
    }

    /// A policy from outside with so many classes.
    pub(crate) fn outside(policy: Box<dyn StreamPolicy>, count: u8) -> Self {
        Self { policy: Policy::Outside(policy), written: 0, count }
    }

    /// The bytes of the state of a built-in policy.
    pub(crate) fn bytes(choice: &Choice, logical: u64, superblocks: u64) -> u64 {
        match choice.name {
            "sepbit" => 8 * (logical + superblocks),
            "multi-hash" => MultiHash::bytes(choice),
            _ => 0,
        }
    }

    /// The class of a unit that the host is about to write.
    #[inline]
    pub(crate) fn class(&mut self, lpn: Lpn) -> Result<u8, PolicyError> {
        match &mut self.policy {
            Policy::SepBit(policy) => Ok(policy.class(lpn, self.written)),
            Policy::MultiHash(policy) => Ok(policy.class(lpn)),
            Policy::Outside(policy) => {
                let class = policy.class(lpn, self.written)?;
                if class < self.count {
                    return Ok(class);
                }
                let text =
                    format!("it told a write to class {class}, and the drive has {} classes", self.count);
                Err(PolicyError::new(text))
            }
        }
    }

    /// A unit in `superblock` has been allocated to a write.
    #[inline]
    pub(crate) fn on_written(&mut self, lpn: Lpn, class: u8, superblock: SuperblockId, opened: bool) {
        match &mut self.policy {
            Policy::SepBit(policy) => policy.on_written(lpn, class, superblock, opened, self.written),
            Policy::MultiHash(policy) => policy.on_written(lpn),
            Policy::Outside(policy) => policy.on_written(lpn, class, superblock, opened),
        }
        self.written += 1;
    }

    /// A superblock has been erased.
    pub(crate) fn on_erased(&mut self, superblock: SuperblockId) {
        match &mut self.policy {
            Policy::SepBit(policy) => policy.on_erased(superblock, self.written),
            Policy::MultiHash(_) => {}
            Policy::Outside(policy) => policy.on_erased(superblock, self.written),
        }
    }
}

/// A drive with a policy from outside has no checkpoints.
impl State for Policy {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        match self {
            Self::SepBit(policy) => policy.save_state(out),
            Self::MultiHash(policy) => policy.save_state(out),
            Self::Outside(_) => {}
        }
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        match self {
            Self::SepBit(policy) => policy.load_state(from),
            Self::MultiHash(policy) => policy.load_state(from),
            Self::Outside(_) => Ok(()),
        }
    }
}

state! { Classes { policy, written } fixed { count } }
