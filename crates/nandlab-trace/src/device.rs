//! Files that hold several devices: one is chosen, or all are laid one after another; never overlaid silently.

use crate::error::{ErrorKind, TraceError, quoted};
use crate::format::Parsed;
use crate::input::Content;
use crate::trace::Records;
use nandlab::base::units::MIB;
use nandlab::drive::spec::{DeviceChoice, TraceSpec};
use nandlab::host::Op;
use std::collections::BTreeMap;

/// Names looked for to list them in an error.
const NAMES_MAX: usize = 32;
/// Characters of one of them at most.
const NAME_LENGTH_MAX: usize = 40;
/// Characters of that list at most.
const NAMES_LENGTH_MAX: usize = 200;
/// Records looked through for the names of an error.
const LOOK_AHEAD: usize = 1_000_000;

/// Which records count, and where their addresses go.
pub(crate) enum Selection {
    /// The file's only device.
    Only { key: Option<Vec<u8>> },
    /// One of several.
    One { key: Vec<u8>, name: String, found: bool, others: BTreeMap<Vec<u8>, ()> },
    /// All, each at its base address.
    All { bases: BTreeMap<Vec<u8>, u64>, last: (Vec<u8>, u64) },
}

/// What [`Selection::pick`] makes of a record's device.
pub(crate) enum Picked {
    /// It counts; its addresses start here.
    Base(u64),
    /// Not the chosen one.
    Other,
    /// A second device where only one is expected.
    Several,
}

impl Selection {
    pub(crate) fn new(
        spec: &TraceSpec,
        records: &Records,
        content: Option<&Content>,
    ) -> Result<Self, TraceError> {
        match &spec.device {
            None => Ok(Self::Only { key: None }),
            Some(DeviceChoice::One(name)) => Ok(Self::One {
                key: records.reader.device_key(name),
                name: name.clone(),
                found: false,
                others: BTreeMap::new(),
            }),
            Some(DeviceChoice::Concatenate) => {
                Ok(Self::All { bases: bases(spec, content)?, last: (Vec::new(), 0) }.with_last())
            }
        }
    }

    fn with_last(mut self) -> Self {
        if let Self::All { bases, last } = &mut self
            && let Some((key, base)) = bases.iter().next()
        {
            *last = (key.clone(), *base);
        }
        self
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
            Self::All { bases, last } => {
                if last.0 != device {
                    // Devices that only flush have no extent, and no base of their own.
                    *last = (device.to_vec(), bases.get(device).copied().unwrap_or(0));
                }
                Picked::Base(last.1)
            }
        }
    }

    /// The error for a file with several devices, which reads on for their names.
    #[cold]
    pub(crate) fn several(&self, records: &mut Records, second: &[u8]) -> TraceError {
        let mut keys = BTreeMap::from([(second.to_vec(), ())]);
        if let Self::Only { key: Some(key) } = self {
            keys.insert(key.clone(), ());
        }
        for _ in 0..LOOK_AHEAD {
            if keys.len() > NAMES_MAX || !matches!(records.advance(), Ok(true)) {
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
        TraceError::new(
            ErrorKind::Device,
            format!("a second device: the file holds {names}"),
            format!(
                "choose one with workload.device = \"{one}\", or lay them one after another with \
                 workload.device = \"concatenate\""
            ),
        )
    }

    /// The error for a chosen device that never came.
    pub(crate) fn missing(&self, records: &Records) -> Option<TraceError> {
        match self {
            Self::One { name, found: false, others, .. } if others.keys().any(|key| key.is_empty()) => {
                Some(TraceError::new(
                    ErrorKind::Device,
                    format!("device {} is not in the file, which names none", quoted(name.as_bytes())),
                    "leave workload.device out",
                ))
            }
            Self::One { name, found: false, others, .. } if !others.is_empty() => {
                let (names, one) = listed(others.keys(), records);
                Some(TraceError::new(
                    ErrorKind::Device,
                    format!("device {} is not in the file, which holds {names}", quoted(name.as_bytes())),
                    format!("choose one of these, such as workload.device = \"{one}\""),
                ))
            }
            _ => None,
        }
    }

    /// The names of the devices whose requests count.
    pub(crate) fn names(&self, records: &Records) -> Vec<String> {
        let name = |key: &Vec<u8>| records.reader.device_name(key);
        match self {
            Self::Only { key } => key.iter().map(name).collect(),
            Self::One { name, .. } => vec![name.clone()],
            Self::All { bases, .. } => sorted(bases.keys()).into_iter().map(name).collect(),
        }
    }
}

/// The names for a message, and the first of them.
fn listed<'a>(keys: impl Iterator<Item = &'a Vec<u8>>, records: &Records) -> (String, String) {
    let keys = sorted(keys);
    let mut names = keys.iter().map(|key| match records.reader.device_name(key) {
        // Its characters are ASCII.
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

/// Numbers as numbers, then the rest by bytes.
fn sorted<'a>(keys: impl Iterator<Item = &'a Vec<u8>>) -> Vec<&'a Vec<u8>> {
    let mut keys: Vec<_> = keys.collect();
    keys.sort_by_key(|key| {
        let number = std::str::from_utf8(key).ok().and_then(|text| text.parse::<u64>().ok());
        (number.is_none(), number, *key)
    });
    keys
}

/// A first pass over the file: where each device starts when they are laid one after another.
fn bases(spec: &TraceSpec, content: Option<&Content>) -> Result<BTreeMap<Vec<u8>, u64>, TraceError> {
    let mut records = Records::open(spec, content)?;
    let mut ends: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    while records.advance()? {
        let number = records.input.number();
        match records.reader.parse(records.input.current(), number) {
            Ok(Parsed::End) => break,
            Ok(Parsed::Request(raw)) if raw.op != Op::Flush => {
                // An end that overflows is reported by the reading pass.
                let end = raw.offset.saturating_add(raw.len);
                match ends.get_mut(raw.device) {
                    Some(last) => *last = end.max(*last),
                    None => {
                        ends.insert(raw.device.to_vec(), end);
                    }
                }
            }
            Ok(_) => {}
            Err(_) if spec.lenient => {}
            Err(error) => return Err(error.at(records.position(number)).in_file(&spec.path)),
        }
    }
    let order: Vec<Vec<u8>> = sorted(ends.keys()).into_iter().cloned().collect();
    let mut next = 0u64;
    for key in order {
        let end = ends[&key];
        ends.insert(key, next);
        next = next.saturating_add(end).checked_next_multiple_of(MIB).unwrap_or(u64::MAX);
    }
    Ok(ends)
}
