//! Variables of files: `$document_root`, `$realpath_root`, `$request_filename`.

use std::os::unix::ffi::OsStrExt;

use conf::bytes_path;
use observe::{Errno, Level, Text};

use crate::exchange::Exchange;
use crate::variables::{BuiltIn, some};

pub(super) const TABLE: &[BuiltIn] = &[
    BuiltIn::fresh(
        "document_root",
        "The folder that `root` or `alias` names for the request.",
        |x, out| {
            x.append_document_root(out);
            true
        },
    ),
    BuiltIn::fresh(
        "realpath_root",
        "The folder that `root` or `alias` names for the request, with symbolic links resolved.",
        realpath_root,
    ),
    BuiltIn::fresh(
        "request_filename",
        "The path of the file that the request is mapped to by `root` or `alias`.",
        |x, out| x.append_path(out),
    ),
];

fn realpath_root(x: &mut Exchange, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    x.append_document_root(out);
    let real = bytes_path(&out[start..]).canonicalize();
    match real {
        Ok(real) => {
            out.truncate(start);
            some(out, real.as_os_str().as_bytes())
        }
        Err(error) => {
            let (path, reason) = (Text(&out[start..]), Errno(&error));
            x.log(Level::Crit, format_args!("realpath() \"{path}\" failed{reason}"));
            out.truncate(start);
            false
        }
    }
}
