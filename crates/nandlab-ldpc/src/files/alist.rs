//! `.alist`: the sparse matrix format of D. J. C. MacKay (<https://www.inference.org.uk/mackay/codes/alist.html>).
//!
//! The first line has the number of columns (bits) and of rows (checks), the second one their largest weights. Two
//! lines have the weight of each column and of each row. A line follows for each column, with the numbers of its rows,
//! and then one for each row, with the numbers of its columns. Numbers count from 1. Lists that are shorter than the
//! largest weight are filled with 0, which some programs leave out; both are read.

use super::Lines;
use crate::code::{BITS_MAX, Code};
use crate::error::LdpcError;
use std::fmt::Write;

/// The code of a text in MacKay's alist format. A matrix of circulants gets the largest lifting size that fits
/// ([`Code::from_rows`]).
///
/// # Errors
///
/// If the text is no matrix in this format, if its lists of columns and of rows contradict each other, or if the matrix
/// is no code ([`Code::new`]). The error names the line.
pub fn parse_alist(text: &str) -> Result<Code, LdpcError> {
    let mut lines = Lines::new(text);
    let [bits, checks] = pair(&mut lines, "the numbers of columns and of rows", 1)?;
    let [column_weight_max, row_weight_max] =
        pair(&mut lines, "the largest weights of a column and of a row", 0)?;
    let column_weights = weights(&mut lines, "column", bits, column_weight_max)?;
    let row_weights = weights(&mut lines, "row", checks, row_weight_max)?;
    let mut rows = vec![Vec::new(); checks];
    for (column, &weight) in column_weights.iter().enumerate() {
        for row in list(&mut lines, "column", column, weight, "row", checks)? {
            rows[row as usize].push(column as u32);
        }
    }
    for (row, &weight) in row_weights.iter().enumerate() {
        if list(&mut lines, "row", row, weight, "column", bits)? != rows[row] {
            return Err(LdpcError::new(
                format!("row {} has other columns than the lists of the columns say", row + 1),
                "give lists of columns and of rows that describe the same matrix",
            )
            .at(lines.number));
        }
    }
    lines.end("correct the numbers of columns and of rows in the first line")?;
    Code::from_rows(bits as u32, rows)
}

/// The two numbers of a line, of at least `min`.
fn pair(lines: &mut Lines, what: &str, min: i64) -> Result<[usize; 2], LdpcError> {
    match *lines.numbers(what, false)? {
        [a, b] if [a, b].iter().all(|number| (min..=BITS_MAX as i64).contains(number)) => {
            Ok([a as usize, b as usize])
        }
        ref numbers => {
            let message = format!(
                "expected {what}, found {} numbers: {:?}",
                numbers.len(),
                &numbers[..numbers.len().min(4)]
            );
            Err(LdpcError::new(message, format!("give two numbers in {min}..={BITS_MAX}")).at(lines.number))
        }
    }
}

/// The weights of all columns or of all rows, in one line or in several.
fn weights(lines: &mut Lines, what: &str, count: usize, max: usize) -> Result<Vec<usize>, LdpcError> {
    let mut weights = Vec::new();
    while weights.len() < count {
        for weight in
            lines.numbers(&format!("the weight of {what} {} of {count}", weights.len() + 1), false)?
        {
            if !(0..=max as i64).contains(&weight) {
                return Err(LdpcError::new(
                    format!(
                        "{what} {} has the weight {weight}, which is not in 0..={max}",
                        weights.len() + 1
                    ),
                    "correct the weight, or the largest weight in the second line",
                )
                .at(lines.number));
            }
            weights.push(weight as usize);
        }
    }
    if weights.len() > count {
        return Err(LdpcError::new(
            format!("the line has the weights of {} {what}s instead of {count}", weights.len()),
            "correct the line, or the numbers of columns and of rows in the first line",
        )
        .at(lines.number));
    }
    Ok(weights)
}

/// The list of a column or row, in ascending order and from 0.
fn list(
    lines: &mut Lines,
    what: &str,
    at: usize,
    weight: usize,
    of: &str,
    limit: usize,
) -> Result<Vec<u32>, LdpcError> {
    let name = format!("{what} {}", at + 1);
    // The line of an empty list without zeros is blank.
    let numbers = lines.numbers(&format!("the list of {name}"), weight == 0)?;
    let error = |message: String, remedy: &str| Err(LdpcError::new(message, remedy).at(lines.number));
    if let Some(number) = numbers.iter().find(|number| !(0..=limit as i64).contains(*number)) {
        return error(
            format!("the list of {name} has the {of} {number}, which is not in 1..={limit}"),
            "number rows and columns from 1, and fill short lists with 0",
        );
    }
    let mut list: Vec<u32> =
        numbers.iter().filter(|&&number| number != 0).map(|&number| number as u32 - 1).collect();
    if list.len() != weight {
        return error(
            format!("the list of {name} has {} {of}s, but its weight is {weight}", list.len()),
            "correct the list, or the weight in the third or fourth line",
        );
    }
    list.sort_unstable();
    if let Some(pair) = list.windows(2).find(|pair| pair[0] == pair[1]) {
        return error(
            format!("the list of {name} has the {of} {} twice", pair[0] + 1),
            "leave out one of the two",
        );
    }
    Ok(list)
}

