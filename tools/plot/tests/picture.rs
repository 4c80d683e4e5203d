//! Pictures, as XML has them.

use quick_xml::Reader;
use quick_xml::events::Event;
use quipu_plot::{Interval, Plot};

fn interval(second: u32, value: Option<f64>, is_estimate: bool) -> Interval {
    Interval {
        begin: f64::from(second),
        end: f64::from(second + 1),
        value,
        is_estimate,
    }
}

/// Returns the elements of a picture with their attributes, after checking that it is XML.
fn elements(svg: &str) -> Vec<String> {
    let mut reader = Reader::from_str(svg);
    let mut elements = Vec::new();
    let mut open = 0;
    loop {
        match reader.read_event().expect("XML") {
            Event::Start(tag) => {
                open += 1;
                elements.push(String::from_utf8_lossy(&tag).into_owned());
            }
            Event::Empty(tag) => elements.push(String::from_utf8_lossy(&tag).into_owned()),
            Event::End(_) => open -= 1,
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open, 0);
    elements
}

fn count(elements: &[String], text: &str) -> usize {
    elements
        .iter()
        .filter(|element| element.contains(text))
        .count()
}

#[test]
fn a_line_is_dashed_where_it_is_an_estimate_and_hatched_where_nothing_was_counted() {
    let mut plot = Plot::default();
    assert!(plot.is_empty());
    for (second, (value, is_estimate)) in (0..).zip([
        (Some(100.0), false),
        (Some(50.0), false),
        (Some(80.0), true),
        (None, false),
        (Some(0.0), false),
    ]) {
        plot.add(
            "cycles<u>",
            "per second",
            "",
            interval(second, value, is_estimate),
        );
    }
    let svg = plot.svg();
    let elements = elements(&svg);
    // One path up to the estimate, and one behind what was not counted; heights from 44 for 100 to 194 for 0.
    assert!(
        svg.contains("<path class=\"line\" d=\"M110 44H284V119H458\"/>"),
        "{svg}"
    );
    assert!(
        svg.contains("<path class=\"line estimate\" d=\"M458 119V74H632\"/>"),
        "{svg}"
    );
    assert!(
        svg.contains("<path class=\"line\" d=\"M806 194H980\"/>"),
        "{svg}"
    );
    assert_eq!(count(&elements, "url(#hatch)"), 1);
    assert!(svg.contains("2.000 to 3.000 s: ~80") && svg.contains("cycles&lt;u&gt;"));
    assert!(svg.contains("prefers-color-scheme:dark"));
}

#[test]
fn many_places_are_a_heat_map() {
    for places in [2, 20, 200] {
        let mut plot = Plot::default();
        for second in 0..3 {
            for place in 0..places {
                let value = (place != 1).then(|| f64::from(second * place));
                plot.add(
                    "faults",
                    "per second",
                    &format!("CPU{place}"),
                    interval(second, value, place == 0 && second == 2),
                );
            }
        }
        let svg = plot.svg();
        let elements = elements(&svg);
        // The second row has no values; in all but the first each second is darker than the one before.
        assert_eq!(count(&elements, "url(#hatch)"), 1, "{svg}");
        assert!(svg.contains("CPU1: not counted"));
        assert_eq!(count(&elements, "cell-estimate"), 1);
        let largest = format!("CPU{}: 2.000 to 3.000 s: ", places - 1);
        assert_eq!(svg.contains(&largest), places > 2);
    }
}
