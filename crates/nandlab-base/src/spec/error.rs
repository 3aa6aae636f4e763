//! Errors of a spec: the fault, its location and the remedy.

use super::node::shorten_to;
use std::fmt;

/// One error of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The file's name, `preset NAME`, `--set` or `defaults`.
    pub origin: String,
    /// The line in the file or preset; `None` for `--set`, for defaults and for an error of the whole file.
    pub line: Option<u32>,
    /// The key, `section.name`; empty for an error that belongs to no key, such as text that is not TOML.
    pub key: String,
    /// The fault.
    pub message: String,
    /// How to correct the spec; may be empty.
    pub remedy: String,
}

/// The largest number of characters shown of a file's name.
const NAME_MAX: usize = 160;

/// The text between a fault and its remedy.
const REMEDY: &str = "\n  remedy: ";

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shorten_to(NAME_MAX, &self.origin))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)?;
        if !self.remedy.is_empty() {
            write!(f, "{REMEDY}{}", self.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecError {}

/// All errors of a spec; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecErrors(pub Vec<SpecError>);

/// The largest number of lines with errors, so that the text fits on a screen. The first error is always shown. Errors
/// that do not fit are only counted, in one more line.
const LINES_MAX: usize = 22;

impl SpecErrors {
    /// All errors, in the order of layers and of the lines in each layer.
    pub fn all(&self) -> &[SpecError] {
        &self.0
    }
}

impl fmt::Display for SpecErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = 0;
        let mut remedy = "";
        for (i, error) in self.0.iter().enumerate() {
            let mut text = error.to_string();
            // A remedy is left out if the error before has the same remedy.
            if !error.remedy.is_empty() && error.remedy == remedy {
                text.truncate(text.len() - error.remedy.len() - REMEDY.len());
            }
            remedy = &error.remedy;
            lines += text.lines().count();
            if i > 0 && lines > LINES_MAX {
                return write!(f, "\nand {} more", self.0.len() - i);
            }
            let separator = if i == 0 { "" } else { "\n" };
            write!(f, "{separator}{text}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecErrors {}

/// The candidate that is most similar to `word`, if `word` may be a typing error for it.
pub(super) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A word of this length is not a typing error, and the time of a comparison grows with the square of the length.
    if word.len() > 64 {
        return None;
    }
    let plain = |s: &str| s.to_lowercase().replace('-', "_").chars().collect::<Vec<char>>();
    let word = plain(word);
    candidates
        .map(|c| (edits(&word, &plain(c)), c))
        .min_by_key(|(edits, _)| *edits)
        .filter(|(edits, c)| {
            let shorter = c.len().min(word.len());
            *edits <= (shorter / 3).max(usize::from(shorter > 2))
        })
        .map(|(_, c)| c)
}

/// The least number of edits that turn `a` into `b`: insertions, deletions, substitutions and swaps of neighbouring
/// characters.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_errors_fit_on_a_screen() {
        let error = |line, remedy: &str| SpecError {
            origin: "s.toml".into(),
            line: Some(line),
            key: "a.b".into(),
            message: "unknown key".into(),
            remedy: remedy.into(),
        };
        let same = SpecErrors((0..100).map(|line| error(line, "remove it")).collect()).to_string();
        assert_eq!(same.matches("remedy").count(), 1);
        assert!(same.ends_with("s.toml:20: a.b: unknown key\nand 79 more"), "{same}");
        let each = SpecErrors((0..100).map(|line| error(line, &line.to_string())).collect()).to_string();
        assert_eq!(each.lines().count(), LINES_MAX + 1);
        assert!(each.ends_with("  remedy: 10\nand 89 more"), "{each}");
        let few = SpecErrors(vec![error(1, "x"), error(2, ""), error(3, "x")]).to_string();
        assert_eq!(
            few.matches("remedy").count(),
            2,
            "a remedy is left out although the error before does not have the same remedy"
        );
    }

    #[test]
    fn a_typing_error_has_a_suggestion_and_another_word_has_none() {
        let names = ["greedy", "cost-benefit", "fifo"];
        assert_eq!(nearest("gredy", names.into_iter()), Some("greedy"));
        assert_eq!(nearest("greeyd", names.into_iter()), Some("greedy"));
        assert_eq!(nearest("cost_benefit", names.into_iter()), Some("cost-benefit"));
        assert_eq!(nearest("FIFO", names.into_iter()), Some("fifo"));
        assert_eq!(nearest("lottery", names.into_iter()), None);
    }
}
