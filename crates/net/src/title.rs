//! The process title, as ps(1) shows it.
//!
//! Linux shows the memory of the arguments; a longer title continues into the environment behind
//! it, which is therefore moved first.

use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Mutex;

unsafe extern "C" {
    static mut environ: *const *const libc::c_char;
}

/// An environment variable that programs are started with as space for the title; moving the
/// environment removes it.
pub(crate) const ROOM: &str = "WEIR_TITLE_ROOM";
/// Length of its value.
pub(crate) const ROOM_BYTES: usize = 200;

/// The memory for the title.
struct Area {
    start: *mut u8,
    len: usize,
}

// SAFETY: the memory belongs to the process for its whole life and is written only under the lock.
unsafe impl Send for Area {}

static AREA: Mutex<Option<Area>> = Mutex::new(None);

/// Makes room for titles. Call it at the start, while there is one thread: it moves the
/// environment. Arguments must be read before the first [`set`].
pub fn reserve() {
    let Some([start, arguments_end, environment, end]) = limits() else { return };
    let end = if environment == arguments_end { end } else { arguments_end };
    move_environment();
    let area = Area { start: start as *mut u8, len: end.saturating_sub(start) };
    *AREA.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(area);
}

/// Sets the title. Does nothing without [`reserve`], or if the system does not say where the
/// arguments are.
pub fn set(title: &str) {
    let area = AREA.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(Area { start, len }) = *area else { return };
    if len == 0 {
        return;
    }
    let title = &title.as_bytes()[..title.len().min(len - 1)];
    // SAFETY: the kernel has put arguments and environment there, `len` bytes of this process's
    // writable memory; nothing refers to them: the environment was moved, the arguments copied.
    unsafe {
        std::ptr::copy_nonoverlapping(title.as_ptr(), start, title.len());
        std::ptr::write_bytes(start.add(title.len()), 0, len - title.len());
    }
}

/// Start and end of the arguments and of the environment: fields 48 to 51 of stat in proc(5).
fn limits() -> Option<[usize; 4]> {
    const ARGUMENTS_START: usize = 48;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name in parentheses, which may contain any character.
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
    // are never freed and end in null.
    unsafe { environ = pointers.leak().as_ptr() };
}
