//! The text of tracepoints. What is expected is what libtraceevent 1.8.4 prints, and where that does not understand a type, a
//! length or a division, what C says.

use quipu_perf_data::{TraceFormat, TracePrint};

/// A tracepoint of two numbers, text in place, text elsewhere and an array.
const FIELDS: &str = "name: tried\nID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\
    \tfield:unsigned int b;\toffset:12;\tsize:4;\tsigned:0;\n\
    \tfield:char comm[8];\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;\n\
    \tfield:__data_loc u32[] list;\toffset:28;\tsize:4;\tsigned:0;\n\
    \tfield:void * p;\toffset:32;\tsize:8;\tsigned:0;\n\
    \tfield:u8 address[4];\toffset:40;\tsize:4;\tsigned:0;\n\n";

/// A sample of it, with `a` and `b`.
fn sample(a: i32, b: u32) -> Vec<u8> {
    let mut raw = vec![0; 8];
    raw.extend(a.to_ne_bytes());
    raw.extend(b.to_ne_bytes());
    raw.extend(b"sh\0junk\0");
    raw.extend((6u32 << 16 | 44).to_ne_bytes());
    raw.extend((8u32 << 16 | 50).to_ne_bytes());
    raw.extend(0xffff_0010u64.to_ne_bytes());
    raw.extend([127, 0, 0, 1]);
    raw.extend(b"hello\0");
    raw.extend(3u32.to_ne_bytes());
    raw.extend(4u32.to_ne_bytes());
    raw
}

fn printed(print: &str, a: i32, b: u32) -> String {
    let format = TraceFormat::parse(&format!("{FIELDS}print fmt: {print}\n")).expect("a format");
    let print = TracePrint::new(&format).unwrap_or_else(|e| panic!("{print}: {e:#}"));
    let mut text = String::new();
    let mut symbols = |address| (address == 0xffff_0010).then(|| ("f".to_owned(), 0xffff_0000));
    print.print(&sample(a, b), &mut symbols, &mut text);
    text
}

#[test]
fn conversions_are_those_of_printf() {
    let numbers = r#""%d %5d|%-5d|%05d %+d % d", REC->a, REC->a, REC->a, REC->a, REC->a, REC->a"#;
    assert_eq!(printed(numbers, -3, 0), "-3    -3|-3   |-0003 -3 -3");
    let bases = r#""%u %x %#x %08lx %X %o %.3u %%", REC->b, REC->b, REC->b, REC->b, REC->b, REC->b, REC->b"#;
    assert_eq!(printed(bases, 0, 26), "26 1a 0x1a 0000001a 1A 32 026 %");
    let more = r#""%#X %#o %#o %+d %i %*d|%0*d|%.0d|%5.3d|%-5.3d|%05.3d.", REC->b, REC->b, REC->a, REC->b, REC->b, 5, REC->b, 4, REC->b, REC->a, REC->b, REC->b, REC->b"#;
    assert_eq!(
        printed(more, 0, 26),
        "0X1A 032 0 +26 26    26|0026||  026|026  |  026."
    );
    let unsigned = r#""%d %u %ld %llx %lld", REC->a, REC->a, REC->a, REC->a, (long long)REC->a"#;
    assert_eq!(
        printed(unsigned, -1, 0),
        "-1 4294967295 4294967295 ffffffff 4294967295"
    );
    let columns =
        r#""%5c|%-5c|%.3s|%10.3s|%-10.3s|" "\t\"q\"\\\n", 'x', 'y', "text", "text", "text""#;
    assert_eq!(
        printed(columns, 0, 0),
        "    x|y    |tex|       tex|tex       |\t\"q\"\\\n"
    );
    let sizes = r#""%hhu %hd %ld %lld", REC->b, REC->b, REC->a, (long long)REC->a"#;
    assert_eq!(printed(sizes, 5, 0x1ffff), "255 -1 5 5");
    let text = r#""[%s] [%5s] [%-4s] [%.2s] [%.*s] %c", REC->comm, REC->comm, REC->comm, __get_str(name), REC->a, __get_str(name), 'x'"#;
    assert_eq!(printed(text, 3, 0), "[sh] [   sh] [sh  ] [he] [hel] x");
    let pointers = r#""%p %pS %ps %pI4 %p", REC->p, REC->p, REC->p, REC->address, ((void *)0)"#;
    assert_eq!(
        printed(pointers, 0, 0),
        "0xffff0010 f+0x10 f 127.0.0.1 (nil)"
    );
}

