//! The columns of a text trace: the meaning and the unit of each column of a line.
//!
//! A user describes the columns in one text, which [`Columns::parse`] reads; the named formats that are only columns are
//! constants of the same type. The text is a list of columns, separated by commas, and then settings, each after a
//! semicolon:
//!
//! `time_ms, device, offset, size, op(1=read, 0=write); separator=tab; header=1`

use crate::base::request::Op;

/// The columns of a line, and how they are separated.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// Whether a line may have further columns, which are ignored.
    pub is_open: bool,
    /// What separates the columns.
    pub separator: Separator,
    /// Number of lines at the start that are ignored.
    pub header_lines: u64,
    /// A line that starts with this text is ignored; empty: none.
    pub comment: Vec<u8>,
    /// The operation of every request, if no column has it.
    pub op: Option<Op>,
    /// The length of every request in bytes, if no column has it.
    pub size: Option<u64>,
}

/// What separates the columns of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// The first of comma, tab, semicolon, bar and blanks with which lines have the described columns.
    Any,
    /// Spaces and tabs, any number of them.
    Blanks,
    /// One byte. Blanks around a value are ignored, and a value may be in double quotes.
    Byte(u8),
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The name of the column, for messages.
    pub field: &'static str,
    /// The meaning of the column.
    pub kind: Kind,
}

/// The meaning of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A time, in whole units of so many nanoseconds.
    Ticks(u64),
    /// A time, in units of so many nanoseconds, with or without decimals; rounded to a nanosecond.
    Time(u64),
    /// A time, in whole parts of a nanosecond, so many of them in one; rounded down.
    Parts(u64),
    /// A date and a time of day.
    Date,
    /// The device, or a part of its name.
    Device,
    /// The device, as a whole number.
    DeviceNumber,
    /// The address, in units of so many bytes.
    Offset(Unit),
    /// The length, in units of so many bytes.
    Size(Unit),
    /// The operation.
    Op(Ops),
    /// The placement of the request, as in [`Tag::placement`](crate::base::request::Tag); blank: 0.
    Placement,
    /// A whole number of at most this, without a meaning for the simulation.
    Number(u64),
    /// Anything without a meaning for the simulation.
    Skip,
    /// One or more words without a meaning for the simulation, such as the name of a process.
    Words,
}

/// The unit of a column of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The unit, in bytes.
    pub bytes: u64,
    /// Whether the numbers are hexadecimal, with or without `0x`.
    pub hex: bool,
}

/// What the values of a column of operations mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Ops {
    /// Each value and its meaning.
    Values {
        /// The values; `None`: a record with the value is ignored.
        values: Vec<(String, Option<Op>)>,
        /// Whether upper and lower case are the same.
        any_case: bool,
        /// Whether a record with another value is ignored; otherwise another value is an error.
        ignore_others: bool,
    },
    /// A hexadecimal bit field: a set bit 0 is a read, a bit 0 that is not set is a write.
    Bit0,
}

impl Column {
    /// The column with values that may be in upper or lower case.
    #[must_use]
    pub fn in_any_case(mut self) -> Self {
        if let Kind::Op(Ops::Values { any_case, .. }) = &mut self.kind {
            *any_case = true;
        }
        self
    }
}

impl Unit {
    /// Numbers in units of this many bytes, decimal.
    pub const fn of(bytes: u64) -> Self {
        Self { bytes, hex: false }
    }
}

/// Why a description of columns is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnsError {
    /// What is wrong.
    pub message: String,
    /// What the user can do.
    pub remedy: String,
}

/// An example for messages.
const EXAMPLE: &str = "\"time_ms, device, offset, size, op(1=read, 0=write)\"";
const COLUMN_NAMES: &str = "time_s, time_ms, time_us, time_ns, time_100ns, time_date, device, offset, lba*512, size, \
                            sectors*512, op, placement, skip, and ... at the end for any further columns";
const SETTING_NAMES: &str = "separator, header, comment, op, size, time=none";

/// The values of a column `op` without a list of values.
const USUAL_OPS: [(&str, Op); 12] = [
    ("R", Op::Read),
    ("W", Op::Write),
    ("Read", Op::Read),
    ("Write", Op::Write),
    ("D", Op::Trim),
    ("Trim", Op::Trim),
    ("Discard", Op::Trim),
    ("Unmap", Op::Trim),
    ("F", Op::Flush),
    ("Flush", Op::Flush),
    ("RS", Op::Read),
    ("WS", Op::Write),
];

fn refused<T>(message: impl Into<String>, remedy: impl Into<String>) -> Result<T, ColumnsError> {
    Err(ColumnsError { message: message.into(), remedy: remedy.into() })
}

