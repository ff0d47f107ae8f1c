//! Regular expressions that set captures of an exchange.

use crate::exchange::Exchange;

pub use session::regex::MatchError;

/// A regular expression of the configuration.
pub type Pattern = session::regex::Pattern<Exchange>;

#[cfg(test)]
mod tests {
    use crate::testing::site;

    #[test]
    fn a_pattern_may_have_more_groups_than_the_one_before() {
        let site = site(
            "server {
                 location ~ ^/a(.) { return 200 $1; }
                 location ~ ^/b(.)(.)(.)(.)(.)(.)(.)(.)(.)(.) { return 200 $9$8$1; }
                 location ~ ^/c(.)(x)? { return 200 [$1$2$3]; }
             }",
        );
        for _ in 0..2 {
            assert_eq!(site.get("/a1").body(), "1");
            assert_eq!(site.get("/b1234567890").body(), "981");
            assert_eq!(site.get("/c1").body(), "[1]");
        }
    }

    #[test]
    fn a_long_subject_outgrows_the_stack_and_is_still_matched() {
        let site = site("server { location ~ ^/(a|b)*c$ { return 200; } }");
        let long = "ab".repeat(4000);
        assert_eq!(site.get(&format!("/{long}c")).status(), 200);
        assert_eq!(site.get(&format!("/{long}d")).status(), 404);
    }

    #[test]
    fn a_match_that_would_take_too_long_is_an_error() {
        let site = site("error_log log; server { location ~ ^/(a+)+$ { return 200; } }");
        assert_eq!(site.get(&format!("/{}!", "a".repeat(40))).status(), 500);
        let messages = site.messages("log");
        assert!(messages[0].starts_with("[alert] pcre2_match() failed: -47 on \"/aaa"));
    }
}
