//! Gateway API.

use super::*;
use crate::plan::PlanFaults;

fn http(matching: &Value, more: &Value) -> Value {
    let mut rule = json!({"matches": [matching], "backendRefs": [backend("a")]});
    for (name, value) in more.as_object().into_iter().flatten() {
        rule[name] = value.clone();
    }
    route("HTTPRoute", &json!(["h.test"]), &json!([rule]))
}

fn prefix(path: &str) -> Value {
    json!({"path": {"type": "PathPrefix", "value": path}})
}

/// The lines of the body of the only rule with this filter, but for the first.
fn filtered(filter: &Value) -> Vec<String> {
    let plan = planned(&[http(&prefix("/p"), &json!({"filters": [filter]}))]);
    let body = lines(&plan, "routes/httproute.shop.r/rule-1.conf");
    body.iter().skip(1).map(|line| (*line).to_owned()).collect()
}

#[test]
fn a_class_of_ours_is_accepted_and_another_is_left_alone() {
    let other = json!({"kind": "GatewayClass", "metadata": {"name": "other"},
                       "spec": {"controllerName": "other.test/x"}});
    let plan = planned(&[other]);
    let classes = plan.statuses.iter().filter(|one| one.kind == ResourceKind::GatewayClass);
    let classes: Vec<_> = classes.map(|one| one.key.name.as_str()).collect();
    assert_eq!(classes, ["weir"]);
    assert_eq!(
        conditions(&status(&plan, ResourceKind::GatewayClass).status["conditions"]),
        ["Accepted=True Accepted"]
    );
}

#[test]
fn a_route_becomes_a_server_a_body_and_a_group() {
    let plan = planned(&[http(&prefix("/x"), &json!({}))]);
    assert_eq!(
        lines(&plan, "servers/80.h.test.conf"),
        [
            "server {",
            "listen 80;",
            "server_name h.test;",
            "# HTTPRoute shop/r, rule 1",
            "location = /x {",
            "include /plan/routes/httproute.shop.r/rule-1.conf;",
            "}",
            "location / {",
            "return 404;",
            "}",
            "# HTTPRoute shop/r, rule 1",
            "location /x/ {",
            "include /plan/routes/httproute.shop.r/rule-1.conf;",
            "}",
            "}",
        ]
    );
    assert_eq!(
        lines(&plan, "routes/httproute.shop.r/rule-1.conf"),
        ["client_max_body_size 0;", "proxy_pass http://shop.a.80;"]
    );
    assert_eq!(
        lines(&plan, "groups/http/shop.a.80.conf"),
        ["upstream shop.a.80 {", "state /plan/groups/http/shop.a.80.servers;", "}"]
    );
    assert_eq!(plan.groups["shop.a.80"], ["10.0.0.1:8080 max_fails=0"]);
    let update = status(&plan, ResourceKind::HttpRoute);
    assert_eq!(update.status["parents"][0]["controllerName"], settings().controller_name);
    assert_eq!(
        conditions(&update.status["parents"][0]["conditions"]),
        ["Accepted=True Accepted", "ResolvedRefs=True ResolvedRefs"]
    );
    let gateway = &status(&plan, ResourceKind::Gateway).status;
    assert_eq!(gateway["listeners"][0]["attachedRoutes"], 1);
    assert_eq!(gateway["addresses"], json!([{"type": "IPAddress", "value": "192.0.2.1"}]));
    assert_eq!(
        conditions(&gateway["listeners"][0]["conditions"]),
        [
            "Accepted=True Accepted",
            "Conflicted=False NoConflicts",
            "Programmed=True Programmed",
            "ResolvedRefs=True ResolvedRefs",
        ]
    );
}

#[test]
fn statuses_that_are_written_already_are_not_written_again() {
    let all = [http(&prefix("/"), &json!({}))];
    let mut objects = objects(&all);
    for update in check(&objects).statuses {
        let mut object = objects.get(update.kind, &update.key).unwrap().clone();
        object["status"] = update.status;
        objects.insert(update.kind, update.key, object);
    }
    assert_eq!(check(&objects).statuses, []);
}

