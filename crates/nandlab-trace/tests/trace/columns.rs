//! Text whose columns the user describes.

use crate::common::*;
use nandlab_base::base::request::Op::{Flush, Read, Trim, Write};
use nandlab_base::base::request::Tag;
use nandlab_base::workload::{DeviceChoice, TraceFormat, TraceSpec};
use nandlab_trace::{ErrorKind, TraceError, open_bytes};

fn columns(text: &str) -> TraceSpec {
    TraceSpec { format: Some(TraceFormat::Columns(text.into())), ..spec("x.csv") }
}

fn error(text: &str, content: &str) -> TraceError {
    read(&columns(text), content.as_bytes()).expect_err(content)
}

#[test]
fn units_of_time_address_and_length_are_those_of_the_columns() {
    for (text, content, arrival, offset, len) in [
        ("time_s, offset, size, op", "1.5,4096,512,R\n2.25,4096,512,R\n", 750_000_000, 4096, 512),
        ("time_ms, lba*512, size, op", "1,8,512,R\n1.5,8,512,R\n", 500_000, 4096, 512),
        ("time_us, lba*4096, sectors*512, op", "1,1,1,R\n3,1,1,R\n", 2000, 4096, 512),
        ("time_ns, offset(hex), size(hex), op", "1,0x1000,200,R\n8,1000,0x200,R\n", 7, 4096, 512),
        ("time_100ns, offset, size, op", "5,4096,512,R\n6,4096,512,R\n", 100, 4096, 512),
        (
            "time_date, offset, size, op",
            "2024-02-28 23:59:59.5,4096,512,R\n2024-02-29T00:00:00,4096,512,R\n",
            500_000_000,
            4096,
            512,
        ),
        (
            "time_date, offset, size, op; separator=blanks",
            "2024-02-28 23:59:59.5 4096 512 R\n2024-02-29T00:00:00 4096 512 R\n",
            500_000_000,
            4096,
            512,
        ),
    ] {
        let requests = read(&columns(text), content.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(requests, [request(0, Read, offset, len), request(arrival, Read, offset, len)], "{text}");
    }
}

#[test]
fn values_of_the_operation_are_those_of_the_column() {
    let content = "0 1 4096 4096\n1 0 0 4096\n2 3 4096 4096\n3 f 0 0\n4 x 0 0\n";
    let requests = read(
        &columns("time_ms, op(0=read, 1=write, 3=trim, f=flush, x=ignore), offset, size"),
        content.as_bytes(),
    );
    let ms = 1_000_000;
    let expected = [
        request(0, Write, 4096, 4096),
        request(ms, Read, 0, 4096),
        request(2 * ms, Trim, 4096, 4096),
        request(3 * ms, Flush, 0, 0),
    ];
    assert_eq!(requests.unwrap(), expected);
    let e = error("time_ms, op(0=read, 1=write, *=ignore), offset, size", "0 read 1 1\n");
    assert_eq!(e.kind(), ErrorKind::Empty, "{e}");
}

#[test]
fn a_column_of_placements_is_in_the_tags() {
    let placed = |placement| request(0, Write, 0, 512).with_tag(Tag { queue: 0, placement });
    for (text, content) in [
        ("time_s, offset, size, op, placement", "0,0,512,W,0\n0,0,512,W,3\n0,0,512,W,65535\n"),
        // The cells of the second pass: quotes, decimals, and a blank cell, which is no placement.
        ("time_s, offset, size, op, placement", "0,0,512,W,\n0,0,512,W,\"3\"\n0,0,512,W,65535.0\n"),
        ("placement, time_s, offset, size, op, ...", "0 0 0 512 W x\n3 0 0 512 W x\n65535 0 0 512 W x\n"),
    ] {
        let found = read(&columns(text), content.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(found, [0, 3, 65535].map(placed), "{content}");
    }
    for junk in ["x", "-1", "65536", "1.5", "0x3", "18446744073709551616"] {
        let e = error("time_s, offset, size, op, placement", &format!("0,0,512,W,1\n0,0,512,W,{junk}\n"));
        assert_eq!((e.field(), e.line()), (Some("placement"), Some(2)), "{e}");
        assert!(e.to_string().contains("expected a placement"), "{e}");
    }
}

#[test]
fn writes_are_counted_by_placement() {
    let text = "time_s, op, offset, size, placement";
    let content = "0,W,0,4096,\n0,W,0,512,7\n0,R,0,512,7\n1,W,0,1024,7\n1,W,8192,512,65535\n";
    let stat = nandlab_trace::stat(&mut *open_bytes(&columns(text), content.as_bytes()).unwrap()).unwrap();
    let found: Vec<_> = stat.placements.iter().map(|(&of, n)| (of, n.requests, n.bytes)).collect();
    assert_eq!(found, [(0, 1, 4096), (7, 2, 1536), (65535, 1, 512)]);
    assert_eq!(stat.to_json()["placements"]["7"]["requests"], 2);
    let stat = nandlab_trace::stat(&mut *open_bytes(&columns(text), &b"0,W,0,512,0\n"[..]).unwrap()).unwrap();
    assert!(stat.to_json().get("placements").is_none());
}

#[test]
fn what_no_column_states_is_a_setting() {
    let requests = read(&columns("lba*4096; op=write; size=4096; time=none"), b"0\n7\n").unwrap();
    assert_eq!(requests, [request(0, Write, 0, 4096), request(0, Write, 7 * 4096, 4096)]);
}

#[test]
fn the_separator_is_recognized_or_named() {
    let text = "time_s, device, offset, size, op";
    for content in [
        "0,a,0,512,R\n",
        "0\ta\t0\t512\tR\n",
        "0;a;0;512;R\n",
        "0|a|0|512|R\n",
        "  0 a  0\t512 R \n",
        "0, a, 0, 512, R\n",
    ] {
        assert_eq!(
            read(&columns(text), content.as_bytes()).unwrap(),
            [request(0, Read, 0, 512)],
            "{content}"
        );
    }
    let slashed = format!("{text}; separator='/'");
    assert_eq!(read(&columns(&slashed), b"0/a/0/512/R\n").unwrap().len(), 1);
    // Commas inside a word do not separate columns.
    let blanks = format!("{text}; separator=blanks");
    let mut source = nandlab_trace::open_bytes(&columns(&blanks), *b"0 8,0 0 512 R\n").unwrap();
    assert!(source.next_request().unwrap().is_ok());
    assert_eq!(source.devices(), ["8,0"]);
}

#[test]
fn headers_comments_and_further_columns_are_ignored() {
    for (text, content) in [
        ("time_s, offset, size, op", "time,address,bytes,kind\n0,0,512,R\n"),
        ("time_s, offset, size, op; header=2", "once\nupon,a,time,1\n0,0,512,R\n"),
        (
            "time_s, offset, size, op; comment=#",
            "# a comment, of three, or four, columns\n\n0,0,512,R\n # end\n",
        ),
        ("time_s, offset, size, op, ...", "0,0,512,R,more,and more\n"),
        ("time_s, skip, offset, skip*2, size, op", "0,,0,x,\"a,b\",512,\"R\"\n"),
    ] {
        let found = read(&columns(text), content.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(found, [request(0, Read, 0, 512)], "{text}");
    }
}

#[test]
fn errors_name_file_line_column_and_remedy() {
    let text = "time_ms, device, lba*512, size, op(1=read, 0=write)";
    let e = error(text, "0,0,0,4096,1\n1,0,0,4096,2\n");
    assert_eq!(
        e.to_string(),
        "x.csv:2: field op: expected 1 (read) or 0 (write), found \"2\"\n  remedy: correct the record, or skip such records \
         with workload.lenient = true"
    );
    for (content, field) in [
        ("a,0,0,4096,1\n", "time_ms"),
        ("0,0,-1,4096,1\n", "lba"),
        ("0,0,1.5,4096,1\n", "lba"),
        ("0,0,0,,1\n", "size"),
        ("0,0,0,4096\n", "op"),
        ("0,0,0,4096,1,1\n", "(end of line)"),
        ("0,0,99999999999999999,4096,1\n", "lba"),
    ] {
        let e = error(text, content);
        assert_eq!((e.field(), e.line()), (Some(field), Some(1)), "{e}");
    }
    let e = error("time, offset, size, op", "0,0,0,R\n");
    assert_eq!(e.kind(), ErrorKind::Setting);
    assert!(e.to_string().contains("workload.format.columns: column 1: time has no unit"), "{e}");
}

#[test]
fn devices_are_chosen_as_in_other_formats() {
    let text = "time_ms, device, device, offset, size, op";
    let content = "0,hm,0,0,512,R\n1,hm,1,0,512,W\n";
    assert_eq!(error(text, content).kind(), ErrorKind::Device);
    let one = device(columns(text), "hm_1");
    assert_eq!(read(&one, content.as_bytes()).unwrap(), [request(0, Write, 0, 512)]);
    let all = TraceSpec {
        device: Some(DeviceChoice::Concatenate),
        ..columns("time_ms, skip, device, offset, size, op")
    };
    assert_eq!(read(&all, content.as_bytes()).unwrap().len(), 2);
}

#[test]
fn a_unit_of_time_beside_columns_or_a_format_that_fixes_it_is_refused() {
    let of = |format: TraceFormat| TraceSpec { format: Some(format), time_unit_ns: Some(1e3), ..spec("x") };
    for spec in
        [of("msr".into()), of("disksim".into()), of(TraceFormat::Columns("time_s, offset, size, op".into()))]
    {
        let e = read(&spec, b"0,0,0,R\n").unwrap_err();
        assert!(e.kind() == ErrorKind::Setting && e.message().contains("workload.time_unit"), "{e}");
    }
    let log = b"fio version 3 iolog\n0 f write 0 4096\n1000000 f write 0 4096\n";
    let ns = TraceSpec { time_unit_ns: Some(1.0), ..spec_of("fio-iolog") };
    assert_eq!(read(&ns, log).unwrap()[1].arrival.ns(), 1_000_000);
}
