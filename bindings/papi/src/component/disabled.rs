//! Components that are disabled.

use std::sync::atomic::Ordering;

use quipu::Machine;

use crate::code::{ECMP, ErrorCode};
use crate::component::{CPU, DEFAULTS, UNCORE};
use crate::event::list::number_listed;

/// Returns the code and the reason of a component that is disabled.
pub(crate) fn disabled(component: usize) -> Option<(ErrorCode, String)> {
    if DEFAULTS[component].disabled.load(Ordering::Relaxed) {
        return Some((ErrorCode::new(1), "disabled by the program".to_owned()));
    }
    match component {
        CPU => {
            let missing = Machine::this().require().err();
            missing.map(|error| (ECMP, format!("{error:#}")))
        }
        UNCORE if number_listed(UNCORE) == 0 => Some((
            ECMP,
            "there is no PMU of a unit outside of the cores".to_owned(),
        )),
        _ => None,
    }
}
