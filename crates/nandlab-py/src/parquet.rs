//! Tables as Parquet files, without numpy and polars, whose import takes longer than a short run.

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Rows of a row group; a reader takes one into memory at a time.
const GROUP_ROWS: usize = 1 << 18;

/// A column as `tables::to_python` encodes it. The values are decoded one row group at a time, because a table of
/// requests is as large as the rest of the process.
enum Column<'a> {
    U64(&'a [[u8; 8]]),
    /// NaN is null.
    F64(&'a [[u8; 8]]),
    Text(Vec<&'a [u8]>),
}

/// The Parquet file of a table `{column: (dtype, bytes)}`. Equal tables give equal bytes. Raises `ValueError` for a
/// column of another dtype, or if the lengths of the columns differ.
#[pyfunction]
pub(crate) fn parquet_file<'py>(
    py: Python<'py>,
    table: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyBytes>> {
    let raw: Vec<(String, (String, Bound<'py, PyBytes>))> =
        table.iter().map(|(name, value)| Ok((name.extract()?, value.extract()?))).collect::<PyResult<_>>()?;
    let columns: Vec<(&str, Column<'_>)> = raw
        .iter()
        .map(|(name, (dtype, bytes))| Ok((name.as_str(), Column::decode(dtype, bytes.as_bytes())?)))
        .collect::<PyResult<_>>()?;
    let rows = columns.first().map_or(0, |(_, column)| column.len());
    if let Some((name, column)) = columns.iter().find(|(_, column)| column.len() != rows) {
        return Err(PyValueError::new_err(format!(
            "the columns of a table differ in length: {name} has {} rows, the first has {rows}",
            column.len()
        )));
    }
    let file = write(&columns, rows).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(PyBytes::new(py, &file))
}

impl<'a> Column<'a> {
    fn decode(dtype: &str, bytes: &'a [u8]) -> PyResult<Self> {
        let (words, _) = bytes.as_chunks::<8>();
        Ok(match dtype {
            "<u8" => Self::U64(words),
            "<f8" => Self::F64(words),
            "str" if bytes.is_empty() => Self::Text(Vec::new()),
            "str" => Self::Text(bytes.split(|&b| b == b'\n').collect()),
            other => return Err(PyValueError::new_err(format!("a column of the unknown type {other}"))),
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::U64(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    fn schema(&self, name: &str) -> Result<Type, ParquetError> {
        let (physical, logical, repetition) = match self {
            Self::U64(_) => (Physical::INT64, Some(LogicalType::integer(64, false)), Repetition::REQUIRED),
            Self::F64(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
            Self::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
        };
        Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
    }

    /// Writes `rows` of this column from `from` on.
    fn write(
        &self,
        from: usize,
        rows: usize,
        out: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ParquetError> {
        let range = from..from + rows;
        match (self, out.untyped()) {
            (Self::U64(values), ColumnWriter::Int64ColumnWriter(out)) => {
                // Parquet stores an unsigned number in the bits of a signed one.
                let numbers: Vec<i64> = values[range].iter().map(|&w| i64::from_le_bytes(w)).collect();
                out.write_batch(&numbers, None, None)?;
            }
            (Self::F64(values), ColumnWriter::DoubleColumnWriter(out)) => {
                let mut numbers: Vec<f64> = values[range].iter().map(|&w| f64::from_le_bytes(w)).collect();
                let present: Vec<i16> = numbers.iter().map(|v| i16::from(!v.is_nan())).collect();
                numbers.retain(|v| !v.is_nan());
                out.write_batch(&numbers, Some(&present), None)?;
            }
            (Self::Text(values), ColumnWriter::ByteArrayColumnWriter(out)) => {
                let texts: Vec<ByteArray> =
                    values[range].iter().map(|&text| ByteArray::from(text.to_vec())).collect();
                out.write_batch(&texts, None, None)?;
            }
            _ => unreachable!("the schema gives each column its writer"),
        }
        Ok(())
    }
}

fn write(columns: &[(&str, Column<'_>)], rows: usize) -> Result<Vec<u8>, ParquetError> {
    let fields: Result<Vec<_>, _> =
        columns.iter().map(|(name, column)| column.schema(name).map(Arc::new)).collect();
    let schema = Type::group_type_builder("table").with_fields(fields?).build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by("nandlab".to_owned())
        .build();
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, Arc::new(schema), Arc::new(properties))?;
    for from in (0..rows).step_by(GROUP_ROWS) {
        let mut group = writer.next_row_group()?;
        for (_, column) in columns {
            let mut out = group.next_column()?.expect("a writer for each column of the schema");
            column.write(from, GROUP_ROWS.min(rows - from), &mut out)?;
            out.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(file)
}
