//! Descriptions of policies. The spec key of a slot, its errors and its listings are generated from them.

/// A parameter of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamInfo {
    /// The parameter's key.
    pub name: &'static str,
    /// The value when the key is absent; `None` if the key is required.
    pub default: Option<f64>,
    /// Smallest value allowed.
    pub min: f64,
    /// Largest value allowed.
    pub max: f64,
    /// Whether only whole numbers are allowed.
    pub whole: bool,
    /// A description in one line, with the unit.
    pub description: &'static str,
}

/// A policy of a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyInfo {
    /// The policy's name in the spec.
    pub name: &'static str,
    /// A description in one line.
    pub description: &'static str,
    /// The policy's parameters.
    pub params: &'static [ParamInfo],
}

/// The policy chosen for a slot: a name from the slot's table and a value for each parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The policy's name.
    pub name: &'static str,
    /// The parameters' values, in the order of [`PolicyInfo::params`].
    pub values: Vec<f64>,
}

impl Choice {
    /// The policy `info` with the defaults of its parameters; a required parameter has its smallest value.
    pub fn defaults(info: &PolicyInfo) -> Self {
        Self { name: info.name, values: info.params.iter().map(|p| p.default.unwrap_or(p.min)).collect() }
    }

    /// The value of parameter `index`.
    pub fn value(&self, index: usize) -> f64 {
        self.values[index]
    }
}
