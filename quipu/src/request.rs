//! What an event set accepts as a request.

use quipu_hal::{Event, EventSpec, GroupSpec, Hardware, Result, Software, text};

/// Anything that names events and groups: text, an event, a group, or a list of those.
///
/// Text is a list as `quipu stat -e` takes it: `"cycles,{page-faults,cs}:u"`.
pub trait IntoGroups {
    /// The groups asked for, in order; a lone event is a group of one.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](quipu_hal::ErrorKind::InvalidConfiguration) when a text is malformed.
    fn groups(&self) -> Result<Vec<GroupSpec>>;
}

impl IntoGroups for str {
    fn groups(&self) -> Result<Vec<GroupSpec>> {
        text::parse_list(self)
    }
}

impl IntoGroups for String {
    fn groups(&self) -> Result<Vec<GroupSpec>> {
        text::parse_list(self)
    }
}

impl IntoGroups for GroupSpec {
    fn groups(&self) -> Result<Vec<GroupSpec>> {
        Ok(vec![self.clone()])
    }
}

macro_rules! single_event {
    ($($event:ty),*) => {$(
        impl IntoGroups for $event {
            fn groups(&self) -> Result<Vec<GroupSpec>> {
                Ok(vec![GroupSpec::single(self.clone())])
            }
        }
    )*};
}

single_event!(EventSpec, Event, Hardware, Software);

impl<T: IntoGroups + ?Sized> IntoGroups for &T {
    fn groups(&self) -> Result<Vec<GroupSpec>> {
        (**self).groups()
    }
}

impl<T: IntoGroups> IntoGroups for [T] {
    fn groups(&self) -> Result<Vec<GroupSpec>> {
        let mut all = Vec::new();
        for one in self {
            all.extend(one.groups()?);
        }
        Ok(all)
    }
}

impl<T: IntoGroups, const N: usize> IntoGroups for [T; N] {
    fn groups(&self) -> Result<Vec<GroupSpec>> {
        self.as_slice().groups()
    }
}

impl<T: IntoGroups> IntoGroups for Vec<T> {
    fn groups(&self) -> Result<Vec<GroupSpec>> {
        self.as_slice().groups()
    }
}