impl Columns {
    /// Reads a description of columns.
    ///
    /// # Errors
    /// A text that is no description, or a description without a column that every request needs.
    pub fn parse(text: &str) -> Result<Self, ColumnsError> {
        let mut parts = split(text, ';').into_iter();
        let mut of = Self {
            columns: Vec::new(),
            is_open: false,
            separator: Separator::Any,
            header_lines: 0,
            comment: Vec::new(),
            op: None,
            size: None,
        };
        let mut columns = Vec::new();
        let listed = split(parts.next().unwrap_or_default(), ',');
        let last = listed.len();
        for (part, number) in listed.into_iter().zip(1..) {
            match part {
                "..." if number == last => of.is_open = true,
                "..." => {
                    return refused("... is not the last column", "write skip for a column that is ignored");
                }
                _ => column(part, number, &mut columns)?,
            }
        }
        let mut is_timed = true;
        for part in parts {
            of.set(part, &mut is_timed)?;
        }
        of.columns = columns;
        of.check(is_timed)?;
        Ok(of)
    }

    /// Applies one setting after a semicolon.
    fn set(&mut self, part: &str, is_timed: &mut bool) -> Result<(), ColumnsError> {
        let Some((name, value)) = part.split_once('=').map(|(name, value)| (name.trim(), value.trim()))
        else {
            return refused(
                format!("{part:?} is no setting"),
                format!("write a setting as name=value; there are: {SETTING_NAMES}"),
            );
        };
        match name {
            "separator" => {
                self.separator = match unquoted(value) {
                    "comma" => Separator::Byte(b','),
                    "tab" => Separator::Byte(b'\t'),
                    "semicolon" => Separator::Byte(b';'),
                    "bar" => Separator::Byte(b'|'),
                    "colon" => Separator::Byte(b':'),
                    "blanks" => Separator::Blanks,
                    one if one.len() == 1 && !one.as_bytes()[0].is_ascii_alphanumeric() && one != "\"" => {
                        Separator::Byte(one.as_bytes()[0])
                    }
                    _ => {
                        return refused(
                            format!("separator={value} is no separator"),
                            "write comma, tab, semicolon, bar, colon, blanks, or one character such as '/'",
                        );
                    }
                }
            }
            "header" => match value.parse::<u64>() {
                Ok(lines) if lines <= 1_000_000 => self.header_lines = lines,
                _ => return refused(format!("header={value} is no number of lines"), "write header=1"),
            },
            "comment" => match unquoted(value) {
                "" => {
                    return refused(
                        "comment= has no text",
                        "write the start of a comment, such as comment=#",
                    );
                }
                text => self.comment = text.as_bytes().to_vec(),
            },
            "op" => match meaning(value)? {
                Some(op) => self.op = Some(op),
                None => return refused("op=ignore ignores every line", "write op=read or op=write"),
            },
            "size" => match value.parse::<u64>() {
                Ok(bytes) if bytes > 0 => self.size = Some(bytes),
                _ => return refused(format!("size={value} is no length in bytes"), "write size=4096"),
            },
            "time" if value == "none" => *is_timed = false,
            "time" => {
                return refused(
                    format!("time={value} is no setting"),
                    "write time=none if the trace has no times: all requests then arrive at once",
                );
            }
            _ => {
                return refused(format!("{name:?} is no setting"), format!("there are: {SETTING_NAMES}"));
            }
        }
        Ok(())
    }

    /// Refuses a description with which no request is whole, or in which a column has no effect.
    fn check(&self, is_timed: bool) -> Result<(), ColumnsError> {
        let count = |is: fn(&Kind) -> bool| self.columns.iter().filter(|column| is(&column.kind)).count();
        let times =
            count(|kind| matches!(kind, Kind::Time(_) | Kind::Ticks(_) | Kind::Parts(_) | Kind::Date));
        let placements = count(|kind| matches!(kind, Kind::Placement));
        let of_kind = [
            ("a time", times, !is_timed, "time_ms, or time=none after a semicolon"),
            ("an address", count(|kind| matches!(kind, Kind::Offset(_))), false, "offset (bytes) or lba*512"),
            (
                "a length",
                count(|kind| matches!(kind, Kind::Size(_))),
                self.size.is_some(),
                "size (bytes), sectors*512, or size=4096 after a semicolon",
            ),
            (
                "an operation",
                count(|kind| matches!(kind, Kind::Op(_))),
                self.op.is_some(),
                "op(1=read, 0=write), or op=read after a semicolon",
            ),
            // Without a column a request has placement 0.
            ("a placement", placements, placements == 0, ""),
        ];
        for (what, count, is_set, remedy) in of_kind {
            match (count, is_set) {
                (0, false) => return refused(format!("no column has {what}"), format!("add {remedy}")),
                (0, true) | (1, false) => {}
                (_, false) => {
                    return refused(
                        format!("{count} columns have {what}"),
                        "write skip for all but one of them",
                    );
                }
                (_, true) => {
                    return refused(
                        format!("a column and a setting both have {what}"),
                        "leave the setting out, or write skip for the column",
                    );
                }
            }
        }
        Ok(())
    }
}

