//! The process's title, as ps(1) shows it.
//!
//! Linux shows the memory where the arguments stood; where a title is longer, it shows on into the
//! environment behind it, which is moved elsewhere first.

use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Mutex;

unsafe extern "C" {
    static mut environ: *const *const libc::c_char;
}

/// A variable that programs are started with so that there is room for a title; it goes with the
/// move of the environment.
pub(crate) const ROOM: &str = "WEIR_TITLE_ROOM";
/// How much room.
pub(crate) const ROOM_BYTES: usize = 200;

/// Where the title may stand.
struct Area {
    start: *mut u8,
    len: usize,
}

// SAFETY: the memory belongs to the process for its whole life and is written under the lock only.
unsafe impl Send for Area {}

static AREA: Mutex<Option<Area>> = Mutex::new(None);

/// Makes room for titles. Call it first of all, while there is one thread: it moves the
/// environment, and arguments must be read before the first [`set`].
pub fn reserve() {
    let Some([start, arguments_end, environment, end]) = limits() else { return };
    let end = if environment == arguments_end { end } else { arguments_end };
    move_environment();
    let area = Area { start: start as *mut u8, len: end.saturating_sub(start) };
    *AREA.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(area);
}

/// Sets the title; without [`reserve`], and where the system does not say where it may stand,
/// nothing happens.
pub fn set(title: &str) {
    let area = AREA.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(Area { start, len }) = *area else { return };
    if len == 0 {
        return;
    }
    let title = &title.as_bytes()[..title.len().min(len - 1)];
    // SAFETY: the kernel put arguments and environment there, `len` bytes of this process's
    // writable memory; nobody refers to them: the environment was moved, the arguments copied.
    unsafe {
        std::ptr::copy_nonoverlapping(title.as_ptr(), start, title.len());
        std::ptr::write_bytes(start.add(title.len()), 0, len - title.len());
    }
}

/// Begin and end of the arguments and of the environment: fields 48 to 51 of proc(5)'s stat.
fn limits() -> Option<[usize; 4]> {
    const ARGUMENTS_START: usize = 48;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name in parentheses that may have any characters.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(ARGUMENTS_START - 3).map(str::parse);
    let mut next = || fields.next()?.ok().filter(|address| *address != 0);
    Some([next()?, next()?, next()?, next()?])
}

/// Copies every variable; the copies are never freed, since `getenv` hands out pointers to them.
fn move_environment() {
    let variables = std::env::vars_os().filter(|(name, _)| name != ROOM);
    let variables = variables.filter_map(|(name, value)| {
        let (name, value) = (name.into_vec(), value.into_vec());
        CString::new([&name[..], b"=", &value].concat()).ok()
    });
    let mut pointers: Vec<*const libc::c_char> =
        variables.map(|variable| variable.into_raw().cast_const()).collect();
    pointers.push(std::ptr::null());
    // SAFETY: the program has one thread, by the contract of `reserve`; the array and its strings
    // live for ever and end in null.
    unsafe { environ = pointers.leak().as_ptr() };
}
