//! Tests of the formats whose lines are only columns.

use super::testing::{error, parse};
use super::*;

#[test]
fn published_lines_are_parsed() {
    for (format, line, op, time_ns, device, offset, len) in [
        (
            "msr",
            "128166372011600556,mds,0,Write,3201662976,20480,45361",
            Op::Write,
            12_816_637_201_160_055_600,
            "mds_0",
            3_201_662_976,
            20_480,
        ),
        ("spc", "0,20941264,8192,W,0.551706,Alpha/NT", Op::Write, 551_706_000, "0", 20_941_264 * 512, 8192),
        ("spc", "0,303567,3584,w,0.000000", Op::Write, 0, "0", 303_567 * 512, 3584),
        ("spc", "3, 8, 100, r, 1.5", Op::Read, 1_500_000_000, "3", 4096, 100),
        ("ssdsim", "97900000 0 287641400 128 1", Op::Read, 97_900_000, "0", 287_641_400 * 512, 65_536),
        ("mqsim", "11413000 0 657728 16 1", Op::Read, 11_413_000, "0", 657_728 * 512, 8192),
        ("disksim", "5265.313 0 6357144 8 0", Op::Write, 5_265_313_000, "0", 6_357_144 * 512, 4096),
        (
            "alibaba",
            "0,R,126703644672,4096,1577808000000626",
            Op::Read,
            1_577_808_000_000_626_000,
            "0",
            126_703_644_672,
            4096,
        ),
        (
            "tencent",
            "1538323200,12910952,128,0,1063",
            Op::Read,
            1_538_323_200_000_000_000,
            "1063",
            12_910_952 * 512,
            65_536,
        ),
        ("tencent", "1538323200,1,1,1,1", Op::Write, 1_538_323_200_000_000_000, "1", 512, 512),
        (
            "systor",
            "1456095145.133076000,0.000806000,R,0,899056122368,131072",
            Op::Read,
            1_456_095_145_133_076_000,
            "0",
            899_056_122_368,
            131_072,
        ),
    ] {
        let raw = parse(format, line.as_bytes()).unwrap().unwrap();
        assert_eq!(
            (raw.op, raw.time_ns, &raw.device[..], raw.offset, raw.len),
            (op, time_ns, device, offset, len),
            "{format}: {line}"
        );
    }
    assert_eq!(parse("systor", b"1456095145.133076000,,,0,899056122368,131072").unwrap(), None);
}

#[test]
fn flags_of_disksim_are_hexadecimal_and_bit_0_is_a_read() {
    for (flags, op) in [
        ("0", Op::Write),
        ("1", Op::Read),
        ("a", Op::Write),
        ("B", Op::Read),
        ("10", Op::Write),
        ("0x3", Op::Read),
    ] {
        let line = format!("5265.313 0 6357144 8 {flags}");
        assert_eq!(parse("disksim", line.as_bytes()).unwrap().unwrap().op, op, "{flags}");
    }
}

#[test]
fn unit_of_time_of_mqsim_is_a_setting() {
    for (unit, time, expected) in [
        (0.001, "11413000", 11_413),
        (1.0, "11413000", 11_413_000),
        (1000.0, "11413000", 11_413_000_000),
        (1e9, "242.504709548", 242_504_709_548),
    ] {
        let options = ReaderOptions { time_unit_ns: Some(unit) };
        let mut reader = FormatInfo::of(Format::Mqsim).reader(b"", &options).unwrap();
        let line = format!("{time} 0 1 1 1");
        let Parsed::Request(raw) = reader.parse(line.as_bytes(), 1).unwrap() else { panic!() };
        assert_eq!(raw.time_ns, expected);
    }
    for unit in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
        assert!(
            FormatInfo::of(Format::Mqsim).reader(b"", &ReaderOptions { time_unit_ns: Some(unit) }).is_err()
        );
    }
}

