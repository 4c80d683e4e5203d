//! The format files of tracepoints, and values in raw bytes.

use proptest::prelude::*;
use quipu_perf_data::{FieldValue, TraceField, TraceFormat};

const FORMAT: &str = "\
name: everything
ID: 77
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned int fd;\toffset:8;\tsize:8;\tsigned:0;
\tfield:const char * buf;\toffset:16;\tsize:8;\tsigned:0;
\tfield:s8 small;\toffset:24;\tsize:1;\tsigned:1;
\tfield:char comm[16];\toffset:25;\tsize:16;\tsigned:0;
\tfield:u16 pair[2];\toffset:41;\tsize:4;\tsigned:0;
\tfield:int signed_pair[2];\toffset:45;\tsize:8;\tsigned:1;
\tfield:__u8 mac[ETH_ALEN];\toffset:53;\tsize:6;\tsigned:0;
\tfield:void (*func)(struct work *);\toffset:59;\tsize:8;\tsigned:0;
\tfield:__data_loc char[] name;\toffset:67;\tsize:4;\tsigned:0;
\tfield:__rel_loc u32[] numbers;\toffset:71;\tsize:4;\tsigned:0;
\tfield:struct thing whole;\toffset:75;\tsize:3;\tsigned:0;

print fmt: \"field:not a field; %s\", REC->x
field: nor this
";

fn raw() -> Vec<u8> {
    let mut raw = vec![0; 78];
    let mut put = |at: usize, bytes: &[u8]| raw[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &77u16.to_ne_bytes());
    put(4, &(-5i32).to_ne_bytes());
    put(8, &3u64.to_ne_bytes());
    put(16, &0xffff_8000_1234_5678u64.to_ne_bytes());
    put(24, &(-1i8).to_ne_bytes());
    put(25, b"bash\0garbage");
    put(41, &[1u16.to_ne_bytes(), 0xffffu16.to_ne_bytes()].concat());
    put(45, &[(-2i32).to_ne_bytes(), 9i32.to_ne_bytes()].concat());
    put(53, &[1, 2, 3, 4, 5, 6]);
    put(59, &8u64.to_ne_bytes());
    // Six bytes at 78, and eight bytes that start 3 after the end of the field at 75.
    put(67, &(6u32 << 16 | 78).to_ne_bytes());
    put(71, &(8u32 << 16 | 9).to_ne_bytes());
    put(75, &[7, 8, 9]);
    raw.extend(b"a.out\0");
    raw.extend([10u32.to_ne_bytes(), 11u32.to_ne_bytes()].concat());
    raw
}