/// Appends the column that `part` describes; `number` is its number, from 1.
fn column(part: &str, number: usize, columns: &mut Vec<Column>) -> Result<(), ColumnsError> {
    let (head, inside) = match part.split_once('(') {
        Some((head, rest)) => match rest.strip_suffix(')') {
            Some(inside) => (head.trim(), Some(inside.trim())),
            None => {
                return refused(
                    format!("column {number}: {part:?} has no closing )"),
                    format!("write {EXAMPLE}"),
                );
            }
        },
        None => (part, None),
    };
    let (name, factor) = match head.split_once('*') {
        Some((name, factor)) => (name.trim(), Some(factor.trim())),
        None => (head, None),
    };
    let factor = match factor.map(|factor| (factor, factor.parse::<u64>())) {
        None => None,
        Some((_, Ok(factor))) if (1..=1 << 40).contains(&factor) => Some(factor),
        Some((factor, _)) => {
            return refused(
                format!("column {number}: {factor:?} is no unit in bytes"),
                "write a whole number of bytes, such as lba*512",
            );
        }
    };
    let hex = match (name, inside) {
        ("offset" | "lba" | "size" | "sectors", Some("hex")) => true,
        ("op", _) | (_, None) => false,
        (_, Some(inside)) => {
            return refused(
                format!("column {number}: {name} takes no ({inside})"),
                "only offset, lba, size and sectors may be (hex), and op may have values: op(1=read, 0=write)",
            );
        }
    };
    let unit = |bytes| Unit { bytes, hex };
    let (field, kind) = match (name, factor) {
        ("time_s", None) => ("time_s", Kind::Time(1_000_000_000)),
        ("time_ms", None) => ("time_ms", Kind::Time(1_000_000)),
        ("time_us", None) => ("time_us", Kind::Time(1_000)),
        ("time_ns", None) => ("time_ns", Kind::Time(1)),
        ("time_100ns", None) => ("time_100ns", Kind::Time(100)),
        ("time_date", None) => ("time_date", Kind::Date),
        ("device", None) => ("device", Kind::Device),
        ("offset", _) => ("offset", Kind::Offset(unit(factor.unwrap_or(1)))),
        ("lba", Some(bytes)) => ("lba", Kind::Offset(unit(bytes))),
        ("size", _) => ("size", Kind::Size(unit(factor.unwrap_or(1)))),
        ("sectors", Some(bytes)) => ("sectors", Kind::Size(unit(bytes))),
        ("op", None) => ("op", Kind::Op(ops(inside)?)),
        ("placement", None) => ("placement", Kind::Placement),
        ("skip", None) => ("skip", Kind::Skip),
        ("skip", Some(count @ 1..=1000)) => {
            columns.extend((0..count).map(|_| Column { field: "skip", kind: Kind::Skip }));
            return Ok(());
        }
        ("lba" | "sectors", None) => {
            return refused(
                format!("column {number}: {name} has no unit"),
                format!("write {name}*512 or {name}*4096: the bytes of one"),
            );
        }
        ("time", None) => {
            return refused(
                format!("column {number}: time has no unit"),
                "write time_s, time_ms, time_us, time_ns, time_100ns or time_date",
            );
        }
        ("", None) => return refused(format!("column {number} has no name"), format!("write {EXAMPLE}")),
        _ => {
            return refused(
                format!("column {number}: {head:?} is no column"),
                format!("there are: {COLUMN_NAMES}"),
            );
        }
    };
    columns.push(Column { field, kind });
    Ok(())
}

/// The values of a column of operations, as `inside` the parentheses lists them.
fn ops(inside: Option<&str>) -> Result<Ops, ColumnsError> {
    let Some(inside) = inside else {
        let values = USUAL_OPS.iter().map(|&(value, op)| (value.to_owned(), Some(op))).collect();
        return Ok(Ops::Values { values, any_case: true, ignore_others: false });
    };
    let (mut values, mut ignore_others) = (Vec::new(), false);
    for part in split(inside, ',') {
        let Some((value, what)) = part.rsplit_once('=').map(|(value, what)| (value.trim(), what.trim()))
        else {
            return refused(
                format!("op: {part:?} has no meaning"),
                "write each value and its meaning: op(1=read, 0=write)",
            );
        };
        let op = meaning(what)?;
        match (value, op) {
            ("*", None) => ignore_others = true,
            ("*", Some(_)) => {
                return refused(
                    format!("op: *={what} makes every unknown value a {what}"),
                    "list the values, and write *=ignore for the others",
                );
            }
            (value, op) => {
                let value = unquoted(value);
                if values.iter().any(|(known, _)| known == value) {
                    return refused(
                        format!("op: the value {value:?} has two meanings"),
                        "write each value once",
                    );
                }
                values.push((value.to_owned(), op));
            }
        }
    }
    if values.iter().all(|(_, op)| op.is_none()) {
        return refused("op: no value is a request", "write op(1=read, 0=write)");
    }
    Ok(Ops::Values { values, any_case: false, ignore_others })
}

