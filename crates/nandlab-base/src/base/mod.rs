//! Types that any room may use and that depend on no room: time and other units of measurement, ids, page kinds,
//! requests, lists, slabs, steps of work, hash tables, large arrays, random streams and draws, numbers as text, texts
//! from outside in messages, states as bytes, folders of kept files, counters, sections of results, notes and
//! descriptions of policies.

pub mod binomial;
pub mod counters;
pub mod huge;
pub mod ids;
pub mod kept_folder;
pub mod list;
pub mod lost;
pub mod note;
pub mod number_map;
pub mod numbers;
pub mod page_kind;
pub mod policy;
pub mod request;
pub mod rng;
pub mod section;
pub mod slab;
pub mod state;
pub mod steps;
pub mod text;
pub mod units;
pub mod words;
