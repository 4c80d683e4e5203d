//! Refusal of a run in which nothing can be counted.

use quipu::{Error, ErrorKind};
use quipu_stat::sets::refusal_of_all;

#[test]
fn a_run_that_counts_nothing_for_a_reason_that_can_be_removed_is_refused() {
    let busy = Error::new(ErrorKind::Busy, "open cycles");
    let denied = Error::new(ErrorKind::NoPermission, "open cycles");
    let absent = Error::new(ErrorKind::UnsupportedEvent, "open branches");
    let refused =
        |errors: &[Option<&Error>]| refusal_of_all(errors.iter().copied()).map(Error::kind);
    let no_permission = Some(ErrorKind::NoPermission);
    assert_eq!(refused(&[Some(&denied)]), no_permission);
    assert_eq!(refused(&[Some(&absent), Some(&denied)]), no_permission);
    assert_eq!(
        refused(&[Some(&absent), Some(&busy)]),
        Some(ErrorKind::Busy)
    );
    for removable in [ErrorKind::NoSuchDevice, ErrorKind::Os] {
        let error = Error::new(removable, "open cycles");
        assert_eq!(refused(&[Some(&absent), Some(&error)]), Some(removable));
        assert_eq!(refused(&[None, Some(&error)]), None);
    }
    assert_eq!(refused(&[None, Some(&busy)]), None);
    assert_eq!(refused(&[Some(&absent)]), None);
    assert_eq!(refused(&[None, Some(&denied)]), None);
    assert_eq!(refused(&[]), None);
}
