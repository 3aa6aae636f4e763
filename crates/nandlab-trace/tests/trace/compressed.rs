//! Compressed files are recognized by their content and read like plain files. A damaged file gives an error, never a
//! shorter trace.

use crate::common::*;
use nandlab_trace::{ErrorKind, open_bytes};
use std::io::Write;

/// A trace of more than one chunk, with lines that cross the ends of chunks.
fn content() -> Vec<u8> {
    let lines =
        (0..40_000u64).map(|i| format!("{},h,0,Write,{},4096,{}\n", 1_000 + i * 7, i % 977 * 4096, i * i));
    lines.collect::<String>().into_bytes()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(content, 3).unwrap()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn xz(content: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(content: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

type Encode = fn(&[u8]) -> Vec<u8>;

const ENCODERS: [(&str, Encode); 4] = [("zstd", zstd), ("gzip", gzip), ("xz", xz), ("bzip2", bzip2)];

#[test]
fn every_compression_reads_as_plain() {
    let content = content();
    let plain = read(&spec("x"), &content).unwrap();
    assert_eq!(plain.len(), 40_000);
    for (name, encode) in ENCODERS {
        let mut source = open_bytes(&spec("x"), encode(&content)).unwrap();
        assert_eq!(drain(&mut *source).unwrap(), plain, "{name}");
        assert!((source.progress() - 1.0).abs() < 1e-9, "{name}");
    }
}

#[test]
fn concatenated_streams_are_read_to_the_end() {
    let content = content();
    let (a, b) = content.split_at(content.len() / 2);
    for (name, encode) in ENCODERS {
        let both = [encode(a), encode(b)].concat();
        assert_eq!(read(&spec("x"), &both).unwrap().len(), 40_000, "{name}");
    }
}

#[test]
fn a_stream_cut_short_is_an_error_that_names_the_file() {
    let content = content();
    for (name, encode) in ENCODERS {
        let whole = encode(&content);
        for keep in [8, whole.len() / 2, whole.len() - 3] {
            let error = read(&spec("hm_0.csv.z"), &whole[..keep]).expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            let text = error.to_string();
            assert!(text.starts_with("hm_0.csv.z: the ") && text.contains(name), "{error}");
        }
    }
}

#[test]
fn a_damaged_stream_is_an_error() {
    let content = content();
    for (name, encode) in ENCODERS {
        let mut whole = encode(&content);
        let middle = whole.len() / 2;
        for byte in &mut whole[middle..middle + 16] {
            *byte ^= 0x5a;
        }
        assert!(read(&spec("x"), &whole).is_err(), "{name}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = nandlab_trace::open_trace(&spec("no/such/file.csv"), None).err().unwrap();
    assert!(error.to_string().starts_with("no/such/file.csv: cannot be opened"), "{error}");
}
