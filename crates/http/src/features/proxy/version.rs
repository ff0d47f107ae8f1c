//! `proxy_http_version`

conf::words! {
    /// The protocol version of requests to a backend.
    pub enum ProxyHttpVersion {
        /// HTTP/1.0.
        Http10 = "1.0",
        /// HTTP/1.1.
        Http11 = "1.1",
        /// HTTP/2.
        Http2 = "2",
    }
}