#[test]
fn what_other_controllers_say_of_a_route_stays() {
    let mut route = http(&prefix("/"), &json!({}));
    let other = json!({"parentRef": {"name": "x"}, "controllerName": "other", "conditions": []});
    route["status"] = json!({"parents": [other]});
    let plan = planned(&[route]);
    let parents = &status(&plan, ResourceKind::HttpRoute).status["parents"];
    assert_eq!((&parents[0], parents.as_array().unwrap().len()), (&other, 2));
}

#[test]
fn conditions_of_a_match_are_asked_in_the_order_of_precedence() {
    let rules = json!([
        {"matches": [prefix("/")], "backendRefs": [backend("a")]},
        {"matches": [{"headers": [{"name": "X-V", "value": "2"}]}], "backendRefs": [backend("b")]},
        {"matches": [{"method": "POST"}], "backendRefs": [backend("c")]},
        {"matches": [{"queryParams": [{"name": "q", "value": "1"}]}],
         "backendRefs": [backend("c")]},
    ]);
    let plan = planned(&[route("HTTPRoute", &json!([]), &rules)]);
    let server = lines(&plan, "servers/80._.conf");
    assert_eq!(
        server[..7],
        [
            "map \"$condition_1$condition_2$condition_3\" $choice_1 {",
            "default @nothing;",
            "\"~^1..\" @httproute.shop.r/rule-3;",
            "\"~^.1.\" @httproute.shop.r/rule-2;",
            "\"~^..1\" @httproute.shop.r/rule-4;",
            "\"~^...\" @httproute.shop.r/rule-1;",
            "}",
        ]
    );
    let conditions = lines(&plan, "conditions.conf");
    for line in ["map $request_method $condition_1 {", "map $http_x_v $condition_2 {"] {
        assert!(conditions.contains(&line), "{line}");
    }
}

