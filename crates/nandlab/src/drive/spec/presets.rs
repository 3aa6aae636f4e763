//! The drives that ship with the program: `presets/*.toml`, compiled in.

use crate::spec::Preset;

macro_rules! preset {
    ($name:literal, $about:literal) => {
        Preset {
            name: $name,
            about: $about,
            text: include_str!(concat!("../../../../../presets/", $name, ".toml")),
        }
    };
}

/// All presets, by name.
pub(super) static PRESETS: &[Preset] = &[
    preset!("bench-16g", "a 16 GiB drive for the benchmarks: many small pages, default timing"),
    preset!("capacitor-2d-128g", "the planar 128 GB drive of the capacitor-aware cache paper"),
    preset!("capacitor-3d-128g", "the stacked 128 GB drive of the capacitor-aware cache paper"),
    preset!("demo-128g", "a 128 GB MLC drive for replays of the MSR traces"),
    preset!("laldpc-32g", "the 32 GB MLC drive of the LaLDPC paper"),
    preset!("like-adata-atom-50-1t", "like an ADATA XPG Atom 50 of 1 TB, with its SLC cache"),
    preset!("like-micron-7450-max-800g", "like a Micron 7450 MAX of 800 GB, as measured"),
    preset!("like-samsung-970-evo-plus-1t", "like a Samsung 970 EVO Plus of 1 TB, with its SLC cache"),
    preset!("like-samsung-pm9a3-960g", "like a Samsung PM9A3 of 960 GB, as measured"),
    preset!("like-sk-hynix-pe8110-960g", "like an SK hynix PE8110 of 960 GB, as measured"),
    preset!("like-solidigm-p5520-1920g", "like a Solidigm D7-P5520 of 1.92 TB, as measured"),
    preset!("modern-tlc-1t", "a 1 TB 3D TLC drive of 2021"),
    preset!("partial-refresh-128g", "the 128 GB 3D MLC drive of the partial refresh paper"),
    preset!("rcopyback-64g", "the 64 GB MLC drive of the rcopyback paper"),
];
