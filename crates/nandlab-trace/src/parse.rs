//! Parses columns and numbers of records, and writes numbers. Parsing allocates memory only for errors. Times are
//! integer nanoseconds since the time origin of the format of the file.

use crate::error::{ErrorKind, TraceError, quoted};
use nandlab_base::base::units::SECTOR;

/// The remedy for most malformed records.
pub(crate) const CORRECT_RECORD: &str =
    "correct the record, or skip such records with workload.lenient = true";

/// The error for a field with a wrong value; `expected` is a noun phrase for the message.
#[cold]
pub(crate) fn bad(field: &'static str, value: &[u8], expected: &str) -> TraceError {
    let message = format!("expected {expected}, found {}", quoted(value));
    TraceError::new(ErrorKind::Malformed, message, CORRECT_RECORD).field_name(field)
}

#[cold]
pub(crate) fn missing(field: &'static str) -> TraceError {
    TraceError::new(ErrorKind::Malformed, "expected a value, found the end of the line", CORRECT_RECORD)
        .field_name(field)
}

/// One microsecond in nanoseconds.
pub(crate) const US: u64 = nandlab_base::base::units::US.ns();
/// One millisecond in nanoseconds.
pub(crate) const MS: u64 = nandlab_base::base::units::MS.ns();
/// One second in nanoseconds.
pub(crate) const SECOND: u64 = nandlab_base::base::units::SECOND.ns();

/// The words of a line, separated by spaces and tabs.
pub(crate) struct Words<'a>(pub(crate) &'a [u8]);

impl<'a> Words<'a> {
    /// The next word, if there is one.
    #[inline]
    pub(crate) fn optional(&mut self) -> Option<&'a [u8]> {
        let start = self.0.iter().position(|b| !is_blank(*b))?;
        let rest = &self.0[start..];
        let n = word_len(rest);
        self.0 = &rest[n..];
        Some(&rest[..n])
    }

    /// The next word; an error if the line has no further word.
    #[inline]
    pub(crate) fn next(&mut self, field: &'static str) -> Result<&'a [u8], TraceError> {
        self.optional().ok_or_else(|| missing(field))
    }

    /// The next word, if it spells a whole number of at most 19 digits, which cannot overflow 64 bits. Otherwise no word is
    /// taken.
    #[inline]
    pub(crate) fn whole(&mut self) -> Option<u64> {
        let start = self.0.iter().position(|b| !is_blank(*b))?;
        let rest = &self.0[start..];
        let (mut n, mut len) = (0u64, 0);
        for &b in rest {
            let digit = b.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            n = n.wrapping_mul(10).wrapping_add(digit.into());
            len += 1;
        }
        let ends = rest.get(len).is_none_or(|&b| is_blank(b));
        if !(1..=19).contains(&len) || !ends {
            return None;
        }
        self.0 = &rest[len..];
        Some(n)
    }

    /// The bytes of the next word, if it is a number of sectors that [`Words::whole`] reads and whose bytes are below 2^64.
    /// Otherwise no word is taken.
    #[inline]
    pub(crate) fn sectors(&mut self) -> Option<u64> {
        let before = self.0;
        let bytes = self.whole().and_then(|n| n.checked_mul(SECTOR));
        if bytes.is_none() {
            self.0 = before;
        }
        bytes
    }

    /// Refuses further words.
    pub(crate) fn end(&mut self) -> Result<(), TraceError> {
        match self.optional() {
            None => Ok(()),
            Some(value) => Err(bad("(end of line)", value, "no further column")),
        }
    }
}

/// The number of bytes before the first blank; without a blank, all of them. Looks at eight bytes at a time.
#[inline]
fn word_len(text: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 0xFF;
    // Bit 7 of the first byte that is 0 is the lowest bit that is set.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    let (chunks, rest) = text.as_chunks::<8>();
    for (chunk, at) in chunks.iter().zip((0..).step_by(8)) {
        let word = u64::from_le_bytes(*chunk);
        let blanks = zeros(word ^ (ONES * u64::from(b' '))) | zeros(word ^ (ONES * u64::from(b'\t')));
        if blanks != 0 {
            return at + blanks.trailing_zeros() as usize / 8;
        }
    }
    rest.iter().position(|&b| is_blank(b)).map_or(text.len(), |at| 8 * chunks.len() + at)
}

