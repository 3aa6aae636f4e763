//! The scheduler: transactions, the queues they wait in, the dies and channels they contend for and for how long, the agenda of what
//! happens next, and what can be watched of it. It knows no LPNs but as what a transaction carries.

mod agenda;
mod device;
mod partners;
mod pick;
mod timing;
mod transaction;
mod watcher;

pub use agenda::{Agenda, NEVER};
pub use device::{Device, Ended, Phase};
pub use pick::{SHARES, Scheduler, Waiting, pick};
pub use timing::{CommandTimes, ProgramTime, ReadCost, Timing, TimingSpec};
pub use transaction::{Cause, Class, FlashOp, Owner, Slot, Start, Transaction, Transactions};
pub use watcher::Watcher;
