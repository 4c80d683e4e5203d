//! The format files of this kernel's tracepoints.

use crate::machine::skip;
use quipu_linux::tracefs::Tracefs;

/// Every tracepoint of this kernel: its number is that of `id`, its fields are within each other's
/// bounds, and the first tells which tracepoint a sample is of.
#[test]
fn every_format_of_this_kernel_is_understood() {
    let test = "every_format_of_this_kernel_is_understood";
    let all = Tracefs::find().and_then(|tracefs| {
        let names: Vec<_> = tracefs.tracepoints()?.collect();
        Ok((tracefs, names))
    });
    let (tracefs, names) = match all {
        Ok(all) => all,
        Err(error) => return skip(test, format!("{error:#}")),
    };
    let mut read = 0;
    for (system, name) in names {
        // Ring buffer internals have a format and no number.
        let Ok(id) = tracefs.id(&system, &name) else {
            continue;
        };
        let format = tracefs.format(&system, &name).expect("understood");
        assert_eq!((format.name(), format.id()), (&*name, id), "{system}");
        let first = &format.fields()[0];
        assert_eq!(
            (first.name(), first.offset(), first.size()),
            ("common_type", 0, 2)
        );
        let end = format.fields().iter().map(|f| f.offset() + f.size()).max();
        let raw = vec![0; end.expect("there are fields")];
        for field in format.fields() {
            assert!(
                field.value(&raw).is_some(),
                "{system}:{name} {}",
                field.name()
            );
        }
        read += 1;
    }
    assert!(read > 0, "no tracepoint has a number");
}
