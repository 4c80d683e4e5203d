#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod axis;
mod heat_map;
mod line;
mod page;

/// Counts over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plot {
    panels: Vec<Panel>,
}

/// The counts of an event.
#[derive(Debug, Clone, PartialEq)]
struct Panel {
    event: String,
    unit: String,
    /// The places that were counted apart, in the order in which they came.
    places: Vec<Place>,
}

/// The counts of an event in one place.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    name: String,
    intervals: Vec<Interval>,
}

/// A span of time, and what an event came to in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Seconds at which it began.
    pub begin: f64,
    /// Seconds at which it ended.
    pub end: f64,
    /// The value; `None` if there is none, which is not zero.
    pub value: Option<f64>,
    /// True if the value is an estimate, or incomplete.
    pub is_estimate: bool,
}

impl Plot {
    /// Adds an interval of an event in a place; the whole target is the place without a name. Intervals come in the order of
    /// their times.
    pub fn add(&mut self, event: &str, unit: &str, place: &str, interval: Interval) {
        let panel = match self.panels.iter().position(|panel| panel.event == event) {
            Some(at) => at,
            None => {
                self.panels.push(Panel {
                    event: event.to_owned(),
                    unit: unit.to_owned(),
                    places: Vec::new(),
                });
                self.panels.len() - 1
            }
        };
        let places = &mut self.panels[panel].places;
        match places.iter_mut().find(|known| known.name == place) {
            Some(known) => known.intervals.push(interval),
            None => places.push(Place {
                name: place.to_owned(),
                intervals: vec![interval],
            }),
        }
    }

    /// Returns true if there is nothing to be drawn.
    pub fn is_empty(&self) -> bool {
        self.panels.is_empty()
    }

    /// Returns the picture.
    pub fn svg(&self) -> String {
        page::draw(&self.panels)
    }
}

impl Panel {
    /// Returns all intervals of all places.
    fn intervals(&self) -> impl Iterator<Item = &Interval> {
        self.places.iter().flat_map(|place| &place.intervals)
    }

    /// Returns the largest value.
    fn largest(&self) -> f64 {
        let values = self.intervals().filter_map(|interval| interval.value);
        values.fold(0.0, f64::max)
    }
}
