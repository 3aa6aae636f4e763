//! Power cuts in a recorded session, for `nandlab powertest`.

use crate::errors::RunError;
use crate::replay::{check_whole, open};
use crate::spec::Spec;
use nandlab::base::units::Time;
use nandlab_base::recording::Event;
use nandlab_live::moments::Moments;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// What happens in a session: `marks` (time and text), `acknowledged` (time and text), `cuts` (times at which power fails
/// and returns), `requests` (time, operation, offset, length, FUA), `reached` (by request when it was acknowledged and when
/// all its units were in flash; absent: never), `programs` (begin and end), `flushes` (time), `end`. All
/// times are simulated, in nanoseconds.
#[pyfunction]
pub(crate) fn recording_moments<'py>(
    py: Python<'py>,
    path: PathBuf,
    spec: &Spec,
) -> PyResult<Bound<'py, PyDict>> {
    let (mut recording, _) = open(&path).map_err(RunError::new_err)?;
    check_whole(recording.header(), &path)?;
    let (mut marks, mut acknowledged, mut cuts, mut requests) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut end = 0;
    let outcome = py.detach(|| {
        let text = |data: &[u8]| String::from_utf8_lossy(data).into_owned();
        Moments::of(&mut recording, &spec.loaded.spec, |entry| {
            let at = entry.at.ns();
            end = at;
            match entry.event {
                Event::Request(request) => {
                    requests.push((at, request.op.name(), request.offset, request.len, request.fua));
                }
                Event::Mark => marks.push((at, text(entry.data))),
                Event::Acknowledged => acknowledged.push((at, text(entry.data))),
                Event::Cut | Event::Restore => cuts.push(at),
                Event::CutInRecovery(_) => {}
                Event::Detect | Event::UpdateHandle(_) | Event::Stop => {}
            }
        })
    });
    let moments = outcome.map_err(|text| RunError::new_err(format!("{}: {text}", path.display())))?;
    let out = PyDict::new(py);
    let programs: Vec<(u64, u64)> =
        moments.programs.iter().map(|&(begin, end)| (begin.ns(), end.ns())).collect();
    let flushes: Vec<u64> = moments.flushes.iter().map(|at| at.ns()).collect();
    out.set_item("marks", marks)?;
    out.set_item("acknowledged", acknowledged)?;
    out.set_item("cuts", cuts)?;
    let time = |at: Time| (at != Time::NEVER).then(|| at.ns());
    let reached: Vec<(Option<u64>, Option<u64>)> =
        moments.reached.iter().map(|of| (time(of.acknowledged), time(of.in_flash))).collect();
    out.set_item("requests", requests)?;
    out.set_item("reached", reached)?;
    out.set_item("programs", programs)?;
    out.set_item("flushes", flushes)?;
    out.set_item("end", end)?;
    Ok(out)
}

#[cfg(target_os = "linux")]
pub(crate) use linux::ImageServer;
#[cfg(unix)]
pub(crate) use unix::Cutter;

#[cfg(target_os = "linux")]
mod linux {
    use super::RunError;
    use nandlab_live::backend::Backend;
    use nandlab_live::image::Image;
    use nandlab_live::nbd::Export;
    use nandlab_live::server::{Ended, Listener, Server, Settings, Stop};
    use pyo3::prelude::*;
    use std::path::PathBuf;
    use std::thread::JoinHandle;

    /// Serves an image over NBD, in a thread of its own; reads of its unreadable units fail. See
    /// `nandlab_live::image::Image`.
    #[pyclass(module = "nandlab._core")]
    pub(crate) struct ImageServer {
        #[pyo3(get)]
        uri: String,
        stop: Stop,
        thread: Option<JoinHandle<()>>,
    }

    #[pymethods]
    impl ImageServer {
        /// `socket` is the path of a Unix socket for this user alone, and `unreadable` has addresses of units in bytes.
        #[new]
        fn new(path: PathBuf, socket: PathBuf, unit_bytes: u64, unreadable: Vec<u64>) -> PyResult<Self> {
            let error = |text: String| RunError::new_err(format!("{}: {text}", path.display()));
            if unit_bytes == 0 {
                return Err(error("a unit has at least 1 byte".to_owned()));
            }
            let units = unreadable.iter().map(|offset| offset / unit_bytes).collect();
            let mut image = Image::open(&path, unit_bytes, units).map_err(|of| error(of.to_string()))?;
            let listener = Listener::unix(&socket).map_err(|of| error(of.to_string()))?;
            let uri = listener.uri();
            let mut export = Export::new(image.features());
            export.description = "the image after a power cut".to_owned();
            let mut server = Server::new(export, vec![listener], Settings::default())
                .map_err(|of| error(of.to_string()))?;
            let stop = server.stop();
            let thread = std::thread::Builder::new()
                .spawn(move || while matches!(server.run(&mut image), Ok(Ended::Interrupted)) {})
                .map_err(|of| error(of.to_string()))?;
            Ok(Self { uri, stop, thread: Some(thread) })
        }

        /// Ends the server.
        fn close(&mut self, py: Python<'_>) {
            self.stop.stop();
            if let Some(thread) = self.thread.take() {
                // A panic of the server is seen by its clients, whose connections end.
                let _ = py.detach(|| thread.join());
            }
        }
    }

