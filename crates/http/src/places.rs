//! Default paths of files that a configuration needs and does not name. The installation decides
//! them.

use std::path::{Path, PathBuf};

/// The paths, absolute or relative to the prefix. The registry has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The access log; `None` for no log.
    pub access_log: Option<PathBuf>,
    pub client_body_temp: PathBuf,
    /// `proxy_temp_path`; those of other families are in the same directory.
    pub proxy_temp: PathBuf,
}

/// nginx's paths, relative to the prefix.
impl Default for Places {
    fn default() -> Self {
        Self {
            access_log: Some("logs/access.log".into()),
            client_body_temp: CLIENT_BODY.into(),
            proxy_temp: PROXY.into(),
        }
    }
}

/// The names in the defaults of the directives and in their documentation.
const CLIENT_BODY: &str = "client_body_temp";
const PROXY: &str = "proxy_temp";

impl Places {
    /// The path of the directory with this name in a directive's default.
    pub(crate) fn temp(&self, name: &[u8]) -> Option<PathBuf> {
        let known = [(CLIENT_BODY, &self.client_body_temp), (PROXY, &self.proxy_temp)];
        let found = known.into_iter().find(|(known, _)| known.as_bytes() == name);
        found.map(|(_, place)| place.clone()).or_else(|| {
            let family = FAMILIES.iter().find(|family| format!("{family}_temp").as_bytes() == name);
            family.map(|family| family_temp(&self.proxy_temp, family))
        })
    }
}

/// The families of backends besides `proxy` that have temporary files.
pub const FAMILIES: [&str; 3] = ["fastcgi", "uwsgi", "scgi"];

/// The directory of a family's temporary files, named like that of `proxy_temp_path`.
pub fn family_temp(proxy_temp: &Path, family: &str) -> PathBuf {
    let name = proxy_temp.file_name().unwrap_or_default().to_string_lossy();
    proxy_temp.with_file_name(name.replace("proxy", family))
}