/// The meaning of a value of a column of operations.
fn meaning(what: &str) -> Result<Option<Op>, ColumnsError> {
    match what {
        "read" => Ok(Some(Op::Read)),
        "write" => Ok(Some(Op::Write)),
        "trim" => Ok(Some(Op::Trim)),
        "flush" => Ok(Some(Op::Flush)),
        "ignore" => Ok(None),
        _ => refused(format!("op: {what:?} is no operation"), "write read, write, trim, flush or ignore"),
    }
}

/// The value inside single quotes, or the value itself.
fn unquoted(value: &str) -> &str {
    value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(value)
}

/// The parts of `text` between `separator`s outside parentheses and single quotes, without the blanks around them.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut is_quoted) = (Vec::new(), 0, 0u32, false);
    for (at, c) in text.char_indices() {
        match c {
            '\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if c == separator && depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        Columns::parse(text).unwrap().columns.iter().map(|column| column.kind.clone()).collect()
    }

    #[test]
    fn every_column_has_its_unit() {
        let found = kinds("time_ms, device, lba*4096, sectors*512(hex), op(1=read, 0=write)");
        assert_eq!(found[..3], [Kind::Time(1_000_000), Kind::Device, Kind::Offset(Unit::of(4096))]);
        assert_eq!(found[3], Kind::Size(Unit { bytes: 512, hex: true }));
        let Kind::Op(Ops::Values { values, any_case: false, ignore_others: false }) = &found[4] else {
            panic!()
        };
        assert_eq!(values[..], [("1".into(), Some(Op::Read)), ("0".into(), Some(Op::Write))]);
        assert_eq!(kinds("time_s, skip*2, offset, size, op")[1..3], [Kind::Skip, Kind::Skip]);
    }

    #[test]
    fn settings_follow_a_semicolon() {
        let found =
            Columns::parse("offset, ...; separator=';'; header=2; comment=#; op=read; size=4096; time=none");
        let found = found.unwrap();
        assert_eq!((found.separator, found.header_lines, found.is_open), (Separator::Byte(b';'), 2, true));
        assert_eq!((&found.comment[..], found.op, found.size), (&b"#"[..], Some(Op::Read), Some(4096)));
    }

    #[test]
    fn errors_name_the_column_and_the_remedy() {
        for (text, message, remedy) in [
            ("time, offset, size, op", "column 1: time has no unit", "time_ms"),
            ("time_s, lba, size, op", "column 2: lba has no unit", "lba*512"),
            ("time_s, ofset, size, op", "column 2: \"ofset\" is no column", "offset"),
            ("time_s, offset, size", "no column has an operation", "op=read"),
            ("offset, size, op", "no column has a time", "time=none"),
            ("time_s, offset, offset, size, op", "2 columns have an address", "skip"),
            ("time_s, offset, size, op, placement, placement", "2 columns have a placement", "skip"),
            ("time_s, offset, size, op, placement(hex)", "column 5: placement takes no (hex)", "only offset"),
            ("time_s, offset, size, op; op=read", "a column and a setting both have an operation", "leave"),
            ("time_s, offset, size, op(1=reed)", "op: \"reed\" is no operation", "read, write"),
            ("time_s, offset, size, op(1)", "op: \"1\" has no meaning", "1=read"),
            ("time_s, offset, size, op(1=read, 1=write)", "op: the value \"1\" has two meanings", "once"),
            ("time_s, offset, size, op(*=read)", "every unknown value", "*=ignore"),
            ("time_s(hex), offset, size, op", "column 1: time_s takes no (hex)", "only offset"),
            ("time_s, lba*x, size, op", "column 2: \"x\" is no unit", "lba*512"),
            ("time_s, offset, size, op; sep=tab", "\"sep\" is no setting", "separator"),
            ("time_s, offset, size, op; separator=ab", "separator=ab is no separator", "comma"),
            ("..., time_s", "... is not the last column", "skip"),
            ("", "column 1 has no name", "time_ms"),
            ("time_s, op(1=read", "column 2: \"op(1=read\" has no closing )", "write"),
        ] {
            let error = Columns::parse(text).expect_err(text);
            assert!(error.message.contains(message) && error.remedy.contains(remedy), "{text}: {error:?}");
        }
    }
}
