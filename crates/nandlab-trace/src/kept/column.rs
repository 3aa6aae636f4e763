//! The columns of a block of a kept trace. A column is stored in as few bytes as the range of its numbers needs:
//!
//! | bytes | content |
//! |---|---|
//! | 8 | the least number |
//! | 1 | shift: the low bits that the differences from the least number do not use |
//! | 1 | width w: 0, 1, 2, 4 or 8 |
//! | n · w | of each number, the difference from the least one, shifted right; nothing if all numbers are equal |

const HEAD: usize = 8 + 1 + 1;
/// Bytes of a column of `n` numbers, at most.
pub(super) const fn bytes_max(n: usize) -> usize {
    HEAD + n * 8
}

/// Appends a column to a block.
pub(super) fn write(block: &mut Vec<u8>, numbers: impl Iterator<Item = u64> + Clone) {
    let least = numbers.clone().min().unwrap_or(0);
    let used = numbers.clone().fold(0, |used, number| used | (number - least));
    let shift = if used == 0 { 0 } else { used.trailing_zeros() as u8 };
    let width: u8 = match used >> shift {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    block.extend_from_slice(&least.to_le_bytes());
    block.extend_from_slice(&[shift, width]);
    for number in numbers {
        block.extend_from_slice(&((number - least) >> shift).to_le_bytes()[..usize::from(width)]);
    }
}

/// A column of a block.
pub(super) struct Column<'a> {
    least: u64,
    shift: u32,
    width: usize,
    differences: &'a [u8],
}

impl<'a> Column<'a> {
    /// Splits a column of `n` numbers off the front of `bytes`; `None` if there is no such column.
    pub(super) fn split(bytes: &'a [u8], n: usize) -> Option<(Self, &'a [u8])> {
        let (least, bytes) = bytes.split_first_chunk::<8>()?;
        let (&[shift, width], bytes) = bytes.split_first_chunk()?;
        if shift >= 64 || !matches!(width, 0 | 1 | 2 | 4 | 8) {
            return None;
        }
        let (differences, rest) = bytes.split_at_checked(n * usize::from(width))?;
        let (least, shift, width) = (u64::from_le_bytes(*least), shift.into(), width.into());
        Some((Self { least, shift, width, differences }, rest))
    }

    /// The numbers from number `from` on.
    pub(super) fn read(&self, from: usize, numbers: &mut [u64]) {
        match self.width {
            0 => numbers.fill(self.least),
            1 => self.read_wide::<1>(from, numbers),
            2 => self.read_wide::<2>(from, numbers),
            4 => self.read_wide::<4>(from, numbers),
            _ => self.read_wide::<8>(from, numbers),
        }
    }

    fn read_wide<const WIDTH: usize>(&self, from: usize, numbers: &mut [u64]) {
        let differences = &self.differences.as_chunks::<WIDTH>().0[from..];
        for (number, difference) in numbers.iter_mut().zip(differences) {
            let mut bytes = [0; 8];
            bytes[..WIDTH].copy_from_slice(difference);
            *number = self.least.wrapping_add(u64::from_le_bytes(bytes) << self.shift);
        }
    }
}
