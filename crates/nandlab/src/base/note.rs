//! Notes: text that a result needs beside its numbers.

use serde_json::{Value, json};

/// The severity of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Data is lost, or requests have failed.
    Error,
    /// A headline number misleads.
    Warning,
    /// Something that the spec asks for never happened, or made no difference.
    Info,
}

impl Severity {
    /// The severity's name in the summary.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// A statement that a reader of a result has to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The severity of the note.
    pub severity: Severity,
    /// The subject of the note, as an identifier for programs.
    pub code: &'static str,
    /// The text: what has happened, the spec keys concerned, and the remedy.
    pub text: String,
}

impl Note {
    /// Data is lost, or requests have failed.
    pub(crate) fn error(code: &'static str, text: String) -> Option<Self> {
        Some(Self { severity: Severity::Error, code, text })
    }

    /// A headline number misleads.
    pub(crate) fn warning(code: &'static str, text: String) -> Option<Self> {
        Some(Self { severity: Severity::Warning, code, text })
    }

    /// Something that the spec asks for never happened, or made no difference.
    pub(crate) fn info(code: &'static str, text: String) -> Option<Self> {
        Some(Self { severity: Severity::Info, code, text })
    }

    /// The note in the form of the summary.
    pub fn json(&self) -> Value {
        json!({ "severity": self.severity.name(), "code": self.code, "text": self.text })
    }
}
