//! Memory of the process: `PAPI_get_dmem_info`, from `/proc/self/status` (proc(5)), in kilobytes but for the size of a page.

use std::ffi::{c_int, c_longlong};

use nix::unistd::{SysconfVar, sysconf};

use crate::abi::DmemInfo;
use crate::boundary::call::done;
use crate::boundary::pointer::write;
use crate::code::{EINVAL, ESYS, Outcome};

/// Returns the memory of the process from the kernel's text.
fn parse(status: &str) -> DmemInfo {
    let mut info = DmemInfo::zeroed();
    for line in status.lines() {
        let Some((key, rest)) = line.split_once(':') else {
            continue;
        };
        let field = match key {
            "VmPeak" => &mut info.peak,
            "VmSize" => &mut info.size,
            "VmLck" => &mut info.locked,
            "VmHWM" => &mut info.high_water_mark,
            "VmRSS" => &mut info.resident,
            "VmData" => &mut info.heap,
            "VmStk" => &mut info.stack,
            "VmExe" => &mut info.text,
            "VmLib" => &mut info.library,
            "VmPTE" => &mut info.pte,
            "RssFile" | "RssShmem" => &mut info.shared,
            _ => continue,
        };
        let number = rest
            .split_whitespace()
            .next()
            .and_then(|number| number.parse().ok());
        *field += number.unwrap_or(0);
    }
    info
}

fn of_this_process() -> Outcome<DmemInfo> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|_| ESYS)?;
    let mut info = parse(&status);
    let page_size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().ok_or(ESYS)?;
    // A c_long has 32 bits on some targets, where this is lossless.
    #[allow(clippy::cast_lossless)]
    {
        info.pagesize = page_size as c_longlong;
    }
    Ok(info)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_dmem_info(out: *mut DmemInfo) -> c_int {
    done(|| {
        if out.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: not null, and the caller's to be written.
        unsafe { write(out, of_this_process()?) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_field() {
        let info = parse(
            "Name:\tx\nVmPeak:\t  12 kB\nVmSize:\t11 kB\nVmLck:\t1 kB\nVmHWM:\t9 kB\nVmRSS:\t8 kB\n\
             RssFile:\t3 kB\nRssShmem:\t4 kB\nVmData:\t5 kB\nVmStk:\t6 kB\nVmExe:\t2 kB\nVmLib:\t20 kB\nVmPTE:\t40 kB\n",
        );
        assert_eq!([info.peak, info.size, info.locked], [12, 11, 1]);
        assert_eq!(
            [info.high_water_mark, info.resident, info.shared],
            [9, 8, 7]
        );
        assert_eq!([info.heap, info.stack, info.text], [5, 6, 2]);
        assert_eq!([info.library, info.pte], [20, 40]);
    }
}
