//! `series.parquet` and `dies.parquet`.

use super::table::{Column, Table, Values};
use crate::base::geometry::Geometry;
use crate::base::numbers::{per, ratio};
use crate::base::units::{Span, Time};
use crate::drive::{DieSeries, Series, Window};
use crate::flash::Shape;
use crate::host::Op;
use crate::sched::Cause;

/// Highest number of intervals in `dies.parquet`.
const DIE_INTERVALS: usize = 64;

impl Series {
    /// `series.parquet` of a drive of this geometry, whose superblocks have this shape.
    pub fn table(&self, geometry: &Geometry, shape: &Shape) -> Table {
        let starts: Vec<Time> = std::iter::once(self.start())
            .chain(self.rows().iter().map(|row| row.end))
            .take(self.rows().len())
            .collect();
        let seconds = |row: usize| (self.rows()[row].end - starts[row]).seconds();
        let float = |value: &dyn Fn(usize, &Window) -> f64| {
            Values::F64(self.rows().iter().enumerate().map(|(index, row)| value(index, row)).collect())
        };
        let count = |value: &dyn Fn(&Window) -> u64| Values::U64(self.rows().iter().map(value).collect());
        let mut columns = vec![
            Column::new("time_s", float(&|_, row| row.end.seconds())),
            Column::new("interval_s", float(&|index, _| seconds(index))),
        ];
        for op in Op::ALL {
            let values = count(&|row| row.requests[op as usize]);
            columns.push(Column::new(format!("requests_{}", op.name()), values));
        }
        for op in [Op::Read, Op::Write, Op::Trim] {
            columns.push(Column::new(format!("bytes_{}", op.name()), count(&|row| row.bytes[op as usize])));
        }
        for op in [Op::Read, Op::Write] {
            let (at, name) = (op as usize, op.name());
            let mean = float(&|_, row| ratio(row.latency_ns[at] as f64 * 1e-3, row.requests[at] as f64));
            columns.push(Column::new(format!("latency_us_{name}_mean"), mean));
            let max = float(&|_, row| row.latency_ns_max[at].ns() as f64 * 1e-3);
            columns.push(Column::new(format!("latency_us_{name}_max"), max));
        }
        let done = |row: &Window| row.requests.iter().sum::<u64>() as f64;
        columns.push(Column::new("iops", float(&|index, row| ratio(done(row), seconds(index)))));
        let moved = |row: &Window| (row.bytes[0] + row.bytes[1]) as f64 * 1e-6;
        columns.push(Column::new("mb_per_s", float(&|index, row| ratio(moved(row), seconds(index)))));
        columns.push(Column::new("pages_written", count(&|row| row.pages_written)));
        for cause in Cause::ALL {
            let values = count(&|row| row.programs[cause as usize]);
            columns.push(Column::new(format!("program_{}", cause.name()), values));
        }
        columns.push(Column::new("erases", count(&|row| row.erases)));
        let programs = |row: &Window| row.programs.iter().sum::<u64>();
        let programmed = |row: &Window| programs(row) * u64::from(geometry.page_bytes());
        columns.push(Column::new("bytes_programmed", count(&programmed)));
        // NaN stands for a missing value.
        let waf = |row: &Window| per(programmed(row), row.bytes[Op::Write as usize]).unwrap_or(f64::NAN);
        columns.push(Column::new("waf", float(&|_, row| waf(row))));
        let waf_pages = |row: &Window| {
            per(programs(row) * u64::from(geometry.units_per_page), row.pages_written).unwrap_or(f64::NAN)
        };
        columns.push(Column::new("waf_pages", float(&|_, row| waf_pages(row))));
        let units = f64::from(shape.units);
        let valid = |row: &Window| ratio(row.victim_valid_pages as f64, row.victims as f64 * units);
        columns.push(Column::new("gc_victims", count(&|row| row.victims)));
        columns.push(Column::new("gc_victim_valid_mean", float(&|_, row| valid(row))));
        columns.push(Column::new("free_share_min", float(&|_, row| row.free_share_min)));
        let free = |index: usize, row: &Window| ratio(row.free_share_ns * 1e-9, seconds(index));
        columns.push(Column::new("free_share_mean", float(&free)));
        let outstanding =
            |index: usize, row: &Window| ratio(row.outstanding_ns as f64 * 1e-9, seconds(index));
        columns.push(Column::new("outstanding_mean", float(&outstanding)));
        let busy = |index: usize, row: &Window| {
            ratio(row.die_busy_ns.seconds(), seconds(index) * f64::from(geometry.dies))
        };
        columns.push(Column::new("die_busy_mean", float(&busy)));
        let busy = |index: usize, row: &Window| {
            ratio(row.channel_busy_ns.seconds(), seconds(index) * f64::from(geometry.channels))
        };
        columns.push(Column::new("channel_busy_mean", float(&busy)));
        let units = count(&|row| u64::from(row.dirty_pages_max));
        columns.push(Column::new("cache_dirty_pages", units));
        let units = count(&|row| u64::from(row.budget_pages_max));
        columns.push(Column::new("cache_budget_pages", units));
        columns.push(Column::new("capacitor_pages", float(&|_, row| row.capacitor_pages)));
        if self.has_slc() {
            let bytes = |units: u64| units * u64::from(geometry.unit_bytes);
            columns.push(Column::new("slc_bytes", count(&|row| bytes(row.slc_cached))));
            columns.push(Column::new("direct_bytes", count(&|row| bytes(row.slc_direct))));
            let share = |row: &Window| f64::from(row.slc_superblocks) / f64::from(geometry.superblocks);
            columns.push(Column::new("slc_block_share", float(&|_, row| share(row))));
        }
        Table { name: "series", columns }
    }
}

impl DieSeries {
    /// `dies.parquet`: a row for each interval and die. Neighbouring rows of `series` are merged into at most 64
    /// intervals.
    pub fn table(&self, series: &Series, dies_per_channel: u32) -> Table {
        let dies = self.dies();
        let (mut times, mut intervals, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        let (mut die_ids, mut channels) = (Vec::new(), Vec::new());
        let rows_per_interval = series.rows().len().div_ceil(DIE_INTERVALS).max(1);
        let mut start = series.start();
        for (index, rows) in series.rows().chunks(rows_per_interval).enumerate() {
            let end = rows.last().map_or(start, |row| row.end);
            let first = index * rows_per_interval;
            for die in 0..dies {
                let busy: Span = (first..first + rows.len()).map(|row| self.busy_ns(row, die)).sum();
                times.push(end.seconds());
                intervals.push((end - start).seconds());
                die_ids.push(die as u64);
                channels.push(die as u64 / u64::from(dies_per_channel));
                shares.push(ratio(busy.ns() as f64, (end - start).ns() as f64));
            }
            start = end;
        }
        let columns = vec![
            Column::new("time_s", Values::F64(times)),
            Column::new("interval_s", Values::F64(intervals)),
            Column::new("die", Values::U64(die_ids)),
            Column::new("channel", Values::U64(channels)),
            Column::new("busy_share", Values::F64(shares)),
        ];
        Table { name: "dies", columns }
    }
}
