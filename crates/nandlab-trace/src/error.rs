//! Errors of workload sources, as fields and as a short text.

use nandlab_base::base::text::shown_file;
use std::fmt;
use std::path::{Path, PathBuf};

/// The class of a [`TraceError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The file cannot be opened, read or written, or can be read only once; or its compressed stream is damaged or cut
    /// short.
    Io,
    /// A field of a record is missing or has an impossible value; or a line is too long; or the last record of a binary
    /// format is cut short.
    Malformed,
    /// A record is out of order by more than the format allows; or a record is later than its predecessor by more than
    /// `workload.max_gap`; or one second has too many records.
    Order,
    /// The file holds several devices and no device was chosen; or the chosen device is not in the file.
    Device,
    /// The format is unknown; or the content fits no format, or several formats.
    Format,
    /// The trace holds no request.
    Empty,
    /// A setting (profile name, size table, span) is impossible, or the statistics of the source need more memory than
    /// there is.
    Setting,
    /// The target format cannot represent a request of the source, or cannot be written.
    Unsupported,
}

/// A position in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Line of a text format, from 1.
    Line(u64),
    /// Record of a binary format.
    Record {
        /// Number of the record, from 1.
        number: u64,
        /// Offset of the record in the decompressed stream, in bytes.
        offset: u64,
    },
}

/// An error that names the file, the position, the field, the cause and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    file: Option<PathBuf>,
    position: Option<Position>,
    field: Option<&'static str>,
    message: String,
    remedy: String,
}

impl TraceError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            file: None,
            position: None,
            field: None,
            message: message.into(),
            remedy: remedy.into(),
        }))
    }

    pub(crate) fn in_file(mut self, file: &Path) -> Self {
        self.0.file.get_or_insert_with(|| file.to_path_buf());
        self
    }

    pub(crate) fn at(mut self, position: Position) -> Self {
        self.0.position.get_or_insert(position);
        self
    }

    pub(crate) fn field_name(mut self, field: &'static str) -> Self {
        self.0.field = Some(field);
        self
    }

    /// The class of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file with the error; `None` for an error outside a file, such as an impossible setting.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The position in the file; `None` for an error of the whole file or outside a file.
    pub fn position(&self) -> Option<Position> {
        self.0.position
    }

    /// The line with the error, from 1; `None` for binary formats and for errors that concern no single line.
    pub fn line(&self) -> Option<u64> {
        match self.0.position {
            Some(Position::Line(line)) => Some(line),
            _ => None,
        }
    }

    /// The name of the column with the error; `None` if the error concerns no single column.
    pub fn field(&self) -> Option<&'static str> {
        self.0.field
    }

    /// The cause of the error.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What the user can do about the error.
    pub fn remedy(&self) -> &str {
        &self.0.remedy
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.0.file {
            f.write_str(&shown_file(file))?;
            match self.0.position {
                Some(Position::Line(line)) => write!(f, ":{line}: ")?,
                Some(Position::Record { number, offset }) => {
                    write!(f, ": record {number} at byte {offset}: ")?
                }
                None => f.write_str(": ")?,
            }
        }
        if let Some(field) = self.0.field {
            write!(f, "field {field}: ")?;
        }
        write!(f, "{}\n  remedy: {}", self.0.message, self.0.remedy)
    }
}

impl std::error::Error for TraceError {}

/// A value from the file, quoted for a message. Unprintable bytes are escaped, and the value is cut to 40 characters.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let mut short = String::new();
    for byte in bytes {
        let escaped = byte.escape_ascii();
        if short.len() + escaped.len() > 40 {
            short.push_str("...");
            break;
        }
        short.extend(escaped.map(char::from));
    }
    format!("\"{short}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_names_file_line_field_cause_and_remedy() {
        let error = TraceError::new(
            ErrorKind::Malformed,
            "expected a number of bytes, found \"abc\"",
            "correct the line",
        )
        .field_name("Size")
        .at(Position::Line(17))
        .in_file(Path::new("hm_0.csv"));
        assert_eq!(
            error.to_string(),
            "hm_0.csv:17: field Size: expected a number of bytes, found \"abc\"\n  remedy: correct the line"
        );
        assert_eq!(
            (error.line(), error.field(), error.kind()),
            (Some(17), Some("Size"), ErrorKind::Malformed)
        );
    }
}
