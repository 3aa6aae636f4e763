//! Notes: findings about a result, as text.

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
    /// Something that the spec configures never happened, or made no difference.
    Info,
}

/// A finding about a result.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Note {
    /// The severity of the note.
    pub severity: Severity,
    /// The subject of the note, as an identifier for programs.
    pub code: &'static str,
    /// The finding in words: what has happened, the spec keys concerned, and the remedy.
    pub text: String,
}

impl Note {
    /// Data is lost, or requests have failed.
    pub fn error(code: &'static str, text: String) -> Option<Self> {
        Some(Self { severity: Severity::Error, code, text })
    }

    /// A headline number misleads.
    pub fn warning(code: &'static str, text: String) -> Option<Self> {
        Some(Self { severity: Severity::Warning, code, text })
    }

    /// Something that the spec configures never happened, or made no difference.
    pub fn info(code: &'static str, text: String) -> Option<Self> {
        Some(Self { severity: Severity::Info, code, text })
    }
}
