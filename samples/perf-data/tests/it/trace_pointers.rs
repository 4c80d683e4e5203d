//! The text of data that a tracepoint points to. What is expected is what libtraceevent 1.8.4 prints.

use quipu_perf_data::{TraceFormat, TracePrint};

/// A tracepoint of addresses, in the format of the kernel.
const FIELDS: &str = "name: addresses\nID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:__u8 four[4];\toffset:2;\tsize:4;\tsigned:0;\n\
    \tfield:__u8 six[16];\toffset:6;\tsize:16;\tsigned:0;\n\
    \tfield:__u8 mac[6];\toffset:22;\tsize:6;\tsigned:0;\n\
    \tfield:__u8 socket4[28];\toffset:28;\tsize:28;\tsigned:0;\n\
    \tfield:__u8 socket6[28];\toffset:56;\tsize:28;\tsigned:0;\n\
    \tfield:__u8 short6[27];\toffset:56;\tsize:27;\tsigned:0;\n\
    \tfield:__data_loc __u8[] server;\toffset:84;\tsize:4;\tsigned:0;\n\
    \tfield:__data_loc __u8[] bytes;\toffset:88;\tsize:4;\tsigned:0;\n\
    \tfield:__data_loc __u8[] local;\toffset:92;\tsize:4;\tsigned:0;\n\
    \tfield:void * p;\toffset:96;\tsize:8;\tsigned:0;\n\
    \tfield:void * null;\toffset:104;\tsize:8;\tsigned:0;\n\n";

const SIX: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa, 1];

/// An address and a port as `struct sockaddr_in` and `struct sockaddr_in6` have them.
fn sockets() -> [Vec<u8>; 2] {
    let start = |family: u16, port: u16| [family.to_ne_bytes(), port.to_be_bytes()].concat();
    let mut four = [start(2, 8080), vec![10, 0, 0, 7]].concat();
    four.resize(16, 0);
    [
        four,
        [start(10, 443), vec![0; 4], SIX.to_vec(), vec![0; 4]].concat(),
    ]
}

/// A sample, with another address of IPv6.
fn sample(six: [u8; 16]) -> Vec<u8> {
    let [four, of_six] = sockets();
    let mut raw = [&[7, 0, 127, 0, 0, 1], &six[..]].concat();
    raw.extend([0, 0x1b, 0x21, 0xab, 0xcd, 0xef]);
    raw.extend(&four);
    raw.extend([0; 12]);
    raw.extend(of_six);
    for (len, at) in [(16u32, 112), (5, 128), (15, 112)] {
        raw.extend((len << 16 | at).to_ne_bytes());
    }
    raw.extend(0xffff_0010u64.to_ne_bytes());
    raw.extend([0; 8]);
    raw.extend(four);
    raw.extend([3, 0xa, 0, 4, 5]);
    raw
}

fn printed(print: &str, six: [u8; 16]) -> String {
    let format = TraceFormat::parse(&format!("{FIELDS}print fmt: {print}\n")).expect("a format");
    let print = TracePrint::new(&format).unwrap_or_else(|e| panic!("{print}: {e:#}"));
    let mut text = String::new();
    let mut symbols = |address| (address == 0xffff_0010).then(|| ("f".to_owned(), 0xffff_0000));
    print.print(&sample(six), &mut symbols, &mut text);
    text
}