#[test]
fn each_field_is_checked() {
    for (format, line, field, what) in [
        ("msr", "1.28166E+17,hm,0,Write,7014912,4096,26", "Timestamp", "spreadsheet"),
        ("msr", "-5,hm,0,Write,7014912,4096,26", "Timestamp", "negative"),
        ("msr", "5,hm,0,Wrote,7014912,4096,26", "Type", "expected Read or Write, found \"Wrote\""),
        ("msr", "5,hm,0,Write,99999999999999999999,4096,26", "Offset", "expected a byte address below 2^64"),
        ("msr", "5,hm,0,Write,0,abc,26", "Size", "expected a number of bytes, found \"abc\""),
        ("msr", "5,hm,0,Write,0", "Size", "expected a value, found the end of the line"),
        ("msr", "5,hm,0,Write,0,4096,26,1", "(end of line)", "expected no further column, found \"1\""),
        ("spc", "0,1,2,x,0.5", "Opcode", "expected R or W, found \"x\""),
        ("spc", "0,1,2,R", "Timestamp", "expected a value, found the end of the line"),
        ("spc", "0,1,2,R,-0.5", "Timestamp", "negative"),
        ("spc", "0,99999999999999999,2,R,0", "LBA", "whose byte address is below 2^64"),
        ("spc", "a,1,2,R,0", "ASU", "expected a device number, found \"a\""),
        ("ssdsim", "x 0 1 8 1", "time", "a time"),
        ("ssdsim", "1.5 0 1 8 1", "time", "a time"),
        ("ssdsim", "1 a 1 8 1", "device", "a device number"),
        ("ssdsim", "1 0 a 8 1", "sector", "a number of sectors"),
        ("ssdsim", "1 0 1 -8 1", "sectors", "negative"),
        ("ssdsim", "1 0 1 8 2", "op", "expected 1 (read) or 0 (write), found \"2\""),
        ("ssdsim", "1 0 1 8", "op", "the end of the line"),
        ("ssdsim", "1 0 1 8 1 1", "(end of line)", "no further column"),
        ("disksim", "1.0 0 1 8 x", "flags", "a hexadecimal bit field"),
        ("alibaba", "0,X,1,4096,1", "opcode", "expected R or W"),
        ("alibaba", "0,R,x,4096,1", "offset", "a byte address"),
        ("alibaba", "0,R,1,-1,1", "length", "negative"),
        ("alibaba", "0,R,1,4096", "timestamp", "the end of the line"),
        ("alibaba", "0,R,1,4096,99999999999999999999", "timestamp", "a time"),
        ("tencent", "1.5,1,1,0,1", "Timestamp", "a time"),
        ("tencent", "1,x,1,0,1", "Offset", "a number of sectors"),
        ("tencent", "1,1,,0,1", "Size", "an empty field"),
        ("tencent", "1,1,1,2,1", "IOType", "expected 0 (read) or 1 (write)"),
        ("tencent", "1,1,1,1", "VolumeID", "the end of the line"),
        ("systor", "x,0,R,0,1,1", "Timestamp", "a time"),
        ("systor", "1,0,X,0,1,1", "IOType", "expected R, W or blank"),
        ("systor", "1,0,R,0,x,1", "Offset", "a byte address"),
        ("systor", "1,0,R,0,1", "Size", "the end of the line"),
        ("systor", "Timestamp,Response,IOType,LUN,Offset,Size", "Timestamp", "a time"),
    ] {
        let (at, message) = error(format, line.as_bytes());
        assert_eq!(at, field, "{line}: {message}");
        assert!(message.contains(what), "{line}: {message}");
    }
}

#[test]
fn quoted_and_decimal_numbers_are_read_where_they_are_exact() {
    let plain = parse("msr", b"128166372011600556,hm,0,Read,4096,8192,26").unwrap();
    for line in [
        "\"128166372011600556\",\"hm\",\"0\",\"Read\",\"4096\",\"8192\",\"26\"",
        "128166372011600556,hm,0,Read,4096.0,8192.000,26",
        "128166372011600556,\"hm\",\"0\",\"READ\",4096,8192,26",
        "128166372011600556 , hm,0,Read,4096 ,8192,\"a, b\"",
    ] {
        // Blanks between host and disk are part of the device's key.
        assert_eq!(parse("msr", line.as_bytes()).unwrap(), plain, "{line}");
    }
    for (line, field) in [
        ("128166372011600556.0,hm,0,Read,4096,8192,26", "Timestamp"),
        ("128166372011600556,hm,0,Read,4096.5,8192,26", "Offset"),
        ("128166372011600556,\"hm,0,Read,4096,8192,26", "(quotes)"),
    ] {
        assert_eq!(error("msr", line.as_bytes()).0, field, "{line}");
    }
}
