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
    ("new-connections", include_str!("../../studies/new-connections.toml")),
    ("small-file-details", include_str!("../../studies/small-file-details.toml")),
    ("tls-keys", include_str!("../../studies/tls-keys.toml")),
    ("limits", include_str!("../../studies/limits.toml")),
    ("congestion", include_str!("../../studies/congestion.toml")),
    ("four-processors", include_str!("../../studies/four-processors.toml")),
    ("cores", include_str!("../../studies/cores.toml")),
    ("locks-by-cores", include_str!("../../studies/locks-by-cores.toml")),
    ("threads-or-cores", include_str!("../../studies/threads-or-cores.toml")),
    ("memory-nodes", include_str!("../../studies/memory-nodes.toml")),
    ("cost", include_str!("../../studies/cost.toml")),
    ("idle", include_str!("../../studies/idle.toml")),
    ("generators", include_str!("../../studies/generators.toml")),
    ("status", include_str!("../../studies/status.toml")),
    ("same", include_str!("../../studies/same.toml")),
];
