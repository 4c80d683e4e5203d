//! Prints the ten functions of a recording that took most of each event.
//!
//! ```console
//! $ quipu record -- ls -R /usr
//! $ cargo run -p quipu-profile --example hottest perf.data
//! ```

use std::path::PathBuf;

use quipu_profile::DEFAULT_FILE;
use quipu_profile::report::Profile;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os()
        .nth(1)
        .map_or(DEFAULT_FILE.into(), PathBuf::from);
    let profile = Profile::read(&path)?;
    for event in &profile.events {
        println!(
            "{}: {} samples, {} lost",
            event.name, event.total.samples, event.lost
        );
        for (function, weight) in profile.hottest(event).into_iter().take(10) {
            let share = weight.percent_of(event.total);
            println!(
                "{share:6.2} % {} {}",
                function.short_object(),
                function.title()
            );
        }
    }
    for note in &profile.notes {
        eprintln!("{note}");
    }
    Ok(())
}