#[inline]
pub(crate) fn is_blank(b: u8) -> bool {
    b == b' ' || b == b'\t'
}

/// `value` without the blanks (spaces and tabs) around the value.
#[inline]
pub(crate) fn trimmed(mut value: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = value {
        if !is_blank(*first) {
            break;
        }
        value = rest;
    }
    while let [rest @ .., last] = value {
        if !is_blank(*last) {
            break;
        }
        value = rest;
    }
    value
}

/// The number that `value` spells in decimal digits; `None` for other text and for numbers beyond 64 bits.
#[inline]
fn digits(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    let mut n = 0u64;
    // 19 digits cannot overflow 64 bits, so the usual case needs no checked arithmetic.
    if value.len() <= 19 {
        for &b in value {
            let d = b.wrapping_sub(b'0');
            if d > 9 {
                return None;
            }
            n = n * 10 + u64::from(d);
        }
        return Some(n);
    }
    for &b in value {
        let d = b.wrapping_sub(b'0');
        if d > 9 {
            return None;
        }
        n = n.checked_mul(10)?.checked_add(u64::from(d))?;
    }
    Some(n)
}

/// An unsigned integer below 2^64; `expected` is a noun phrase for messages.
#[inline]
pub(crate) fn integer(field: &'static str, value: &[u8], expected: &str) -> Result<u64, TraceError> {
    digits(value).ok_or_else(|| integer_error(field, value, expected))
}

#[cold]
fn integer_error(field: &'static str, value: &[u8], expected: &str) -> TraceError {
    let all_digits = |v: &[u8]| !v.is_empty() && v.iter().all(u8::is_ascii_digit);
    if value.is_empty() {
        return TraceError::new(
            ErrorKind::Malformed,
            format!("expected {expected}, found an empty field"),
            CORRECT_RECORD,
        )
        .field_name(field);
    }
    match value {
        [b'-', rest @ ..] if all_digits(rest) => negative(field, value, expected),
        _ if all_digits(value) => bad(field, value, &format!("{expected} below 2^64")),
        _ => bad(field, value, expected),
    }
}

#[cold]
fn negative(field: &'static str, value: &[u8], expected: &str) -> TraceError {
    let message = format!("expected {expected}, found the negative number {}", quoted(value));
    TraceError::new(ErrorKind::Malformed, message, CORRECT_RECORD).field_name(field)
}

/// A time in units of `unit_ns` nanoseconds, with or without decimals. The result is in nanoseconds, rounded to the
/// nearest one.
#[inline]
pub(crate) fn time(field: &'static str, value: &[u8], unit_ns: u64) -> Result<u64, TraceError> {
    let error = || time_error(field, value);
    let dot = value.iter().position(|&b| b == b'.').unwrap_or(value.len());
    let whole = if dot == 0 && value.len() > 1 { 0 } else { digits(&value[..dot]).ok_or_else(error)? };
    let mut part = 0;
    if dot + 1 < value.len() {
        // Decimals after the 18th are dropped, but they must be digits.
        let decimals = &value[dot + 1..];
        let kept = &decimals[..decimals.len().min(18)];
        if decimals[kept.len()..].iter().any(|b| !b.is_ascii_digit()) {
            return Err(error());
        }
        let scale = POWERS[kept.len()];
        let n = digits(kept).ok_or_else(error)?;
        part = if scale == unit_ns {
            // The decimals are nanoseconds: no division.
            n
        } else if kept.len() <= 9 && unit_ns <= 1_000_000_000 {
            (n * unit_ns + scale / 2) / scale
        } else {
            ((u128::from(n) * u128::from(unit_ns) + u128::from(scale / 2)) / u128::from(scale)) as u64
        };
    }
    whole.checked_mul(unit_ns).and_then(|ns| ns.checked_add(part)).ok_or_else(|| too_late(field, value))
}

