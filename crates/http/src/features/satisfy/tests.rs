use crate::testing::refusal;

#[test]
fn invalid_directives_are_refused() {
    assert_eq!(refusal("satisfy some;"), "invalid value \"some\":1");
    assert_eq!(refusal("auth_delay x;"), "\"auth_delay\" directive invalid value:1");
}
