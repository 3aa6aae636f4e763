//! The JSON Schema of the results.

use super::power_json::PowerRecord;
use super::stretch::LifeRow;
use super::summary::Summary;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The JSON Schema of `summary.json`. Its definitions include the schemas of `power.json` (`PowerRecord`) and of a row
/// of `life.parquet` (`LifeRow`).
///
/// The keys are in the order of the files; `unit` of a key's schema is the unit of its value.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.subschema_for::<PowerRecord>();
    generator.subschema_for::<LifeRow>();
    generator.into_root_schema_for::<Summary>().to_value()
}
