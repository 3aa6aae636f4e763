//! A drive with or without observers: the one place of the binding that names the types of a drive.

use crate::policy::memory::is_any_kept;
use crate::policy::{self, Chosen};
use crate::versions::{Returned, Versions};
use nandlab::drive::spec::{PreconditionSpec, Spec};
use nandlab::drive::{BuildError, Drive};
use nandlab::host::Oracle;
use nandlab::probe::NoProbe;
use nandlab::report::{Explainer, Taps, Timeline};
use pyo3::Python;
use std::sync::{Mutex, PoisonError};

/// A drive with or without observers. Each type of a probe costs one more copy of the compiled drive, so a further
/// observer joins the set (`Taps`).
pub(crate) enum AnyDrive {
    Plain(Box<Drive>),
    Observed(Box<Drive<Taps>>),
    /// Python refers to the memory of the drive, which therefore is kept.
    Detained,
}

/// Drives that have ended while Python referred to memory of a drive.
static DETAINED: Mutex<Vec<AnyDrive>> = Mutex::new(Vec::new());

/// Frees the drives in [`DETAINED`] if Python has dropped its references.
fn free_detained() {
    let mut detained = DETAINED.lock().unwrap_or_else(PoisonError::into_inner);
    if !detained.is_empty() && !Python::attach(is_any_kept) {
        let drives = std::mem::take(&mut *detained);
        // The end of a drive takes the lock.
        drop(detained);
        drop(drives);
    }
}

impl Drop for AnyDrive {
    fn drop(&mut self) {
        if self.has_python_policies() && Python::attach(is_any_kept) {
            let drive = std::mem::replace(self, Self::Detained);
            DETAINED.lock().unwrap_or_else(PoisonError::into_inner).push(drive);
        }
    }
}

/// Evaluates an expression with the drive of either type.
macro_rules! on {
    ($any:expr, $drive:ident => $body:expr) => {
        match $any {
            $crate::any_drive::AnyDrive::Plain($drive) => $body,
            $crate::any_drive::AnyDrive::Observed($drive) => $body,
            $crate::any_drive::AnyDrive::Detained => unreachable!("a detained drive is not used"),
        }
    };
}
pub(crate) use on;

impl AnyDrive {
    /// A fresh drive with the policies in Python that its spec names. With `verify` the oracle observes it; the timeline
    /// records its first `operations` operations. With `output.explain` its requests are explained. `observe` adds further
    /// observers.
    pub(crate) fn new(
        spec: &Spec,
        policies: &[Chosen],
        verify: bool,
        operations: u64,
        observe: impl FnOnce(Taps) -> Taps,
    ) -> Result<Self, BuildError> {
        free_detained();
        let policies = policy::make(policies, spec.seed);
        let oracle = verify.then(|| Oracle::of(&spec.drive));
        let taps = Taps::new(oracle, (operations > 0).then(|| Timeline::new(operations)));
        let explain = spec.output.explain;
        let taps = if explain > 0 { taps.explaining(Explainer::new(explain)) } else { taps };
        let taps = observe(taps);
        Ok(if taps.is_empty() {
            Self::Plain(Box::new(Drive::build(spec, policies, NoProbe)?))
        } else {
            Self::Observed(Box::new(Drive::build(spec, policies, taps)?))
        })
    }

    /// Whether the drive has policies in Python.
    fn has_python_policies(&self) -> bool {
        match self {
            Self::Detained => false,
            drive => on!(drive, drive => drive.policies().names().next().is_some()),
        }
    }

    /// The writes that a read returned which has ended, if the drive is observed for it ([`Versions`]).
    pub(crate) fn take_returned(&mut self, id: u64) -> Option<Returned> {
        let Self::Observed(drive) = self else { return None };
        drive.probe_mut().observer_mut::<Versions>()?.take(id)
    }

    fn taps(&self) -> Option<&Taps> {
        match self {
            Self::Plain(_) | Self::Detained => None,
            Self::Observed(drive) => Some(drive.probe()),
        }
    }

    pub(crate) fn oracle(&self) -> Option<&Oracle> {
        self.taps()?.oracle()
    }

    pub(crate) fn explainer(&self) -> Option<&Explainer> {
        self.taps()?.explainer()
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
