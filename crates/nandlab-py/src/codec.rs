//! LDPC codes for Python: frame error rates, part by part.

use crate::errors::RunError;
use nandlab_ldpc::{
    Channel, Code, Codewords, Decoder, Encoder, Frames, LdpcError, MinSum, Mixture, Regions, SHIPPED, files,
    measure,
};
use pyo3::prelude::*;
use std::path::PathBuf;

/// The largest LLR of hard decisions and of others.
const LLRS: [u8; 2] = [16, 31];

/// Counts of frames: sent, not decoded into what was sent, iterations of all, iterations of the decoded, their squares.
type Counts = (u64, u64, u64, u64, u64);

/// A code with its decoder.
#[pyclass(frozen, module = "nandlab._core")]
pub(crate) struct Codec {
    code: Code,
    decoder: Decoder,
    codewords: Codewords,
    data_bits: usize,
}

#[pymethods]
impl Codec {
    /// The shipped code of this rate and size, or the code of a file.
    #[new]
    #[pyo3(signature = (rate, data_bytes, file=None, iterations=30))]
    fn new(
        py: Python<'_>,
        rate: &str,
        data_bytes: u32,
        file: Option<PathBuf>,
        iterations: u32,
    ) -> PyResult<Self> {
        let code = match file {
            Some(file) => files::read(&file).map_err(|error| refused(&error))?,
            None => match SHIPPED.iter().find(|code| code.rate == rate && code.data_bytes == data_bytes) {
                Some(shipped) => shipped.description.build().map_err(|error| refused(&error))?,
                None => {
                    let all: Vec<String> = SHIPPED
                        .iter()
                        .map(|code| format!("{} with {} KiB", code.rate, code.data_bytes / 1024))
                        .collect();
                    return Err(RunError::new_err(format!(
                        "no code of rate {rate} with {} KiB of data comes with nandlab\n  remedy: choose one of {}, or give a \
                         file whose name ends in .alist or .qc",
                        f64::from(data_bytes) / 1024.0,
                        all.join(", ")
                    )));
                }
            },
        };
        py.detach(|| {
            let settings = MinSum { iterations_max: iterations, ..MinSum::default() };
            let decoder = Decoder::new(&code, settings)?;
            let encoder = Encoder::new(&code)?;
            let codewords = Codewords::random(&encoder, 1);
            Ok(Self { data_bits: encoder.data_bits(), code, decoder, codewords })
        })
        .map_err(|error: LdpcError| refused(&error))
    }

    /// Bits of a codeword, and those of them that are data.
    #[getter]
    fn bits(&self) -> (usize, usize) {
        (self.code.bits(), self.data_bits)
    }

    /// Sends the frames whose numbers begin with the first one of `frames` and end before the second one, over a Gaussian
    /// boundary at which one reference has the RBER `rber`. The boundary is read with `references` references: `spacing`
    /// standard deviations apart, or with the most information (`None`).
    #[pyo3(signature = (rber, references, spacing, seed, frames))]
    fn measure(
        &self,
        py: Python<'_>,
        rber: f64,
        references: usize,
        spacing: Option<f64>,
        seed: u64,
        frames: (u64, u64),
    ) -> PyResult<Counts> {
        py.detach(|| {
            let regions = Regions::of_boundary(rber, references, spacing)?;
            let llrs = regions.quantised(LLRS[usize::from(references > 1)]);
            let channel = Channel::Regions { regions, llrs };
            Ok(measure(&self.decoder, &channel, &self.codewords, seed, frames.0..frames.1))
        })
        .map(|frames| counts(&frames))
        .map_err(|error: LdpcError| refused(&error))
    }

    /// As `measure`, with `errors` wrong bits in each frame and hard decisions.
    fn measure_errors(&self, py: Python<'_>, errors: u32, seed: u64, frames: (u64, u64)) -> PyResult<Counts> {
        if errors as usize > self.code.bits() {
            return Err(RunError::new_err(format!("{errors} errors in a word of {} bits", self.code.bits())));
        }
        let channel = Channel::Errors { errors, llr: LLRS[0] };
        Ok(py.detach(|| counts(&measure(&self.decoder, &channel, &self.codewords, seed, frames.0..frames.1))))
    }

    /// The frame error rate of hard decisions at each RBER, with its standard error, from what was measured at fixed
    /// numbers of errors: (errors, frames, failed), ascending.
    fn mixture(&self, points: Vec<(u32, u64, u64)>, rbers: Vec<f64>) -> PyResult<Vec<(f64, f64)>> {
        let is_ascending = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let is_possible = points.iter().all(|&(errors, frames, failed)| {
            errors as usize <= self.code.bits() && frames > 0 && failed <= frames
        });
        if points.is_empty()
            || !is_ascending
            || !is_possible
            || rbers.iter().any(|rber| !(0.0..=0.5).contains(rber))
        {
            return Err(RunError::new_err(
                "a mixture needs ascending numbers of errors with frames, and RBERs up to 0.5",
            ));
        }
        let frames = |frames, failed| Frames { frames, failed, ..Frames::default() };
        let points =
            points.into_iter().map(|(errors, sent, failed)| (errors, frames(sent, failed))).collect();
        let mixture = Mixture::new(self.code.bits(), points);
        Ok(rbers.into_iter().map(|rber| mixture.at(rber)).map(|found| (found.rate, found.error)).collect())
    }

    /// What the regions leave unknown of a bit, in bits.
    #[staticmethod]
    #[pyo3(signature = (rber, references, spacing))]
    fn equivocation(rber: f64, references: usize, spacing: Option<f64>) -> PyResult<f64> {
        Regions::of_boundary(rber, references, spacing)
            .map(|regions| regions.equivocation())
            .map_err(|error| refused(&error))
    }

    /// The interval of 95 % of a rate, of which `failed` of `frames` were counted.
    #[staticmethod]
    fn interval(frames: u64, failed: u64) -> (f64, f64) {
        Frames { frames, failed, ..Frames::default() }.interval()
    }
}

fn counts(frames: &Frames) -> Counts {
    let failed = frames.failed + frames.wrong;
    (frames.frames, failed, frames.iterations, frames.iterations_decoded, frames.iterations_decoded_squares)
}

fn refused(error: &LdpcError) -> PyErr {
    RunError::new_err(error.to_string())
}
