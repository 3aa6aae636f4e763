//! Files of parity-check matrices: MacKay's alist, and base matrices of shifts.
//!
//! [`read`] finds the format in the name: `.alist`, or `.qc`. Both are text; a line that begins with `#` is a comment.

mod alist;
mod qc;

pub use alist::{parse_alist, write_alist};
pub use qc::{parse_qc, write_qc};

use crate::code::Code;
use crate::error::LdpcError;
use nandlab_base::spec::shorten;
use std::path::Path;

/// The largest file that is read, in bytes.
const FILE_MAX: u64 = 1 << 30;

/// Reads a code from a file: `NAME.alist` ([`parse_alist`]) or `NAME.qc` ([`parse_qc`]).
///
/// # Errors
///
/// If the file cannot be read, if its name ends otherwise, or if its content is no code. The error names the file, and
/// the line where there is one.
pub fn read(file: &Path) -> Result<Code, LdpcError> {
    let parse = match file.extension().and_then(|ending| ending.to_str()) {
        Some("alist") => parse_alist,
        Some("qc") => parse_qc,
        _ => {
            let message = "the name of the file ends neither in .alist nor in .qc";
            let remedy = "name the file for its format: MacKay's alist, or a base matrix of shifts (qc)";
            return Err(LdpcError::new(message, remedy).in_file(file));
        }
    };
    let unreadable = |message: String| LdpcError::new(message, "give the name of a readable text file");
    let size = std::fs::metadata(file).map_err(|error| unreadable(error.to_string()).in_file(file))?.len();
    if size > FILE_MAX {
        return Err(unreadable(format!("the file has {size} bytes, more than {FILE_MAX}")).in_file(file));
    }
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(error.to_string()).in_file(file))?;
    parse(&text).map_err(|error| error.in_file(file))
}

/// The lines of a text with content, with their numbers.
struct Lines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    /// The number of the last line that was taken, from 1.
    number: u64,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        Self { lines: text.lines().enumerate(), number: 0 }
    }

    /// The next line that is no comment. Blank lines are passed over, unless `blank` allows them.
    fn next(&mut self, blank: bool) -> Option<&'a str> {
        for (at, line) in self.lines.by_ref() {
            self.number = at as u64 + 1;
            let line = line.trim();
            if !line.starts_with('#') && (blank || !line.is_empty()) {
                return Some(line);
            }
        }
        None
    }

    /// The numbers of the next line, which has `what`.
    fn numbers(&mut self, what: &str, blank: bool) -> Result<Vec<i64>, LdpcError> {
        let Some(line) = self.next(blank) else {
            return Err(LdpcError::new(
                format!("the file ends before {what}"),
                "the file may be cut short: write or load it again",
            )
            .at(self.number.max(1)));
        };
        line.split_ascii_whitespace()
            .map(|text| number(text).map_err(|error| error.at(self.number)))
            .collect()
    }

    /// Refuses a further line.
    fn end(&mut self, remedy: &str) -> Result<(), LdpcError> {
        match self.next(false) {
            None => Ok(()),
            Some(line) => {
                let message = format!("expected the end of the file, found \"{}\"", shorten(line));
                Err(LdpcError::new(message, remedy).at(self.number))
            }
        }
    }
}

fn number(text: &str) -> Result<i64, LdpcError> {
    text.parse().map_err(|_| {
        LdpcError::new(format!("expected a whole number, found \"{}\"", shorten(text)), "correct the line")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::construct::Description;

    #[test]
    fn a_file_is_read_by_its_ending_and_errors_name_it() {
        let folder = std::env::temp_dir().join(format!("nandlab-ldpc-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(folder.join(name), text).unwrap();
            folder.join(name)
        };
        let code =
            Description { rows: 3, columns: 7, lifting: 24, column_weight: 3, seed: 1 }.build().unwrap();
        assert_eq!(read(&write("code.alist", &write_alist(&code))).unwrap(), code);
        assert_eq!(read(&write("code.qc", &write_qc(&code))).unwrap(), code);
        for (file, line, message) in [
            (write("wrong.qc", "2 1 4\n0 5\n"), Some(2), "has the shift 5"),
            (write("wrong.alist", "2 1 4\n"), Some(1), "expected the numbers of columns and of rows"),
            (write("code.txt", ""), None, "ends neither in .alist nor in .qc"),
            (folder.join("missing.qc"), None, "No such file"),
        ] {
            let error = read(&file).unwrap_err();
            assert_eq!((error.file(), error.line()), (Some(file.as_path()), line), "{error}");
            assert!(error.message().contains(message) && !error.remedy().is_empty(), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
