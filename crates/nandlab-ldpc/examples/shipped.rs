//! `shipped RATE SIZE [FRAMES [RBER [mmi]]]` measures the table of a shipped code and prints it as the source of `src/shipped.rs`. RATE and
//! SIZE are those of the table, such as `8/9 4KiB`; FRAMES (default 6000) is the number of frames at each point. A fourth
//! argument is the raw bit error rate at which 1 % of hard decisions fail; then only soft decisions are measured,
//! and with `mmi` only those of references that give most information.

use nandlab_ldpc::{
    Channel, Codewords, Decoder, Description, Encoder, LdpcError, MinSum, Mixture, Regions, measure,
};

fn description(rate: &str, size: &str) -> Description {
    let lifting = match (rate, size) {
        ("8/9", "4KiB") => 512,
        ("8/9", "2KiB") | ("16/17", "4KiB") => 256,
        ("16/17", "2KiB") => 128,
        _ => panic!("no shipped code has the rate {rate} and the size {size}"),
    };
    Description { rows: 8, columns: if rate == "8/9" { 72 } else { 136 }, lifting, column_weight: 4, seed: 1 }
}

/// The regions of a Gaussian boundary at which hard decisions have this raw bit error rate.
fn regions(rber: f64, references: usize, most: bool) -> Regions {
    let spacing = if most { None } else { Some(0.25) };
    Regions::of_boundary(rber, references, spacing).expect("the RBER is below 0.5")
}

fn main() -> Result<(), LdpcError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rate, size] = [&arguments[0], &arguments[1]];
    let frames: u64 = arguments.get(2).map_or(6000, |n| n.parse().expect("FRAMES is a number"));
    let code = description(rate, size).build()?;
    let decoder = Decoder::new(&code, MinSum::default())?;
    let codewords = Codewords::random(&Encoder::new(&code)?, 1);
    let boundary = match arguments.get(3) {
        Some(rber) => rber.parse().expect("RBER is a number"),
        None => hard_decisions(&decoder, &codewords, frames)?,
    };
    let hard = Regions::hard(boundary)?.equivocation();
    let placements: &[bool] = if arguments.len() > 4 { &[true] } else { &[false, true] };
    for &most in placements {
        soft_decisions(&decoder, &codewords, frames, boundary, hard, most)?;
    }
    Ok(())
}

/// Prints the frame error rates and iterations of hard decisions. Returns the raw bit error rate at which 1 % fail.
fn hard_decisions(decoder: &Decoder, codewords: &Codewords, frames: u64) -> Result<f64, LdpcError> {
    let bits = decoder.bits();
    // Hard decisions: the numbers of errors from the first failures to certain failure.
    let step = (bits as u32 / 36_864 * 4).max(2);
    let at = |errors: u32, frames: u64| {
        measure(decoder, &Channel::Errors { errors, llr: 16 }, codewords, 1, 0..frames)
    };
    let mut first = bits as u32 / 400;
    while at(first, 100).failed < 50 {
        first += step;
    }
    let mut points = Vec::new();
    let mut errors = first;
    // Upwards to certain failure, downwards until 8 times as many frames show fewer than 3 failures.
    loop {
        let counts = at(errors, frames / 4);
        points.push((errors, counts));
        if counts.failed == counts.frames {
            break;
        }
        errors += step;
    }
    let mut errors = first - step;
    loop {
        let mut counts = at(errors, frames);
        if counts.failed < 100 {
            counts.merge(&measure(
                decoder,
                &Channel::Errors { errors, llr: 16 },
                codewords,
                1,
                frames..8 * frames,
            ));
        }
        points.push((errors, counts));
        if counts.failed < 3 {
            break;
        }
        errors -= step;
    }
    points.sort_by_key(|point| point.0);
    eprintln!("FER(k) at {:?} to {:?}", points[0], points[points.len() - 1]);
    let mixture = Mixture::new(bits, points);
    println!("        fer: &[");
    for rate in [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.2, 0.5, 0.8, 0.95, 0.99] {
        let rber = mixture.boundary(rate).expect("the last point fails");
        let estimate = mixture.at(rber);
        println!(
            "            ({rber:.6}, {rate:e}), // standard error {:.1e}, {:.1e} of the weight below the fewest errors",
            estimate.error, estimate.below
        );
    }
    println!("        ],");
    let boundary = mixture.boundary(1e-2).expect("the last point fails");
    println!("        iterations: &[");
    for margin in [0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2] {
        let channel = Channel::binary_symmetric(margin * boundary, 16)?;
        let counts = measure(decoder, &channel, codewords, 2, 0..frames / 3);
        let (mean, sd) = counts.iterations_of_decoded();
        println!("            ({margin}, {mean:.2}, {sd:.2}),");
    }
    println!("        ],");
    Ok(boundary)
}

/// Prints the boundaries of soft decisions, with references that give the most information or equidistant ones.
fn soft_decisions(
    decoder: &Decoder,
    codewords: &Codewords,
    frames: u64,
    boundary: f64,
    hard: f64,
    most: bool,
) -> Result<(), LdpcError> {
    println!("        {}: [", if most { "most_informative" } else { "equidistant" });
    println!("            {boundary:.5},");
    let (mut rber, mut equivocation) = (boundary, 1.02 * hard);
    for references in 2..=7 {
        // The boundary at which the equivocation is a little above that of one reference less.
        let (mut low, mut high) = (rber * 0.9, rber * 2.5);
        while high - low > 1e-6 {
            let middle = 0.5 * (low + high);
            if regions(middle, references, most).equivocation() < equivocation {
                low = middle
            } else {
                high = middle
            }
        }
        rber = low;
        let failures = |rber: f64, frames: u64| {
            let regions = regions(rber, references, most);
            let llrs = regions.quantised(31);
            measure(decoder, &Channel::Regions { regions, llrs }, codewords, 3, 0..frames)
        };
        // Steps to a rate of 0.3 to 10 %.
        loop {
            let rate = failures(rber, frames / 5).error_rate();
            if (0.003..0.1).contains(&rate) {
                break;
            }
            rber *= if rate < 0.003 { 1.03 } else { 0.98 };
        }
        let mut slope = 0.0;
        for _ in 0..2 {
            let mut line = Vec::new();
            for offset in [-0.03, -0.015, 0.0, 0.015, 0.03] {
                let at = rber * (1.0 + offset);
                let counts = failures(at, frames / 2);
                if counts.failed > 2 && counts.error_rate() < 0.4 {
                    line.push((at.ln(), counts.error_rate().ln(), counts.failed as f64));
                }
            }
            if line.len() < 2 {
                rber *= 1.02;
                continue;
            }
            // A line through the logarithms of the rates. Each point weighs as much as it has failures.
            let n: f64 = line.iter().map(|p| p.2).sum();
            let (mx, my) = line.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 * p.2 / n, y + p.1 * p.2 / n));
            let (xy, xx) = line.iter().fold((0.0, 0.0), |(xy, xx), p| {
                (xy + p.2 * (p.0 - mx) * (p.1 - my), xx + p.2 * (p.0 - mx) * (p.0 - mx))
            });
            // The slope of hard decisions is 39; a line through few failures may have any slope.
            slope = (xy / xx).clamp(20.0, 60.0);
            rber = (mx + (0.01f64.ln() - my) / slope).exp();
        }
        equivocation = regions(rber, references, most).equivocation();
        println!(
            "            {rber:.5}, // {references} references, {equivocation:.5} unknown, FER grows as RBER^{slope:.0}"
        );
        equivocation *= 1.015;
    }
    println!("        ],");
    Ok(())
}
