//! Descriptions that perf and simpleperf write and this crate only reads, in either byte order.

use std::io::Cursor;

use quipu_perf_data::{Features, Reader, RecordedFile, SymbolAddresses};

use crate::forms::{Out, attr, file_with};

const EVENT_DESC: u32 = 12;
const BPF_PROG_INFO: u32 = 25;
const BPF_BTF: u32 = 26;
/// Those of simpleperf (`record_file_format.h`).
const FILE: u32 = 128;
const META_INFO: u32 = 129;
const FILE2: u32 = 132;

/// The features of a file, and the name of its event.
fn read(swapped: bool, features: &[(u32, Vec<u8>)]) -> (Features, Option<String>) {
    let file = file_with(swapped, &attr(swapped), &[], features);
    let reader = Reader::new(Cursor::new(file)).expect("good");
    let name = reader.events()[0].name().map(str::to_owned);
    (reader.features().clone(), name)
}

/// A `struct bpf_prog_info` of `include/uapi/linux/bpf.h` with functions, and the arrays that it points to.
fn program(swapped: bool, id: u32, types: u32, functions: &[u64]) -> Vec<u8> {
    const TYPED_LEN: u32 = 12;
    let count = functions.len() as u64;
    let [addresses, lengths] = [0, 8 * count];
    let typed = lengths + 4 * count;
    let tags = typed + u64::from(TYPED_LEN) * count;
    let mut data = Out::new(swapped).words(functions);
    for i in 0..count as u32 {
        data = data.u32(0x40 + i);
    }
    for i in 0..count as u32 {
        data = data.u32(0xffff).u32(1 + i).u32(0xffff);
    }
    for i in 0..count as u8 {
        data = data.bytes(&[0xab, 0xcd, 0, 1, 2, 3, 4, i]);
    }
    let (count, any) = (count as u32, u64::MAX);
    let info = Out::new(swapped)
        .u32(5)
        .u32(id)
        .words(&[any; 7])
        .bytes(b"count_calls\0\xff\xff\xff\xff")
        .words(&[any; 3])
        .u32(count)
        .u32(count)
        .words(&[addresses, lengths])
        .u32(types)
        .u32(TYPED_LEN)
        .words(&[typed, any, any, any, any])
        .u32(any as u32)
        .u32(count)
        .words(&[tags]);
    let out = Out::new(swapped).u32(info.bytes.len() as u32);
    let out = out.u32(data.bytes.len() as u32).u64(any);
    out.bytes(&info.bytes).bytes(&data.bytes).bytes
}

/// Types of every kind (`Documentation/bpf/btf.rst`), each named by the number of its kind.
fn types(swapped: bool) -> Vec<u8> {
    /// Kinds by their numbers, from 1 on: how many members, and the length of what follows the start of the type.
    const KINDS: [(u32, usize); 19] = [
        (0, 4),
        (0, 0),
        (0, 12),
        (2, 24),
        (1, 12),
        (3, 24),
        (0, 0),
        (0, 0),
        (0, 0),
        (0, 0),
        (0, 0),
        (0, 0),
        (2, 16),
        (0, 4),
        (2, 24),
        (0, 0),
        (0, 4),
        (0, 0),
        (2, 24),
    ];
    let mut strings = vec![0];
    let mut types = Out::new(swapped);
    for (kind, (members, more)) in (1u32..).zip(KINDS) {
        // The highest bit of the word is a flag of structures.
        let info = 1 << 31 | kind << 24 | members;
        types = types.u32(strings.len() as u32).u32(info).u32(4);
        types = types.bytes(&vec![0xff; more]);
        strings.extend(format!("kind{kind}\0").bytes());
    }
    let (len, strings_len) = (types.bytes.len() as u32, strings.len() as u32);
    let header = Out::new(swapped).u16(0xeb9f).bytes(&[1, 0]).u32(24);
    let header = header.u32(4).u32(len).u32(4 + len).u32(strings_len);
    let out = header.bytes(&[0xff; 4]).bytes(&types.bytes);
    out.bytes(&strings).bytes
}

