//! Open files and their contents.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

pub(super) struct Cached {
    pub(super) bytes: Rc<[u8]>,
    pub(super) modified: i64,
    pub(super) etag: Vec<u8>,
}

thread_local! {
    static CACHE: RefCell<HashMap<Box<[u8]>, Rc<Cached>>> = RefCell::new(HashMap::new());
}

pub(super) fn open(path: &[u8]) -> io::Result<Rc<Cached>> {
    if let Some(found) = CACHE.with_borrow(|cache| cache.get(path).cloned()) {
        return Ok(found);
    }
    let name = conf::bytes_path(path);
    let meta = std::fs::metadata(name)?;
    let bytes: Rc<[u8]> = std::fs::read(name)?.into();
    let etag = format!("\"{:x}-{:x}\"", meta.mtime(), bytes.len()).into_bytes();
    let cached = Rc::new(Cached { bytes, modified: meta.mtime(), etag });
    CACHE.with_borrow_mut(|cache| cache.insert(path.into(), cached.clone()));
    Ok(cached)
}
