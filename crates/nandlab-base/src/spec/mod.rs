//! The engine of specs: turns a TOML file into checked values, with a table of keys that the caller provides.
//!
//! The engine does not depend on the meaning of any key. A room declares its keys, the structs with their values, and
//! the rules between the keys in the room's `spec.rs`; `drive::spec` of the crate `nandlab` joins the keys of all rooms
//! into one table. A spec goes through these steps: text -> `node` (a tree with line numbers) -> `layers` (preset, file,
//! `--set`) -> `resolve` (defaults) -> `check` (rules over several keys) -> the rooms' structs (`section`).

mod check;
mod error;
mod key;
mod kind;
mod kinds;
mod layers;
mod lines;
mod load;
mod node;
mod outside;
mod quantity;
mod read;
mod resolve;
mod schema;
mod section;
mod show;

pub use crate::{choices, params, section};
pub use check::{Check, Rule};
pub use error::{SpecError, SpecErrors};
pub use key::{Absent, Content, FileOf, Follows, Key, OneOf, Preset, Table, Unreadable, When, key};
pub use kind::{Param, Payload, Policy, Val, ValueKind};
pub use kinds::*;
pub use lines::{Step, key_lines};
pub use load::load as load_values;
pub use node::shorten;
pub use outside::{Named, Outside, OutsideChoice, is_policy_name, open_slots};
pub use quantity::span;
pub use quantity::{Dimension, show_num, show_real, show_size, show_time};
pub use resolve::Resolved;
pub use schema::PolicyRow;
pub use schema::{policies as policies_of, schema as schema_of};
pub use section::{Choices, FromVal, Listed, Params, Section};
pub use show::{canonical_json, hash, to_toml};
