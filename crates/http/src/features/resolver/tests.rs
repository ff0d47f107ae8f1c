use crate::testing::{refusal, refused, site};

#[test]
fn invalid_resolvers_are_refused() {
    let table = [
        ("valid=1m", "no name servers defined:1"),
        ("127.0.0.1 valid=x", "invalid parameter: valid=x:1"),
        ("127.0.0.1 ipv6=maybe", "invalid parameter: ipv6=maybe:1"),
        ("127.0.0.1:0", "invalid port in resolver \"127.0.0.1:0\":1"),
        ("[::1]:65536", "invalid port in resolver \"[::1]:65536\":1"),
        ("[::1", "invalid host in resolver \"[::1\":1"),
        ("[::x]", "invalid IPv6 address in resolver \"[::x]\":1"),
        (":53", "no host in resolver \":53\":1"),
    ];
    for (words, expected) in table {
        refused(&format!("resolver {words};"), expected);
    }
    refused("resolver 127.0.0.1; resolver 127.0.0.2;", "\"resolver\" directive is duplicate:1");
    // The first message is that of nginx since 1.23.1, which may not be installed here.
    let own = [
        ("127.0.0.1 ipv4=off ipv6=off", "\"ipv4\" and \"ipv6\" cannot both be \"off\":1"),
        ("unix:/run/dns", "unix domain socket in resolver \"unix:/run/dns\":1"),
        ("127.0.0.1 status_zone=", "invalid parameter: status_zone=:1"),
    ];
    for (words, expected) in own {
        assert_eq!(refusal(&format!("resolver {words};")), expected);
    }
}

#[test]
fn locations_inherit_the_resolver() {
    let site = site(
        "resolver 127.0.0.1 [::1]:5353 valid=10s; server { location /own { resolver 127.0.0.2 \
         ipv6=off; } location / { } }",
    );
    let servers = |path: &str| {
        let exchange = site.get(path);
        let names = &exchange.x.location().core.names;
        let settings = names.servers.as_ref().unwrap().settings().clone();
        (settings.servers.iter().map(ToString::to_string).collect::<Vec<_>>(), settings)
    };
    let (outer, settings) = servers("/");
    assert_eq!(outer, ["127.0.0.1:53", "[::1]:5353"]);
    assert_eq!((settings.valid_ms, settings.ipv4, settings.ipv6), (Some(10_000), true, true));
    let (own, settings) = servers("/own");
    assert_eq!(own, ["127.0.0.2:53"]);
    assert_eq!((settings.valid_ms, settings.ipv4, settings.ipv6), (None, true, false));
}
