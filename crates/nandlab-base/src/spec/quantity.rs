//! Numbers with a unit, converted exactly in both directions: text that `show` prints is read as the same value.

use crate::base::units::Span;

/// Units, each with its size as a whole number of base units.
type Scale = &'static [(&'static str, u64)];

/// Units of time, in nanoseconds.
const TIME: Scale = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Units of size, in bytes.
const SIZE: Scale = &[
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// SI prefixes as powers of ten. A dimension uses the first entries of this list.
const PREFIXES: &[(&str, i32)] = &[("", 0), ("m", -3), ("u", -6), ("n", -9), ("p", -12), ("f", -15)];

/// The dimension of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Time, in nanoseconds.
    Time,
    /// Size, in bytes.
    Size,
    /// Energy, in joules.
    Energy,
    /// Power, in watts.
    Power,
    /// Capacitance, in farads.
    Capacitance,
    /// Voltage, in volts.
    Voltage,
    /// Resistance, in ohms.
    Resistance,
}

impl Dimension {
    const ALL: [Dimension; 7] = [
        Dimension::Time,
        Dimension::Size,
        Dimension::Energy,
        Dimension::Power,
        Dimension::Capacitance,
        Dimension::Voltage,
        Dimension::Resistance,
    ];

    /// The name with its article, for a message.
    pub(super) fn name(self) -> &'static str {
        match self {
            Dimension::Time => "a time",
            Dimension::Size => "a size",
            Dimension::Energy => "an energy",
            Dimension::Power => "a power",
            Dimension::Capacitance => "a capacitance",
            Dimension::Voltage => "a voltage",
            Dimension::Resistance => "a resistance",
        }
    }

    /// An example of a quantity.
    pub(super) fn example(self) -> &'static str {
        match self {
            Dimension::Time => "50us",
            Dimension::Size => "4KiB",
            Dimension::Energy => "50uJ",
            Dimension::Power => "50mW",
            Dimension::Capacitance => "75mF",
            Dimension::Voltage => "5.5V",
            Dimension::Resistance => "50mohm",
        }
    }

    /// The units, for a message.
    pub(super) fn units(self) -> &'static str {
        match self {
            Dimension::Time => "ns, us, ms, s, min, h, d",
            Dimension::Size => "B, KiB, MiB, GiB, TiB, or decimal kB, MB, GB, TB",
            Dimension::Energy => "J, mJ, uJ, nJ, pJ, fJ",
            Dimension::Power => "W, mW, uW, nW, pW, fW",
            Dimension::Capacitance => "F, mF, uF",
            Dimension::Voltage => "V, mV",
            Dimension::Resistance => "ohm, mohm",
        }
    }

    /// A regular expression for the accepted texts, for the JSON Schema.
    pub(super) fn pattern(self) -> &'static str {
        match self {
            Dimension::Time => r"^[0-9]+(\.[0-9]+)? ?(ns|us|µs|μs|ms|s|min|h|d)$",
            Dimension::Size => r"^[0-9]+(\.[0-9]+)? ?([kKMGT]?B|[KMGT]iB)$",
            Dimension::Energy => r"^[0-9]+(\.[0-9]+)? ?[munpf]?J$",
            Dimension::Power => r"^[0-9]+(\.[0-9]+)? ?[munpf]?W$",
            Dimension::Capacitance => r"^[0-9]+(\.[0-9]+)? ?[mu]?F$",
            Dimension::Voltage => r"^[0-9]+(\.[0-9]+)? ?m?V$",
            Dimension::Resistance => r"^[0-9]+(\.[0-9]+)? ?m?ohm$",
        }
    }

    /// The unit without a prefix and its prefixes; `None` for a dimension that counts in whole base units.
    fn si(self) -> Option<(&'static str, &'static [(&'static str, i32)])> {
        match self {
            Dimension::Time | Dimension::Size => None,
            Dimension::Energy => Some(("J", PREFIXES)),
            Dimension::Power => Some(("W", PREFIXES)),
            Dimension::Capacitance => Some(("F", &PREFIXES[..3])),
            Dimension::Voltage => Some(("V", &PREFIXES[..2])),
            Dimension::Resistance => Some(("ohm", &PREFIXES[..2])),
        }
    }

    /// The dimension of the quantity `text`; `None` if `text` is not a quantity.
    pub(super) fn of(text: &str) -> Option<Dimension> {
        Dimension::ALL.into_iter().find(|d| match d {
            Dimension::Time | Dimension::Size => !matches!(whole(text, *d), Err(Why::NoUnit | Why::NoNumber)),
            _ => real(text, *d).is_some(),
        })
    }
}

/// Why a text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The text does not begin with a number.
    NoNumber,
    /// The unit is missing or unknown.
    NoUnit,
    /// The value is not a whole number of nanoseconds or bytes, or has more than 15 decimals.
    TooFine,
    /// The value does not fit in 63 bits.
    TooLarge,
}

