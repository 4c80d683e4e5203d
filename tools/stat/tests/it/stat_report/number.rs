//! Numbers as people read them.

use quipu_stat::report::number::{bytes, fixed, grouped};

#[test]
fn digits_are_grouped_from_the_right() {
    for (value, text) in [
        (0, "0"),
        (999, "999"),
        (1000, "1,000"),
        (123_456, "123,456"),
        (1_234_567, "1,234,567"),
        (u128::from(u64::MAX), "18,446,744,073,709,551,615"),
    ] {
        assert_eq!(grouped(value), text);
    }
    assert_eq!(fixed(1234.5, 2), "1,234.50");
    assert_eq!(fixed(-1234.5, 0), "-1,234");
    assert_eq!(fixed(0.0004, 3), "0.000");
    assert_eq!(fixed(f64::INFINITY, 2), "inf");
}

#[test]
fn sizes_have_the_unit_that_fits() {
    assert_eq!(bytes(512), "0.5 KiB");
    assert_eq!(bytes(1024 * 1024), "1.0 MiB");
    assert_eq!(bytes(u64::MAX), "16,384.0 PiB");
}
