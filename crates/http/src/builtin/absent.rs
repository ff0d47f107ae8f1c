//! Variables of features that this version lacks. They have nginx's value for a request without
//! HTTP/3.

use crate::variables::BuiltIn;

pub(super) const HTTP3: &[BuiltIn] =
    &[BuiltIn::fresh("http3", "Always empty: HTTP/3 is not supported.", |_, _| true)];

#[cfg(test)]
mod tests {
    use crate::testing::site;

    #[test]
    fn variables_of_absent_features_are_empty() {
        let site = site(
            "log_format f '$ssl_protocol $ssl_cipher';
             server {
                 return 200 '[$ssl_protocol$ssl_session_reused$http2$http3]';
             }",
        );
        let reply = site.get("/");
        assert_eq!(reply.body(), "[]");
    }
}