fn list(value: Option<FieldValue<'_>>) -> Vec<FieldValue<'_>> {
    match value {
        Some(FieldValue::List(list)) => list.iter().collect(),
        other => panic!("{other:?} is no list"),
    }
}

#[test]
fn every_kind_of_field_has_its_value() {
    use FieldValue as V;
    let format = TraceFormat::parse(FORMAT).expect("well formed");
    let names = format.fields().iter().map(TraceField::name);
    assert!(TraceFormat::field_names(FORMAT).eq(names));
    assert_eq!((format.name(), format.id()), ("everything", 77));
    assert_eq!(format.fields().len(), 13);
    let raw = raw();
    let value = |name| format.field(name).expect(name).value(&raw);
    assert_eq!(value("common_type"), Some(V::Unsigned(77)));
    assert_eq!(value("common_pid"), Some(V::Signed(-5)));
    assert_eq!(value("fd"), Some(V::Unsigned(3)));
    assert_eq!(value("buf"), Some(V::Unsigned(0xffff_8000_1234_5678)));
    assert_eq!(value("small"), Some(V::Signed(-1)));
    assert_eq!(value("comm"), Some(V::Text(b"bash")));
    assert_eq!(list(value("pair")), [V::Unsigned(1), V::Unsigned(0xffff)]);
    assert_eq!(list(value("signed_pair")), [V::Signed(-2), V::Signed(9)]);
    assert_eq!(
        list(value("mac")),
        (1..=6).map(V::Unsigned).collect::<Vec<_>>()
    );
    assert_eq!(value("func"), Some(V::Unsigned(8)));
    assert_eq!(value("name"), Some(V::Text(b"a.out")));
    assert_eq!(list(value("numbers")), [V::Unsigned(10), V::Unsigned(11)]);
    assert_eq!(value("whole"), Some(V::Bytes(&[7, 8, 9])));
    assert_eq!(format.field("print"), None);
    let buf = format.field("buf").expect("there");
    assert_eq!((buf.offset(), buf.size()), (16, 8));
    assert_eq!(buf.declaration(), "const char * buf");
}

#[test]
fn elements_of_arrays_are_as_long_as_their_type() {
    let pointer = size_of::<usize>();
    for (of, size) in [
        ("unsigned char", 1),
        ("const u8", 1),
        ("__u8", 1),
        ("s8", 1),
        ("uint8_t", 1),
        ("bool", 1),
        ("short", 2),
        ("unsigned short", 2),
        ("u16", 2),
        ("__be16", 2),
        ("int", 4),
        ("const unsigned int", 4),
        ("s32", 4),
        ("__be32", 4),
        ("u64", 8),
        ("__u64", 8),
        ("unsigned long long", 8),
        ("long", pointer),
        ("unsigned long", pointer),
        ("void *", pointer),
        // Bytes, where it is not known.
        ("gfp_t", 1),
    ] {
        let text = format!("field:__data_loc {of}[] list;\toffset:0;\tsize:4;\tsigned:0;");
        let format = TraceFormat::parse(&text).expect("well formed");
        let mut raw = (16u32 << 16 | 4).to_ne_bytes().to_vec();
        raw.extend([0; 16]);
        assert_eq!(
            list(format.fields()[0].value(&raw)).len(),
            16 / size,
            "{of}"
        );
    }
    // Of others the size follows from the number, if it is one.
    for (declaration, len) in [
        ("u32 list[COUNT]", Some(4)),
        ("pid_t list[4]", Some(4)),
        ("pid_t list[COUNT]", None),
        ("pid_t list[0]", None),
        ("pid_t list[5]", None),
        ("struct x list[1]", None),
        ("u64 list[1]", Some(2)),
    ] {
        let text = format!("field:{declaration};\toffset:0;\tsize:16;\tsigned:0;");
        let format = TraceFormat::parse(&text).expect("well formed");
        match format.fields()[0].value(&[0; 16]) {
            Some(FieldValue::List(list)) => {
                assert_eq!(Some(list.iter().len()), len, "{declaration}");
            }
            Some(FieldValue::Bytes(bytes)) => {
                assert_eq!((bytes.len(), len), (16, None), "{declaration}");
            }
            other => panic!("{declaration}: {other:?}"),
        }
    }
}

#[test]
fn bytes_that_end_too_early_have_no_value() {
    let format = TraceFormat::parse(FORMAT).expect("well formed");
    let raw = raw();
    for field in format.fields() {
        let end = field.offset() + field.size();
        assert_eq!(field.value(&raw[..end - 1]), None, "{}", field.name());
    }
    // The data elsewhere ends before its length.
    let value = |name, len: usize| format.field(name).expect(name).value(&raw[..len]);
    assert_eq!(value("name", 83), None);
    assert!(value("name", 84).is_some());
    assert_eq!(value("numbers", 91), None);
    assert!(value("numbers", 92).is_some());
}

#[test]
fn what_is_not_understood_is_an_error() {
    for line in [
        "field:;offset:0;size:1;signed:0;",
        "field:int x;size:1;signed:0;",
        "field:int x;offset:0;signed:0;",
        "field:int x;offset:-1;size:4;signed:0;",
        "field:int x;offset:99999999999999999999;size:4;",
        "field:int x",
        "field:int é[;offset:0;size:1;",
        "field:void (*)(int);offset:0;size:8;signed:0;",
        "ID: many",
    ] {
        assert!(TraceFormat::parse(line).is_err(), "{line}");
    }
    let huge = format!("field:int x[2];offset:{0};size:{0};signed:0;", usize::MAX);
    let format = TraceFormat::parse(&huge).expect("well formed");
    assert_eq!(format.fields()[0].value(&[0; 64]), None);
}

proptest! {
    #[test]
    fn any_text_and_any_bytes_are_survived(
        lines in prop::collection::vec("(field:|\t)?[a-z_ *]{0,12}(\\[[0-9]{0,3}\\])?;\toffset:[0-9]{0,3};\tsize:[0-9]{0,2};\tsigned:[01];", 0..6),
        junk in ".{0,80}",
        raw in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        for text in [lines.join("\n"), junk] {
            if let Ok(format) = TraceFormat::parse(&text) {
                for field in format.fields() {
                    if let Some(FieldValue::List(list)) = field.value(&raw) {
                        prop_assert!(list.iter().len() <= raw.len());
                    }
                }
            }
        }
    }
}
