//! The built-in studies.

/// Their names and texts.
pub(crate) const BUILT_IN: &[(&str, &str)] = &[
    ("proxy-tuning", include_str!("../../studies/proxy-tuning.toml")),
    ("server-alone", include_str!("../../studies/server-alone.toml")),
    ("placement", include_str!("../../studies/placement.toml")),
    ("size-and-cores", include_str!("../../studies/size-and-cores.toml")),
    ("shared-locks", include_str!("../../studies/shared-locks.toml")),
    ("small-file", include_str!("../../studies/small-file.toml")),
    ("http-or-tcp", include_str!("../../studies/http-or-tcp.toml")),
    ("limit-upstream", include_str!("../../studies/limit-upstream.toml")),
    ("idle", include_str!("../../studies/idle.toml")),
    ("generators", include_str!("../../studies/generators.toml")),
    ("same", include_str!("../../studies/same.toml")),
];
