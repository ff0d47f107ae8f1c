//! The files on disk.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use super::{Call, E2BIG, EFBIG, FileError, Files, glob};
use crate::{FILE_BYTES_MAX, FILES_MAX};

/// The machine's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&mut self, path: &[u8]) -> Result<Arc<[u8]>, FileError> {
        let file = File::open(as_path(path)).map_err(|error| FileError::new(Call::Open, &error))?;
        let mut bytes = Vec::new();
        // A device may never end.
        file.take(FILE_BYTES_MAX as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| FileError::new(Call::Read, &error))?;
        if bytes.len() > FILE_BYTES_MAX {
            return Err(FileError { call: Call::Read, errno: EFBIG });
        }
        Ok(bytes.into())
    }

    fn glob(&mut self, pattern: &[u8]) -> Result<Vec<Box<[u8]>>, FileError> {
        let mut found = vec![Vec::new()];
        let components: Vec<_> = pattern.split(|&byte| byte == b'/').collect();
        for (i, component) in components.iter().enumerate() {
            if i > 0 {
                found.iter_mut().for_each(|path| path.push(b'/'));
            }
            found = step(found, component)?;
        }
        if components.last().is_some_and(|last| !glob::is_pattern(last)) {
            found.retain(|path| as_path(path).symlink_metadata().is_ok());
        }
        found.sort_unstable();
        Ok(found.into_iter().map(Vec::into_boxed_slice).collect())
    }
}

/// Adds one component to each folder. As in glob(3), a folder that cannot be read counts as empty.
fn step(folders: Vec<Vec<u8>>, component: &[u8]) -> Result<Vec<Vec<u8>>, FileError> {
    let mut found = Vec::new();
    for mut folder in folders {
        if glob::is_pattern(component) {
            found.extend(matching(&folder, component));
        } else {
            folder.extend_from_slice(&glob::literal(component));
            found.push(folder);
        }
        if found.len() > FILES_MAX {
            return Err(FileError { call: Call::Glob, errno: E2BIG });
        }
    }
    Ok(found)
}

fn matching(folder: &[u8], pattern: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let place = if folder.is_empty() { b".".as_slice() } else { folder };
    as_path(place).read_dir().into_iter().flatten().flatten().filter_map(move |entry| {
        let name = entry.file_name();
        let name = name.as_bytes();
        glob::matches(pattern, name).then(|| [folder, name].concat())
    })
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
