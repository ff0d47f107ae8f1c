//! Request bodies: their limits, and where they are kept after reading.

mod read;

use std::sync::Arc;

use conf::{Milliseconds, Offset, Result, Size};

use crate::files::TempPath;
use crate::site::LocationBuilder;
use crate::site::policy::{ClientBody, InFileOnly};

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// The largest request body. A larger one is answered with 413. 0 means no limit.
    ///
    /// ```nginx
    /// client_max_body_size 50m;
    /// ```
    client_max_body_size: Offset = "1m",
    /// The largest request body that is kept in memory; a larger one is written to a temporary
    /// file.
    ///
    /// Differs: 8k on every system; in nginx it is two pages.
    ///
    /// ```nginx
    /// client_body_buffer_size 128k;
    /// ```
    client_body_buffer_size: Size = "8k",
    /// The longest time between two reads of a request body; after that the answer is 408.
    ///
    /// ```nginx
    /// client_body_timeout 30s;
    /// ```
    client_body_timeout: Milliseconds = "60s",
    /// The directory of temporary files for request bodies, and how many characters the names of
    /// its subdirectories have. The default is in the installation's directory for temporary files
    /// or, if the user is not root, in a directory of the user.
    ///
    /// Syntax: DIRECTORY [LEVEL1 [LEVEL2 [LEVEL3]]]
    ///
    /// ```nginx
    /// client_body_temp_path /var/lib/weir/body 1 2;
    /// ```
    client_body_temp_path: TempPath = "client_body_temp",
    /// Whether every request body goes to a file. `on` keeps the file, `clean` deletes it after the
    /// request.
    client_body_in_file_only: InFileOnly = "off",
    /// Whether a request body in memory is kept in one piece.
    ///
    /// Differs: no effect; it is always in one piece.
    client_body_in_single_buffer: bool = "off",
}

/// Passes the settings to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    // Memory for a body is always a single buffer.
    let _ = conf.client_body_in_single_buffer;
    conf.client_body_temp_path.need(location.load);
    location.core.client_body = ClientBody {
        size_max: conf.client_max_body_size.0,
        timeout_ms: conf.client_body_timeout.0,
        in_file_only: conf.client_body_in_file_only,
        buffer_size: conf.client_body_buffer_size.0 as usize,
        temp_path: Some(conf.client_body_temp_path.clone()),
    };
    Ok(())
}
