//! cpuctl(4) of FreeBSD and DragonFly BSD: `/dev/cpuctlN`.

mod abi;
#[cfg(any(target_os = "freebsd", target_os = "dragonfly"))]
mod device;

#[cfg(any(target_os = "freebsd", target_os = "dragonfly"))]
pub use device::Cpuctl;
