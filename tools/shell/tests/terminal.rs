//! Layout of text for a terminal.

use quipu_shell::terminal::Layout;

#[test]
fn lines_fit_and_long_words_stay_whole() {
    let narrow = Layout {
        width: Some(40),
        ..Layout::PLAIN
    };
    let text = "a fairly long sentence that has averyverylongwordthatfitsnowhere in it";
    let lines = narrow.wrap(text, 10);
    assert_eq!(
        lines,
        [
            "a fairly long sentence that",
            "has",
            "averyverylongwordthatfitsnowhere",
            "in it"
        ]
    );
    assert_eq!(Layout::PLAIN.wrap(text, 10), [text]);
    assert_eq!(narrow.wrap("", 10), [""]);
}

#[test]
fn colours_only_where_welcome() {
    let colour = Layout {
        colour: true,
        ..Layout::PLAIN
    };
    assert_eq!(colour.bold("x"), "\x1b[1mx\x1b[0m");
    assert_eq!(colour.dim(""), "");
    assert_eq!(Layout::PLAIN.bold("x"), "x");
}