/// Names are found by ids, and without those by the place of the event, if it is the same one.
#[test]
fn events_are_named_by_their_ids_or_places() {
    for swapped in [false, true] {
        let own = attr(swapped);
        let mut other = own.clone();
        other[8] = 7;
        let described = |attr: &[u8], ids: &[u64], name: &str| {
            let out = Out::new(swapped).bytes(attr).u32(ids.len() as u32);
            let out = out.u32(64).bytes(name.as_bytes());
            out.bytes(&vec![0; 64 - name.len()]).words(ids).bytes
        };
        for (described, name) in [
            (vec![described(&own, &[], "a")], Some("a")),
            (vec![described(&other, &[], "a")], None),
            (vec![described(&other, &[41], "a")], Some("a")),
            (vec![described(&own, &[42], "a")], None),
            (
                vec![described(&other, &[], "a"), described(&own, &[], "b")],
                None,
            ),
            (
                vec![described(&own, &[42], "a"), described(&own, &[41, 43], "b")],
                Some("b"),
            ),
        ] {
            let section = Out::new(swapped).u32(described.len() as u32).u32(64);
            let section = section.bytes(&described.concat()).bytes;
            let (features, named) = read(swapped, &[(EVENT_DESC, section)]);
            assert_eq!(named.as_deref(), name);
            assert_eq!(features.left_out, []);
        }
    }
}

#[test]
fn functions_of_bpf_programs_have_the_names_of_the_kernel() {
    for swapped in [false, true] {
        // One of an old kernel, which ends before its name.
        let old = program(swapped, 9, 0, &[])[16..80].to_vec();
        let old = Out::new(swapped).u32(64).u32(0).u64(0).bytes(&old).bytes;
        let programs = [
            program(swapped, 7, 0, &[0x1000]),
            program(swapped, 8, 3, &[0x2000, 0x3000]),
            old,
        ];
        let btf = types(swapped);
        let typed = Out::new(swapped).u32(1).u32(3).u32(btf.len() as u32);
        let count = Out::new(swapped).u32(3).bytes(&programs.concat()).bytes;
        let typed = typed.bytes(&btf).bytes;
        let (features, _) = read(swapped, &[(BPF_PROG_INFO, count), (BPF_BTF, typed)]);
        assert_eq!(features.left_out, []);
        let [one, two, old] = &features.bpf_programs[..] else {
            panic!("{:?}", features.bpf_programs);
        };
        assert_eq!([one.id, two.id, old.id], [7, 8, 9]);
        assert_eq!([one.types, two.types, old.types], [0, 3, 0]);
        assert!(old.functions.is_empty());
        let of_two = [&two.functions[0], &two.functions[1]];
        assert_eq!(
            of_two.map(|f| (f.address, f.len)),
            [(0x2000, 0x40), (0x3000, 0x41)]
        );
        assert_eq!(of_two.map(|f| f.type_number), [Some(1), Some(2)]);
        let [types] = &features.bpf_types[..] else {
            panic!("{:?}", features.bpf_types);
        };
        assert_eq!(types.id, 3);
        let names = |types| of_two.map(|function| function.name(types));
        let named = [
            "bpf_prog_abcd000102030400_kind1",
            "bpf_prog_abcd000102030401_kind2",
        ];
        assert_eq!(names(Some(types)), named);
        let unnamed = ["bpf_prog_abcd000102030400_F", "bpf_prog_abcd000102030401_F"];
        assert_eq!(names(None), unnamed);
        let mut only = one.functions[0].clone();
        assert_eq!(
            (only.address, only.len, only.type_number),
            (0x1000, 0x40, None)
        );
        assert_eq!(
            only.name(Some(types)),
            "bpf_prog_abcd000102030400_count_calls"
        );
        only.short_name.clear();
        assert_eq!(only.name(None), "bpf_prog_abcd000102030400");
        for number in 1..=19 {
            only.type_number = Some(number);
            let expected = format!("bpf_prog_abcd000102030400_kind{number}");
            assert_eq!(only.name(Some(types)), expected);
        }
        for number in [0, 20] {
            only.type_number = Some(number);
            assert_eq!(only.name(Some(types)), "bpf_prog_abcd000102030400");
        }
        // Arrays that are not in what follows.
        let mut cut = programs[0].clone();
        cut.pop();
        let len = u32::from_ne_bytes(cut[4..8].try_into().expect("four bytes"));
        let len = if swapped { len.swap_bytes() } else { len };
        cut[4..8].copy_from_slice(&Out::new(swapped).u32(len - 1).bytes);
        let count = Out::new(swapped).u32(1).bytes(&cut).bytes;
        let (features, _) = read(swapped, &[(BPF_PROG_INFO, count)]);
        let [(name, _)] = features.left_out[..] else {
            panic!("{:?}", features.left_out);
        };
        assert_eq!(
            (name, features.bpf_programs.len()),
            ("HEADER_BPF_PROG_INFO", 0)
        );
    }
}

