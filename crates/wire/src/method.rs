//! Request methods that nginx treats by name.

/// The method of a request; the text of [`Method::Other`] is in the request line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Mkcol,
    Copy,
    Move,
    Options,
    Propfind,
    Proppatch,
    Lock,
    Unlock,
    Patch,
    Trace,
    Connect,
    Other,
}

impl Method {
    /// This method in a set of methods.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The method with exactly this name; methods are case-sensitive (RFC 9110, section 9.1).
    pub fn of(name: &[u8]) -> Method {
        match name {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"MKCOL" => Method::Mkcol,
            b"COPY" => Method::Copy,
            b"MOVE" => Method::Move,
            b"OPTIONS" => Method::Options,
            b"PROPFIND" => Method::Propfind,
            b"PROPPATCH" => Method::Proppatch,
            b"LOCK" => Method::Lock,
            b"UNLOCK" => Method::Unlock,
            b"PATCH" => Method::Patch,
            b"TRACE" => Method::Trace,
            b"CONNECT" => Method::Connect,
            _ => Method::Other,
        }
    }
    /// Its name; empty for [`Method::Other`].
    pub fn name(self) -> &'static [u8] {
        match self {
            Method::Get => b"GET",
            Method::Head => b"HEAD",
            Method::Post => b"POST",
            Method::Put => b"PUT",
            Method::Delete => b"DELETE",
            Method::Mkcol => b"MKCOL",
            Method::Copy => b"COPY",
            Method::Move => b"MOVE",
            Method::Options => b"OPTIONS",
            Method::Propfind => b"PROPFIND",
            Method::Proppatch => b"PROPPATCH",
            Method::Lock => b"LOCK",
            Method::Unlock => b"UNLOCK",
            Method::Patch => b"PATCH",
            Method::Trace => b"TRACE",
            Method::Connect => b"CONNECT",
            Method::Other => b"",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_and_written_alike() {
        let names: [&[u8]; 16] = [
            b"GET",
            b"HEAD",
            b"POST",
            b"PUT",
            b"DELETE",
            b"MKCOL",
            b"COPY",
            b"MOVE",
            b"OPTIONS",
            b"PROPFIND",
            b"PROPPATCH",
            b"LOCK",
            b"UNLOCK",
            b"PATCH",
            b"TRACE",
            b"CONNECT",
        ];
        for name in names {
            assert_eq!(Method::of(name).name(), name);
        }
        assert_eq!((Method::of(b"get"), Method::Other.name()), (Method::Other, &b""[..]));
    }
}
