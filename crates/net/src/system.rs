//! Information from the system: host name, terminal, random numbers, thread id, time zone.

use std::mem::MaybeUninit;

/// The host name, in lower case.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().to_lowercase()
}

/// The width of the terminal on standard error; `None`: it is not a terminal.
pub fn terminal_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr()).ok()?;
    Some(usize::from(size.ws_col))
}

/// Unpredictable bits.
pub fn random() -> u64 {
    let mut bytes = [0; 8];
    fill_random(&mut bytes);
    u64::from_ne_bytes(bytes)
}

/// Fills up to 256 bytes from the kernel's random number generator.
pub(crate) fn fill_random(bytes: &mut [u8]) {
    let filled = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty());
    assert_eq!(filled, Ok(bytes.len()), "Linux has had this since 3.17, and it fills 256 bytes");
}

/// The id of the calling thread.
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Local time's offset from UTC in minutes, at a time in seconds since 1970.
pub fn utc_offset_minutes(seconds: i64) -> i32 {
    let mut local = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid for the call; the result points to `local` or is null.
    let filled = unsafe { libc::localtime_r(&seconds, local.as_mut_ptr()) };
    if filled.is_null() {
        return 0;
    }
    // SAFETY: all-zero bytes are a valid `tm`, and the call has filled it.
    let local = unsafe { local.assume_init() };
    (local.tm_gmtoff / 60) as i32
}
