//! The scheduler: transactions and their queues, the dies and channels with the times of each operation on them, the
//! agenda of pending events, and the trait by which a watcher observes the dies. A transaction carries an LPN, which
//! the scheduler does not use.

mod agenda;
mod channel;
mod device;
mod partners;
mod pick;
mod stats;
mod timing;
mod transaction;
mod watcher;

pub use agenda::{Agenda, NEVER};
pub use device::{CopybackGap, Device, Ended, Phase, PlaneReads};
pub use pick::{SHARES, Scheduler, Waiting, pick};
pub use stats::SuspendStats;
pub use timing::{CommandTimes, OffChipRate, SuspendSpec, SuspendTimes, Timing, TimingSpec, Way};
pub use transaction::{Cause, Class, FlashOp, Owner, Slot, Start, Transaction, Transactions};
pub use watcher::Watcher;
