//! Detection of a file's format from its content.
//!
//! Every text format that the start of the file allows parses the first 64 lines that are not ignored. If the requests
//! are less than a fifth of these lines, the format does not fit. A binary format that the start of the file allows
//! counts as 64 requests. The format with the most requests is detected; damaged lines are reported when the file is
//! read. If no format fits, or several formats find equally many requests, detection fails with an error that lists the
//! choices. `ssdsim` is never detected, because its columns have the same meaning as those of `mqsim`.

use crate::error::{ErrorKind, Position, TraceError, quoted};
use crate::format::{FormatInfo, Parsed, ReaderOptions, formats, head_lines};

/// Number of lines that each reader parses; ignored lines do not count.
const LINES: usize = 64;

/// The format of a file that starts with `head`.
pub(crate) fn detect(head: &[u8], options: &ReaderOptions) -> Result<&'static FormatInfo, TraceError> {
    let found: Vec<_> = formats().map(|f| (requests_in(f, head, options), f)).collect();
    let most = found.iter().map(|f| f.0).max().unwrap_or(0).max(1);
    let fitting: Vec<_> = found.into_iter().filter(|f| f.0 == most).map(|f| f.1).collect();
    match fitting[..] {
        [one] => Ok(one),
        [] => Err(unknown_content(head)),
        ref several => Err(not_found("the content fits several formats".to_owned(), several.iter().copied())),
    }
}

/// The error for content that fits no format. The error quotes the first line with a zero byte after the first
/// non-empty line. If there is no such line, the error quotes the first non-empty line.
fn unknown_content(head: &[u8]) -> TraceError {
    let mut lines = (1..).zip(head_lines(head)).filter(|(_, line)| !line.is_empty());
    let first = lines.next();
    // A line with a zero byte is no text, so no text format fits.
    let (number, line) = lines.find(|(_, line)| line.contains(&0)).or(first).unwrap_or((1, head));
    let message = format!("{}: the content fits no known format", quoted(line));
    not_found(message, formats()).at(Position::Line(number))
}

/// The error if the user has to name the format; `choices` are the formats to choose from.
fn not_found(message: String, choices: impl Iterator<Item = &'static FormatInfo>) -> TraceError {
    let names: Vec<_> = choices.map(|f| f.name()).collect();
    TraceError::new(
        ErrorKind::Format,
        message,
        format!("name one with workload.format: {}", names.join(", ")),
    )
}

/// The error for an unknown format name.
pub(crate) fn unknown(name: &str) -> TraceError {
    not_found(format!("expected the name of a trace format, found {}", quoted(name.as_bytes())), formats())
}

/// Number of requests that the reader of `format` finds in the first lines; [`LINES`] for a binary format that `head`
/// allows. 0 if `head` excludes the format, or if more than four fifths of the lines are errors.
fn requests_in(format: &FormatInfo, head: &[u8], options: &ReaderOptions) -> usize {
    if !(format.sniff)(head) {
        return 0;
    }
    let Ok(mut reader) = (format.reader)(head, options) else { return 0 };
    if reader.record_bytes().is_some() {
        return LINES;
    }
    let (mut requests, mut errors, mut tried) = (0, 0, 0);
    for (line, number) in head_lines(head).zip(1..) {
        match reader.parse(line, number) {
            Ok(Parsed::Request(_)) => requests += 1,
            Ok(Parsed::Nothing | Parsed::Without { .. }) => continue,
            Ok(Parsed::End) => break,
            Err(_) => errors += 1,
        }
        tried += 1;
        if tried == LINES {
            break;
        }
    }
    if requests * 4 >= errors { requests } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(head: &str) -> Result<&'static str, String> {
        detect(head.as_bytes(), &ReaderOptions::default()).map(|f| f.name()).map_err(|e| e.to_string())
    }

    #[test]
    fn each_format_is_detected_by_its_content() {
        for (head, expected) in [
            ("128166372011600556,mds,0,Write,3201662976,20480,45361\n", "msr"),
            ("0,20941264,8192,W,0.551706,Alpha/NT\n", "spc"),
            ("0,303567,3584,w,0.000000\n", "spc"),
            ("  8,33  11  14  0.312455739  5026  D  WS 178688 + 512 [fio]\n", "blkparse"),
            ("fio version 2 iolog\n/dev/sda write 12419072 8192\n", "fio-iolog"),
            ("fio version 3 iolog\n1499 /dev/sda write 12419072 8192\n", "fio-iolog"),
            ("97900000 0 287641400 128 1\n", "mqsim"),
            ("5265.313 0 6357144 8 0\n", "disksim"),
            ("5265 0 6357144 8 0\n5266 0 6357144 8 9\n", "disksim"),
            ("0,R,126703644672,4096,1577808000000626\n", "alibaba"),
            ("1538323200,12910952,128,0,1063\n", "tencent"),
            (
                "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.1,0.0008,R,0,899056122368,131072\n",
                "systor",
            ),
        ] {
            assert_eq!(name(head).as_deref(), Ok(expected), "{head}");
        }
    }

    #[test]
    fn a_damaged_line_does_not_hide_the_format() {
        let good = "128166372011600556,mds,0,Write,3201662976,20480,45361\n";
        assert_eq!(name(&format!("{good}{good}damaged\n{good}")).as_deref(), Ok("msr"));
    }

    #[test]
    fn content_that_fits_nothing_lists_the_choices() {
        let error = name("once upon a time\n").unwrap_err();
        assert!(error.contains("fits no known format") && error.contains("msr, spc, blkparse"), "{error}");
    }
}
