//! Which privilege levels and worlds a counter counts in.

use bitflags::bitflags;

bitflags! {
    /// The modes an event is counted in: privilege levels, idle, and host or guest.
    ///
    /// A set flag means "is counted". The default counts everywhere. In text, `:u`, `:k` and `:h`
    /// name the levels that count, `:G` and `:H` the worlds that count, and `:I` leaves idle out,
    /// as `perf` writes them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Filter: u8 {
        /// User mode (`:u`).
        const USER = 1;
        /// Kernel mode (`:k`).
        const KERNEL = 1 << 1;
        /// Hypervisor mode (`:h`).
        const HYPERVISOR = 1 << 2;
        /// While the CPU idles.
        const IDLE = 1 << 3;
        /// On the host (`:H`).
        const HOST = 1 << 4;
        /// In guests of this host (`:G`).
        const GUEST = 1 << 5;
    }
}

impl Filter {
    /// The three privilege levels.
    pub const LEVELS: Self = Self::USER.union(Self::KERNEL).union(Self::HYPERVISOR);
    /// Host and guest.
    pub const WORLDS: Self = Self::HOST.union(Self::GUEST);
    /// User mode only, in every world, idle included: what `:u` means.
    pub const USER_ONLY: Self = Self::USER.union(Self::IDLE).union(Self::WORLDS);

    /// Sets the privilege levels (the other flags are kept).
    #[must_use]
    pub const fn with_levels(self, levels: Self) -> Self {
        self.difference(Self::LEVELS)
            .union(levels.intersection(Self::LEVELS))
    }

    /// Returns true if this filter counts everywhere, that is, filters nothing.
    pub const fn counts_everywhere(self) -> bool {
        self.is_all()
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self::all()
    }
}
