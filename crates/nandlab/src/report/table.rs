//! The tables that become Parquet files: named columns of numbers or texts.

use crate::base::geometry::{Geometry, LaneId, SuperblockId};
use crate::flash::Array;
use crate::host::{Latency, Op};
use std::borrow::Cow;

/// The values of a column, all of one type.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Values {
    U64(Vec<u64>),
    F64(Vec<f64>),
    Text(Vec<Cow<'static, str>>),
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name of the column, unit included.
    pub name: String,
    /// Values of the column, one per row.
    pub values: Values,
}

impl Column {
    /// A column with this name and these values.
    pub fn new(name: impl Into<String>, values: Values) -> Self {
        Self { name: name.into(), values }
    }
}

/// A table: columns of the same length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the table: the name of its file without the ending.
    pub name: &'static str,
    /// The columns.
    pub columns: Vec<Column>,
}

impl Table {
    /// Memory of a row of [`Table::blocks`], in bytes.
    pub(crate) const BYTES_PER_SUPERBLOCK: u64 = 4 * 8 + size_of::<Cow<str>>() as u64;

    /// `latency.parquet`: the non-empty buckets of the latency histograms, by operation.
    pub fn latency(host: &[Latency; 4]) -> Self {
        let (mut op_names, mut low, mut high, mut counts) = (vec![], vec![], vec![], vec![]);
        for op in Op::ALL {
            let histogram = host[op as usize].histogram();
            for bucket in histogram.iter_recorded() {
                let value = bucket.value_iterated_to();
                op_names.push(op.name().into());
                low.push(histogram.lowest_equivalent(value) as f64 * 1e-3);
                high.push(histogram.highest_equivalent(value) as f64 * 1e-3);
                counts.push(bucket.count_at_value());
            }
        }
        let columns = vec![
            Column::new("op", Values::Text(op_names)),
            Column::new("low_us", Values::F64(low)),
            Column::new("high_us", Values::F64(high)),
            Column::new("count", Values::U64(counts)),
        ];
        Self { name: "latency", columns }
    }

    /// `blocks.parquet`: P/E cycles, valid units and state of every superblock at the end, without those that bad
    /// blocks cost. The column `plane` has the number of the lane, `block` the number of the superblock in its lane.
    pub fn blocks(geometry: &Geometry, array: &Array) -> Self {
        let per_lane = geometry.superblocks_per_lane;
        let ids = (0..geometry.lanes).flat_map(|lane| geometry.superblock_ids_of(LaneId(lane)));
        let numbers = |value: &dyn Fn(SuperblockId) -> u32| {
            Values::U64(ids.clone().map(|superblock| u64::from(value(superblock))).collect())
        };
        let state = |superblock: &crate::flash::Superblock| superblock.state.name();
        let columns = vec![
            Column::new("plane", numbers(&|superblock| superblock.0 / per_lane)),
            Column::new("block", numbers(&|superblock| superblock.0 % per_lane)),
            Column::new("pe_cycles", numbers(&|superblock| array.superblock(superblock).pe_cycles)),
            Column::new("valid_pages", numbers(&|superblock| array.superblock(superblock).valid)),
            Column::new(
                "state",
                Values::Text(ids.clone().map(|id| state(array.superblock(id)).into()).collect()),
            ),
        ];
        Self { name: "blocks", columns }
    }
}
