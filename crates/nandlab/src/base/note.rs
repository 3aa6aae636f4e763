//! Notes: text that a result needs beside its numbers.

use schemars::JsonSchema;
use serde::Serialize;

/// The severity of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Data is lost, or requests have failed.
    Error,
    /// A headline number misleads.
    Warning,
    /// Something that the spec asks for never happened, or made no difference.
    Info,
}

/// A statement that a reader of a result has to know.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
}
