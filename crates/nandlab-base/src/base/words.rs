//! Numbers as text for people.

/// A number as text: whole from 100 up (`912`, `48,100`), with one decimal from 10 up (`12.3`), with two from 0.01 up
/// (`1.07`), and in scientific notation below 0.01 and from 1e15 up (`1.2e-4`). Zero is `0`.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1e15 => format!("{value:.1e}"),
        size if size >= 100.0 => thousands(value.round() as i64),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.1e}"),
    }
}

fn thousands(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if value < 0 { format!("-{out}") } else { out }
}

/// A count with commas between its thousands.
pub fn count(value: u64) -> String {
    thousands(i64::try_from(value).unwrap_or(i64::MAX))
}

/// A count with its noun: `1 block`, `2 blocks`.
pub fn several(value: u64, what: &str) -> String {
    format!("{} {what}{}", count(value), if value == 1 { "" } else { "s" })
}

/// Names as a list: `a`, `a and b`, `a, b and c`.
pub fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `some / of` in per cent. A share other than 0 and 1 is never rounded to 0 or 100 per cent.
pub fn part(some: f64, of: f64) -> String {
    let percent = 100.0 * some / of;
    if some != 0.0 && percent < 0.05 {
        "<0.1 %".to_owned()
    } else if some != of && percent >= 99.95 {
        ">99.9 %".to_owned()
    } else {
        format!("{percent:.1} %")
    }
}

/// A value >= 0, rounded to `digits` digits but at most to a whole number, without trailing zeros after the point. A zero
/// before the point counts as a digit.
fn digits(value: f64, digits: usize) -> String {
    let whole = if value >= 1.0 { libm::log10(value) as usize + 1 } else { 1 };
    let text = format!("{value:.*}", digits.saturating_sub(whole));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Bytes in binary units.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut amount = bytes as f64;
    let mut unit = 0;
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{} {}", digits(amount, 3), UNITS[unit])
}

/// A time as text, in a unit that suits its size.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s <= 0.0 => "0 s".to_owned(),
        s if s < 1e-3 => format!("{} µs", digits(s * 1e6, 3)),
        s if s < 1.0 => format!("{} ms", digits(s * 1e3, 3)),
        s if s < 60.0 => format!("{} s", digits(s, 3)),
        s if s < 3600.0 => format!("{} min {:02} s", (s / 60.0) as u64, (s % 60.0) as u64),
        s if s < 86_400.0 => format!("{} h {:02} min", (s / 3600.0) as u64, (s % 3600.0 / 60.0) as u64),
        s if s < 864e6 => {
            let days = digits(s / 86_400.0, 3);
            format!("{days} {}", if days == "1" { "day" } else { "days" })
        }
        s => format!("{} years", number(s / (365.0 * 86_400.0))),
    }
}

/// An energy as text, in a unit that suits its size.
pub fn joules(energy: f64) -> String {
    match energy {
        0.0 => "0 J".to_owned(),
        j if j >= 1.0 => format!("{} J", number(j)),
        j if j >= 1e-3 => format!("{} mJ", digits(j * 1e3, 3)),
        j => format!("{} µJ", digits(j * 1e6, 3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_in_the_reports() {
        let numbers = [0.0, 1.066, 12.34, 912.4, 48_100.2, 0.000_12].map(number);
        assert_eq!(numbers, ["0", "1.07", "12.3", "912", "48,100", "1.2e-4"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1, 2].map(|n| several(n, "block")), ["1 block", "2 blocks"]);
        assert_eq!(
            [part(1.0, 3.0), part(1.0, 1e4), part(9999.0, 1e4), part(1.0, 1.0)],
            ["33.3 %", "<0.1 %", ">99.9 %", "100.0 %"]
        );
        assert_eq!([512, 1024, 1536, 128 << 30].map(size), ["512 B", "1 KiB", "1.5 KiB", "128 GiB"]);
        let times = [0.0, 2.5e-5, 0.0125, 12.0, 75.0, 3700.0, 2e5].map(duration);
        assert_eq!(times, ["0 s", "25 µs", "12.5 ms", "12 s", "1 min 15 s", "1 h 01 min", "2.31 days"]);
        let limits = [1e-3, 1.0, 60.0, 3600.0, 86_400.0, 864e6].map(duration);
        assert_eq!(limits, ["1 ms", "1 s", "1 min 00 s", "1 h 00 min", "1 day", "27.4 years"]);
        assert_eq!([0.0, 2.0, 0.0123, 4.5e-5].map(joules), ["0 J", "2.00 J", "12.3 mJ", "45 µJ"]);
    }
}
