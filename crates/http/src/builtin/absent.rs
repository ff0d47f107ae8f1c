//! Variables of features that this version lacks. They have nginx's value for a request without
//! HTTP/3 or a cache.

use crate::variables::BuiltIn;

pub(super) const HTTP3: &[BuiltIn] =
    &[BuiltIn::fresh("http3", "Always empty: HTTP/3 is not supported.", |_, _| true)];

pub(super) const CACHE: &[BuiltIn] = &[
    absent("upstream_cache_etag"),
    absent("upstream_cache_last_modified"),
    absent("upstream_cache_status"),
];

const fn absent(name: &'static str) -> BuiltIn {
    BuiltIn::fresh(name, "Always empty: caching is not supported.", |_, _| false)
}

#[cfg(test)]
mod tests {
    use crate::testing::site;

    #[test]
    fn variables_of_absent_features_are_empty() {
        let site = site(
            "log_format f '$ssl_protocol $ssl_cipher $upstream_cache_status';
             server {
                 add_header X-Cache $upstream_cache_status;
                 return 200 '[$ssl_protocol$ssl_session_reused$http2$http3$upstream_cache_status]';
             }",
        );
        let reply = site.get("/");
        assert_eq!(reply.body(), "[]");
        assert_eq!(reply.field("X-Cache"), None);
    }
}