/// The digits before the point, the digits after the point, and the unit; `None` if `text` does not begin with a
/// number.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (before, after) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    (digits(before) && digits(after)).then(|| (before, after, unit.strip_prefix(' ').unwrap_or(unit)))
}

/// What follows the number in `text`; empty if nothing does, or if `text` does not begin with a number.
pub(super) fn unit_of(text: &str) -> &str {
    split(text).map_or("", |(_, _, unit)| unit)
}

/// The value in nanoseconds or bytes, exact.
pub(super) fn whole(text: &str, dimension: Dimension) -> Result<u64, Why> {
    let (before, after, unit) = split(text).ok_or(Why::NoNumber)?;
    let scale = if dimension == Dimension::Time { TIME } else { SIZE };
    // The micro sign, and the Greek letter that looks like it.
    let unit = if matches!(unit, "\u{b5}s" | "\u{3bc}s") { "us" } else { unit };
    let (_, worth) = scale.iter().find(|(name, _)| *name == unit).ok_or(Why::NoUnit)?;
    let after = after.trim_end_matches('0');
    if after.len() > 15 {
        return Err(Why::TooFine);
    }
    let mantissa: u128 = format!("{before}{after}").parse().map_err(|_| Why::TooLarge)?;
    let scaled = mantissa.checked_mul(u128::from(*worth)).ok_or(Why::TooLarge)?;
    let divisor = 10u128.pow(after.len() as u32);
    if scaled % divisor != 0 {
        return Err(Why::TooFine);
    }
    u64::try_from(scaled / divisor).ok().filter(|v| *v <= i64::MAX as u64).ok_or(Why::TooLarge)
}

/// The value in joules, watts, farads, volts or ohms.
pub(super) fn real(text: &str, dimension: Dimension) -> Option<f64> {
    let (before, after, unit) = split(text)?;
    let (base, prefixes) = dimension.si()?;
    let prefix = unit.strip_suffix(base)?;
    let (_, power) = prefixes.iter().find(|(name, _)| *name == prefix)?;
    format!("{before}.{after}e{power}").parse().ok().filter(|x: &f64| x.is_finite())
}

/// A number as text for a message.
pub fn show_num(value: f64) -> String {
    let plain = value.to_string();
    // Very small and very large numbers would have hundreds of digits.
    if plain.len() > 24 { format!("{value:e}") } else { plain }
}

/// A time in the largest unit that gives a whole number.
pub fn show_time(ns: u64) -> String {
    show(ns, TIME)
}

/// A size in the largest binary unit that gives a whole number.
pub fn show_size(bytes: u64) -> String {
    show(bytes, &[SIZE[0], SIZE[6], SIZE[7], SIZE[8], SIZE[9]])
}

fn show(value: u64, scale: &[(&str, u64)]) -> String {
    let fits = |(_, worth): &&(&str, u64)| value != 0 && value.is_multiple_of(*worth);
    let (unit, worth) = scale.iter().rev().find(fits).unwrap_or(&scale[0]);
    format!("{}{unit}", value / worth)
}

