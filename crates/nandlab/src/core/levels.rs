//! The read levels that the controller remembers outside the mapping cache.

use crate::base::geometry::{BlockId, Geometry, Lpn};
use crate::base::huge::Huge;
use crate::flash::Ecc;

/// Read levels by page, by block and of the whole drive; 0: not known. The table by page is empty if the cached map
/// entries carry the levels, and each table is empty if the start policy does not use it.
#[derive(Debug)]
pub struct ReadLevels {
    pages: Huge<u8>,
    blocks: Huge<u8>,
    drive: u8,
    /// Whether no level is kept for translation pages.
    pub forgets_translation_pages: bool,
}

impl ReadLevels {
    /// Tables without a known level. With `in_entries` the entries of the mapping cache carry the levels of pages, and
    /// the table by page is empty.
    pub fn new(ecc: &Ecc, geometry: &Geometry, in_entries: bool, forgets_translation_pages: bool) -> Self {
        let of_pages = ecc.keeps_page_levels() && !in_entries;
        let of_blocks = ecc.keeps_block_levels();
        Self {
            pages: Huge::zeroed(if of_pages { geometry.logical_pages as usize } else { 0 }),
            blocks: Huge::zeroed(if of_blocks { geometry.blocks as usize } else { 0 }),
            drive: 0,
            forgets_translation_pages,
        }
    }

    /// Forgets all levels, at power loss.
    pub fn forget(&mut self) {
        self.pages = Huge::zeroed(self.pages.len());
        self.blocks = Huge::zeroed(self.blocks.len());
        self.drive = 0;
    }

    /// The level of the last read of `lpn`; 0: not known.
    #[inline(always)]
    pub fn page(&self, lpn: Lpn) -> u8 {
        self.pages.get(lpn.index()).copied().unwrap_or(0)
    }

    /// The level that last decoded a page of `block`; 0: not known.
    #[inline(always)]
    pub fn block(&self, block: BlockId) -> u8 {
        self.blocks.get(block.index()).copied().unwrap_or(0)
    }

    /// The level that last decoded a page of the drive; 0: not known.
    #[inline(always)]
    pub fn drive(&self) -> u8 {
        self.drive
    }

    /// Sets the level of the drive.
    #[inline(always)]
    pub fn set_drive(&mut self, level: u8) {
        self.drive = level;
    }

    /// Sets the level of a page.
    #[inline(always)]
    pub fn set_page(&mut self, lpn: Lpn, level: u8) {
        if let Some(known) = self.pages.get_mut(lpn.index()) {
            *known = level;
        }
    }

    /// Sets the level of a block.
    #[inline(always)]
    pub fn set_block(&mut self, block: BlockId, level: u8) {
        if let Some(known) = self.blocks.get_mut(block.index()) {
            *known = level;
        }
    }

    /// Bytes of RAM that the table by block takes.
    pub fn block_bytes(&self) -> u64 {
        self.blocks.len() as u64
    }
}