#[test]
fn expressions_are_those_of_c() {
    for (expression, value) in [
        ("1 + 2 * 3 - 4", 3),
        ("(1 + 2) * 3 % 5", 4),
        ("7 & 3 | 8 ^ 1", 11),
        ("1 << 4 >> 2", 4),
        ("2 > 1 && 1 >= 1 && !(1 != 1) || 0", 1),
        ("REC->b == 6 ? 10 : 20", 10),
        ("REC->b < 6 ? 10 : REC->b > 6 ? 20 : 30", 30),
        ("REC->b < 7", 1),
        ("REC->b < 5", 0),
        ("REC->b > 5", 1),
        ("REC->b <= 6", 1),
        ("REC->b <= 5", 0),
        ("REC->b >= 7", 0),
        ("REC->b == 5", 0),
        ("REC->b && 0", 0),
        ("0 || REC->b", 1),
        ("0 || 0", 0),
        ("REC->b ^ 3", 5),
        ("REC->b * 3", 18),
        ("~REC->b", -7),
        ("-REC->b", -6),
        ("+REC->b", 6),
        ("!REC->b", 0),
        ("7 % 4 / 2", 1),
        ("(unsigned int)-1 > 0", 1),
        ("(u8)-1", 255),
        ("(unsigned short)-1", 65535),
        ("__builtin_expect(!!(REC->b), 1)", 1),
        ("'a'", 97),
        ("0x1f + 0X2", 33),
        ("(u8)0x1ff + (short)1", 0x100),
        ("sizeof(u64) + sizeof(int) + sizeof(void *)", 20),
        ("__get_dynamic_array_len(list) / sizeof(u32)", 2),
        ("((0x4 | 0x2) + 1) << 1", 14),
        ("010 + 1UL", 9),
        ("REC->address[3]", 1),
        ("5 / 0 + 5 % 0", 0),
    ] {
        let print = format!(r#""%d", {expression}"#);
        assert_eq!(printed(&print, 0, 6), value.to_string(), "{expression}");
    }
}

#[test]
fn numbers_have_names() {
    let flags = r#""%s", __print_flags(REC->b, "|", { (1UL << 0), "A" }, { 0x6, "BC" }, { 0, ((void *)0) })"#;
    assert_eq!(printed(flags, 0, 1), "A");
    assert_eq!(printed(flags, 0, 7), "A|BC");
    assert_eq!(printed(flags, 0, 0x1b), "A|0x1a");
    assert_eq!(printed(flags, 0, 0), "");
    let masks = r#""%s", __print_flags(REC->b, "|", { 0x6, "BC" }, { 0x2, "B" }, { UNTOLD, "U" })"#;
    assert_eq!(printed(masks, 0, 2), "B");
    assert_eq!(printed(masks, 0, 6), "BC");
    let unknown = r#""%s", __print_flags(REC->b, "", { UNTOLD, "U" }, { 0x2, "B" }, { 0x4, "C" })"#;
    assert_eq!(printed(unknown, 0, 0), "U");
    assert_eq!(printed(unknown, 0, 6), "BC");
    let symbol = r#""%s", __print_symbolic(REC->b, { 0, "none" }, { UNTOLD, "?" }, { 2, "two" })"#;
    assert_eq!(printed(symbol, 0, 2), "two");
    assert_eq!(printed(symbol, 0, 3), "0x3");
    let lists = r#""%s %s %s", __print_hex(__get_dynamic_array(list), 5), __print_hex_str(REC->address, 4), __print_array(__get_dynamic_array(list), 2, sizeof(u32))"#;
    let sizes = r#""%s|%s", __print_array(REC->address, 3, 1), __print_array(__get_dynamic_array(list), 1, 8)"#;
    let expected = match cfg!(target_endian = "big") {
        true => "{0x7f,0x0,0x0}|{0x300000004}",
        false => "{0x7f,0x0,0x0}|{0x400000003}",
    };
    assert_eq!(printed(sizes, 0, 0), expected);
    let expected = match cfg!(target_endian = "big") {
        true => "00 00 00 03 00 7f000001 {0x3,0x4}",
        false => "03 00 00 00 04 7f000001 {0x3,0x4}",
    };
    assert_eq!(printed(lists, 0, 0), expected);
}

#[test]
fn numbers_are_as_long_as_their_conversion_says() {
    let lengths = ["hh", "h", "", "l", "ll", "L", "q", "z", "t", "j"];
    let print = lengths.map(|len| format!("%{len}x")).join(" ");
    let values = lengths.map(|_| "0x10001ffff").join(", ");
    let long = ["10001ffff"; 7].join(" ");
    let text = printed(&format!(r#""{print}", {values}"#), 0, 0);
    assert_eq!(text, format!("ff ffff 1ffff {long}"));
    // No width is larger than this.
    assert_eq!(printed(r#""%9999d""#, 0, 0).len(), 0);
    assert_eq!(printed(r#""%9999d", 1"#, 0, 0).len(), 4096);
    assert_eq!(
        printed(r#""%*d|%.*d", -1, 1, 5000, 1"#, 0, 0).len(),
        2 * 4096 + 1
    );
}

#[test]
fn types_have_the_sizes_of_64_bits() {
    for (types, size) in [
        ("char,u8,s8,__u8,__s8,uint8_t,int8_t,bool,unsigned char", 1),
        (
            "short,u16,s16,__u16,__s16,uint16_t,int16_t,short int,unsigned short int",
            2,
        ),
        (
            "int,u32,s32,__u32,__s32,uint32_t,int32_t,unsigned,signed,unsigned int",
            4,
        ),
        (
            "long,long int,unsigned long int,u64,s64,long long,size_t",
            8,
        ),
        ("struct page,char *,void *", 8),
    ] {
        for of in types.split(',') {
            assert_eq!(
                printed(&format!(r#""%d", sizeof({of})"#), 0, 0),
                size.to_string(),
                "{of}"
            );
            let cast = format!(r#""%llx", ({of})0x1122334455667788"#);
            let expected = &"1122334455667788"[16 - 2 * size..];
            assert_eq!(printed(&cast, 0, 0), expected, "{of}");
        }
    }
}

#[test]
fn numbers_are_written_as_in_c() {
    for (number, value) in [
        ("0", 0),
        ("10", 10),
        ("010", 8),
        ("0x1F", 31),
        ("0X1f", 31),
        ("7u", 7),
        ("7UL", 7),
        ("7ull", 7),
        ("'0'", 48),
        ("REC->address[0]", 127),
        ("REC->address[4]", 0),
        ("REC->address[-1]", 0),
        ("__get_dynamic_array_len(name)", 6),
    ] {
        let print = format!(r#""%d", {number}"#);
        assert_eq!(printed(&print, 0, 0), value.to_string(), "{number}");
    }
}

#[test]
fn expressions_are_read_to_a_depth() {
    let is_read = |expression: &str| {
        let print = format!(r#""%d", {expression}"#);
        let format = TraceFormat::parse(&format!("{FIELDS}print fmt: {print}\n")).expect("good");
        TracePrint::new(&format).is_ok()
    };
    let within = |times| format!("{}1{}", "(".repeat(times), ")".repeat(times));
    assert!(is_read(&within(99)) && !is_read(&within(100)));
    let signs = |times| format!("{}1", "!".repeat(times));
    assert!(is_read(&signs(198)) && !is_read(&signs(199)));
    let chain = |times| format!("1{}", " + 1".repeat(times));
    assert!(is_read(&chain(1000)) && !is_read(&chain(1001)));
    // What is beside each other is not deep.
    let beside = vec![within(90); 20].join(" + ");
    assert!(is_read(&beside));
    for wrong in [
        "",
        "08",
        "0x",
        "0xg",
        "1x",
        "(1",
        "1)",
        "REC",
        "REC->",
        "REC->a[1",
        "'a",
        "1 +",
        "1 ? 2",
        "{ 1 }",
        "sizeof(int",
        "__get_str(nosuch)",
        "__print_hex(1, 2)",
        "__print_array(REC->a, 1)",
        "__print_symbolic(REC->a, { 1 })",
        "__print_flags(REC->a, 1)",
    ] {
        assert!(!is_read(wrong), "{wrong}");
    }
}

#[test]
fn bits_of_masks_are_hexadecimal_and_those_of_cpus_are_numbers() {
    let fields = "name: masks\nID: 7\nformat:\n\
        \tfield:__data_loc cpumask_t mask;\toffset:0;\tsize:4;\tsigned:0;\n\
        \tfield:__data_loc cpumask_t none;\toffset:4;\tsize:4;\tsigned:0;\n\n";
    let print = r#""%s|%s|%s", __get_bitmask(mask), __get_cpumask(mask), __get_cpumask(none)"#;
    let format = TraceFormat::parse(&format!("{fields}print fmt: {print}\n")).expect("a format");
    let print = TracePrint::new(&format).expect("understood");
    for (mask, expected) in [
        (0x4_0000_0003u64, "00000004,00000003|0-1,34|"),
        (u64::MAX, "ffffffff,ffffffff|0-63|"),
        (1 << 63 | 0xfd80, "80000000,0000fd80|7-8,10-15,63|"),
        (0, "00000000,00000000||"),
    ] {
        let mut raw = [8u32 << 16 | 16, 8 << 16 | 24]
            .map(u32::to_ne_bytes)
            .concat();
        raw.extend([0; 8]);
        raw.extend(mask.to_ne_bytes());
        raw.extend([0; 8]);
        let mut text = String::new();
        print.print(&raw, &mut |_| None, &mut text);
        assert_eq!(text, expected);
    }
}

#[test]
fn fields_are_printed_by_their_types() {
    let mut text = "name: fields\nID: 7\nformat:\n".to_owned();
    let (mut raw, mut expected) = (Vec::new(), String::new());
    for (declaration, signed, bytes, printed) in [
        ("s8 small", 1, &[0xff][..], " small=-1"),
        ("s16 pair", 1, &5i16.to_ne_bytes(), " pair= 5"),
        ("s16 negative", 1, &(-5i16).to_ne_bytes(), " negative=-5"),
        ("int number", 1, &(-7i32).to_ne_bytes(), " number=-7"),
        ("u8 flag", 0, &[7], " flag=7"),
        ("long signed", 1, &(-9i64).to_ne_bytes(), " signed=-9"),
        ("unsigned long word", 0, &255u64.to_ne_bytes(), " word=0xff"),
        (
            "unsigned int belongs",
            0,
            &10u32.to_ne_bytes(),
            " belongs=10",
        ),
        ("u64 wide", 0, &255u64.to_ne_bytes(), " wide=255"),
        ("const char * p", 0, &0x1000u64.to_ne_bytes(), " p=0x1000"),
        ("char comm[8]", 0, b"sh\0junk\0", " comm=sh"),
        ("char odd[4]", 0, b"a\x01b\0", " odd=ARRAY[61, 01, 62, 00]"),
        ("char tab[4]", 0, b"a\tb\0", " tab=a\tb"),
        (
            "char foreign[3]",
            0,
            "ö".as_bytes(),
            " foreign=ARRAY[c3, b6, 00]",
        ),
        ("u8 mac[6]", 0, &[0, 1, 2, 3, 4, 5], " mac="),
        ("unsigned char text[4]", 0, b"abc\0", " text=abc"),
        ("u8 high[2]", 0, b"\x7fa", " high=ARRAY[7f, 61]"),
        ("u16 words[2]", 0, b"abcd", " words=ARRAY[61, 62, 63, 64]"),
    ] {
        let count = declaration
            .rsplit_once('[')
            .map(|(_, n)| n.trim_end_matches(']'));
        let each = if declaration.starts_with("u16") { 2 } else { 1 };
        let size = count.map_or(bytes.len(), |n| {
            each * n.parse::<usize>().expect("a number")
        });
        let offset = raw.len();
        text +=
            &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
        raw.extend(bytes);
        raw.resize(offset + size, 0);
        expected += printed;
    }
    let format = TraceFormat::parse(&text).expect("a format");
    let mut printed = String::new();
    format.print_fields(&raw, &mut printed);
    assert_eq!(printed, expected);
}

#[test]
fn what_is_not_understood_is_refused_and_printed_field_by_field() {
    for print in [
        r#""%d", jiffies_to_msecs(REC->a)"#,
        r#""%d", REC->nosuch"#,
        r#""%d", *REC->p"#,
        r#""%y", 1"#,
        r#""unfinished"#,
        r#"({ int x = 1; x; })"#,
    ] {
        let format = TraceFormat::parse(&format!("{FIELDS}print fmt: {print}\n")).expect("good");
        assert!(TracePrint::new(&format).is_err(), "{print}");
    }
    let deep = format!(r#""%d", {}1{}"#, "(".repeat(5000), ")".repeat(5000));
    let format = TraceFormat::parse(&format!("{FIELDS}print fmt: {deep}\n")).expect("good");
    assert!(TracePrint::new(&format).is_err());
    // A chain nests in what is made of it.
    let long = format!(r#""%d", 1{}"#, " + 1".repeat(500_000));
    let format = TraceFormat::parse(&format!("{FIELDS}print fmt: {long}\n")).expect("good");
    assert!(TracePrint::new(&format).is_err());
    let mut text = String::new();
    format.print_fields(&sample(-1, 2), &mut text);
    assert!(
        text.starts_with(" a=-1 b=2 comm=sh name=hello list=ARRAY["),
        "{text}"
    );
    assert!(
        text.contains(" p=0xffff0010 address=ARRAY[7f, 00, 00, 01]"),
        "{text}"
    );
}

#[test]
fn data_that_end_early_are_zeros() {
    let format = r#""%d %s %s %pS", REC->a, REC->comm, __get_str(name), REC->p"#;
    let format = TraceFormat::parse(&format!("{FIELDS}print fmt: {format}\n")).expect("good");
    let print = TracePrint::new(&format).expect("understood");
    let whole = sample(1, 1);
    for len in 0..whole.len() {
        let mut text = String::new();
        print.print(&whole[..len], &mut |_| None, &mut text);
        assert!(len >= 12 || text == "0   0x0", "{len}: {text}");
    }
}
