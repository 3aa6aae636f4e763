//! What a policy says of itself, so that the spec, the errors and the listings come from one table a slot.

/// A parameter of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamInfo {
    /// Its key.
    pub name: &'static str,
    /// Taken when the key is absent; `None`: the key is required.
    pub default: Option<f64>,
    /// Smallest value allowed.
    pub min: f64,
    /// Largest value allowed.
    pub max: f64,
    /// Whether only whole numbers are allowed.
    pub whole: bool,
    /// One line, with the unit.
    pub description: &'static str,
}

/// A policy that fits a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyInfo {
    /// Its name in the spec.
    pub name: &'static str,
    /// One line.
    pub description: &'static str,
    /// Its parameters.
    pub params: &'static [ParamInfo],
}

/// A policy chosen for a slot: a name from the slot's table and a value for each of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The policy's name.
    pub name: &'static str,
    /// The values, in the order of [`PolicyInfo::params`].
    pub values: Vec<f64>,
}

impl Choice {
    /// The policy `info` with its parameters' defaults.
    pub fn defaults(info: &PolicyInfo) -> Self {
        Self { name: info.name, values: info.params.iter().map(|p| p.default.unwrap_or(p.min)).collect() }
    }

    /// The value of parameter `index`.
    pub fn value(&self, index: usize) -> f64 {
        self.values[index]
    }
}
