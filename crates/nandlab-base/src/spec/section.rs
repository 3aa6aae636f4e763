//! Macros that declare a key, its field in a struct and the conversion of its value together.

use super::key::Key;
use super::kind::{Param, Policy, Val};
use super::resolve::Resolved;
use crate::base::policy::Choice;
use crate::base::units::Span;

/// A struct of the typed spec whose fields have the values of keys.
pub trait Section: Sized {
    /// The section's keys, in the order in which `show` prints them.
    const KEYS: &'static [Key];

    /// Creates the struct from the values of its keys. All values must be present and checked.
    fn of(values: &Resolved) -> Self;
}

/// The conversion of a value to a type of the typed spec.
pub trait FromVal {
    /// Converts a value, which must be of the type's kind and checked.
    fn from_val(val: &Val) -> Self;
}

/// The parameters of a policy, or the fields of a table.
pub trait Params {
    /// The parameters or fields, in the order of their declarations.
    const PARAMS: &'static [Param];
}

/// The enum of a slot whose choices have no parameters.
pub trait Choices {
    /// The choices, in the order of their declarations.
    const CHOICES: &'static [Policy];
}

/// An enum that is declared with its choices.
pub trait Listed: Choices + Copy + 'static {
    /// The variants, in the order of [`Choices::CHOICES`].
    const ALL: &'static [Self];

    /// The choice of this variant.
    fn choice(self) -> &'static Policy;
}

impl FromVal for bool {
    fn from_val(val: &Val) -> Self {
        val.bool()
    }
}

impl FromVal for u64 {
    fn from_val(val: &Val) -> Self {
        val.int()
    }
}

impl FromVal for u32 {
    /// The range of a key whose field is a `u32` ends below 2^32.
    fn from_val(val: &Val) -> Self {
        u32::try_from(val.int()).unwrap_or(u32::MAX)
    }
}

impl FromVal for f64 {
    fn from_val(val: &Val) -> Self {
        val.num()
    }
}

impl FromVal for Span {
    fn from_val(val: &Val) -> Self {
        val.span()
    }
}

/// Converts a policy whose parameters are numbers.
impl FromVal for Choice {
    fn from_val(val: &Val) -> Self {
        let number = |val: &Val| match val {
            Val::Int(i) => *i as f64,
            other => other.num(),
        };
        match val {
            Val::Tag(name, None) => Choice { name, values: Vec::new() },
            Val::Tag(name, Some(params)) => match params.as_ref() {
                Val::Table(fields) => {
                    Choice { name, values: fields.iter().map(|(_, val)| number(val)).collect() }
                }
                Val::Unchecked(..) => Choice { name, values: Vec::new() },
                other => panic!("expected parameters, found {other:?}"),
            },
            _ => val.is_no("choice"),
        }
    }
}

/// Declares the struct of a section, each field with its key. With `for` before the struct's name, the struct is
/// declared elsewhere.
///
/// ```ignore
/// section! {
///     /// `[gc]`.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct GcSpec {
///         /// Time without host requests after which the drive counts as idle.
///         pub idle_after_ns: Span = key("gc.idle_after", ANY_TIME, "\"10ms\"", "without host requests ..."),
///     }
/// }
/// ```
///
/// [`FromVal`] of the field's type converts the value, or the closure `=> |values, path| ...` after the key.
#[macro_export]
macro_rules! section {
    ($(#[$meta:meta])* $vis:vis struct $Name:ident {
        $($(#[$doc:meta])* $field_vis:vis $field:ident: $T:ty = $key:expr $(=> $read:expr)?,)*
    }) => {
        $(#[$meta])*
        $vis struct $Name {
            $($(#[$doc])* $field_vis $field: $T,)*
        }

        $crate::spec::section! { for $Name { $($field = $key $(=> $read)?,)* } }
    };
    (for $Name:ident { $($field:ident = $key:expr $(=> $read:expr)?,)* }) => {
        impl $crate::spec::Section for $Name {
            const KEYS: &'static [$crate::spec::Key] = &[$($key,)*];

            fn of(values: &$crate::spec::Resolved) -> Self {
                Self { $($field: $crate::spec::section!(@read values, $key $(, $read)?),)* }
            }
        }
    };
    (@read $values:ident, $key:expr) => {{
        const KEY: &$crate::spec::Key = &$key;
        $values.read(KEY.path)
    }};
    (@read $values:ident, $key:expr, $read:expr) => {{
        const KEY: &$crate::spec::Key = &$key;
        let read: fn(&$crate::spec::Resolved, &'static str) -> _ = $read;
        read($values, KEY.path)
    }};
}

/// Declares the struct of a policy's parameters, or of a table, each field with its parameter. The form is that of
/// [`section!`], except that the closure after `=>` takes the parameter's value: `=> |val| ...`.
#[macro_export]
macro_rules! params {
    ($(#[$meta:meta])* $vis:vis struct $Name:ident {
        $($(#[$doc:meta])* $field_vis:vis $field:ident: $T:ty = $param:expr $(=> $read:expr)?,)*
    }) => {
        $(#[$meta])*
        $vis struct $Name {
            $($(#[$doc])* $field_vis $field: $T,)*
        }

        $crate::spec::params! { for $Name { $($field = $param $(=> $read)?,)* } }
    };
    (for $Name:ident { $($field:ident = $param:expr $(=> $read:expr)?,)* }) => {
        impl $crate::spec::Params for $Name {
            const PARAMS: &'static [$crate::spec::Param] = &[$($param,)*];
        }

        impl $crate::spec::FromVal for $Name {
            fn from_val(val: &$crate::spec::Val) -> Self {
                Self { $($field: $crate::spec::params!(@read val, $param $(, $read)?),)* }
            }
        }
    };
    (@read $val:ident, $param:expr) => {{
        const PARAM: &$crate::spec::Param = &$param;
        $crate::spec::FromVal::from_val($val.field(PARAM.name))
    }};
    (@read $val:ident, $param:expr, $read:expr) => {{
        const PARAM: &$crate::spec::Param = &$param;
        let read: fn(&$crate::spec::Val) -> _ = $read;
        read($val.field(PARAM.name))
    }};
}

/// Declares the enum of a slot, each variant with its name and description. With `for` before the enum's name, the
/// enum is declared elsewhere.
#[macro_export]
macro_rules! choices {
    ($(#[$meta:meta])* $vis:vis enum $Name:ident {
        $($(#[$doc:meta])* $variant:ident = $name:literal: $text:literal,)*
    }) => {
        $(#[$meta])*
        $vis enum $Name {
            $($(#[$doc])* $variant,)*
        }

        $crate::spec::choices! { for $Name { $($variant = $name: $text,)* } }

        impl $crate::spec::Listed for $Name {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            fn choice(self) -> &'static $crate::spec::Policy {
                &<Self as $crate::spec::Choices>::CHOICES[self as usize]
            }
        }
    };
    (for $Name:ident { $($variant:ident = $name:literal: $text:literal,)* }) => {
        impl $crate::spec::Choices for $Name {
            const CHOICES: &'static [$crate::spec::Policy] = &[$($crate::spec::plain($name, $text),)*];
        }

        impl $crate::spec::FromVal for $Name {
            fn from_val(val: &$crate::spec::Val) -> Self {
                match val.tag() {
                    $($name => Self::$variant,)*
                    _ => val.is_no(stringify!($Name)),
                }
            }
        }
    };
}
