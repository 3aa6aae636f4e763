//! Texts from outside in messages.

use std::path::Path;

/// A file's name for a message. Unprintable characters are escaped. Of a name above 200 characters only the first and
/// the last 80 are shown.
pub fn shown_file(file: &Path) -> String {
    const ENDS: usize = 80;
    let escape = |c: char| match c.escape_debug() {
        escaped if escaped.len() > 1 && !matches!(c, '"' | '\'' | '\\') => escaped.collect(),
        _ => String::from(c),
    };
    let name: Vec<char> = file.display().to_string().chars().collect();
    let text = |part: &[char]| part.iter().map(|&c| escape(c)).collect::<String>();
    match name.len() {
        0..=200 => text(&name),
        n => format!("{}...{}", text(&name[..ENDS]), text(&name[n - ENDS..])),
    }
}