/// A quantity in joules, watts, farads, volts or ohms as text: with a prefix, and with the fewest digits that are read
/// as the same number.
pub fn show_real(value: f64, dimension: Dimension) -> String {
    let (unit, prefixes) = dimension.si().expect("a dimension of real numbers");
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (prefix, power) = match prefixes.iter().find(|(_, power)| *power <= exponent) {
        Some(found) if value != 0.0 => *found,
        Some(_) => prefixes[0],
        None => prefixes[prefixes.len() - 1],
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let shift = if value == 0.0 { 0 } else { exponent - power };
    if shift < 0 {
        let zeros = "0".repeat((-shift - 1) as usize);
        return format!("0.{zeros}{before}{after}{prefix}{unit}");
    }
    let mut digits = format!("{after:0<width$}", width = shift as usize);
    let rest = digits.split_off(shift as usize);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{before}{digits}{point}{rest}{prefix}{unit}")
}

/// A span in the notation of a spec, such as `"30d"`; `None` if `text` is not a time or is beyond [`Span::LIMIT`].
pub fn span(text: &str) -> Option<Span> {
    let ns = whole(text, Dimension::Time).ok()?;
    Some(Span::from_ns(ns)).filter(|&span| span <= Span::LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_are_exact() {
        assert_eq!(whole("3.5ms", Dimension::Time), Ok(3_500_000));
        assert_eq!(whole("0.1us", Dimension::Time), Ok(100));
        assert_eq!(whole("1GB", Dimension::Size), Ok(1_000_000_000));
        assert_eq!(whole("1.5 GiB", Dimension::Size), Ok(3 << 29));
        assert_eq!(whole("0.5ns", Dimension::Time), Err(Why::TooFine));
        assert_eq!(whole("365000d", Dimension::Time), Err(Why::TooLarge));
        assert_eq!(whole("50", Dimension::Time), Err(Why::NoUnit));
        assert_eq!(whole("us", Dimension::Time), Err(Why::NoNumber));
        assert_eq!(whole("1.us", Dimension::Time), Err(Why::NoNumber));
        assert_eq!(real("50uJ", Dimension::Energy), Some(50e-6));
        assert_eq!(Dimension::of("4KiB"), Some(Dimension::Size));
        assert_eq!(Dimension::of("5W"), Some(Dimension::Power));
        assert_eq!(real("75mF", Dimension::Capacitance), Some(0.075));
        assert_eq!(real("470 uF", Dimension::Capacitance), Some(470e-6));
        assert_eq!(real("1nF", Dimension::Capacitance), None);
        assert_eq!(real("5.5V", Dimension::Voltage), Some(5.5));
        assert_eq!(real("1uV", Dimension::Voltage), None);
        assert_eq!(real("50 mohm", Dimension::Resistance), Some(0.05));
        assert_eq!(Dimension::of("75ohm"), Some(Dimension::Resistance));
        assert_eq!(Dimension::of("75mF"), Some(Dimension::Capacitance));
        assert_eq!(Dimension::of("3300mV"), Some(Dimension::Voltage));
        assert_eq!(Dimension::of("often"), None);
    }

    #[test]
    fn quantities_are_shown_in_the_largest_suitable_unit() {
        assert_eq!([show_num(0.05), show_num(1.0), show_num(5e-324)], ["0.05", "1", "5e-324"]);
        assert_eq!(show_time(3_500_000), "3500us");
        assert_eq!(show_time(0), "0ns");
        assert_eq!(show_time(365 * 86_400_000_000_000), "365d");
        assert_eq!(show_size(4096), "4KiB");
        assert_eq!(show_size(1_000_000_000), "1000000000B");
        assert_eq!(show_real(50e-6, Dimension::Energy), "50uJ");
        assert_eq!(show_real(74.25e-6, Dimension::Energy), "74.25uJ");
        assert_eq!(show_real(0.05, Dimension::Power), "50mW");
        assert_eq!(show_real(0.0, Dimension::Power), "0W");
        assert_eq!(show_real(1500.0, Dimension::Energy), "1500J");
        assert_eq!(show_real(1e-17, Dimension::Energy), "0.01fJ");
        assert_eq!(show_real(0.075, Dimension::Capacitance), "75mF");
        assert_eq!(show_real(1e-9, Dimension::Capacitance), "0.001uF");
        assert_eq!(show_real(5.5, Dimension::Voltage), "5.5V");
        assert_eq!(show_real(0.05, Dimension::Resistance), "50mohm");
        assert_eq!(show_real(0.0, Dimension::Voltage), "0V");
    }

    proptest! {
        #[test]
        fn shown_quantities_are_read_as_the_same_value(v in 0..=i64::MAX as u64, x in 0.0..1e6f64, e in -20..3i32) {
            prop_assert_eq!(whole(&show_time(v), Dimension::Time), Ok(v));
            prop_assert_eq!(whole(&show_size(v), Dimension::Size), Ok(v));
            let x = x * 10f64.powi(e);
            for dimension in [Dimension::Energy, Dimension::Capacitance, Dimension::Voltage, Dimension::Resistance] {
                prop_assert_eq!(real(&show_real(x, dimension), dimension), Some(x));
            }
        }

        #[test]
        fn no_text_makes_the_reader_of_quantities_panic(text in ".*") {
            let _ = Dimension::of(&text);
        }
    }
}
