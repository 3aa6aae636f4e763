//! Generated workloads: synthetic workloads, and look-alikes of published and recorded traces.

mod clients;
mod profile;
mod published;
mod scatter;
mod synthetic;
mod zipf;

pub(crate) use clients::read_again;
pub use clients::{ClientsSource, Limits};
pub use profile::{ProfileSource, Settings};
pub use published::{Published, profile, profiles};
pub use scatter::Scatter;
pub use synthetic::SyntheticSource;
pub use zipf::Zipf;
