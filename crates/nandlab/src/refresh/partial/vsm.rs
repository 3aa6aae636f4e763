//! The virtual shadow memory (VSM): RAM in which susceptible bits wait until they fill what one program writes, and until
//! this program has ended. A line is the size of a unit; a program writes one line, or several if a programming unit
//! has several units.

use super::SusceptibleBits;
use crate::base::geometry::UnitId;
use crate::base::state::state;
use crate::base::steps::step;
use std::sync::Arc;

/// The entries and lines in the VSM.
#[derive(Debug)]
pub struct Vsm {
    /// Size in bytes.
    capacity: u64,
    line_bytes: u32,
    /// Lines of what one program writes.
    lines_per_program: u32,
    /// Entries that belong to no line yet, oldest first.
    waiting: Vec<SusceptibleBits>,
    /// Size of the waiting entries in bytes.
    waiting_bytes: u32,
    /// The entries of the line that [`Vsm::take_line`] makes.
    line: Vec<SusceptibleBits>,
    /// Number of lines being programmed; each takes the bytes of a whole line.
    lines: u32,
    /// Highest fill level so far, in bytes.
    pub peak_bytes: u64,
}

impl Vsm {
    /// An empty VSM of `lines` lines of `line_bytes` bytes each, of which a program writes `lines_per_program`.
    pub fn new(lines: u32, line_bytes: u32, lines_per_program: u32) -> Self {
        Self {
            capacity: u64::from(lines) * u64::from(line_bytes),
            line_bytes,
            lines_per_program,
            waiting: Vec::new(),
            waiting_bytes: 0,
            line: Vec::new(),
            lines: 0,
            peak_bytes: 0,
        }
    }

    fn used(&self) -> u64 {
        u64::from(self.lines) * u64::from(self.line_bytes) + u64::from(self.waiting_bytes)
    }

    /// Whether `bytes` more bytes fit.
    pub fn has_room(&self, bytes: u32) -> bool {
        self.used() + u64::from(bytes) <= self.capacity
    }

    /// Adds an entry, for which there must be room.
    pub fn push(&mut self, entry: SusceptibleBits) {
        debug_assert!(self.has_room(entry.bytes));
        self.waiting_bytes += entry.bytes;
        self.waiting.push(entry);
        self.peak_bytes = self.peak_bytes.max(self.used());
    }

    /// The entries that belong to no line yet, oldest first.
    pub fn waiting(&self) -> &[SusceptibleBits] {
        &self.waiting
    }

    /// The entries that belong to no line yet, as a mutable slice.
    pub fn waiting_mut(&mut self) -> &mut [SusceptibleBits] {
        &mut self.waiting
    }

    /// Number of lines being programmed.
    pub fn lines(&self) -> u32 {
        self.lines
    }

    /// Whether the waiting entries have at least the size of what one program writes.
    pub fn fills_program(&self) -> bool {
        u64::from(self.waiting_bytes) >= u64::from(self.line_bytes) * u64::from(self.lines_per_program)
    }

    /// Makes a line of waiting entries, oldest first. An entry that does not fit into the rest of the line is left for
    /// a later line, and the next entry that fits is taken (Section 3.3 of the partial refresh paper). No entry is
    /// split between lines.
    pub fn take_line(&mut self) -> Arc<[SusceptibleBits]> {
        let mut offset = 0;
        let Self { waiting, line, line_bytes, .. } = self;
        line.clear();
        waiting.retain(|entry| {
            step();
            let fits = offset + entry.bytes <= *line_bytes;
            if fits {
                line.push(SusceptibleBits { offset, ..*entry });
                offset += entry.bytes;
            }
            !fits
        });
        self.waiting_bytes -= offset;
        self.lines += 1;
        line.as_slice().into()
    }

    /// A line has been programmed.
    pub fn release_line(&mut self) {
        self.lines -= 1;
    }

    /// Drops the waiting entry of a base unit; returns whether there was one.
    pub fn forget(&mut self, base: UnitId) -> bool {
        let is_of_unit = |entry: &SusceptibleBits| {
            step();
            entry.base == base
        };
        let Some(at) = self.waiting.iter().position(is_of_unit) else { return false };
        self.waiting_bytes -= self.waiting.remove(at).bytes;
        true
    }

    /// Power is lost: drops all entries and lines.
    pub fn clear(&mut self) {
        self.waiting.clear();
        (self.waiting_bytes, self.lines) = (0, 0);
    }
}

state! {
    Vsm { waiting, waiting_bytes, line, lines, peak_bytes }
    fixed { capacity, line_bytes, lines_per_program }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::geometry::Lpn;

    fn entry(base: u32, bytes: u32) -> SusceptibleBits {
        SusceptibleBits {
            base: UnitId(base),
            lpn: Lpn(base),
            sequence: 1,
            pe_cycles: 0,
            offset: 0,
            bytes,
            rber: 0.0,
        }
    }

    #[test]
    fn a_line_skips_an_entry_that_does_not_fit_and_takes_the_next_entry_that_fits() {
        let mut vsm = Vsm::new(2, 100, 1);
        for (base, bytes) in [(1, 60), (2, 50), (3, 30), (4, 20), (5, 10)] {
            assert!(vsm.has_room(bytes));
            vsm.push(entry(base, bytes));
        }
        assert!(vsm.fills_program() && !vsm.has_room(31) && vsm.has_room(30));
        let line = vsm.take_line();
        let places: Vec<_> = line.iter().map(|e| (e.base.0, e.offset, e.bytes)).collect();
        assert_eq!(places, [(1, 0, 60), (3, 60, 30), (5, 90, 10)]);
        // A line takes all its bytes until its program has ended.
        assert!(!vsm.fills_program() && vsm.has_room(30) && !vsm.has_room(31));
        vsm.release_line();
        assert!(vsm.forget(UnitId(2)) && !vsm.forget(UnitId(3)));
        assert_eq!(vsm.take_line().iter().map(|e| e.base.0).collect::<Vec<_>>(), [4]);
        assert_eq!(vsm.peak_bytes, 170, "all five entries together have 170 bytes");
    }
}
