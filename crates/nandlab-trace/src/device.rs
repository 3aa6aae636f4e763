//! Trace files of several devices: the user chooses one device, or all devices are laid out one after another in one
//! address space. Without a choice a file of several devices is refused, so that devices never share addresses
//! unnoticed.

use crate::error::{ErrorKind, TraceError, quoted};
use crate::format::Parsed;
use crate::input::Content;
use crate::records::Records;
use nandlab_base::base::request::Op;
use nandlab_base::base::units::MIB;
use nandlab_base::base::words::count;
use nandlab_base::workload::{DeviceChoice, TraceSpec};
use std::collections::BTreeMap;

/// Number of device names that are collected while a device is searched, for the list of an error message.
const NAMES_MAX: usize = 32;
/// Characters of one device name in the list; a longer name is cut.
const NAME_LENGTH_MAX: usize = 40;
/// Characters of the whole list of device names; further names are left out.
const NAMES_LENGTH_MAX: usize = 200;
/// Number of records that are searched for device names for an error message.
const LOOK_AHEAD: usize = 1_000_000;

/// The base address of each device in bytes, by the key of the device.
type Bases = BTreeMap<Vec<u8>, u64>;

/// The devices whose records are read, and the base address of each.
pub(crate) enum Selection {
    /// No device is chosen: the file must hold a single device. `key` is the device of the first request; `None` before
    /// the first request.
    Only { key: Option<Vec<u8>> },
    /// One device is chosen. `found` means that a request of this device has been read. `others` are the devices seen
    /// before this request.
    One { key: Vec<u8>, name: String, found: bool, others: BTreeMap<Vec<u8>, ()> },
    /// All devices with a base address are read, each at this address. `last` is the device of the last record, with the
    /// base of this device. `hash` is that of the file from which the bases were computed, if it was hashed.
    All { bases: Bases, last: (Vec<u8>, Option<u64>), hash: Option<u128> },
}

/// The result of [`Selection::pick`] for the device of a record.
pub(crate) enum Picked {
    /// The record is read; this base is added to its address.
    Base(u64),
    /// The record is left out: another device was chosen.
    Other,
    /// The record is of a second device, and no device was chosen.
    Several,
}

impl Selection {
    pub(crate) fn new(
        spec: &TraceSpec,
        records: &Records,
        content: Option<&Content>,
        hash: bool,
    ) -> Result<Self, TraceError> {
        match &spec.device {
            None => Ok(Self::Only { key: None }),
            Some(DeviceChoice::One(name)) => Ok(Self::One {
                key: records.reader.device_key(name),
                name: name.clone(),
                found: false,
                others: BTreeMap::new(),
            }),
            Some(DeviceChoice::Concatenate | DeviceChoice::These(_)) => {
                let (bases, hash) = bases(spec, content, hash)?;
                let last =
                    bases.iter().next().map_or((Vec::new(), None), |(key, base)| (key.clone(), Some(*base)));
                Ok(Self::All { bases, last, hash })
            }
        }
    }

    #[inline]
    pub(crate) fn pick(&mut self, device: &[u8]) -> Picked {
        match self {
            Self::Only { key: Some(key) } if key == device => Picked::Base(0),
            Self::Only { key: Some(_) } => Picked::Several,
            Self::Only { key } => {
                *key = Some(device.to_vec());
                Picked::Base(0)
            }
            Self::One { key, found, .. } if key == device => {
                *found = true;
                Picked::Base(0)
            }
            Self::One { found, others, .. } => {
                if !*found && others.len() < NAMES_MAX && !others.contains_key(device) {
                    others.insert(device.to_vec(), ());
                }
                Picked::Other
            }
            Self::All { bases, last, .. } => {
                if last.0 != device {
                    *last = (device.to_vec(), bases.get(device).copied());
                }
                last.1.map_or(Picked::Other, Picked::Base)
            }
        }
    }

    /// Whether the records of `device` are read.
    pub(crate) fn has(&self, device: &[u8]) -> bool {
        match self {
            Self::Only { key } => key.as_ref().is_none_or(|key| key == device),
            Self::One { key, .. } => key == device,
            Self::All { bases, .. } => bases.contains_key(device),
        }
    }

    /// The error for a file with several devices. Reads further records to list the names of the devices.
    #[cold]
    pub(crate) fn several(&self, records: &mut Records, second: &[u8]) -> TraceError {
        let mut keys = BTreeMap::from([(second.to_vec(), ())]);
        if let Self::Only { key: Some(key) } = self {
            keys.insert(key.clone(), ());
        }
        let mut has_ended = false;
        for _ in 0..LOOK_AHEAD {
            has_ended = !matches!(records.advance(), Ok(true));
            if has_ended {
                break;
            }
            let number = records.input.number();
            if let Ok(Parsed::Request(raw)) = records.reader.parse(records.input.current(), number)
                && !keys.contains_key(raw.device)
            {
                keys.insert(raw.device.to_vec(), ());
            }
        }
        let (names, one) = listed(keys.keys(), records);
        let at_least = if has_ended { "" } else { "at least " };
        TraceError::new(
            ErrorKind::Device,
            format!(
                "expected one device, found several: the file holds {at_least}{} devices: {names}",
                count(keys.len() as u64)
            ),
            format!(
                "choose one device with workload.device = \"{one}\", or some with workload.devices, or lay all devices \
                 out one after another with workload.device = \"concatenate\"; `nandlab trace stat --by-device` lists \
                 them"
            ),
        )
    }