/// Files of simpleperf: their paths, `DsoType`s, first executable addresses and where those lie in the file, and what the
/// addresses of their symbols are then.
const FILES: [(&str, u32, u64, Option<u64>, SymbolAddresses); 11] = {
    use SymbolAddresses::{File, Memory, Unknown};
    [
        ("[kernel.kallsyms]", 0, 0, None, Memory),
        ("/lib/modules/nvme.ko", 1, 0, None, Unknown),
        (
            "/lib/libc.so",
            2,
            0x2000,
            Some(0x1000),
            File { added: 0x1000 },
        ),
        (
            "/lib/low.so",
            2,
            0x1000,
            Some(0x1800),
            File {
                added: 0x800u64.wrapping_neg(),
            },
        ),
        ("/lib/old.so", 2, 0x1000, None, Unknown),
        ("/app/base.vdex", 3, 0, None, File { added: 0 }),
        ("/memfd:jit_app_cache:1", 2, 0x1000, Some(0), Memory),
        ("/memfd:jit_zygote_cache", 3, 0, None, Memory),
        ("/memfd:jit_app_cache", 5, 0, None, Unknown),
        ("/tmp/perf-7.map", 4, 0, None, Memory),
        ("unknown", 5, 0, None, Unknown),
    ]
};

/// The symbols of each file.
const SYMBOLS: [(u64, u32, &str); 2] = [(0x1010, 32, "main"), (0x1030, 300, "start")];

fn check(files: &[RecordedFile]) {
    assert_eq!(files.len(), FILES.len());
    for (file, (path, dso_type, _, _, addresses)) in files.iter().zip(FILES) {
        assert_eq!(
            (&*file.path, file.addresses),
            (path, addresses),
            "{dso_type}"
        );
        let symbols: Vec<_> = file
            .symbols
            .iter()
            .map(|s| (s.address, s.len, &*s.name))
            .collect();
        assert_eq!(symbols, SYMBOLS, "{path}");
    }
}

#[test]
fn files_of_simpleperf_are_read_in_both_forms() {
    for swapped in [false, true] {
        let files = FILES.map(|(path, dso_type, first, offset, _)| {
            let out = Out::new(swapped).bytes(path.as_bytes()).bytes(&[0]);
            let mut out = out.u32(dso_type).u64(first).u32(2);
            for (address, len, name) in SYMBOLS {
                out = out.u64(address).u32(len).bytes(name.as_bytes()).bytes(&[0]);
            }
            if dso_type == 3 {
                out = out.u32(2).words(&[0x100, 0x200]);
            }
            let body = offset.map_or(Vec::new(), |offset| Out::new(swapped).u64(offset).bytes);
            let body = [out.bytes, body].concat();
            Out::new(swapped).u32(body.len() as u32).bytes(&body).bytes
        });
        check(&read(swapped, &[(FILE, files.concat())]).0.files);

        // Messages of protocol buffers (`record_file.proto`).
        let varint = |number: u64| {
            let mut out = vec![number as u8 | 0x80, (number >> 7) as u8 | 0x80];
            out.push((number >> 14) as u8 & 0x7f);
            out
        };
        let field = |tag: u8, value: &[u8]| [&[tag << 3 | 2, value.len() as u8], value].concat();
        let files = FILES.map(|(path, dso_type, first, offset, _)| {
            let mut body = field(1, path.as_bytes());
            body.extend([2 << 3, dso_type as u8, 3 << 3]);
            body.extend(varint(first));
            for (address, len, name) in SYMBOLS {
                let numbers = [
                    &[1 << 3][..],
                    &varint(address),
                    &[2 << 3],
                    &varint(len.into()),
                ];
                let symbol = [numbers.concat(), field(3, name.as_bytes())].concat();
                body.extend(field(4, &symbol));
            }
            if let Some(offset) = offset {
                body.extend(field(6, &[&[1 << 3][..], &varint(offset)].concat()));
            }
            Out::new(swapped).u32(body.len() as u32).bytes(&body).bytes
        });
        check(&read(swapped, &[(FILE2, files.concat())]).0.files);
        let (features, _) = read(swapped, &[(FILE2, files.concat()[..20].to_vec())]);
        assert_eq!(features.left_out[0].0, "FEAT_FILE2");
    }
}

#[test]
fn events_of_simpleperf_are_named_by_its_description() {
    for (lines, name) in [
        (
            "cpu-cycles,0,0\ncpu-clock,1,0\nfaults,1,2",
            Some("cpu-clock"),
        ),
        ("not so\n,1,0\nwith,comma,1,0", Some("with,comma")),
        ("other,1,1\nother,0,0", None),
        ("nothing,1,\nnothing,x,0", None),
    ] {
        let info = format!("product_props\0a phone\0event_type_info\0{lines}\0");
        for swapped in [false, true] {
            let section = info.clone().into_bytes();
            let (features, named) = read(swapped, &[(META_INFO, section)]);
            assert_eq!(named.as_deref(), name, "{lines}");
            let pair = ("product_props".to_owned(), "a phone".to_owned());
            assert_eq!(features.simpleperf[0], pair);
        }
    }
}
