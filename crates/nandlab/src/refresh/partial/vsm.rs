//! The virtual shadow memory (VSM): RAM in which susceptible data waits until it fills a page, and until that is programmed.

use super::SusceptibleBits;
use crate::base::geometry::Ppn;

/// See the module.
#[derive(Debug)]
pub struct Vsm {
    capacity: u32,
    line_bytes: u32,
    /// What belongs to no line yet, oldest first, and its size.
    waiting: Vec<SusceptibleBits>,
    waiting_bytes: u32,
    /// Lines that are being programmed take a whole page each.
    lines: u32,
    /// The most bytes that it has held.
    pub peak_bytes: u32,
}

impl Vsm {
    /// An empty one of so many pages.
    pub fn new(pages: u32, page_bytes: u32) -> Self {
        Self {
            capacity: pages * page_bytes,
            line_bytes: page_bytes,
            waiting: Vec::new(),
            waiting_bytes: 0,
            lines: 0,
            peak_bytes: 0,
        }
    }

    fn used(&self) -> u32 {
        self.lines * self.line_bytes + self.waiting_bytes
    }

    /// Whether so many bytes more fit.
    pub fn has_room(&self, bytes: u32) -> bool {
        self.used() + bytes <= self.capacity
    }

    /// Takes up what there is room for.
    pub fn push(&mut self, entry: SusceptibleBits) {
        debug_assert!(self.has_room(entry.bytes));
        self.waiting_bytes += entry.bytes;
        self.waiting.push(entry);
        self.peak_bytes = self.peak_bytes.max(self.used());
    }

    /// What waits for a line.
    pub fn waiting(&self) -> &[SusceptibleBits] {
        &self.waiting
    }

    /// What waits for a line, to change.
    pub fn waiting_mut(&mut self) -> &mut [SusceptibleBits] {
        &mut self.waiting
    }

    /// Lines that are being programmed.
    pub fn lines(&self) -> u32 {
        self.lines
    }

    /// Whether what waits fills a page.
    pub fn has_line(&self) -> bool {
        self.waiting_bytes >= self.line_bytes
    }

    /// Makes a line of what waits, oldest first: what does not fit into the rest of it is left for the next one, and the
    /// first that fits taken instead (Section 3.3). No page's data is in two lines.
    pub fn take_line(&mut self) -> Box<[SusceptibleBits]> {
        let mut line = Vec::new();
        let mut offset = 0;
        let line_bytes = self.line_bytes;
        self.waiting.retain(|entry| {
            let fits = offset + entry.bytes <= line_bytes;
            if fits {
                line.push(SusceptibleBits { offset, ..*entry });
                offset += entry.bytes;
            }
            !fits
        });
        self.waiting_bytes -= offset;
        self.lines += 1;
        line.into()
    }

    /// A line has been programmed.
    pub fn release_line(&mut self) {
        self.lines -= 1;
    }

    /// Forgets what waits of a page; whether there was any.
    pub fn forget(&mut self, base: Ppn) -> bool {
        let Some(at) = self.waiting.iter().position(|entry| entry.base == base) else { return false };
        self.waiting_bytes -= self.waiting.remove(at).bytes;
        true
    }

    /// Empties it: power is gone.
    pub fn clear(&mut self) {
        self.waiting.clear();
        (self.waiting_bytes, self.lines) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::geometry::Lpn;

    fn entry(base: u32, bytes: u32) -> SusceptibleBits {
        SusceptibleBits {
            base: Ppn(base),
            lpn: Lpn(base),
            sequence: 1,
            pe_cycles: 0,
            offset: 0,
            bytes,
            rber: 0.0,
        }
    }

    #[test]
    fn a_line_leaves_what_does_not_fit_and_takes_the_next_that_does() {
        let mut vsm = Vsm::new(2, 100);
        for (base, bytes) in [(1, 60), (2, 50), (3, 30), (4, 20), (5, 10)] {
            assert!(vsm.has_room(bytes));
            vsm.push(entry(base, bytes));
        }
        assert!(vsm.has_line() && !vsm.has_room(31) && vsm.has_room(30));
        let line = vsm.take_line();
        let places: Vec<_> = line.iter().map(|e| (e.base.0, e.offset, e.bytes)).collect();
        assert_eq!(places, [(1, 0, 60), (3, 60, 30), (5, 90, 10)]);
        // The line takes its page until it is programmed.
        assert!(!vsm.has_line() && vsm.has_room(30) && !vsm.has_room(31));
        vsm.release_line();
        assert!(vsm.forget(Ppn(2)) && !vsm.forget(Ppn(3)));
        assert_eq!(vsm.take_line().iter().map(|e| e.base.0).collect::<Vec<_>>(), [4]);
        assert_eq!(vsm.peak_bytes, 170);
    }
}
