//! Requests of an event set: text, events, groups, and lists of those.

use quipu_hal::{Event, EventSpec, GroupSpec, Hardware, Result, Software};
use quipu_text::{EventNames, parse_list};

/// A request for events and groups: text, an event, a group, or a list of those.
///
/// Text is a list as `quipu stat -e` takes it: `"cycles,{page-faults,cs}:u"`.
///
/// ```
/// use quipu::{Event, EventSpec, Filter, GroupSpec, Hardware, IntoGroups};
/// use quipu::text::NoNames;
///
/// let cycles = EventSpec::new(Hardware::Cycles).with_filter(Filter::USER_ONLY);
/// let group = GroupSpec::new([cycles, Hardware::Instructions.into()]);
/// assert_eq!("{cycles:u,instructions}".into_groups(&NoNames)?, [group]);
/// assert_eq!([Event::from(Hardware::Branches)].into_groups(&NoNames)?.len(), 1);
/// # Ok::<(), quipu::Error>(())
/// ```
pub trait IntoGroups {
    /// Returns the groups asked for, in order; a lone event is a group of one. `names` are those of the machine,
    /// which decide how text reads.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](quipu_hal::ErrorKind::InvalidConfiguration) if a text is malformed.
    fn into_groups(self, names: &dyn EventNames) -> Result<Vec<GroupSpec>>;
}

impl IntoGroups for &str {
    fn into_groups(self, names: &dyn EventNames) -> Result<Vec<GroupSpec>> {
        parse_list(self, names)
    }
}

impl IntoGroups for String {
    fn into_groups(self, names: &dyn EventNames) -> Result<Vec<GroupSpec>> {
        self.as_str().into_groups(names)
    }
}

impl IntoGroups for GroupSpec {
    fn into_groups(self, _: &dyn EventNames) -> Result<Vec<GroupSpec>> {
        Ok(vec![self])
    }
}

macro_rules! single_event {
    ($($event:ty),*) => {$(
        impl IntoGroups for $event {
            fn into_groups(self, _: &dyn EventNames) -> Result<Vec<GroupSpec>> {
                Ok(vec![GroupSpec::single(self)])
            }
        }
    )*};
}

single_event!(EventSpec, Event, Hardware, Software);

impl<T: IntoGroups + Clone> IntoGroups for &T {
    fn into_groups(self, names: &dyn EventNames) -> Result<Vec<GroupSpec>> {
        self.clone().into_groups(names)
    }
}

impl<T: IntoGroups> IntoGroups for Vec<T> {
    fn into_groups(self, names: &dyn EventNames) -> Result<Vec<GroupSpec>> {
        concatenated(self, names)
    }
}

impl<T: IntoGroups, const N: usize> IntoGroups for [T; N] {
    fn into_groups(self, names: &dyn EventNames) -> Result<Vec<GroupSpec>> {
        concatenated(self, names)
    }
}

impl<T: IntoGroups + Clone> IntoGroups for &[T] {
    fn into_groups(self, names: &dyn EventNames) -> Result<Vec<GroupSpec>> {
        concatenated(self, names)
    }
}

fn concatenated(
    requests: impl IntoIterator<Item: IntoGroups>,
    names: &dyn EventNames,
) -> Result<Vec<GroupSpec>> {
    let mut all = Vec::new();
    for request in requests {
        all.extend(request.into_groups(names)?);
    }
    Ok(all)
}
