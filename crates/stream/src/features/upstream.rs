//! `upstream {}`: reads the blocks and builds groups of servers. Crate `upstream` implements the
//! groups and their balancing.

use std::sync::Arc;

use ::upstream::Groups;
use conf::lacking::EnclosingBlock;
use conf::{Directive, Layered, Load, Result, UPSTREAM, known};

use super::{Layers, resolver};
use crate::site::ServerBuilder;

pub use ::upstream::settings::{Conf, Layer};

/// The name of an `upstream` block of this subsystem in nginx's table.
const CONTEXT: &str = "stream-upstream";

/// Installs nothing: the groups are the whole feature.
pub fn install(_: &Arc<Conf>, _: &mut ServerBuilder<'_, '_>) -> Result<()> {
    Ok(())
}

/// Reads a block. Directives for HTTP only are rejected.
pub(crate) fn read(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    Groups::begin(from, load)?;
    let mut layers = Layers::default();
    let block =
        EnclosingBlock { context: CONTEXT, lines: from.block.as_deref().unwrap_or_default() };
    for line in block.lines {
        let read = match is_of_http(&line.name.text) {
            true => Ok(false),
            false => layers.set(UPSTREAM, line, load),
        };
        let read = match read {
            Ok(false) => load.without_feature(line, block).map(drop).map_err(|error| {
                match line.name.text.starts_with(b"check") && is_of_http(&line.name.text) {
                    true => error.help("servers of stream are checked by \"health_check\""),
                    false => error,
                }
            }),
            read => read.map(drop),
        };
        load.tolerate(read)?;
    }
    Groups::end(layers.upstream, from, load)
}

/// Directives that nginx does not have, and that work as in `http`.
const BEYOND_NGINX: [&[u8]; 5] = [
    b"limit_upstream_conn",
    b"limit_upstream_log_level",
    b"limit_upstream_zone",
    b"queue",
    b"state",
];

/// Whether the directive has the same meaning in these blocks as in those of `http`.
fn is_here(name: &[u8]) -> bool {
    let is_of_nginx = known::find(name).iter().any(|known| known.allowed_in(CONTEXT));
    is_of_nginx || BEYOND_NGINX.contains(&name)
}

/// Whether a directive is for groups of `http` only.
pub(crate) fn is_of_http(name: &[u8]) -> bool {
    Layer::TABLE.iter().any(|row| row.name.as_bytes() == name) && !is_here(name)
}

/// Builds the groups, after the whole configuration was read. `main` are the settings of
/// `stream {}`.
pub(crate) fn build(main: &Layers, load: &mut Load<'_>) -> Result<()> {
    let around = resolver::of_main(&main.resolver, load);
    Groups::build(&main.upstream, around.as_ref(), load)
}
