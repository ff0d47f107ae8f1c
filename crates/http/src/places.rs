//! Files that a configuration needs and does not name: whoever installs the program says where.

use std::path::PathBuf;

/// Where they are, relative to the prefix or not; kept in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The access log; `None`: requests are not logged.
    pub access_log: Option<PathBuf>,
    /// `client_body_temp_path`
    pub client_body_temp: PathBuf,
    /// `proxy_temp_path`
    pub proxy_temp: PathBuf,
}

/// nginx's, below the prefix.
impl Default for Places {
    fn default() -> Self {
        Self {
            access_log: Some("logs/access.log".into()),
            client_body_temp: CLIENT_BODY.into(),
            proxy_temp: PROXY.into(),
        }
    }
}

/// What the defaults of the directives say, and the documentation.
const CLIENT_BODY: &str = "client_body_temp";
const PROXY: &str = "proxy_temp";

impl Places {
    /// Where the directory is that a directive's default calls by this name.
    pub(crate) fn temp(&self, name: &[u8]) -> Option<PathBuf> {
        let known = [(CLIENT_BODY, &self.client_body_temp), (PROXY, &self.proxy_temp)];
        let found = known.into_iter().find(|(known, _)| known.as_bytes() == name);
        found.map(|(_, place)| place.clone())
    }
}
