//! `reliability.rber.table`: measured characterisation data, interpolated. A CSV file has the RBER by P/E cycles,
//! retention and reads.
//!
//! ```csv
//! # 3D TLC, 55 C, median of 128 blocks
//! pe_cycles,retention,reads,rber
//! 0,0s,0,1e-5
//! 0,30d,0,4e-5
//! 3000,0s,0,2e-4
//! 3000,30d,0,1.1e-3
//! ```
//!
//! - The first line that is not a comment (`#`) names the columns, in any order: `pe_cycles`, `retention`, `rber` and,
//!   if reads matter, `reads` (of the block since its erase). Retention is in seconds, or has a unit: s, min, h, d.
//! - The points form a grid: every combination of the P/E cycles, retentions and reads in the file has exactly one
//!   line. RBER is from 0 to 0.5.
//! - Over P/E cycles and over ln(1 + t / 1 h) the fourth root of the RBER is interpolated linearly. Retention loss is
//!   about linear in this logarithm (LaLDPC, Eq. 1). The fourth root is a compromise: interpolating the RBER itself
//!   overstates a curve that grows by powers, and the logarithm of the RBER is not defined at 0.
//! - Over reads the RBER itself is interpolated linearly, because each read adds the same disturbance.
//! - Outside the grid the RBER is that of the nearest edge.

use super::grid::Axis;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The unit of time in ln(1 + t / 1 h), in seconds.
const HOUR_S: f64 = 3600.0;
/// The largest count or age in a look-up, exact as an `f64`.
const COUNT_MAX: f64 = u32::MAX as f64;
/// Units of retention, in seconds.
const UNITS: [(&str, f64); 4] = [("min", 60.0), ("s", 1.0), ("h", 3600.0), ("d", 86_400.0)];
/// Buckets of values. The search for the knots around a value starts at a knot that depends on the value's bucket.
const BUCKETS: Axis = Axis { bits: 3, first: 8.0 };

/// Characterisation data: RBER over a full grid of P/E cycles, retention and reads. A copy shares the data.
#[derive(Clone, PartialEq)]
pub struct RberTable(Arc<Content>);

#[derive(PartialEq)]
struct Content {
    pe_cycles: Knots,
    /// Retention in seconds, interpolated on ln(1 + t / 1 h).
    age: Knots,
    reads: Knots,
    logarithm: Logarithm,
    /// Fourth roots of the RBER; P/E cycles vary slowest, reads fastest.
    roots: Vec<f64>,
}

/// The points of the table along an axis.
#[derive(PartialEq)]
struct Knots {
    /// The knots in ascending order, in the unit of the axis.
    at: Vec<f64>,
    /// The knots on the scale on which values are interpolated.
    scaled: Vec<f64>,
    /// For each knot 1 / (distance to the next knot on the scale); 0 for the last knot.
    inverse: Vec<f64>,
    /// For each knot the next knot; infinity for the last knot.
    next: Vec<f64>,
    /// For each bucket of [`BUCKETS`] the last knot at or below the bucket's lowest value; the first knot if there is
    /// none.
    starts: Vec<u32>,
}

impl Knots {
    fn new(at: Vec<f64>, scaled: impl Fn(f64) -> f64) -> Self {
        let scaled: Vec<f64> = at.iter().map(|value| scaled(*value)).collect();
        // Neighbouring knots may be equal on the scale after rounding; the function then has a step.
        let inverse = |pair: &[f64]| if pair[1] > pair[0] { 1.0 / (pair[1] - pair[0]) } else { 0.0 };
        let inverse = scaled.windows(2).map(inverse).chain([0.0]).collect();
        let next = at[1..].iter().copied().chain([f64::INFINITY]).collect();
        let start = |bucket| at[1..].partition_point(|knot| *knot <= BUCKETS.value(bucket)) as u32;
        let starts = (0..BUCKETS.nodes(u32::MAX)).map(start).collect();
        Self { at, scaled, inverse, next, starts }
    }