    impl Drop for ImageServer {
        fn drop(&mut self) {
            self.stop.stop();
        }
    }
}

#[cfg(unix)]
mod unix {
    use super::{RunError, Spec, check_whole, open};
    use crate::errors::failure_text;
    use nandlab::base::lost::{Lost, Promise};
    use nandlab_base::base::units::{Span, Time};
    use nandlab_live::simulated::{self, Unserved};
    use pyo3::prelude::*;
    use pyo3::types::{PyDict, PyList};
    use std::path::PathBuf;
    use std::sync::Mutex;

    /// Plays a session, and cuts its power; see `nandlab_live::simulated::Cutter`.
    #[pyclass(module = "nandlab._core")]
    pub(crate) struct Cutter {
        cutter: Mutex<simulated::Cutter>,
        path: PathBuf,
        lost: Vec<Lost>,
    }

    #[pymethods]
    impl Cutter {
        #[new]
        fn new(path: PathBuf, spec: &Spec, memory: u64) -> PyResult<Self> {
            let (recording, _) = open(&path).map_err(RunError::new_err)?;
            check_whole(recording.header(), &path)?;
            let cutter = simulated::Cutter::new(recording, &spec.loaded.spec, memory, &mut |_| true)
                .map_err(|unserved| {
                    RunError::new_err(match unserved {
                        Unserved::Kept(error) => error,
                        Unserved::Stopped => "stopped".to_owned(),
                        Unserved::Failed(failure) => failure_text(&failure, &spec.loaded.hash()),
                        Unserved::Restore(path, error) => format!("{}: {error}", path.display()),
                        Unserved::Load(path, error) => format!("{}: {error}", path.display()),
                    })
                })?;
            Ok(Self { cutter: Mutex::new(cutter), path, lost: Vec::new() })
        }

        /// Plays the session up to a simulated time in nanoseconds; returns whether power is on, and how many lines were
        /// acknowledged.
        fn advance(&mut self, to: u64) -> PyResult<(bool, u64)> {
            let cutter = self.cutter.get_mut().map_err(|error| RunError::new_err(error.to_string()))?;
            cutter
                .advance(Time::from_ns(to))
                .map_err(|text| RunError::new_err(format!("{}: {text}", self.path.display())))?;
            Ok((!cutter.is_off(), cutter.acknowledged()))
        }

        /// Power fails and returns, and with `again_ns` fails once more in recovery: `at_ns`, `cut_again`, `recovery_ns`, `lost` (a list of units with `lpn`, `offset`, `promise`, `sequence`, `trim`,
        /// `destroyed`: it was in flash),
        /// `unreadable` (offsets), and `unit_bytes`.
        #[pyo3(signature = (again_ns=None))]
        fn cut<'py>(&mut self, py: Python<'py>, again_ns: Option<u64>) -> PyResult<Bound<'py, PyDict>> {
            let cutter = self.cutter.get_mut().map_err(|error| RunError::new_err(error.to_string()))?;
            let cut = cutter.cut(again_ns.map(Span::from_ns));
            let unit_bytes = cutter.unit_bytes();
            let units = PyList::empty(py);
            for lost in &cut.lost {
                let unit = PyDict::new(py);
                unit.set_item("lpn", lost.lpn.0)?;
                unit.set_item("offset", u64::from(lost.lpn.0) * unit_bytes)?;
                let promise = match lost.promise {
                    Promise::Covered => "covered",
                    Promise::Acknowledged => "acknowledged",
                    Promise::InFlight => "in_flight",
                };
                unit.set_item("promise", promise)?;
                unit.set_item("sequence", lost.sequence)?;
                unit.set_item("trim", lost.is_trim)?;
                unit.set_item("destroyed", lost.was_in_flash)?;
                units.append(unit)?;
            }
            let out = PyDict::new(py);
            out.set_item("at_ns", cut.at.ns())?;
            out.set_item("cut_again", cut.is_cut_again)?;
            out.set_item("recovery_ns", cut.recovery.ns())?;
            out.set_item("unit_bytes", unit_bytes)?;
            out.set_item("lost", units)?;
            let offset = |lpn: &u32| u64::from(*lpn) * unit_bytes;
            out.set_item("unreadable", cut.unreadable.iter().map(offset).collect::<Vec<_>>())?;
            self.lost = cut.lost;
            Ok(out)
        }

        /// Writes the image of the drive to a new file, with the lost units of these numbers put back.
        #[pyo3(signature = (path, put_back=Vec::new()))]
        fn image(&mut self, path: PathBuf, put_back: Vec<usize>) -> PyResult<()> {
            let cutter = self.cutter.get_mut().map_err(|error| RunError::new_err(error.to_string()))?;
            let mut lost: Vec<Lost> =
                put_back.iter().filter_map(|&number| self.lost.get(number)).copied().collect();
            lost.sort_unstable_by_key(|lost| lost.lpn);
            cutter
                .image(&path, &lost)
                .map_err(|error| RunError::new_err(format!("{}: {error}", path.display())))
        }
    }
}
