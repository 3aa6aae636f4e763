//! Errors of codes, their files and their settings, as fields and as a short text.

use nandlab_base::base::text::shown_file;
use std::fmt;
use std::path::{Path, PathBuf};

/// An error that names the file and the line, where there are any, the cause and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LdpcError(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    file: Option<PathBuf>,
    line: Option<u64>,
    message: String,
    remedy: String,
}

impl LdpcError {
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self(Box::new(Inner { file: None, line: None, message: message.into(), remedy: remedy.into() }))
    }

    pub(crate) fn at(mut self, line: u64) -> Self {
        self.0.line.get_or_insert(line);
        self
    }

    pub(crate) fn in_file(mut self, file: &Path) -> Self {
        self.0.file.get_or_insert_with(|| file.to_path_buf());
        self
    }

    /// The file with the error; `None` for an error outside a file, such as an impossible description.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The line with the error, from 1; `None` for an error of the whole file or outside a file.
    pub fn line(&self) -> Option<u64> {
        self.0.line
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

impl fmt::Display for LdpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.file, self.0.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", shown_file(file))?,
            (Some(file), None) => write!(f, "{}: ", shown_file(file))?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        write!(f, "{}\n  remedy: {}", self.0.message, self.0.remedy)
    }
}

impl std::error::Error for LdpcError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_names_file_line_cause_and_remedy() {
        let error = LdpcError::new("the list of column 3 is empty", "give the rows of column 3").at(7);
        assert_eq!(
            error.to_string(),
            "line 7: the list of column 3 is empty\n  remedy: give the rows of column 3"
        );
        let error = error.in_file(Path::new("code.alist"));
        assert_eq!(
            error.to_string(),
            "code.alist:7: the list of column 3 is empty\n  remedy: give the rows of column 3"
        );
        assert_eq!((error.line(), error.file()), (Some(7), Some(Path::new("code.alist"))));
    }
}