#[test]
fn each_filter_becomes_directives() {
    let add = json!([{"name": "X-A", "value": "1"}]);
    let changes =
        json!({"set": [{"name": "X-S", "value": "$a \"b\""}], "add": add, "remove": ["X-R"]});
    for (filter, wanted) in [
        (
            json!({"type": "RequestHeaderModifier", "requestHeaderModifier": changes}),
            vec![
                "more_set_input_headers \"X-S: ${dollar}a \\\"b\\\"\";",
                "more_set_input_headers \"X-A: $httproute_r_in_shop_rule_1_added_1\";",
                "more_clear_input_headers X-R;",
                "proxy_pass http://shop.a.80;",
            ],
        ),
        (
            json!({"type": "ResponseHeaderModifier", "responseHeaderModifier": changes}),
            vec![
                "more_set_headers \"X-S: ${dollar}a \\\"b\\\"\";",
                "more_set_headers -a \"X-A: 1\";",
                "more_clear_headers X-R;",
                "proxy_pass http://shop.a.80;",
            ],
        ),
        (
            json!({"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}),
            vec!["return 302 https://$host$request_uri;"],
        ),
        (
            json!({"type": "RequestRedirect",
                   "requestRedirect": {"hostname": "o.test", "port": 8080, "scheme": "http",
                   "statusCode": 301,
                   "path": {"type": "ReplaceFullPath", "replaceFullPath": "/n"}}}),
            vec!["return 301 http://o.test:8080/n$is_args$args;"],
        ),
        (
            json!({"type": "URLRewrite", "urlRewrite":
                   {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/n/"}}}),
            vec!["rewrite \"(?s)^/p(/.*)?$\" /n$1 break;", "proxy_pass http://shop.a.80;"],
        ),
        (
            json!({"type": "URLRewrite", "urlRewrite":
                   {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}}),
            vec!["rewrite \"(?s)^/p/?(.*)$\" /$1 break;", "proxy_pass http://shop.a.80;"],
        ),
        (
            json!({"type": "RequestMirror", "requestMirror": {"backendRef": backend("b")}}),
            vec!["mirror /.weir/mirror/httproute.shop.r/1-1;", "proxy_pass http://shop.a.80;"],
        ),
        (json!({"type": "ExtensionRef", "extensionRef": {"kind": "X"}}), vec!["return 500;"]),
    ] {
        assert_eq!(filtered(&filter), wanted, "{filter}");
    }
}

#[test]
fn a_rule_that_cannot_be_used_is_dropped_and_told() {
    for (rule, why) in [
        (json!({"matches": [{"path": {"type": "RegularExpression", "value": "("}}]}), "\"(\""),
        (json!({"matches": [{"headers": [{"name": "a_b", "value": "1"}]}]}), "a_b"),
        (json!({"filters": [{"type": "Unknown"}]}), "Unknown"),
        (
            json!({"filters": [{"type": "RequestHeaderModifier",
                   "requestHeaderModifier": {"set": [{"name": "Connection", "value": "x"}]}}]}),
            "Connection",
        ),
    ] {
        let good = json!({"matches": [prefix("/good")], "backendRefs": [backend("a")]});
        let plan = planned(&[route("HTTPRoute", &json!([]), &json!([rule.clone(), good]))]);
        let update = &status(&plan, ResourceKind::HttpRoute).status["parents"][0]["conditions"];
        assert_eq!(conditions(update)[1], "PartiallyInvalid=True UnsupportedValue");
        assert!(file(&plan, "warnings.txt").contains(why), "{why}");
        let plan = planned(&[route("HTTPRoute", &json!([]), &json!([rule]))]);
        let update = &status(&plan, ResourceKind::HttpRoute).status["parents"][0]["conditions"];
        assert_eq!(conditions(update)[0], "Accepted=False UnsupportedValue");
        assert_eq!(
            status(&plan, ResourceKind::Gateway).status["listeners"][0]["attachedRoutes"],
            0
        );
    }
}

#[test]
fn weights_are_shares_and_a_missing_backend_has_its_share() {
    let backends = json!([
        {"name": "a", "port": 80, "weight": 3},
        {"name": "gone", "port": 80, "weight": 1},
        {"name": "b", "port": 80, "weight": 0},
    ]);
    let plan = planned(&[http(&prefix("/"), &json!({"backendRefs": backends}))]);
    assert_eq!(
        lines(&plan, "routes/httproute.shop.r/maps.conf"),
        [
            "split_clients $request_id $httproute_r_in_shop_rule_1_backend {",
            "75.00% shop.a.80;",
            "* \"\";",
            "}",
        ]
    );
    let body = file(&plan, "routes/httproute.shop.r/rule-1.conf");
    assert!(body.contains("_backend = \"\") {\n    return 500;\n}"), "{body}");
    assert_eq!(
        conditions(&status(&plan, ResourceKind::HttpRoute).status["parents"][0]["conditions"])[1],
        "ResolvedRefs=False BackendNotFound"
    );
}

#[test]
fn a_backend_of_another_namespace_needs_a_grant() {
    let mut used = service("a");
    used["metadata"]["namespace"] = json!("other");
    let reference = json!([{"name": "a", "namespace": "other", "port": 80}]);
    let route = http(&prefix("/"), &json!({"backendRefs": reference}));
    let grant = |from: &str, to: &str| {
        json!({"kind": "ReferenceGrant", "metadata": {"namespace": "other", "name": "g"},
               "spec": {"from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute",
                                  "namespace": from}],
                        "to": [{"group": "", "kind": "Service", "name": to}]}})
    };
    for (grants, body, condition) in [
        (vec![], "return 500;", "ResolvedRefs=False RefNotPermitted"),
        (vec![grant("elsewhere", "a")], "return 500;", "ResolvedRefs=False RefNotPermitted"),
        (vec![grant("shop", "b")], "return 500;", "ResolvedRefs=False RefNotPermitted"),
        (
            vec![grant("shop", "a")],
            "proxy_pass http://other.a.80;",
            "ResolvedRefs=True ResolvedRefs",
        ),
    ] {
        let plan = planned(&[vec![used.clone(), route.clone()], grants].concat());
        assert_eq!(lines(&plan, "routes/httproute.shop.r/rule-1.conf")[1], body);
        let parents = &status(&plan, ResourceKind::HttpRoute).status["parents"];
        assert_eq!(conditions(&parents[0]["conditions"])[1], condition);
    }
}

#[test]
fn endpoints_are_servers_and_those_that_leave_drain() {
    let condition = |ready: bool, serving: bool, terminating: bool| {
        json!({
        "ready": ready, "serving": serving, "terminating": terminating})
    };
    let leaving = json!({"addresses": ["10.0.0.3"], "conditions": condition(false, true, true)});
    let all = [
        (
            json!([{"addresses": ["10.0.0.9", "10.0.0.1"]}, leaving]),
            vec![
                "10.0.0.1:8080 max_fails=0",
                "10.0.0.9:8080 max_fails=0",
                "10.0.0.3:8080 max_fails=0 drain",
            ],
        ),
        (json!([leaving]), vec!["10.0.0.3:8080 max_fails=0"]),
        (
            json!([{"addresses": ["10.0.0.4"], "conditions": condition(false, false, false)}]),
            vec!["127.87.69.73:8503"],
        ),
        (json!([{"addresses": ["fd00::1", "not an address"]}]), vec!["[fd00::1]:8080 max_fails=0"]),
    ];
    for (endpoints, servers) in all {
        let plan = planned(&[slice("a", &endpoints), http(&prefix("/"), &json!({}))]);
        assert_eq!(plan.groups["shop.a.80"], servers);
    }
}

#[test]
fn a_route_is_refused_with_the_reason() {
    let selector = json!({"namespaces": {"from": "Selector", "selector":
                          {"matchLabels": {"team": "x"}}}});
    for (change, reason) in [
        (json!({"parent": {"sectionName": "none"}}), "NoMatchingParent"),
        (json!({"parent": {"port": 81}}), "NoMatchingParent"),
        (
            json!({"listener": {"allowedRoutes": {"namespaces": {"from": "Same"}}}}),
            "NotAllowedByListeners",
        ),
        (json!({"listener": {"allowedRoutes": selector}}), "NotAllowedByListeners"),
        (json!({"listener": {"hostname": "other.test"}}), "NoMatchingListenerHostname"),
    ] {
        let (mut listener, mut route) = (http_listener(), http(&prefix("/"), &json!({})));
        for (name, value) in change["listener"].as_object().into_iter().flatten() {
            listener[name] = value.clone();
        }
        for (name, value) in change["parent"].as_object().into_iter().flatten() {
            route["spec"]["parentRefs"][0][name] = value.clone();
        }
        let plan = planned(&[gateway(&json!([listener])), route]);
        let parents = &status(&plan, ResourceKind::HttpRoute).status["parents"];
        assert_eq!(conditions(&parents[0]["conditions"])[0], format!("Accepted=False {reason}"));
        assert_eq!(
            status(&plan, ResourceKind::Gateway).status["listeners"][0]["attachedRoutes"],
            0
        );
    }
}

#[test]
fn hosts_are_what_listener_and_route_have_in_common() {
    let listener = |name: &str, host: &str| {
        let mut listener = http_listener();
        (listener["name"], listener["hostname"]) = (json!(name), json!(host));
        listener
    };
    let listeners = json!([listener("wild", "*.w.test"), listener("exact", "x.w.test")]);
    let hosts = json!(["*.test", "x.w.test", "y.w.test", "z.test"]);
    let rules = json!([{"backendRefs": [backend("a")]}]);
    let plan = planned(&[gateway(&listeners), route("HTTPRoute", &hosts, &rules)]);
    let servers = plan.files.keys().filter(|name| name.starts_with("servers/"));
    assert_eq!(
        servers.collect::<Vec<_>>(),
        [
            "servers/80._.conf",
            "servers/80._.w.test.conf",
            "servers/80.x.w.test.conf",
            "servers/80.y.w.test.conf",
        ]
    );
}

#[test]
fn a_listener_with_tls_needs_a_usable_certificate() {
    let listener = |name: &str| {
        json!({"name": "https", "port": 443, "protocol": "HTTPS", "hostname": "h.test",
               "allowedRoutes": {"namespaces": {"from": "All"}},
               "tls": {"certificateRefs": [{"name": name}]}})
    };
    let mut broken = secret("broken", "rsa.crt", "ed25519.key");
    let all = [
        ("good", "ResolvedRefs=True ResolvedRefs", true),
        ("broken", "ResolvedRefs=False InvalidCertificateRef", false),
        ("missing", "ResolvedRefs=False InvalidCertificateRef", false),
        ("text", "ResolvedRefs=False InvalidCertificateRef", false),
    ];
    for (name, condition, is_served) in all {
        broken["data"]["x"] = json!("");
        let text = json!({"kind": "Secret", "metadata": {"namespace": "infra", "name": "text"},
                          "data": {"tls.crt": "SGVsbG8=", "tls.key": "SGVsbG8="}});
        let good = secret("good", "ed25519.crt", "ed25519.key");
        let more = [
            good,
            broken.clone(),
            text,
            gateway(&json!([listener(name)])),
            http(&prefix("/"), &json!({})),
        ];
        let plan = planned(&more);
        let listener = &status(&plan, ResourceKind::Gateway).status["listeners"][0];
        assert_eq!(conditions(&listener["conditions"])[3], condition, "{name}");
        assert_eq!(plan.files.contains_key("servers/443.h.test.conf"), is_served, "{name}");
        assert_eq!(listener["attachedRoutes"], 1);
        if is_served {
            let server = lines(&plan, "servers/443.h.test.conf");
            assert!(server.contains(&"listen 443 ssl;"), "{server:?}");
            assert!(server.contains(&"ssl_certificate /plan/certificates/infra.good.crt;"));
            assert!(file(&plan, "servers/443._.conf").contains("ssl_reject_handshake on;"));
        }
    }
}

#[test]
fn listeners_of_one_port_conflict_by_protocol_and_host() {
    let listener = |name: &str, protocol: &str, host: &str| {
        json!({"name": name, "port": 80, "protocol": protocol,
               "hostname": host})
    };
    for (one, other, reason) in [
        (listener("a", "HTTP", "x.test"), listener("b", "HTTP", "x.test"), "HostnameConflict"),
        (listener("a", "HTTP", "x.test"), listener("b", "TCP", ""), "ProtocolConflict"),
    ] {
        let plan = planned(&[gateway(&json!([one, other]))]);
        for listener in status(&plan, ResourceKind::Gateway).status["listeners"].as_array().unwrap()
        {
            let all = conditions(&listener["conditions"]);
            assert_eq!(all[0], format!("Accepted=False {reason}"));
            assert_eq!(all[1], format!("Conflicted=True {reason}"));
        }
    }
}

#[test]
fn kinds_that_a_listener_cannot_have_are_told() {
    let mut listener = http_listener();
    listener["allowedRoutes"]["kinds"] = json!([{"kind": "HTTPRoute"}, {"kind": "TCPRoute"}]);
    let plan = planned(&[gateway(&json!([listener])), http(&prefix("/"), &json!({}))]);
    let listener = &status(&plan, ResourceKind::Gateway).status["listeners"][0];
    assert_eq!(conditions(&listener["conditions"])[3], "ResolvedRefs=False InvalidRouteKinds");
    assert_eq!(listener["supportedKinds"].as_array().unwrap().len(), 1);
    assert_eq!(listener["attachedRoutes"], 1);
}

#[test]
fn methods_of_grpc_are_paths() {
    let rule = |matching: Value| json!({"matches": [matching], "backendRefs": [backend("a")]});
    for (method, location) in [
        (json!({"service": "a.B", "method": "C"}), "location = /a.B/C {"),
        (json!({"service": "a.B"}), "location /a.B/ {"),
        (json!({"method": "C"}), "location ~ \"^/[^/]+/C\\\\z\" {"),
    ] {
        let rules = json!([rule(json!({"method": method}))]);
        let plan = planned(&[route("GRPCRoute", &json!(["g.test"]), &rules)]);
        let server = lines(&plan, "servers/80.g.test.conf");
        assert!(server.contains(&location), "{server:?}");
        let body = lines(&plan, "routes/grpcroute.shop.r/rule-1.conf");
        assert_eq!(body[1], "grpc_pass grpc://shop.a.80;");
    }
}

#[test]
fn tls_is_passed_through_by_name_beside_https() {
    let all = json!({"namespaces": {"from": "All"}});
    let listeners = json!([
        {"name": "pass", "port": 443, "protocol": "TLS", "hostname": "p.test",
         "allowedRoutes": all, "tls": {"mode": "Passthrough"}},
        {"name": "https", "port": 443, "protocol": "HTTPS", "hostname": "h.test",
         "allowedRoutes": all, "tls": {"certificateRefs": [{"name": "good"}]}},
    ]);
    let rules = json!([{"backendRefs": [backend("a")]}]);
    let good = secret("good", "ed25519.crt", "ed25519.key");
    let tls = route("TLSRoute", &json!(["p.test"]), &rules);
    let plan = planned(&[gateway(&listeners), good, tls, http(&prefix("/"), &json!({}))]);
    assert_eq!(
        lines(&plan, "servers/stream-443.conf"),
        [
            "# TLSRoute shop/r",
            "server {",
            "listen 443;",
            "server_name p.test;",
            "ssl_preread on;",
            "proxy_pass shop.a.80;",
            "}",
            "# All other names.",
            "server {",
            "listen 443 default_server;",
            "ssl_preread on;",
            "pass 127.87.69.74:40443;",
            "}",
        ]
    );
    let https = lines(&plan, "servers/443.h.test.conf");
    assert_eq!(https[1], "listen 127.87.69.74:40443 server_port=443 ssl;");
    assert_eq!(plan.groups["stream/shop.a.80"], ["10.0.0.1:8080 max_fails=0"]);
}

#[test]
fn connections_of_tcp_go_to_a_group() {
    let listener = json!({"name": "tcp", "port": 5432, "protocol": "TCP",
                          "allowedRoutes": {"namespaces": {"from": "All"}}});
    let rules = json!([{"backendRefs": [backend("a")]}]);
    let plan = planned(&[gateway(&json!([listener])), route("TCPRoute", &json!([]), &rules)]);
    let server = lines(&plan, "servers/stream-5432.conf");
    assert_eq!(server[2..4], ["listen 5432;", "proxy_pass shop.a.80;"]);
}

#[test]
fn a_backend_with_h2c_is_spoken_to_by_http_2() {
    let mut service = service("a");
    service["spec"]["ports"][0]["appProtocol"] = json!("kubernetes.io/h2c");
    let plan = planned(&[service, http(&prefix("/"), &json!({}))]);
    let body = lines(&plan, "routes/httproute.shop.r/rule-1.conf");
    assert_eq!(body[1..], ["proxy_http_version 2;", "proxy_pass http://shop.a.80;"]);
}

#[test]
fn the_order_of_insertion_does_not_matter() {
    let mut all = vec![http(&prefix("/"), &json!({})), service("d")];
    let one = planned(&all);
    all.reverse();
    assert_eq!(one, planned(&all));
}

#[test]
fn a_policy_of_tls_is_followed_or_its_backend_is_not_used() {
    let policy = |map: &str| {
        json!({"kind": "BackendTLSPolicy", "metadata": {"namespace": "shop", "name": "p"},
               "spec": {"targetRefs": [{"group": "", "kind": "Service", "name": "a"}],
                        "validation": {"hostname": "in.test", "caCertificateRefs":
                        [{"group": "", "kind": "ConfigMap", "name": map}]}}})
    };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../net/src/tls/testdata");
    let authority = std::fs::read_to_string(format!("{folder}/ed25519.crt")).unwrap();
    let map = json!({"kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "ca"},
                     "data": {"ca.crt": authority}});
    let plan = planned(&[policy("ca"), map, http(&prefix("/"), &json!({}))]);
    let body = lines(&plan, "routes/httproute.shop.r/rule-1.conf");
    for line in ["proxy_ssl_verify on;", "proxy_ssl_name in.test;", "proxy_pass https://shop.a.80;"]
    {
        assert!(body.contains(&line), "{body:?}");
    }
    let update = &status(&plan, ResourceKind::BackendTlsPolicy).status["ancestors"][0];
    assert_eq!(conditions(&update["conditions"])[0], "Accepted=True Accepted");

    let plan = planned(&[policy("missing"), http(&prefix("/"), &json!({}))]);
    assert_eq!(lines(&plan, "routes/httproute.shop.r/rule-1.conf")[1], "return 500;");
    let update = &status(&plan, ResourceKind::BackendTlsPolicy).status["ancestors"][0];
    assert_eq!(
        conditions(&update["conditions"]),
        ["Accepted=False NoValidCACertificate", "ResolvedRefs=False InvalidCACertificateRef"]
    );
}

#[test]
fn a_policy_for_a_service_that_no_route_uses_is_left_alone() {
    let policy = json!({"kind": "BackendTLSPolicy", "metadata": {"namespace": "shop", "name": "p"},
                        "spec": {"targetRefs": [{"kind": "Service", "name": "b"}]}});
    let plan = planned(&[policy, http(&prefix("/"), &json!({}))]);
    assert!(plan.statuses.iter().all(|one| one.kind != ResourceKind::BackendTlsPolicy));
}

#[test]
fn a_wildcard_listener_comes_before_one_for_all_hosts() {
    let listener = |name: &str, hostname: Option<&str>| {
        let mut listener = json!({"name": name, "port": 80, "protocol": "HTTP"});
        if let Some(hostname) = hostname {
            listener["hostname"] = json!(hostname);
        }
        listener
    };
    let mut route = http(&prefix("/"), &json!({}));
    route["spec"]["hostnames"] = json!([]);
    route["spec"]["parentRefs"] =
        json!([{"name": "g", "namespace": "shop", "sectionName": "wild"}]);
    let mut gateway = gateway(&json!([listener("all", None), listener("wild", Some("*.in.test"))]));
    gateway["metadata"] = json!({"name": "g", "namespace": "shop"});
    let plan = planned(&[gateway, route]);
    let server = lines(&plan, "servers/80._.in.test.conf");
    assert!(server.iter().any(|line| line.starts_with("include ")), "{server:?}");
    let server = lines(&plan, "servers/80._.conf");
    assert!(!server.iter().any(|line| line.starts_with("include ")), "{server:?}");
}

#[test]
fn every_question_of_a_browser_is_answered_and_a_star_is_spelled_out_with_credentials() {
    let rule = |allows_credentials: bool| {
        let cors = json!({"allowOrigins": ["https://a.test"], "allowMethods": ["*"],
                          "allowHeaders": ["*"], "allowCredentials": allows_credentials});
        let filters = json!([{"type": "CORS", "cors": cors}]);
        planned(&[http(&prefix("/"), &json!({"filters": filters}))])
    };
    let plan = rule(true);
    let maps = file(&plan, "routes/httproute.shop.r/maps.conf");
    for part in [
        "default $http_access_control_request_headers;",
        "$request_method:$http_access_control_request_method:$http_origin ",
        "\"~^OPTIONS:[^:]+:.\" 1;",
    ] {
        assert!(maps.contains(part), "{part} in {maps}");
    }
    let plan = rule(false);
    let maps = file(&plan, "routes/httproute.shop.r/maps.conf");
    assert!(maps.contains("default *;"), "{maps}");
}

#[test]
fn of_two_policies_for_one_target_the_younger_is_refused() {
    let policy = |name: &str, created: &str, section: Option<&str>| {
        let mut target = json!({"group": "", "kind": "Service", "name": "a"});
        if let Some(section) = section {
            target["sectionName"] = json!(section);
        }
        json!({"kind": "BackendTLSPolicy",
               "metadata": {"namespace": "shop", "name": name, "creationTimestamp": created},
               "spec": {"targetRefs": [target],
                        "validation": {"hostname": "in.test",
                                       "wellKnownCACertificates": "System"}}})
    };
    let plan = planned(&[
        policy("a", "2026-02-01T00:00:00Z", None),
        policy("b", "2026-01-01T00:00:00Z", None),
        policy("c", "2026-03-01T00:00:00Z", Some("http")),
        http(&prefix("/"), &json!({})),
    ]);
    let verdict = |name: &str| {
        let of = |one: &&StatusUpdate| {
            one.kind == ResourceKind::BackendTlsPolicy && one.key.name == name
        };
        let update = plan.statuses.iter().find(of).expect("a status");
        conditions(&update.status["ancestors"][0]["conditions"])[0].clone()
    };
    assert_eq!(verdict("a"), "Accepted=False Conflicted");
    assert_eq!(verdict("b"), "Accepted=True Accepted");
    assert_eq!(verdict("c"), "Accepted=True Accepted");
}

#[test]
fn a_route_that_the_server_refuses_is_not_accepted() {
    let objects = objects(&[http(&prefix("/"), &json!({}))]);
    let mut settings = settings();
    let own = (ResourceKind::HttpRoute, crate::plan::object::key("shop", "r"));
    settings.faults.refused.insert(own, "unknown directive".to_owned());
    let plan = crate::plan(&objects, &settings);
    assert_eq!(file(&plan, "routes/httproute.shop.r/rule-1.conf"), "return 503;\n");
    let parent = &status(&plan, ResourceKind::HttpRoute).status["parents"][0];
    let accepted = &parent["conditions"][0];
    assert_eq!(
        (&accepted["status"], &accepted["reason"]),
        (&json!("False"), &json!("UnsupportedValue"))
    );
    assert!(accepted["message"].as_str().unwrap().contains("unknown directive"));
    let gateway = &status(&plan, ResourceKind::Gateway).status;
    assert_eq!(gateway["listeners"][0]["attachedRoutes"], 0);
}

#[test]
fn a_gateway_is_programmed_when_its_plan_is_in_use() {
    let objects = objects(&[]);
    let faults = PlanFaults { last: Some("the disk is full".to_owned()), ..PlanFaults::default() };
    let settings = Settings { faults, ..settings() };
    let programmed = |objects: &Objects| {
        let plan = crate::plan(objects, &settings);
        let update = plan.statuses.into_iter().find(|one| one.kind == ResourceKind::Gateway)?;
        Some(update.status["conditions"][1].clone())
    };
    let said = programmed(&objects).unwrap();
    assert_eq!((&said["status"], &said["reason"]), (&json!("False"), &json!("Pending")));
    assert_eq!(said["message"], "the disk is full");
    let used = crate::plan(&objects, &super::settings());
    let mut objects = objects;
    for update in used.statuses {
        let mut object = objects.get(update.kind, &update.key).unwrap().clone();
        object["status"] = update.status;
        objects.insert(update.kind, update.key, object);
    }
    assert_eq!(programmed(&objects), None, "what has not changed is still in use");
}
