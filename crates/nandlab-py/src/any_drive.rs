//! A drive with or without observers: the one place of the binding that names the types of a drive.

use nandlab::drive::Drive;
use nandlab::drive::spec::{PreconditionSpec, Spec};
use nandlab::host::Oracle;
use nandlab::report::{Taps, Timeline};

/// A drive with or without observers. Each type of a probe costs one more copy of the compiled drive, so a further
/// observer joins the set (`Taps`).
pub(crate) enum AnyDrive {
    Plain(Box<Drive>),
    Observed(Box<Drive<Taps>>),
}

/// Evaluates an expression with the drive of either type.
macro_rules! on {
    ($any:expr, $drive:ident => $body:expr) => {
        match $any {
            $crate::any_drive::AnyDrive::Plain($drive) => $body,
            $crate::any_drive::AnyDrive::Observed($drive) => $body,
        }
    };
}
pub(crate) use on;

impl AnyDrive {
    /// A fresh drive. With `verify` the oracle observes it; the timeline records its first `operations` operations.
    pub(crate) fn new(spec: &Spec, verify: bool, operations: u64) -> Self {
        let oracle = verify.then(|| Oracle::of(&spec.drive));
        let taps = Taps::new(oracle, (operations > 0).then(|| Timeline::new(operations)));
        if taps.is_empty() {
            Self::Plain(Box::new(Drive::new(spec)))
        } else {
            Self::Observed(Box::new(Drive::with_probe(spec, taps)))
        }
    }

    fn taps(&self) -> Option<&Taps> {
        match self {
            Self::Plain(_) => None,
            Self::Observed(drive) => Some(drive.probe()),
        }
    }

    pub(crate) fn oracle(&self) -> Option<&Oracle> {
        self.taps()?.oracle()
    }

    pub(crate) fn timeline(&self) -> Option<&Timeline> {
        self.taps()?.timeline()
    }

    /// Informs the oracle, if there is one, of the LPNs that preconditioning has mapped. The oracle has observed the
    /// writes of preconditioning to steady state.
    pub(crate) fn expect_preconditioned(&mut self) {
        if let Self::Observed(drive) = self
            && drive.probe().oracle().is_some()
            && !matches!(drive.spec().precondition, PreconditionSpec::Pts { .. })
        {
            drive.expect_preconditioned(|taps| taps.oracle_mut().expect("the set has an oracle"));
        }
    }
}
