//! The files of one route, by which a person finds what became of it.

use super::nginx_conf::ConfText;
use super::planner::Planner;

#[derive(Clone, Debug, Default)]
pub(crate) struct RouteFiles {
    /// The folder of the files: `routes/httproute.shop.cart`.
    pub(crate) id: String,
    /// Directives of `http {}` or `stream {}`.
    pub(crate) maps: ConfText,
    /// Locations that bodies refer to.
    pub(crate) locations: ConfText,
    /// Directives of the servers.
    pub(crate) server: ConfText,
    bodies: Vec<(String, ConfText)>,
}

impl RouteFiles {
    pub(crate) fn new(id: String) -> Self {
        Self { id, ..Self::default() }
    }

    /// The path of a file.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("routes/{}/{name}.conf", self.id)
    }

    /// Adds the body of a location, and returns its file.
    pub(crate) fn body(&mut self, name: &str, text: ConfText) -> String {
        let file = self.path(name);
        self.bodies.push((file.clone(), text));
        file
    }

    /// The files that the servers include.
    pub(crate) fn of_servers(&self) -> Vec<String> {
        let parts = [("locations", &self.locations), ("server", &self.server)];
        let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
        parts.map(|(name, _)| self.path(name)).collect()
    }

    pub(crate) fn write(self, is_stream: bool, planner: &mut Planner<'_>) {
        let (maps, locations) = (self.path("maps"), self.path("locations"));
        let server = self.path("server");
        if !self.maps.is_empty() {
            let includes = if is_stream {
                &mut planner.sites.stream_includes
            } else {
                &mut planner.sites.http_includes
            };
            includes.insert(maps.clone());
            planner.files.insert(maps, self.maps.into_bytes());
        }
        if !self.locations.is_empty() {
            planner.files.insert(locations, self.locations.into_bytes());
        }
        if !self.server.is_empty() {
            planner.files.insert(server, self.server.into_bytes());
        }
        for (file, text) in self.bodies {
            planner.files.insert(file, text.into_bytes());
        }
    }
}