    /// The knot at or below a value, the next knot, and the position of `scaled` between the two (0 to 1).
    #[inline(always)]
    fn locate(&self, value: u32, scaled: f64) -> (usize, usize, f64) {
        let mut low = self.starts[BUCKETS.split(value).0] as usize;
        // A branch is faster here than branch-free code: if it is predicted, the following loads need not wait for the
        // comparison.
        while self.next[low] <= f64::from(value) {
            low += 1;
        }
        let part = ((scaled - self.scaled[low]) * self.inverse[low]).clamp(0.0, 1.0);
        (low, (low + 1).min(self.at.len() - 1), part)
    }
}

impl RberTable {
    /// Reads a table from a file.
    pub fn read(path: &Path) -> Result<Self, TableError> {
        let name = path.display().to_string();
        let refused = |message| TableError {
            origin: name.clone(),
            line: None,
            column: None,
            message,
            remedy: "name a CSV file; relative paths start at the spec's folder".into(),
        };
        let cannot = |error: std::io::Error| refused(format!("cannot be read: {error}"));
        // Reading a device might never end.
        if !std::fs::metadata(path).map_err(cannot)?.is_file() {
            return Err(refused("is not a file".into()));
        }
        let text = std::fs::read_to_string(path).map_err(cannot)?;
        Self::from_text(&text, &name)
    }

    /// Reads a table from CSV text; `name` is the file's name in messages.
    pub fn from_text(text: &str, name: &str) -> Result<Self, TableError> {
        parse(text).map_err(|error| TableError { origin: name.into(), ..error })
    }

    /// RBER, 0 to 0.5, after `pe_cycles` P/E cycles, `age_s` seconds and `reads` reads of the block.
    // Not inlined, so that the code of the other models does not have to save the registers of this function.
    #[inline(never)]
    pub fn rber(&self, pe_cycles: u32, age_s: u32, reads: u32) -> f64 {
        let table = &*self.0;
        let (row, next_row, down) = table.pe_cycles.locate(pe_cycles, f64::from(pe_cycles));
        let (plane, next_plane, right) = table.age.locate(age_s, table.logarithm.of_hours(f64::from(age_s)));
        let (planes, columns) = (table.age.at.len(), table.reads.at.len());
        let corner = |row: usize, plane: usize| (row * planes + plane) * columns;
        let corners = [
            corner(row, plane),
            corner(row, next_plane),
            corner(next_row, plane),
            corner(next_row, next_plane),
        ];
        let at = |column: usize| {
            let q = corners.map(|corner| table.roots[corner + column]);
            let above = q[0] + right * (q[1] - q[0]);
            let below = q[2] + right * (q[3] - q[2]);
            let root = above + down * (below - above);
            let square = root * root;
            square * square
        };
        if columns == 1 {
            return at(0);
        }
        let (column, next_column, deep) = table.reads.locate(reads, f64::from(reads));
        let few = at(column);
        few + deep * (at(next_column) - few)
    }

    /// A hash of the content (FNV-1a, 64 bits). Tables that differ only in the order of lines and columns and in units
    /// have the same hash.
    pub fn content_hash(&self) -> u64 {
        let Content { pe_cycles, age, reads, roots, .. } = &*self.0;
        let lengths = [pe_cycles, age, reads].map(|axis| axis.at.len() as f64);
        let values = [&lengths[..], &pe_cycles.at, &age.at, &reads.at, roots];
        let bytes = values.into_iter().flatten().flat_map(|value| value.to_bits().to_le_bytes());
        bytes
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

impl fmt::Debug for RberTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Content { pe_cycles, age, reads, .. } = &*self.0;
        let [p, t, r] = [pe_cycles, age, reads].map(|axis| axis.at.len());
        write!(f, "RberTable({p} x {t} x {r} points, {:016x})", self.content_hash())
    }
}

/// ln x for x >= 1, exact to 2e-8, in a few multiplications, because every read needs a logarithm. The result is the
/// sum of the logarithm of the exponent, an entry of a table of 32 mantissas, and three terms of the series around the
/// mantissa of the entry.
#[derive(PartialEq)]
struct Logarithm {
    /// For the middle m of each 32nd of an octave: 1 / m and ln m.
    mantissas: [(f64, f64); 32],
}

