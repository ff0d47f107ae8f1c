//! `empty_gif`: an image of one transparent pixel.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Inherited, Load, Result, Value};
use wire::Method;

use crate::exchange::{Bytes, Exchange, Flow};
use crate::site::LocationBuilder;

conf::directives! {
    in LOCATION;

    /// Answers with a transparent image of one pixel.
    ///
    /// ```nginx
    /// location = /pixel.gif {
    ///     empty_gif;
    /// }
    /// ```
    empty_gif: Option<EmptyGif>,
}

/// Repeating the directive is not an error.
#[derive(Clone)]
struct EmptyGif;

impl Value for EmptyGif {
    const ARGS: RangeInclusive<usize> = 0..=0;
    const INHERITED: Inherited = Inherited::Nameless;
    fn parse(_: &Directive, _: &mut Load<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn repeat(&mut self, _: &Directive, _: &mut Load<'_>) -> Result<()> {
        Ok(())
    }
}

/// Mon, 28 Sep 1970 06:00:00 GMT, nginx's time of the image.
const MODIFIED: i64 = 23_349_600;

/// The smallest image, with parts in the order of the GIF89a specification.
const GIF: &[u8] = b"GIF89a\
    \x01\0\x01\0\x80\x01\0\
    \0\0\0\xff\xff\xff\
    \x21\xf9\x04\x01\0\0\x01\0\
    \x2c\0\0\0\0\x01\0\x01\0\0\
    \x02\x02\x4c\x01\0\
    \x3b";

/// Sets the handler that answers all requests of the location.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if conf.empty_gif.is_some() {
        location.exclusive("empty_gif", answer);
    }
    Ok(())
}

fn answer(x: &mut Exchange) -> Flow {
    if !matches!(x.request.head.method, Method::Get | Method::Head) {
        return Flow::Status(405);
    }
    x.reply.status = 200;
    x.reply.last_modified = Some(MODIFIED);
    x.reply.set_content_type(b"image/gif");
    x.reply.set_bytes(Bytes::Static(GIF));
    Flow::Done
}

#[cfg(test)]
mod tests {
    use crate::testing::{refusal, site};

    #[test]
    fn one_pixel_is_answered() {
        let site = site("server { location / { empty_gif; empty_gif; } }");
        let answer = site.get("/any/path");
        assert_eq!(answer.status(), 200);
        let head = [
            "Content-Type: image/gif",
            "Content-Length: 43",
            "Last-Modified: Mon, 28 Sep 1970 06:00:00 GMT",
        ];
        assert_eq!(answer.head(), head);
        assert_eq!(answer.bytes().len(), 43);
        assert!(answer.bytes().starts_with(b"GIF89a\x01\0\x01\0\x80"));
        assert!(answer.bytes().ends_with(b"\x02\x02L\x01\0;"));
        assert_eq!(site.send("POST / HTTP/1.0\n\n").status(), 405);
        let since = "If-Modified-Since: Mon, 28 Sep 1970 06:00:00 GMT\n";
        assert_eq!(site.get_with("/", since).status(), 304);
    }

    #[test]
    fn empty_gif_is_for_locations_and_not_inherited() {
        let site = site("server { location /a { empty_gif; location /a/b { } } }");
        assert_eq!(site.get("/a").status(), 200);
        assert_eq!(site.get("/a/b").status(), 404);
        assert_eq!(
            refusal("server { empty_gif; }"),
            "\"empty_gif\" directive is not allowed here:1"
        );
    }
}