    /// The error if the chosen device has no record in the file, but other devices have records; else `None`.
    pub(crate) fn missing(&self, records: &Records) -> Option<TraceError> {
        match self {
            Self::One { name, found: false, others, .. } if others.keys().any(|key| key.is_empty()) => {
                Some(TraceError::new(
                    ErrorKind::Device,
                    format!("device {} is not in the file, which names no device", quoted(name.as_bytes())),
                    "leave workload.device out",
                ))
            }
            Self::One { name, found: false, others, .. } if !others.is_empty() => {
                let (names, one) = listed(others.keys(), records);
                Some(TraceError::new(
                    ErrorKind::Device,
                    format!("device {} is not in the file, which holds {names}", quoted(name.as_bytes())),
                    format!("choose one of these devices, such as workload.device = \"{one}\""),
                ))
            }
            _ => None,
        }
    }

    /// Whether the selection fits a file with this hash: bases fit only the file from which they were computed.
    pub(crate) fn is_of(&self, file: u128) -> bool {
        !matches!(self, Self::All { hash, .. } if *hash != Some(file))
    }

    /// The names of the selected devices.
    pub(crate) fn names(&self, records: &Records) -> Vec<String> {
        let name = |key: &Vec<u8>| records.reader.device_name(key);
        match self {
            Self::Only { key } => key.iter().map(name).collect(),
            Self::One { name, .. } => vec![name.clone()],
            Self::All { bases, .. } => sorted(bases.keys()).into_iter().map(name).collect(),
        }
    }
}

/// The sorted list of device names for a message, and the first name.
fn listed<'a>(keys: impl Iterator<Item = &'a Vec<u8>>, records: &Records) -> (String, String) {
    let keys = sorted(keys);
    let mut names = keys.iter().map(|key| match records.reader.device_name(key) {
        // Cutting at any byte is safe: names are ASCII, since other bytes are escaped.
        name if name.len() > NAME_LENGTH_MAX => format!("{}...", &name[..NAME_LENGTH_MAX]),
        name => name,
    });
    let first = names.next().unwrap_or_default();
    let mut listed = first.clone();
    for name in names {
        if listed.len() + name.len() > NAMES_LENGTH_MAX {
            listed.push_str(", ...");
            break;
        }
        listed.push_str(", ");
        listed.push_str(&name);
    }
    (listed, first)
}

/// Sorts device keys: first the numbers by value, then the other keys by their bytes.
fn sorted<'a>(keys: impl Iterator<Item = &'a Vec<u8>>) -> Vec<&'a Vec<u8>> {
    let mut keys: Vec<_> = keys.collect();
    keys.sort_by_key(|key| {
        let number = std::str::from_utf8(key).ok().and_then(|text| text.parse::<u64>().ok());
        (number.is_none(), number, *key)
    });
    keys
}

/// Reads the whole file and returns the base address of each chosen device, in bytes. The devices follow one another,
/// each at a multiple of 1 MiB. With `hash` the hash of the file is returned too.
fn bases(
    spec: &TraceSpec,
    content: Option<&Content>,
    hash: bool,
) -> Result<(Bases, Option<u128>), TraceError> {
    let mut records = Records::open(spec, content, hash)?;
    let mut ends: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    while records.advance()? {
        let number = records.input.number();
        match records.reader.parse(records.input.current(), number) {
            Ok(Parsed::End) => break,
            Ok(Parsed::Request(raw)) => {
                // An address that overflows is reported when the file is read for its requests.
                let end = if raw.op == Op::Flush { 0 } else { raw.offset.saturating_add(raw.len) };
                match ends.get_mut(raw.device) {
                    Some(last) => *last = end.max(*last),
                    None => {
                        ends.insert(raw.device.to_vec(), end);
                    }
                }
            }
            Ok(_) => {}
            Err(_) if spec.lenient.is_some() => {}
            Err(error) => return Err(error.at(records.position(number)).in_file(&spec.path)),
        }
    }
    let order: Vec<Vec<u8>> = match &spec.device {
        Some(DeviceChoice::These(names)) => {
            names.iter().map(|name| found(name, &ends, &records, spec)).collect::<Result<_, _>>()?
        }
        _ => sorted(ends.keys()).into_iter().cloned().collect(),
    };
    let (mut bases, mut next) = (Bases::new(), 0u64);
    for key in order {
        let end = ends[&key];
        bases.entry(key).or_insert_with(|| {
            let base = next;
            next = next.saturating_add(end).checked_next_multiple_of(MIB).unwrap_or(u64::MAX);
            base
        });
    }
    Ok((bases, records.input.read_bytes().map(|read| read.hash)))
}

/// The key of the device that the user calls `name`; an error if no record of the file is of this device.
fn found(
    name: &str,
    ends: &BTreeMap<Vec<u8>, u64>,
    records: &Records,
    spec: &TraceSpec,
) -> Result<Vec<u8>, TraceError> {
    let key = records.reader.device_key(name);
    if ends.contains_key(&key) {
        return Ok(key);
    }
    let (names, _) = listed(ends.keys(), records);
    let message = format!("device {} is not in the file, which holds {names}", quoted(name.as_bytes()));
    let remedy = "name devices of the file in workload.devices; `nandlab trace stat --by-device` lists them";
    Err(TraceError::new(ErrorKind::Device, message, remedy).in_file(&spec.path))
}
