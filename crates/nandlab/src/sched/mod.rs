//! The scheduler: transactions, the queues they wait in, and the resources they contend for.

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
pub use transaction::{Cause, Class, Kind, Owner, Slot, Start, Transaction, Transactions};
pub use watcher::Watcher;
