//! `.qc`: a base matrix of shifts, as AFF3CT reads it (<https://aff3ct.readthedocs.io>, parameters of the LDPC
//! decoder).
//!
//! The first line has the number of block columns, the number of block rows and the lifting size. A line follows for
//! each block row, with a number for each block: -1 for a block of zeros, otherwise the shift. Check i of a block row
//! involves bit (i + shift) mod lifting of the block column. A puncturing pattern, which AFF3CT allows in a further
//! line, is refused: every bit of a codeword is in flash.

use super::Lines;
use crate::code::{BITS_MAX, Circulant, Code};
use crate::error::LdpcError;
use std::fmt::Write;

/// The code of a base matrix of shifts: block columns, block rows and lifting size, then a line for each block row with
/// a shift for each block, -1 for zeros.
///
/// # Errors
///
/// If the text is no base matrix, or if the matrix is no code ([`Code::new`]). The error names the line.
pub fn parse_qc(text: &str) -> Result<Code, LdpcError> {
    let mut lines = Lines::new(text);
    let what = "the line of block columns, block rows and lifting size";
    let sizes = lines.numbers(what, false)?;
    let line = lines.number;
    let range = 1..=BITS_MAX as i64;
    let (&[columns, rows, lifting], true) = (sizes.as_slice(), sizes.iter().all(|size| range.contains(size)))
    else {
        return Err(LdpcError::new(
            format!("expected {what}, found {sizes:?}"),
            format!("give three numbers in 1..={BITS_MAX}"),
        )
        .at(line));
    };
    let mut circulants = Vec::new();
    for row in 1..=rows {
        let shifts = lines.numbers(&format!("block row {row} of {rows}"), false)?;
        let line = lines.number;
        if shifts.len() != columns as usize {
            return Err(LdpcError::new(
                format!("block row {row} has {} blocks instead of {columns}", shifts.len()),
                "give a shift for each block column, -1 for a block of zeros",
            )
            .at(line));
        }
        if let Some(shift) = shifts.iter().find(|shift| !(-1..lifting).contains(*shift)) {
            return Err(LdpcError::new(
                format!("block row {row} has the shift {shift}, which is not in -1..={}", lifting - 1),
                "take shifts modulo the lifting size, and -1 for a block of zeros",
            )
            .at(line));
        }
        let cells = (0u32..).zip(&shifts).filter(|&(_, &shift)| shift >= 0);
        circulants.push(cells.map(|(column, &shift)| Circulant { column, shift: shift as u32 }).collect());
    }
    lines.end("correct the number of block rows; a puncturing pattern is not supported, so leave it out")?;
    Code::new(lifting as u32, columns as u32, circulants)
}

/// The text of a code's base matrix, which [`parse_qc`] reads.
pub fn write_qc(code: &Code) -> String {
    let mut text = format!("{} {} {}\n", code.block_columns(), code.block_rows(), code.lifting());
    for row in 0..code.block_rows() {
        let mut shifts = vec![-1; code.block_columns()];
        for circulant in code.circulants(row) {
            shifts[circulant.column as usize] = i64::from(circulant.shift);
        }
        for (column, shift) in shifts.iter().enumerate() {
            let space = if column == 0 { "" } else { " " };
            write!(text, "{space}{shift}").expect("a string takes any text");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::construct::Description;
    use proptest::prelude::*;

    const SMALL: &str = "# a comment\n3 2 4\n0 -1 3\n\n1 2 -1\n";

    #[test]
    fn a_base_matrix_is_read() {
        let code = parse_qc(SMALL).unwrap();
        assert_eq!((code.lifting(), code.block_rows(), code.block_columns()), (4, 2, 3));
        assert_eq!(code.bits_of(1).collect::<Vec<_>>(), [1, 8]);
        assert_eq!(code.bits_of(7).collect::<Vec<_>>(), [0, 5]);
        assert_eq!(write_qc(&code), "3 2 4\n0 -1 3\n1 2 -1\n");
    }

    #[test]
    fn errors_name_the_line_and_the_remedy() {
        for (text, line, message) in [
            ("", Some(1), "ends before the line of block columns"),
            (
                "3 2\n",
                Some(1),
                "expected the line of block columns, block rows and lifting size, found [3, 2]",
            ),
            ("3 2 0\n", Some(1), "found [3, 2, 0]"),
            ("3 2 x\n", Some(1), "expected a whole number, found \"x\""),
            ("3 2 4\n0 -1 3\n", Some(2), "ends before block row 2 of 2"),
            ("3 2 4\n0 -1 3\n1 2\n", Some(3), "block row 2 has 2 blocks instead of 3"),
            ("3 2 4\n0 -1 4\n1 2 -1\n", Some(2), "has the shift 4, which is not in -1..=3"),
            ("3 2 4\n0 -1 3\n1 2 -1\n1 1 0\n", Some(4), "expected the end of the file"),
            ("3 2 4\n0 -1 3\n1 -1 -1\n", None, "no check involves column 1"),
        ] {
            let error = parse_qc(text).unwrap_err();
            assert!(error.message().contains(message), "{text:?}: {error}");
            assert_eq!(error.line(), line, "{text:?}: {error}");
            assert!(!error.remedy().is_empty());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_is_written_is_read_again(rows in 2u32..6, more in 1u32..8, lifting in 20u32..60, seed: u64) {
            let description = Description { rows, columns: rows + more, lifting, column_weight: 2, seed };
            let code = description.build().unwrap();
            prop_assert_eq!(parse_qc(&write_qc(&code)).unwrap(), code);
        }
    }
}