/// The text of a code in MacKay's alist format, which [`parse_alist`] reads. Circulants are expanded.
pub fn write_alist(code: &Code) -> String {
    let columns: Vec<Vec<usize>> = (0..code.bits()).map(|bit| code.checks_of(bit).collect()).collect();
    let rows: Vec<Vec<usize>> = (0..code.checks()).map(|check| code.bits_of(check).collect()).collect();
    let (column_max, row_max) = (code.column_weight_max(), code.row_weight_max());
    let mut text = format!("{} {}\n{column_max} {row_max}\n", columns.len(), rows.len());
    let mut line = |numbers: &mut dyn Iterator<Item = usize>| {
        for (at, number) in numbers.enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(text, "{space}{number}").expect("a string takes any text");
        }
        text.push('\n');
    };
    for lists in [&columns, &rows] {
        line(&mut lists.iter().map(Vec::len));
    }
    for (lists, max) in [(&columns, column_max), (&rows, row_max)] {
        for list in lists {
            let zeros = std::iter::repeat_n(0, max - list.len());
            line(&mut list.iter().map(|number| number + 1).chain(zeros));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::construct::Description;
    use proptest::prelude::*;

    /// The parity-check matrix of the Hamming code (7, 4).
    const HAMMING: &str = "\
7 3
3 4
1 1 2 1 2 2 3
4 4 4
1 0 0
2 0 0
1 2 0
3 0 0
1 3 0
2 3 0
1 2 3
1 3 5 7
2 3 6 7
4 5 6 7
";

    #[test]
    fn a_matrix_is_read_and_written() {
        let code = parse_alist(HAMMING).unwrap();
        assert_eq!((code.bits(), code.checks(), code.edges()), (7, 3, 12));
        assert_eq!(code.bits_of(1).collect::<Vec<_>>(), [1, 2, 5, 6]);
        assert_eq!(write_alist(&code), HAMMING);
        // Without the zeros, and with weights over two lines.
        let short = HAMMING.replace(" 0", "").replace("1 1 2 1 2 2 3", "1 1 2\n1 2 2 3");
        assert_eq!(parse_alist(&short).unwrap(), code);
    }

    #[test]
    fn an_empty_row_may_be_a_blank_line() {
        let code = parse_alist("2 2\n1 2\n1 1\n2 0\n1\n1\n1 2\n\n").unwrap();
        assert_eq!((code.checks(), code.edges()), (2, 2));
        assert_eq!(parse_alist(&write_alist(&code)).unwrap(), code);
    }

    #[test]
    fn errors_name_the_line_and_the_remedy() {
        let changed = |from: &str, to: &str| {
            assert!(HAMMING.contains(from), "{from}");
            HAMMING.replacen(from, to, 1)
        };
        for (text, line, message) in [
            (String::new(), 1, "ends before the numbers of columns and of rows"),
            (changed("7 3", "7"), 1, "expected the numbers of columns and of rows, found 1 numbers: [7]"),
            (changed("7 3", "0 3"), 1, "expected the numbers of columns and of rows"),
            (changed("7 3", "seven 3"), 1, "expected a whole number, found \"seven\""),
            (
                changed("1 1 2 1 2 2 3", "1 1 2 1 2 2 4"),
                3,
                "column 7 has the weight 4, which is not in 0..=3",
            ),
            (changed("4 4 4", "4 4 4 4"), 4, "the weights of 4 rows instead of 3"),
            (changed("1 2 0\n3", "1 4 0\n3"), 7, "the list of column 3 has the row 4, which is not in 1..=3"),
            (changed("1 2 0\n3", "1 0 0\n3"), 7, "the list of column 3 has 1 rows, but its weight is 2"),
            (changed("1 2 0\n3", "1 1 0\n3"), 7, "the list of column 3 has the row 1 twice"),
            (changed("2 3 6 7", "2 3 5 7"), 13, "row 2 has other columns than the lists of the columns say"),
            (changed("4 5 6 7\n", ""), 13, "ends before the list of row 3"),
            (changed("4 5 6 7\n", "4 5 6 7\n1\n"), 15, "expected the end of the file"),
        ] {
            let error = parse_alist(&text).unwrap_err();
            assert!(error.message().contains(message), "{text:?}: {error}");
            assert_eq!(error.line(), Some(line), "{text:?}: {error}");
            assert!(!error.remedy().is_empty());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_is_written_is_read_again_with_its_circulants(
            rows in 2u32..6, more in 1u32..8, lifting in 20u32..60, seed: u64,
        ) {
            let description = Description { rows, columns: rows + more, lifting, column_weight: 2, seed };
            let code = description.build().unwrap();
            prop_assert_eq!(parse_alist(&write_alist(&code)).unwrap(), code);
        }

        #[test]
        fn any_text_is_a_code_or_an_error(text in "([0-9]{1,2}[ \n]){0,40}", cut in 0usize..100) {
            let _ = parse_alist(&text);
            let _ = super::super::parse_qc(&text);
            let _ = parse_alist(&HAMMING[..cut.min(HAMMING.len())]);
        }
    }
}
