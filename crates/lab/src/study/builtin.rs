//! The studies that the program brings along.

/// Their names and texts.
pub(crate) const BUILT_IN: &[(&str, &str)] = &[
    ("proxy-tuning", include_str!("../../studies/proxy-tuning.toml")),
    ("server-alone", include_str!("../../studies/server-alone.toml")),
    ("shared-locks", include_str!("../../studies/shared-locks.toml")),
    ("small-file", include_str!("../../studies/small-file.toml")),
    ("same", include_str!("../../studies/same.toml")),
];
