//! `frame_errors [KEY=VALUE]...` measures frame error rates of a code at a boundary of two Gaussian threshold voltage
//! distributions with the standard deviation sigma, where the raw bit error rate (RBER) of one reference is Q(1 /
//! sigma).
//!
//! | key | value | default |
//! |---|---|---|
//! | `code` | a file `NAME.alist` or `NAME.qc` | the code of 4 KiB |
//! | `references` | read references, 1 to 7 | 1 |
//! | `spacing` | distance of neighbouring references in sigma; the middle one or the two middle ones lie around the boundary | 0.25 |
//! | `rber` | raw bit error rates, separated by commas | 0.0075,0.008,0.0085 |
//! | `frames` | frames of each | 1000 |
//! | `factor`, `iterations`, `llr` | normalisation factor, most iterations, largest LLR | 0.75, 30, 16 for one reference, otherwise 31 |
//! | `seed` | seed of the frames | 1 |
//! | `mixture` | `FIRST..LAST..STEP`: instead of RBERs, fixed numbers of wrong bits; prints the rates at the RBERs from them | none |

use nandlab_ldpc::{
    Channel, Codewords, Decoder, Description, Encoder, LdpcError, MinSum, Mixture, Regions, files, measure,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::exit;

const KEYS: [&str; 10] =
    ["code", "references", "spacing", "rber", "frames", "factor", "iterations", "llr", "seed", "mixture"];

fn main() -> Result<(), LdpcError> {
    let mut settings = BTreeMap::new();
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some((key, value)) if KEYS.contains(&key) => settings.insert(key.to_owned(), value.to_owned()),
            _ => refuse(&format!("{argument} is no KEY=VALUE with one of the keys {}", KEYS.join(", "))),
        };
    }
    let text = |key: &str| settings.get(key).map(String::as_str);
    let references: usize = number("references", text("references").unwrap_or("1"));
    let spacing: f64 = number("spacing", text("spacing").unwrap_or("0.25"));
    let rbers: Vec<f64> =
        text("rber").unwrap_or("0.0075,0.008,0.0085").split(',').map(|rber| number("rber", rber)).collect();
    let frames = number("frames", text("frames").unwrap_or("1000"));
    let llr: u8 = number("llr", text("llr").unwrap_or(if references == 1 { "16" } else { "31" }));
    let seed = number("seed", text("seed").unwrap_or("1"));
    let min_sum = MinSum {
        normalisation: number("factor", text("factor").unwrap_or("0.75")),
        iterations_max: number("iterations", text("iterations").unwrap_or("30")),
        ..MinSum::default()
    };
    let code = match text("code") {
        Some(file) => files::read(Path::new(file))?,
        None => Description::KIB_4.build()?,
    };
    let decoder = Decoder::new(&code, min_sum)?;
    let codewords = Codewords::random(&Encoder::new(&code)?, seed);
    if let Some(range) = text("mixture") {
        let numbers: Vec<u32> = range.split("..").map(|part| number("mixture", part)).collect();
        let &[first, last, step] = numbers.as_slice() else {
            refuse("mixture has the form FIRST..LAST..STEP")
        };
        let errors: Vec<u32> = (first..=last).step_by(step.max(1) as usize).collect();
        let mixture = Mixture::measure(&decoder, llr, &codewords, seed, &errors, frames);
        for (errors, counts) in mixture.points() {
            println!("{errors:6} errors: {}", row(counts));
        }
        for rber in rbers {
            let estimate = mixture.at(rber);
            let outside = format!("outside: {:.1e} below, {:.1e} above", estimate.below, estimate.above);
            println!("RBER {rber:.5}: {:.2e} +- {:.1e} ({outside})", estimate.rate, estimate.error);
        }
        for rate in [1e-1, 1e-2, 1e-3, 1e-4] {
            if let Some(rber) = mixture.boundary(rate) {
                println!("boundary at {rate:.0e}: RBER {rber:.5}");
            }
        }
        return Ok(());
    }
    for rber in rbers {
        let sigma = Regions::sigma_of(rber)?;
        let middle = (references as f64 - 1.0) / 2.0;
        let at: Vec<f64> = (0..references).map(|i| (middle - i as f64) * spacing * sigma).collect();
        let regions = Regions::gaussian(sigma, &at)?;
        let llrs = regions.quantised(llr);
        let head = format!("RBER {rber:.5}, I {:.4}, LLRs {llrs:?}", regions.information());
        let channel = Channel::Regions { regions, llrs };
        println!("{head}: {}", row(&measure(&decoder, &channel, &codewords, seed, 0..frames)));
    }
    Ok(())
}

fn row(counts: &nandlab_ldpc::Frames) -> String {
    let (low, high) = counts.interval();
    format!(
        "{:.2e} ({low:.1e} to {high:.1e}), {} failed and {} wrong of {}, iterations {:.2}",
        counts.error_rate(),
        counts.failed,
        counts.wrong,
        counts.frames,
        counts.iterations_mean()
    )
}

fn number<T: std::str::FromStr>(key: &str, text: &str) -> T {
    text.parse().unwrap_or_else(|_| refuse(&format!("{key}={text}: expected a number")))
}

fn refuse(message: &str) -> ! {
    eprintln!("{message}");
    exit(2)
}
