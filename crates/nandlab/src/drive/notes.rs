//! The notes of each mechanism; `report/` collects them.

pub(crate) use crate::background::notes as background;
pub(crate) use crate::capacitor::notes as capacitor;
pub(crate) use crate::demand_map::notes as demand_map;
pub(crate) use crate::migration::notes as migration;
pub(crate) use crate::power_loss::notes as power_loss;
pub(crate) use crate::read_levels::notes as read_levels;
pub(crate) use crate::reclaim::notes as reclaim;
pub(crate) use crate::refresh::notes as refresh;
pub(crate) use crate::slc::notes as slc;
pub(crate) use crate::write_cache::notes as write_cache;