impl Logarithm {
    fn new() -> Self {
        let middle = |i: usize| 1.0 + (i as f64 + 0.5) / 32.0;
        Self { mantissas: std::array::from_fn(|i| (1.0 / middle(i), libm::log(middle(i)))) }
    }

    /// ln(1 + t / 1 h) of an age in seconds.
    #[inline]
    fn of_hours(&self, age_s: f64) -> f64 {
        self.of(1.0 + age_s * (1.0 / HOUR_S))
    }

    #[inline]
    fn of(&self, x: f64) -> f64 {
        let bits = x.to_bits();
        let octaves = (bits >> 52) as i64 - 1023;
        let (inverse, log) = self.mantissas[(bits >> 47) as usize & 31];
        let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
        let rest = mantissa * inverse - 1.0;
        let series = rest * (1.0 - rest * (0.5 - rest * (1.0 / 3.0)));
        octaves as f64 * std::f64::consts::LN_2 + log + series
    }
}

/// Why a table could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    /// The file's name.
    pub origin: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column's name.
    pub column: Option<&'static str>,
    /// What is wrong.
    pub message: String,
    /// How to correct the table.
    pub remedy: String,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ": {column}")?;
        }
        write!(f, ": {}\n  remedy: {}", self.message, self.remedy)
    }
}

impl std::error::Error for TableError {}

/// The columns; only `reads` may be left out.
const COLUMNS: [&str; 4] = ["pe_cycles", "retention", "reads", "rber"];
const READS: usize = 2;
const RBER: usize = 3;

fn error(
    line: Option<u32>,
    column: Option<&'static str>,
    message: impl Into<String>,
    remedy: impl Into<String>,
) -> TableError {
    TableError { origin: String::new(), line, column, message: message.into(), remedy: remedy.into() }
}

/// A data line of the file: the number of the line, and the values by column.
struct Row {
    line: u32,
    values: [f64; 4],
}

fn parse(text: &str) -> Result<RberTable, TableError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let numbered = (1u32..).zip(text.lines().map(str::trim));
    let mut lines = numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let example = format!("begin with the line {}", COLUMNS.join(","));
    let Some((line, header)) = lines.next() else {
        return Err(error(None, None, "the table is empty", example));
    };
    let columns = columns(line, header)?;
    let mut rows = lines.map(|(line, text)| row(line, text, &columns)).collect::<Result<Vec<_>, _>>()?;
    if rows.is_empty() {
        return Err(error(
            Some(line),
            None,
            "no data after the header",
            "add a line for each measured point",
        ));
    }
    let point = |row: &Row| [row.values[0], row.values[1], row.values[2]];
    let order = |a: &[f64; 3], b: &[f64; 3]| a.partial_cmp(b).expect("numbers only");
    rows.sort_by(|a, b| order(&point(a), &point(b)).then(a.line.cmp(&b.line)));
    if let Some(pair) =
        rows.windows(2).filter(|pair| point(&pair[0]) == point(&pair[1])).min_by_key(|p| p[1].line)
    {
        let message = format!("repeats the point of line {}: {}", pair[0].line, show(&point(&pair[1])));
        return Err(error(Some(pair[1].line), None, message, "keep one of the two"));
    }
    let axis = |column: usize| {
        let mut values: Vec<f64> = rows.iter().map(|row| row.values[column]).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    };
    let (pe_cycles, age_s, reads) = (axis(0), axis(1), axis(READS));
    let mut roots = Vec::with_capacity(rows.len());
    // Rows are sorted and no point occurs twice, so the first row that differs from the grid's next point reveals a
    // missing point.
    for &p in &pe_cycles {
        for &t in &age_s {
            for &r in &reads {
                match rows.get(roots.len()) {
                    Some(row) if point(row) == [p, t, r] => {
                        roots.push(libm::sqrt(libm::sqrt(row.values[RBER])));
                    }
                    _ => {
                        let message = format!("no line for {}", show(&[p, t, r]));
                        let remedy = "add it: every combination of the P/E cycles, retentions and reads that occur \
                                      has a line";
                        return Err(error(None, None, message, remedy));
                    }
                }
            }
        }
    }
    let logarithm = Logarithm::new();
    Ok(RberTable(Arc::new(Content {
        pe_cycles: Knots::new(pe_cycles, |value| value),
        age: Knots::new(age_s, |age_s| logarithm.of_hours(age_s)),
        reads: Knots::new(reads, |value| value),
        logarithm,
        roots,
    })))
}

