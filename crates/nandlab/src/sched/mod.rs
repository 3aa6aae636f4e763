//! The scheduler: transactions, the queues they wait in, and the resources they contend for.

mod agenda;
mod device;
mod partners;
mod pick;
mod transaction;

pub use agenda::{Agenda, NEVER};
pub use device::{Device, Ended, Phase};
pub use pick::{SHARES, Waiting, pick};
pub use transaction::{Cause, Class, Kind, Owner, Slot, Start, Transaction, Transactions};
