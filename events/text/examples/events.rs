//! Shows how events are understood, for learning the syntax and for trying it out.
//!
//! ```text
//! cargo run -p quipu-text --example events -- 'cycles:u,{cs,faults}:D' r01c0 cylces
//! ```

use quipu_hal::{Event, GroupSpec};
use quipu_text::{NoNames, generalized, nearest, parse_list};

fn main() -> std::process::ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        println!("Generalized events; give events as arguments to see how they are understood:");
        for known in generalized() {
            println!("  {} {}", known.name, known.aliases.join(" "));
        }
        return std::process::ExitCode::SUCCESS;
    }
    let mut understood = true;
    for argument in &arguments {
        println!("{argument}");
        match parse_list(argument, &NoNames) {
            Ok(groups) => groups.iter().for_each(show),
            Err(error) => {
                understood = false;
                println!("  {error:#}");
            }
        }
    }
    if understood {
        std::process::ExitCode::SUCCESS
    } else {
        std::process::ExitCode::FAILURE
    }
}

fn show(group: &GroupSpec) {
    println!("  {group}");
    for member in &group.members {
        println!("    {:?}", member.event);
        println!(
            "      counted in {:?}, precision {:?}",
            member.filter, member.precision
        );
        if let Event::Named(name) = &member.event {
            let near = nearest(name, []);
            if !near.is_empty() {
                println!(
                    "      left to a database; near generalized events: {}",
                    near.join(", ")
                );
            }
        }
    }
    if group.attributes.pinned || group.attributes.exclusive {
        println!("    {:?}", group.attributes);
    }
}
