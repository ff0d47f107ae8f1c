//! `return`: sends a text and closes the connection.

use std::sync::Arc;

use conf::{Directive, Inherited, Load, Result, Template, Value};

use crate::datagrams::send_datagram;
use crate::serve::send;
use crate::site::ServerBuilder;

conf::directives! {
    in SERVER;

    /// Sends a text to the client and closes the connection.
    ///
    /// Syntax: TEXT
    ///
    /// ```nginx
    /// server {
    ///     listen 127.0.0.1:9000;
    ///     return "$time_iso8601\n";
    /// }
    /// ```
    r#return: Option<ReturnText>,
}

#[derive(Clone)]
pub struct ReturnText(Template);

impl Value for ReturnText {
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        Template::compile(from.arg(0), from, load).map(Self)
    }
}

/// Sets the server's content handler.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    if let Some(ReturnText(text)) = conf.r#return.clone() {
        let text = Arc::new(text);
        let for_datagrams = text.clone();
        place.server.content = Some(place.hook(Box::new(move |x, stream| {
            let template = text.clone();
            Box::pin(async move {
                x.action = "returning text";
                let mut text = Vec::new();
                template.render(x, &mut text);
                send(&text, x, stream).await
            })
        })));
        place.server.datagrams_max = 1;
        place.server.datagram_content = Some(place.hook(Box::new(move |x, flow| {
            let template = for_datagrams.clone();
            Box::pin(async move {
                x.action = "returning text";
                let mut text = Vec::new();
                template.render(x, &mut text);
                send_datagram(&text, x, flow)
            })
        })));
    }
    Ok(())
}
