//! Notes: sentences that go with the numbers of a result.

use serde_json::{Value, json};

/// How much a note matters.
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
    /// Its name in the summary.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// What a reader of a result has to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about, for programs.
    pub code: &'static str,
    /// A sentence or more: what, the keys that it is of, and the remedy.
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

    /// The note as the summary has it.
    pub fn json(&self) -> Value {
        json!({ "severity": self.severity.name(), "code": self.code, "text": self.text })
    }
}