/// The powers of ten that 64 bits hold.
pub(crate) const POWERS: [u64; 19] = {
    let mut powers = [1u64; 19];
    let mut i = 1;
    while i < 19 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

#[cold]
fn too_late(field: &'static str, value: &[u8]) -> TraceError {
    bad(field, value, "a time within 64-bit nanoseconds")
}

#[cold]
fn time_error(field: &'static str, value: &[u8]) -> TraceError {
    if value.first() == Some(&b'-') {
        return negative(field, value, "a time");
    }
    if value.iter().any(|b| matches!(b, b'e' | b'E')) && value.iter().all(|b| b"0123456789.eE+-".contains(b))
    {
        return TraceError::new(
            ErrorKind::Malformed,
            format!(
                "expected a time, found {} in exponent form: a spreadsheet has rounded the times",
                quoted(value)
            ),
            "fetch the original trace: this copy has lost the times",
        )
        .field_name(field);
    }
    let mut parts = value.split(|&b| b == b',').map(digits);
    if let (Some(Some(_)), Some(Some(_)), None) = (parts.next(), parts.next(), parts.next()) {
        return TraceError::new(
            ErrorKind::Malformed,
            format!("expected a time, found {} with a comma", quoted(value)),
            "write decimals after a point, such as 0.5, and no separators of thousands",
        )
        .field_name(field);
    }
    bad(field, value, "a time")
}

/// A time given as an integer number of units of `unit_ns` nanoseconds. The result is in nanoseconds.
#[inline]
pub(crate) fn ticks(field: &'static str, value: &[u8], unit_ns: u64) -> Result<u64, TraceError> {
    match digits(value) {
        Some(n) => n.checked_mul(unit_ns).ok_or_else(|| too_late(field, value)),
        None => Err(time_error(field, value)),
    }
}

/// The largest whole number below which floating-point numbers hold every whole number.
const EXACT_MAX: u64 = 1 << 53;

/// The whole number that `value` spells with decimals that are all 0, such as `4096.0`; `None` for other text.
fn decimal_whole(field: &'static str, value: &[u8]) -> Option<Result<u64, TraceError>> {
    let dot = value.iter().position(|&b| b == b'.')?;
    let whole = digits(&value[..dot]).filter(|_| value[dot + 1..].iter().all(|&b| b == b'0'))?;
    if whole <= EXACT_MAX {
        return Some(Ok(whole));
    }
    Some(Err(TraceError::new(
        ErrorKind::Malformed,
        format!(
            "expected a whole number, found {}: a program has stored it as a floating-point number, which has lost its last \
             digits",
            quoted(value)
        ),
        "fetch the original trace: this copy has lost digits",
    )
    .field_name(field)))
}

/// An unsigned integer below 2^64, also with decimals that are all 0; `expected` is a noun phrase for messages.
pub(crate) fn whole(field: &'static str, value: &[u8], expected: &str) -> Result<u64, TraceError> {
    match digits(value) {
        Some(n) => Ok(n),
        None => decimal_whole(field, value).unwrap_or_else(|| Err(integer_error(field, value, expected))),
    }
}

/// A time as an integer number of units of `unit_ns` nanoseconds, also with decimals that are all 0. The result is in
/// nanoseconds.
pub(crate) fn whole_time(field: &'static str, value: &[u8], unit_ns: u64) -> Result<u64, TraceError> {
    let ticks = match digits(value) {
        Some(n) => n,
        None => decimal_whole(field, value).unwrap_or_else(|| Err(time_error(field, value)))?,
    };
    ticks.checked_mul(unit_ns).ok_or_else(|| too_late(field, value))
}

/// A hexadecimal number, with or without `0x`.
pub(crate) fn hexadecimal(field: &'static str, value: &[u8]) -> Result<u64, TraceError> {
    let digits = value.strip_prefix(b"0x").or_else(|| value.strip_prefix(b"0X")).unwrap_or(value);
    let number = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'));
    number
        .and_then(|text| u64::from_str_radix(text, 16).ok())
        .ok_or_else(|| bad(field, value, "a hexadecimal number below 2^64"))
}

/// A date and a time of day, such as `2024-01-31 12:34:56.789`, `2024-01-31T12:34:56Z` or with `+09:00`, in nanoseconds
/// since 1970 (UTC).
pub(crate) fn date(field: &'static str, value: &[u8]) -> Result<u64, TraceError> {
    date_ns(value).ok_or_else(|| {
        bad(field, value, "a date and a time of day since 1970, such as 2024-01-31 12:34:56.789")
    })
}

fn date_ns(value: &[u8]) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| digits(value.get(range)?);
    let is = |at: usize, of: &[u8]| value.get(at).is_some_and(|b| of.contains(b));
    if !(is(4, b"-/") && is(7, b"-/") && is(10, b"T ") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute) = (number(11..13)?, number(14..16)?);
    let rest = &value[17..];
    let zone = rest.iter().position(|b| matches!(b, b'Z' | b'+' | b'-')).unwrap_or(rest.len());
    let (seconds, zone) = rest.split_at(zone);
    let second_ns = time("", seconds, SECOND).ok()?;
    let east_min: i64 = match zone {
        b"" | b"Z" => 0,
        [sign, h1, h2, b':', m1, m2] => {
            let minutes = digits(&[*h1, *h2])? * 60 + digits(&[*m1, *m2])?;
            if *sign == b'-' { -(minutes as i64) } else { minutes as i64 }
        }
        _ => return None,
    };
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let lengths = [31, 28 + u64::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let in_month = (month as usize).checked_sub(1).and_then(|month| lengths.get(month))?;
    if year < 1970 || !(1..=*in_month).contains(&day) || hour > 23 || minute > 59 || second_ns >= 61 * SECOND
    {
        return None;
    }
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let days = (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
        + lengths[..month as usize - 1].iter().sum::<u64>()
        + day
        - 1;
    let minutes = ((days * 24 + hour) * 60 + minute) as i64 - east_min;
    u64::try_from(minutes).ok()?.checked_mul(60 * SECOND)?.checked_add(second_ns)
}

/// The bytes of an address or length that is given in sectors of 512 bytes.
#[inline]
pub(crate) fn sectors(field: &'static str, value: &[u8]) -> Result<u64, TraceError> {
    let n = integer(field, value, "a number of sectors")?;
    n.checked_mul(SECTOR)
        .ok_or_else(|| bad(field, value, "a number of sectors whose byte address is below 2^64"))
}

/// Appends `n` as decimal text. This is faster than `write!`.
pub(crate) fn push_number(out: &mut Vec<u8>, mut n: u64) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&buffer[at..]);
}