/// A point as text.
fn show([pe_cycles, age_s, reads]: &[f64; 3]) -> String {
    let whole = UNITS.iter().filter(|(_, worth)| worth <= age_s && age_s % worth == 0.0);
    let (unit, worth) = whole.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(&UNITS[1]);
    format!("pe_cycles {pe_cycles}, retention {}{unit}, reads {reads}", age_s / worth)
}

/// For each column of the file its index in [`COLUMNS`].
fn columns(line: u32, header: &str) -> Result<Vec<usize>, TableError> {
    let mut found = Vec::new();
    for name in header.split(',').map(str::trim) {
        let Some(column) = COLUMNS.iter().position(|known| *known == name) else {
            let message = format!("unknown column \"{name}\"");
            let remedy = format!("the columns are {}; reads may be left out", COLUMNS.join(", "));
            return Err(error(Some(line), None, message, remedy));
        };
        if found.contains(&column) {
            return Err(error(Some(line), Some(COLUMNS[column]), "the column appears twice", "remove one"));
        }
        found.push(column);
    }
    match (0..COLUMNS.len()).find(|column| *column != READS && !found.contains(column)) {
        None => Ok(found),
        Some(missing) => {
            let remedy = "name it in the header, and give its value in every line";
            Err(error(Some(line), Some(COLUMNS[missing]), "the column is missing", remedy))
        }
    }
}

fn row(line: u32, text: &str, columns: &[usize]) -> Result<Row, TableError> {
    let fields = text.split(',').count();
    if fields != columns.len() {
        let message = format!("expected {} values, found {fields}", columns.len());
        return Err(error(Some(line), None, message, "give one value for each column of the header"));
    }
    let mut values = [0.0; 4];
    for (text, &column) in text.split(',').zip(columns) {
        values[column] = value(text.trim(), column).map_err(|(message, remedy)| {
            error(Some(line), Some(COLUMNS[column]), format!("\"{}\" {message}", text.trim()), remedy)
        })?;
    }
    Ok(Row { line, values })
}

