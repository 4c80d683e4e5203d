//! Requests of an event set: text, events, groups, and lists of those.

use quipu_hal::{Event, EventSpec, GroupSpec, Hardware, Result, Software, text};

/// A request for events and groups: text, an event, a group, or a list of those.
///
/// Text is a list as `quipu stat -e` takes it: `"cycles,{page-faults,cs}:u"`.
///
/// ```
/// use quipu::{Event, EventSpec, Filter, GroupSpec, Hardware, IntoGroups, NativeEvents};
///
/// let ends_in_mask = |name: &str| NativeEvents::this().ends_in_mask(name);
/// let cycles = EventSpec::new(Hardware::Cycles).with_filter(Filter::USER_ONLY);
/// let group = GroupSpec::new([cycles, Hardware::Instructions.into()]);
/// assert_eq!("{cycles:u,instructions}".into_groups(&ends_in_mask)?, [group]);
/// assert_eq!([Event::from(Hardware::Branches)].into_groups(&ends_in_mask)?.len(), 1);
/// # Ok::<(), quipu::Error>(())
/// ```
pub trait IntoGroups {
    /// Returns the groups asked for, in order; a lone event is a group of one. `ends_in_mask` is asked about
    /// names in text that end like modifiers ([`parse_list_with`](quipu_hal::text::parse_list_with)).
    ///
    /// # Errors
    /// [`InvalidConfiguration`](quipu_hal::ErrorKind::InvalidConfiguration) if a text is malformed.
    fn into_groups(self, ends_in_mask: &dyn Fn(&str) -> bool) -> Result<Vec<GroupSpec>>;
}

impl IntoGroups for &str {
    fn into_groups(self, ends_in_mask: &dyn Fn(&str) -> bool) -> Result<Vec<GroupSpec>> {
        text::parse_list_with(self, ends_in_mask)
    }
}

impl IntoGroups for String {
    fn into_groups(self, ends_in_mask: &dyn Fn(&str) -> bool) -> Result<Vec<GroupSpec>> {
        self.as_str().into_groups(ends_in_mask)
    }
}

impl IntoGroups for GroupSpec {
    fn into_groups(self, _: &dyn Fn(&str) -> bool) -> Result<Vec<GroupSpec>> {
        Ok(vec![self])
    }
}

macro_rules! single_event {
    ($($event:ty),*) => {$(
        impl IntoGroups for $event {
            fn into_groups(self, _: &dyn Fn(&str) -> bool) -> Result<Vec<GroupSpec>> {
                Ok(vec![GroupSpec::single(self)])
            }
        }
    )*};
}

single_event!(EventSpec, Event, Hardware, Software);

impl<T: IntoGroups + Clone> IntoGroups for &T {
    fn into_groups(self, ends_in_mask: &dyn Fn(&str) -> bool) -> Result<Vec<GroupSpec>> {
        self.clone().into_groups(ends_in_mask)
    }
}

impl<T: IntoGroups> IntoGroups for Vec<T> {
    fn into_groups(self, ends_in_mask: &dyn Fn(&str) -> bool) -> Result<Vec<GroupSpec>> {
        concatenated(self, ends_in_mask)
    }
}

impl<T: IntoGroups, const N: usize> IntoGroups for [T; N] {
    fn into_groups(self, ends_in_mask: &dyn Fn(&str) -> bool) -> Result<Vec<GroupSpec>> {
        concatenated(self, ends_in_mask)
    }
}

impl<T: IntoGroups + Clone> IntoGroups for &[T] {
    fn into_groups(self, ends_in_mask: &dyn Fn(&str) -> bool) -> Result<Vec<GroupSpec>> {
        concatenated(self, ends_in_mask)
    }
}

fn concatenated(
    requests: impl IntoIterator<Item: IntoGroups>,
    ends_in_mask: &dyn Fn(&str) -> bool,
) -> Result<Vec<GroupSpec>> {
    let mut all = Vec::new();
    for request in requests {
        all.extend(request.into_groups(ends_in_mask)?);
    }
    Ok(all)
}
