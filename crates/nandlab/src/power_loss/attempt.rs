//! A recovery, step by step, and the cut that may end it before its last step.
//!
//! Each erase of a superblock on one of its dies, the reading of the OOBs, each read of a page and each program is a
//! step. The steps are counted in the order in which the firmware begins them. Power that fails again leaves the steps
//! before the cut done, tears the step under way, and drops everything in RAM; the next recovery begins anew. A torn
//! read leaves nothing, a torn erase a block that has to be erased again, and a torn program units that cannot be read
//! (`tear_program`).
//!
//! A step ends when its die has done it after its earlier steps, and when the OOBs have been read, if it follows their
//! reading. The cut at a time meets the first step in this order that ends later; of the steps after it none has begun,
//! although another die might have been free for them (assumption: the firmware begins one after the other).

use super::Recovery;
use crate::base::geometry::{DieId, Lpn, SuperblockId};
use crate::base::units::Span;

/// When power fails during a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryCut {
    /// During this step, counted from 1.
    Step(u64),
    /// This time after power has returned.
    After(Span),
}

/// Power fails before the step that is about to begin has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PowerFails;

/// A recovery from the return of power until the drive is ready, or until power fails again.
#[derive(Debug)]
pub(crate) struct Attempt {
    cut: Option<RecoveryCut>,
    /// Number of steps that have begun.
    steps: u64,
    /// Time from the return of power until all steps so far have ended; at the cut, until the cut.
    pub(crate) elapsed_ns: Span,
    /// By die: duration of the erases, reads and programs, without reading the OOBs.
    busy_ns: Vec<Span>,
    /// Duration of reading the OOBs.
    scan_ns: Span,
    pub(crate) recovery: Recovery,
    /// The superblocks whose erase has been torn and not yet been repeated.
    pub(crate) torn_erases: Vec<SuperblockId>,
    /// LPN and sequence number of the writes that a torn program has destroyed in flash.
    pub(crate) destroyed: Vec<(Lpn, u64)>,
}

impl Attempt {
    /// `recovery`: the record of the attempts before. `torn_erases`: the superblocks to be erased first.
    pub(crate) fn new(
        dies: u32,
        cut: Option<RecoveryCut>,
        recovery: Recovery,
        torn_erases: Vec<SuperblockId>,
    ) -> Self {
        Self {
            cut,
            steps: 0,
            elapsed_ns: Span::ZERO,
            busy_ns: vec![Span::ZERO; dies as usize],
            scan_ns: Span::ZERO,
            recovery,
            torn_erases,
            destroyed: Vec::new(),
        }
    }

    /// Whether power may fail before recovery has ended.
    pub(crate) fn may_fail(&self) -> bool {
        self.cut.is_some()
    }

    /// The next step, on a die.
    ///
    /// # Errors
    /// If power fails before the step has ended.
    pub(super) fn begin(&mut self, die: DieId, ns: Span) -> Result<(), PowerFails> {
        let busy_ns = self.busy_ns[die.index()] + ns;
        self.step(self.scan_ns + busy_ns)?;
        self.busy_ns[die.index()] = busy_ns;
        Ok(())
    }

    /// The next step: the OOBs are read.
    ///
    /// # Errors
    /// If power fails before the step has ended.
    pub(super) fn begin_scan(&mut self, ns: Span) -> Result<(), PowerFails> {
        self.step(self.elapsed_ns + ns)?;
        self.scan_ns = ns;
        Ok(())
    }

    /// A step that ends at the time `end_ns` after the return of power.
    fn step(&mut self, end_ns: Span) -> Result<(), PowerFails> {
        self.steps += 1;
        let fails = match self.cut {
            None => false,
            Some(RecoveryCut::Step(step)) => step == self.steps,
            Some(RecoveryCut::After(ns)) => ns < end_ns,
        };
        if fails {
            if let Some(RecoveryCut::After(ns)) = self.cut {
                self.elapsed_ns = ns;
            }
            return Err(PowerFails);
        }
        self.elapsed_ns = self.elapsed_ns.max(end_ns);
        Ok(())
    }

    /// The cut has torn an erase of a superblock.
    pub(super) fn tear_erase(&mut self, superblock: SuperblockId) {
        self.recovery.torn_erases += 1;
        if !self.torn_erases.contains(&superblock) {
            self.torn_erases.push(superblock);
        }
    }
}