/// Parses a value of a column. The error is what is wrong, and the remedy.
fn value(text: &str, column: usize) -> Result<f64, (&'static str, &'static str)> {
    let (max, remedy) = match COLUMNS[column] {
        "rber" => (super::RBER_MAX, "give the share of wrong bits, from 0 to 0.5, such as 1.2e-3"),
        "retention" => (COUNT_MAX, "give seconds, or a time in s, min, h or d such as 30d, below 136 years"),
        _ => (COUNT_MAX, "give a whole number from 0 to 4294967295"),
    };
    let unit = UNITS.iter().find(|(name, _)| COLUMNS[column] == "retention" && text.ends_with(name));
    let (number, worth) = match unit {
        Some((name, worth)) => (text[..text.len() - name.len()].trim_end(), *worth),
        None => (text, 1.0),
    };
    // Words such as `inf` and `nan` would parse as numbers.
    let digits = number.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let parsed = number.parse::<f64>().ok().filter(|value| digits && value.is_finite());
    let value = parsed.ok_or(("is not a number", remedy))? * worth;
    if value < 0.0 {
        return Err(("is negative", remedy));
    }
    if value > max {
        return Err(("is too large", remedy));
    }
    if COLUMNS[column] != "rber" && COLUMNS[column] != "retention" && libm::trunc(value) != value {
        return Err(("is not a whole number", remedy));
    }
    // Adding 0 turns -0 into 0: -0 would have another hash.
    Ok(value + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
# a lab's data
pe_cycles, retention, reads, rber
0,0s,0,0
0,0s,1000,1e-4
0,8h,0,1e-4
0,8h,1000,3e-4
3000,0s,0,1e-4
3000,0s,1000,1e-3
3000,8h,0,16e-4
3000,8h,1000,2e-3
";

    fn read(text: &str) -> RberTable {
        RberTable::from_text(text, "t.csv").unwrap()
    }

    #[test]
    fn points_are_exact_and_values_between_are_interpolated() {
        let table = read(TABLE);
        // ln(1 + t / 1 h) is ln 9 at 8 hours and ln 3, half of ln 9, at 2 hours: 2 hours are the middle of the scale.
        let (half, whole) = (2 * 3600, 8 * 3600);
        let fourth = |q: f64| q * q * q * q;
        for (pe, age, reads, rber) in [
            (0, 0, 0, 0.0),
            (3000, whole, 0, 16e-4),
            (3000, whole, 1000, 2e-3),
            // Between the fourth roots 0.1 and 0.2 the root is 0.15 in the middle.
            (1500, whole, 0, fourth(0.15)),
            (3000, half, 0, fourth(0.15)),
            // Roots at 0 and 3000 P/E cycles: 0 and 0.1 at 0 s, 0.1 and 0.2 at 8 h. Half the way along both axes the
            // root is (0.05 + 0.15) / 2; with a quarter of the way in P/E cycles it is (0.025 + 0.125) / 2.
            (1500, half, 0, fourth(0.1)),
            (750, half, 0, fourth(0.075)),
            // Reads: linear in the RBER itself.
            (0, 0, 500, 5e-5),
            (3000, 0, 250, 3.25e-4),
            // Beyond the table's edges.
            (5000, 86_400, 9999, 2e-3),
            (u32::MAX, u32::MAX, u32::MAX, 2e-3),
        ] {
            let found = table.rber(pe, age, reads);
            // Logarithms are exact to 2e-8, and the fourth power multiplies the relative error of a root by 4.
            assert!((found - rber).abs() <= 1e-7 * rber, "{pe} {age} {reads}: {found} {rber}");
        }
    }

    #[test]
    fn a_table_of_one_point_is_a_constant() {
        let table = read("rber,pe_cycles,retention\n0.01,1000,30d\n");
        for (pe, age) in [(0, 0), (1000, 30 * 86_400), (u32::MAX, u32::MAX)] {
            assert!((table.rber(pe, age, 7) - 0.01).abs() < 1e-15);
        }
    }

    #[test]
    fn neighbouring_points_that_round_to_the_same_position_form_a_step() {
        let table =
            read("pe_cycles,retention,rber\n0,0,0.1\n0,1e-30,0.2\n0,4294967294,0.3\n0,4294967295,0.4\n");
        for (age, rber) in [(0, 0.1), (1, 0.2), (u32::MAX - 1, 0.3), (u32::MAX, 0.4)] {
            assert!((table.rber(0, age, 0) - rber).abs() < 1e-5, "{age}: {}", table.rber(0, age, 0));
        }
        assert_eq!(
            format!("{table:?}"),
            format!("RberTable(1 x 4 x 1 points, {:016x})", table.content_hash())
        );
    }

    #[test]
    fn tables_have_equal_hashes_exactly_if_their_contents_are_equal() {
        let table = read(TABLE);
        let mut lines: Vec<&str> = TABLE.lines().skip(1).collect();
        lines[1..].reverse();
        let other_order = read(&lines.join("\r\n").replace("8h", "28800"));
        assert_eq!(table, other_order);
        assert_eq!(table.content_hash(), other_order.content_hash());
        // The hash is part of the identity of stored runs, so it must not change.
        assert_eq!(format!("{:016x}", table.content_hash()), "7d29346e28249a2a");
        for changed in
            [TABLE.replace("2e-3", "2.1e-3"), TABLE.replace("8h", "9h"), TABLE.replace("3000", "3001")]
        {
            assert_ne!(table.content_hash(), read(&changed).content_hash());
        }
    }

    #[test]
    fn quick_logarithm_is_exact_to_2e_8() {
        let quick = Logarithm::new();
        let mut x = 1.0;
        while x < 2e6 {
            let error = (quick.of(x) - libm::log(x)).abs();
            assert!(error < 2e-8, "{x}: {error}");
            x *= 1.000_37;
        }
    }

    #[test]
    fn wrong_tables_are_refused_with_line_column_and_remedy() {
        let head = "pe_cycles,retention,reads,rber\n";
        let counts = "give a whole number from 0 to 4294967295";
        let times = "give seconds, or a time in s, min, h or d such as 30d, below 136 years";
        let shares = "give the share of wrong bits, from 0 to 0.5, such as 1.2e-3";
        for (text, says) in [
            ("", "t: the table is empty\n  remedy: begin with the line pe_cycles,retention,reads,rber".to_string()),
            (head, "t:1: no data after the header\n  remedy: add a line for each measured point".into()),
            (
                "pe_cycles,retention,rbr\n",
                "t:1: unknown column \"rbr\"\n  remedy: the columns are pe_cycles, retention, reads, rber; reads may \
                 be left out"
                    .into(),
            ),
            (
                "#\npe_cycles,rber\n",
                "t:2: retention: the column is missing\n  remedy: name it in the header, and give its value in every \
                 line"
                    .into(),
            ),
            ("rber,rber\n", "t:1: rber: the column appears twice\n  remedy: remove one".into()),
            ("0,0,0", "t:1: unknown column \"0\"\n".into()),
            (
                "{head}1,2,3\n",
                "t:2: expected 4 values, found 3\n  remedy: give one value for each column of the header".into(),
            ),
            ("{head}x,0,0,0\n", format!("t:2: pe_cycles: \"x\" is not a number\n  remedy: {counts}")),
            ("{head}0.5,0,0,0\n", format!("t:2: pe_cycles: \"0.5\" is not a whole number\n  remedy: {counts}")),
            ("{head}0,0,5000000000,0\n", format!("t:2: reads: \"5000000000\" is too large\n  remedy: {counts}")),
            ("{head}0,-1d,0,0\n", format!("t:2: retention: \"-1d\" is negative\n  remedy: {times}")),
            ("{head}0,3y,0,0\n", format!("t:2: retention: \"3y\" is not a number\n  remedy: {times}")),
            ("{head}0,d,0,0\n", format!("t:2: retention: \"d\" is not a number\n  remedy: {times}")),
            ("{head}0,0,0,0\n\n0,1d,0,0.6\n", format!("t:4: rber: \"0.6\" is too large\n  remedy: {shares}")),
            ("{head}0,0,0,-1e-9\n", format!("t:2: rber: \"-1e-9\" is negative\n  remedy: {shares}")),
            ("{head}0,0,0,nan\n", format!("t:2: rber: \"nan\" is not a number\n  remedy: {shares}")),
            ("{head}0,0,0,\n", format!("t:2: rber: \"\" is not a number\n  remedy: {shares}")),
            ("{head}0,0,0,1d\n", format!("t:2: rber: \"1d\" is not a number\n  remedy: {shares}")),
            (
                "{head}0,24h,0,0\n0,0,0,0\n0,1d,0,0.1\n",
                "t:4: repeats the point of line 2: pe_cycles 0, retention 1d, reads 0\n  remedy: keep one of the two"
                    .into(),
            ),
            (
                "{head}0,0,0,0\n0,90min,0,0\n1000,0,0,0\n",
                "t: no line for pe_cycles 1000, retention 90min, reads 0\n  remedy: add it: every combination of the \
                 P/E cycles, retentions and reads that occur has a line"
                    .into(),
            ),
            ("{head}0,0,0,0\n10,0,5,0\n", "t: no line for pe_cycles 0, retention 0s, reads 5\n".into()),
        ] {
            let error = RberTable::from_text(&text.replace("{head}", head), "t").unwrap_err().to_string();
            assert!(error.starts_with(&says), "{text:?}:\n{error}\n{says}");
        }
        let missing = RberTable::read(Path::new("no such file.csv")).unwrap_err();
        assert!(missing.to_string().starts_with("no such file.csv: cannot be read: "), "{missing}");
    }

    #[test]
    fn no_text_makes_the_reader_panic() {
        proptest::proptest!(|(text in "(pe_cycles|retention|rber|reads|[0-9]|-|e|\\.|d|min|,|\n|#|é| ){0,60}")| {
            let _ = RberTable::from_text(&text, "t");
            let _ = RberTable::from_text(&format!("pe_cycles,retention,rber\n{text}"), "t");
        });
    }
}