/// Appends `ns` in units of 10^`digits` ns, with `digits` decimals.
pub(crate) fn push_decimal(out: &mut Vec<u8>, ns: u64, digits: usize) {
    let scale = POWERS[digits];
    push_number(out, ns / scale);
    out.push(b'.');
    let part = ns % scale;
    for i in (0..digits).rev() {
        out.push(b'0' + (part / POWERS[i] % 10) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_comma_is_told_from_other_wrong_times() {
        let told = |value: &[u8]| time("time", value, SECOND).unwrap_err().to_string();
        assert!(told(b"0,5").contains("write decimals after a point"), "{}", told(b"0,5"));
        for other in [&b"0,5s"[..], b",,,", b"1,", b"1,2,3"] {
            assert!(!told(other).contains("comma"), "{}", told(other));
        }
    }

    /// Words and numbers of random text, against splitting at every blank.
    #[test]
    fn words_are_what_is_between_blanks() {
        let mut seed = 1u64;
        let mut draw = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        for _ in 0..20_000 {
            let letters = b"0123456789012345678 \tx\xff\x09\x29 ";
            let line: Vec<u8> = (0..draw(40)).map(|_| letters[draw(letters.len() as u64) as usize]).collect();
            let expected: Vec<&[u8]> = line.split(|&b| is_blank(b)).filter(|word| !word.is_empty()).collect();
            let mut words = Words(&line);
            assert_eq!(std::iter::from_fn(|| words.optional()).collect::<Vec<_>>(), expected);
            let mut words = Words(&line);
            for word in expected {
                let whole = digits(word).filter(|_| word.len() <= 19);
                let in_bytes = whole.and_then(|n| n.checked_mul(SECTOR));
                let rest = words.0;
                assert_eq!(words.sectors(), in_bytes, "{:?}", line.escape_ascii().to_string());
                words.0 = rest;
                assert_eq!(words.whole(), whole, "{:?}", line.escape_ascii().to_string());
                if whole.is_none() {
                    assert_eq!(words.optional(), Some(word));
                }
            }
        }
    }

    #[test]
    fn times_keep_every_nanosecond() {
        assert_eq!(time("t", b"0.312455739", 1_000_000_000).unwrap(), 312_455_739);
        assert_eq!(time("t", b"1456095145.133076000", 1_000_000_000).unwrap(), 1_456_095_145_133_076_000);
        assert_eq!(time("t", b"5265.313", 1_000_000).unwrap(), 5_265_313_000);
        assert_eq!(time("t", b".5", 10).unwrap(), 5);
        assert_eq!(time("t", b"7", 10).unwrap(), 70);
        assert_eq!(time("t", b"1.", 10).unwrap(), 10);
        assert_eq!(time("t", b"0.123456789012345678901", 1_000_000_000).unwrap(), 123_456_789);
    }

    #[test]
    fn errors_of_times_name_expected_and_found() {
        for (text, what) in [
            (&b"-1.5"[..], "negative"),
            (b"1.28166E+17", "spreadsheet"),
            (b"abc", "expected a time, found \"abc\""),
            (b"", "expected a time, found \"\""),
            (b".", "expected a time, found \".\""),
            (b"99999999999999999999", "expected a time, found"),
            (b"18446744073709551615", "expected a time within 64-bit nanoseconds, found"),
        ] {
            let error = time("t", text, 1_000_000_000).unwrap_err();
            assert!(error.message().contains(what), "{error}");
        }
    }

    #[test]
    fn errors_of_integers_name_expected_and_found() {
        for (text, what) in [
            (&b"-1"[..], "expected a number, found the negative number \"-1\""),
            (b"18446744073709551616", "expected a number below 2^64, found"),
            (b"1x", "expected a number, found \"1x\""),
            (b"", "expected a number, found an empty field"),
        ] {
            let error = integer("n", text, "a number").unwrap_err();
            assert!(error.message().contains(what), "{error}");
        }
        assert_eq!(integer("n", b"18446744073709551615", "a number").unwrap(), u64::MAX);
        let error = sectors("n", b"18446744073709551615").unwrap_err();
        assert!(error.message().contains("whose byte address is below 2^64"), "{error}");
    }

    #[test]
    fn whole_numbers_may_have_decimals_that_are_0() {
        assert_eq!(whole("n", b"4096.0", "a number").unwrap(), 4096);
        assert_eq!(whole_time("t", b"1577808000000626.000", 1000).unwrap(), 1_577_808_000_000_626_000);
        let error = whole("n", b"128166372011600556.0", "a number").unwrap_err();
        assert!(error.message().contains("lost its last digits"), "{error}");
        for text in [&b"4096.5"[..], b".0", b"4e3", b"1.0.0", b"-1.0"] {
            assert!(whole("n", text, "a number").is_err());
        }
        assert_eq!(hexadecimal("n", b"0x1F").unwrap(), 31);
        assert_eq!(hexadecimal("n", b"1f").unwrap(), 31);
        assert!(hexadecimal("n", b"").is_err() && hexadecimal("n", b"+1").is_err());
    }

    #[test]
    fn dates_are_utc() {
        for (text, ns) in [
            ("1970-01-01 00:00:00", 0),
            ("2024-02-29T12:34:56.789Z", 1_709_210_096_789_000_000),
            ("2024-03-01T00:00:00+09:00", 1_709_218_800_000_000_000),
            ("2018/10/01 00:00:00", 1_538_352_000_000_000_000),
        ] {
            assert_eq!(date("t", text.as_bytes()).unwrap(), ns, "{text}");
        }
        for text in ["2023-02-29 00:00:00", "2024-13-01 00:00:00", "2024-01-01", "1969-12-31 00:00:00", ""] {
            assert!(date("t", text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn written_numbers_read_back() {
        for n in [0, 9, 10, 1_234_567_890_123, u64::MAX] {
            let mut out = Vec::new();
            push_number(&mut out, n);
            assert_eq!(out, n.to_string().into_bytes());
        }
        let mut out = Vec::new();
        push_decimal(&mut out, 1_000_000_042, 9);
        assert_eq!(out, b"1.000000042");
    }
}