#[test]
fn pointers_have_the_kernels_forms() {
    let of_host = match cfg!(target_endian = "big") {
        true => "127.0.0.1",
        false => "1.0.0.127",
    };
    for (argument, forms) in [
        (
            "REC->four",
            &[
                ("%pI4", "127.0.0.1"),
                ("%pi4", "127.000.000.001"),
                ("%pI4h", of_host),
                ("%pI4n", "127.0.0.1"),
                ("%pI4b", "127.0.0.1"),
                ("%pI4l", "1.0.0.127"),
                ("%pi4l", "001.000.000.127"),
                ("%pI4ll", "1.0.0.127l"),
                ("%20pI4", "127.0.0.1"),
                ("%pI6", "INVALIDIPv6"),
                ("%pi6", "INVALIDIPv6"),
                ("%pM", "INVALIDMAC"),
                ("%pUb", "INVALIDUUID"),
            ][..],
        ),
        (
            "(struct in6_addr *)REC->six",
            &[
                ("%pI6", "2001:0db8:0000:0000:0000:0000:0000:0a01"),
                ("%pi6", "20010db8000000000000000000000a01"),
                ("%pI6c", "2001:db8::a01"),
                ("%pi6c", "20010db8000000000000000000000a01"),
                ("%pI4", "INVALIDIPv4"),
                ("%pU", "20010db8-0000-0000-0000-000000000a01"),
                ("%pUb", "20010db8-0000-0000-0000-000000000a01"),
                ("%pUB", "20010DB8-0000-0000-0000-000000000A01"),
                ("%pUl", "b80d0120-0000-0000-0000-000000000a01"),
                ("%pUL", "B80D0120-0000-0000-0000-000000000A01"),
            ],
        ),
        (
            "REC->mac",
            &[
                ("%pM", "00:1b:21:ab:cd:ef"),
                ("%pMR", "ef:cd:ab:21:1b:00"),
                ("%pMF", "00-1b-21-ab-cd-ef"),
                ("%pMFR", "00-1b-21-ab-cd-efR"),
                ("%pm", "001b21abcdef"),
                ("%pmR", "efcdab211b00"),
                ("%pmF", "001b21abcdef"),
            ],
        ),
        (
            "REC->socket4",
            &[
                ("%pIS", "10.0.0.7"),
                ("%piS", "010.000.000.007"),
                ("%pISp", "10.0.0.7:8080"),
                ("%pISpc", "10.0.0.7:8080"),
                ("%piSl", "007.000.000.010"),
            ],
        ),
        (
            "REC->socket6",
            &[
                ("%pIS", "2001:0db8:0000:0000:0000:0000:0000:0a01"),
                ("%piS", "20010db8000000000000000000000a01"),
                ("%pISp", "[2001:0db8:0000:0000:0000:0000:0000:0a01]:443"),
                ("%pISc", "2001:db8::a01"),
                ("%pISpc", "[2001:db8::a01]:443"),
            ],
        ),
        ("__get_sockaddr(server)", &[("%pISpc", "10.0.0.7:8080")]),
        ("__get_sockaddr(local)", &[("%pISc", "INVALIDIPv4")]),
        ("REC->short6", &[("%pIS", "INVALIDIPv6")]),
        // Of another family.
        ("REC->six", &[("%pISpc", "")]),
        (
            "__get_dynamic_array(bytes)",
            &[
                ("%ph", "03"),
                // libtraceevent takes the number of an argument alone.
                ("%5ph", "03 0a 00 04 05"),
                ("%3phC", "03:0a:00"),
                ("%3phD", "03-0a-00"),
                ("%9phN", "030a000405"),
            ],
        ),
        (
            "REC->p",
            &[
                ("%p", "0xffff0010"),
                ("%20p", "0xffff0010"),
                ("%px", "0xffff0010x"),
                ("%pS", "f+0x10"),
                ("%pF", "f+0x10"),
                ("%ps", "f"),
                ("%pf", "f"),
                ("%pSR", "f+0x10R"),
            ],
        ),
        (
            "REC->null",
            &[("%p", "(nil)"), ("%pS", "0x0"), ("%ps", "0x0")],
        ),
    ] {
        for (form, expected) in forms {
            let print = format!(r#""<{form}>", {argument}"#);
            assert_eq!(printed(&print, SIX), format!("<{expected}>"), "{print}");
        }
    }
    let count =
        r#""%*ph|%*phN|%d", 4, __get_dynamic_array(bytes), 0, __get_dynamic_array(bytes), 9"#;
    assert_eq!(printed(count, SIX), "03 0a 00 04||9");
}

#[test]
fn addresses_of_ipv6_are_compressed_as_the_kernel_does() {
    let words = |words: [u16; 8]| {
        let mut address = [0; 16];
        for (to, word) in address.chunks_mut(2).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        address
    };
    for (address, expected) in [
        ([0; 8], "::"),
        ([0, 0, 0, 0, 0, 0, 0, 1], "::1"),
        ([1, 0, 0, 2, 3, 0, 0, 4], "1::2:3:0:0:4"),
        ([1, 0, 2, 3, 4, 5, 6, 7], "1:0:2:3:4:5:6:7"),
        ([0, 0, 0, 0, 0, 0xffff, 0xc0a8, 9], "::ffff:192.168.0.9"),
        (
            [0xfe80, 0, 0, 0, 0, 0x5efe, 0xa00, 1],
            "fe80::5efe:10.0.0.1",
        ),
        (
            [0xfe80, 0, 0, 0, 0x200, 0x5efe, 0xa00, 1],
            "fe80::200:5efe:10.0.0.1",
        ),
        (
            [0xfe80, 0, 0, 0, 0x100, 0x5efe, 0xa00, 1],
            "fe80::100:5efe:a00:1",
        ),
    ] {
        let text = printed(r#""%pI6c", REC->six"#, words(address));
        assert_eq!(text, expected);
    }
}
