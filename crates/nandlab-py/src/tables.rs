//! Tables for Python: each column as raw bytes, from which numpy and polars make arrays without conversion.

use nandlab::drive::Drive;
use nandlab::probe::Probe;
use nandlab::report::{Table, Values};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// The tables of a drive after [`Drive::finish_stats`].
pub(crate) fn of<P: Probe>(drive: &Drive<P>) -> Vec<Table> {
    let (geometry, stats) = (drive.geometry(), drive.stats());
    vec![
        stats.series.table(geometry, drive.array().shapes().first()),
        stats.dies.table(stats.series, geometry.dies_per_channel),
        Table::latency(stats.host),
        Table::blocks(geometry, drive.array()),
    ]
}

/// Returns `{table: {column: (dtype, bytes)}}`. The texts of a column are joined by newlines.
pub(crate) fn to_python<'py>(py: Python<'py>, tables: &[Table]) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for table in tables {
        let columns = PyDict::new(py);
        for column in &table.columns {
            let (dtype, bytes): (_, Vec<u8>) = match &column.values {
                Values::U64(values) => ("<u8", values.iter().flat_map(|v| v.to_le_bytes()).collect()),
                Values::F64(values) => ("<f8", values.iter().flat_map(|v| v.to_le_bytes()).collect()),
                Values::Text(values) => ("str", values.join("\n").into_bytes()),
            };
            columns.set_item(&column.name, (dtype, PyBytes::new(py, &bytes)))?;
        }
        out.set_item(table.name, columns)?;
    }
    Ok(out)
}
