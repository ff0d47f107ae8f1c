//! Short words for messages to the main log.

/// The configuration, or something the server cannot do without, cannot be used.
macro_rules! emerg {
    ($($text:tt)*) => { observe::log(observe::Level::Emerg, format_args!($($text)*)) };
}

/// Something that must not happen did.
macro_rules! alert {
    ($($text:tt)*) => { observe::log(observe::Level::Alert, format_args!($($text)*)) };
}

/// Something to know of although all is well.
macro_rules! notice {
    ($($text:tt)*) => { observe::log(observe::Level::Notice, format_args!($($text)*)) };
}

pub(crate) use {alert, emerg, notice};
