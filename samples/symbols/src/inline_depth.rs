//! Measures how deep inlined functions nest in debug information: its reader calls itself for each level.

use std::collections::HashMap;

use gimli::{AttributeValue, DebugInfoOffset, Dwarf, Range, Reader, UnitHeader, UnitRef, UnitType};

/// As deep may inlined functions nest.
pub(crate) const DEEPEST: usize = 256;

/// The units of a file, by the addresses of their code. They are looked at when an address in them is first asked for.
#[derive(Debug, Default)]
pub(crate) struct InlineDepths {
    /// Ranges of units in the order of their first addresses, with the end of the one that goes on longest up to there.
    ranges: Vec<(Range, u64, DebugInfoOffset)>,
    /// True for the units that can be read.
    known: HashMap<DebugInfoOffset, bool>,
    /// True if a unit of which the addresses are not said cannot be read.
    is_too_deep: bool,
}

impl InlineDepths {
    pub(crate) fn new<R: Reader<Offset = usize>>(dwarf: &Dwarf<R>) -> Self {
        let mut depths = Self::default();
        let mut listed = listed_ranges(dwarf);
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let Some(offset) = header.debug_info_offset() else {
                continue;
            };
            let kind = header.type_();
            let is_of_types = matches!(kind, UnitType::Type { .. } | UnitType::SplitType { .. });
            if is_of_types || kind == UnitType::Partial {
                continue;
            }
            let own = own_ranges(dwarf, &header).unwrap_or_default();
            let listed = listed.remove(&offset).filter(|_| !own.are_listed);
            let mut ranges = own.ranges;
            ranges.extend(listed.unwrap_or_default());
            ranges.retain(|range| range.begin < range.end);
            if ranges.is_empty() {
                // It may have code all the same, of which the lines alone say where.
                depths.is_too_deep |= !is_shallow(dwarf, header);
            }
            let ranges = ranges.into_iter().map(|range| (range, 0, offset));
            depths.ranges.extend(ranges);
        }
        depths
            .ranges
            .sort_unstable_by_key(|(range, ..)| range.begin);
        let mut last = 0;
        for (range, end, _) in &mut depths.ranges {
            last = range.end.max(last);
            *end = last;
        }
        depths
    }

    /// Returns true if inlined functions at an address can be read.
    pub(crate) fn is_shallow_at<R: Reader<Offset = usize>>(
        &mut self,
        dwarf: &Dwarf<R>,
        address: u64,
    ) -> bool {
        if self.is_too_deep {
            return false;
        }
        let behind = self
            .ranges
            .partition_point(|(range, ..)| range.begin <= address);
        let before = self.ranges[..behind].iter().rev();
        let mut around = before.take_while(|(_, end, _)| *end > address);
        around.all(|(range, _, offset)| {
            let is_in = range.end > address;
            !is_in
                || *self.known.entry(*offset).or_insert_with(|| {
                    let header = dwarf.debug_info.header_from_offset(*offset);
                    header.is_ok_and(|header| is_shallow(dwarf, header))
                })
        })
    }
}

/// Returns the ranges of units that `.debug_aranges` has.
fn listed_ranges<R: Reader<Offset = usize>>(
    dwarf: &Dwarf<R>,
) -> HashMap<DebugInfoOffset, Vec<Range>> {
    let mut listed: HashMap<_, Vec<Range>> = HashMap::new();
    let mut headers = dwarf.debug_aranges.headers();
    while let Ok(Some(header)) = headers.next() {
        let ranges = listed.entry(header.debug_info_offset()).or_default();
        let mut entries = header.entries();
        while let Some(entry) = entries.next().transpose() {
            ranges.extend(entry.map(|entry| entry.range()));
        }
    }
    listed
}

/// Ranges of its code that a unit has itself.
#[derive(Debug, Default)]
struct OwnRanges {
    ranges: Vec<Range>,
    /// True if it has a list of them (`DW_AT_ranges`), which goes before all others.
    are_listed: bool,
}

/// Returns the ranges of a unit as addr2line finds them: of two readers that differ, one would look into units of which the
/// other has not seen how deep they are.
fn own_ranges<R: Reader<Offset = usize>>(
    dwarf: &Dwarf<R>,
    header: &UnitHeader<R>,
) -> gimli::Result<OwnRanges> {
    let unit = dwarf.unit(header.clone())?;
    let unit = UnitRef::new(dwarf, &unit);
    let mut entries = unit.entries_raw(None)?;
    let mut own = OwnRanges::default();
    let Some(abbreviation) = entries.read_abbreviation()? else {
        return Ok(own);
    };
    let (mut low, mut high, mut len, mut list) = (None, None, None, None);
    for spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(*spec)?;
        let value = attribute.value();
        match (attribute.name(), value) {
            (gimli::DW_AT_low_pc, AttributeValue::Addr(address)) => low = Some(address),
            (gimli::DW_AT_low_pc, AttributeValue::DebugAddrIndex(index)) => {
                low = Some(unit.address(index)?);
            }
            (gimli::DW_AT_high_pc, AttributeValue::Addr(address)) => high = Some(address),
            (gimli::DW_AT_high_pc, AttributeValue::DebugAddrIndex(index)) => {
                high = Some(unit.address(index)?);
            }
            (gimli::DW_AT_high_pc, AttributeValue::Udata(bytes)) => len = Some(bytes),
            (gimli::DW_AT_ranges, value) => list = unit.attr_ranges_offset(value)?,
            _ => {}
        }
    }
    if let Some(list) = list {
        own.are_listed = true;
        let mut ranges = unit.ranges(list)?;
        while let Some(range) = ranges.next()? {
            own.ranges.push(range);
        }
    } else if let Some(begin) = low {
        let end = high.or_else(|| Some(begin.wrapping_add(len?)));
        own.ranges.extend(end.map(|end| Range { begin, end }));
    }
    Ok(own)
}

/// Returns true if inlined functions nest in a unit no deeper than can be read.
pub(crate) fn is_shallow<R: Reader<Offset = usize>>(
    dwarf: &Dwarf<R>,
    header: UnitHeader<R>,
) -> bool {
    let unit = dwarf.unit(header);
    unit.is_ok_and(|unit| depth_of(UnitRef::new(dwarf, &unit)).is_ok_and(|depth| depth <= DEEPEST))
}

/// Returns how deep inlined functions nest in a unit, counted no further than one that is too deep.
fn depth_of<R: Reader>(unit: UnitRef<'_, R>) -> gimli::Result<usize> {
    let mut entries = unit.entries_raw(None)?;
    let (mut around, mut deepest) = (Vec::new(), 0);
    while !entries.is_empty() && deepest <= DEEPEST {
        let depth = entries.next_depth();
        while around.last().is_some_and(|outer| *outer >= depth) {
            around.pop();
        }
        if let Some(abbreviation) = entries.read_abbreviation()? {
            if abbreviation.tag() == gimli::DW_TAG_inlined_subroutine {
                around.push(depth);
                deepest = deepest.max(around.len());
            }
            entries.skip_attributes(abbreviation.attributes())?;
        }
    }
    Ok(deepest)
}
