//! Ingress and its annotations.

use super::*;

fn ingress(annotations: &Value) -> Value {
    named("i", "h.test", "/", "a", annotations)
}

fn named(name: &str, host: &str, path: &str, service: &str, annotations: &Value) -> Value {
    let annotations: serde_json::Map<_, _> = annotations
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (format!("nginx.ingress.kubernetes.io/{name}"), value.clone()))
        .collect();
    let backend = json!({"service": {"name": service, "port": {"name": "http"}}});
    json!({"kind": "Ingress",
           "metadata": {"namespace": "shop", "name": name, "annotations": annotations},
           "spec": {"ingressClassName": "weir", "rules": [{"host": host, "http": {"paths": [
               {"path": path, "pathType": "Prefix", "backend": backend}]}}]}})
}

fn body(annotations: &Value) -> Vec<String> {
    let plan = planned(&[ingress(annotations)]);
    let body = lines(&plan, "routes/ingress.shop.i/path-1.conf");
    body.into_iter().map(str::to_owned).collect()
}

#[test]
fn an_ingress_of_a_class_of_ours_is_served() {
    let plan = planned(&[ingress(&json!({}))]);
    assert_eq!(lines(&plan, "routes/ingress.shop.i/path-1.conf"), ["proxy_pass http://shop.a.80;"]);
    assert_eq!(
        status(&plan, ResourceKind::Ingress).status,
        json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}})
    );
    for class in [json!("other"), Value::Null] {
        let mut other = ingress(&json!({}));
        other["spec"]["ingressClassName"] = class;
        let plan = planned(&[other]);
        assert!(!plan.files.contains_key("servers/80.h.test.conf"));
        assert!(plan.statuses.iter().all(|one| one.kind != ResourceKind::Ingress));
    }
}

#[test]
fn the_default_class_has_those_that_name_none() {
    let class = json!({"kind": "IngressClass", "metadata": {"name": "weir", "annotations":
                       {"ingressclass.kubernetes.io/is-default-class": "true"}},
                       "spec": {"controller": settings().controller_name}});
    let mut unnamed = ingress(&json!({}));
    unnamed["spec"]["ingressClassName"] = Value::Null;
    let plan = planned(&[class, unnamed]);
    assert!(plan.files.contains_key("servers/80.h.test.conf"));
}

#[test]
fn annotations_become_directives() {
    for (annotations, wanted) in [
        (json!({"proxy-body-size": "8M"}), "client_max_body_size 8m;"),
        (json!({"proxy-read-timeout": "120"}), "proxy_read_timeout 120s;"),
        (json!({"proxy-next-upstream": "error http_502"}), "proxy_next_upstream error http_502;"),
        (json!({"proxy-buffering": "off"}), "proxy_buffering off;"),
        (json!({"proxy-buffer-size": "16k"}), "proxy_buffer_size 16k;"),
        (json!({"backend-protocol": "HTTPS"}), "proxy_pass https://shop.a.80;"),
        (json!({"backend-protocol": "GRPC"}), "grpc_pass grpc://shop.a.80;"),
        (json!({"whitelist-source-range": "10.0.0.0/8, ::1"}), "allow ::1;"),
        (json!({"denylist-source-range": "10.0.0.0/8"}), "deny 10.0.0.0/8;"),
        (json!({"limit-rps": "5"}), "limit_req zone=ingress.shop.i.limit-rps burst=25 nodelay;"),
        (json!({"limit-connections": "3"}), "limit_conn ingress.shop.i.connections 3;"),
        (
            json!({"permanent-redirect": "https://n.test$request_uri"}),
            "return 301 \"https://n.test${request_uri}\";",
        ),
        (json!({"upstream-vhost": "in.test"}), "proxy_set_header Host in.test;"),
        (json!({"x-forwarded-prefix": "/p"}), "more_set_input_headers \"X-Forwarded-Prefix: /p\";"),
        (json!({"rewrite-target": "/n/$1"}), "rewrite (?i)^(?:/) /n/$1 break;"),
        (json!({"force-ssl-redirect": "true"}), "if ($client_scheme = http) {"),
        (json!({"satisfy": "any"}), "satisfy any;"),
    ] {
        let body = body(&annotations);
        assert!(body.iter().any(|line| line == wanted), "{annotations}: {body:?}");
    }
}

#[test]
fn settings_of_a_group_make_a_group_of_its_own() {
    for (annotations, wanted) in [
        (
            json!({"affinity": "cookie", "session-cookie-name": "s",
                   "session-cookie-max-age": "60"}),
            "sticky cookie s expires=60s path=/ httponly;",
        ),
        (json!({"upstream-hash-by": "$request_uri"}), "hash \"${request_uri}\" consistent;"),
        (json!({"load-balance": "least_conn"}), "least_conn;"),
    ] {
        let plan = planned(&[ingress(&annotations)]);
        let group = lines(&plan, "groups/http/shop.a.80.for.i.conf");
        assert_eq!(group[1], wanted);
        assert_eq!(plan.groups["shop.a.80.for.i"], ["10.0.0.1:8080 max_fails=0"]);
    }
}

#[test]
fn what_is_not_done_is_told() {
    for (annotations, why) in [
        (json!({"mystery": "1"}), "mystery \"1\" is not used: it is not supported"),
        (json!({"proxy-read-timeout": "1;"}), "its value is not valid"),
        (json!({"configuration-snippet": "return 200;"}), "snippets are not allowed"),
        (json!({"server-snippet": "return 200;"}), "snippets are not allowed"),
        (json!({"proxy-max-temp-file-size": "1k"}), "it is less than a buffer"),
        (json!({"proxy-buffer-size": "1g"}), "its value is not valid"),
        (json!({"affinity": "x"}), "only \"cookie\" is supported"),
        (json!({"custom-http-errors": "404"}), "default-backend is missing"),
        (json!({"permanent-redirect": "https://a/$uri"}), "its value is not valid"),
    ] {
        let plan = planned(&[ingress(&annotations)]);
        let warnings = file(&plan, "warnings.txt");
        assert!(warnings.contains(why) && warnings.contains("Ingress shop/i:"), "{warnings}");
    }
}

#[test]
fn a_rule_about_access_that_cannot_be_followed_closes_the_location() {
    for annotations in [
        json!({"whitelist-source-range": "10.0.0.0/8, x"}),
        json!({"auth-type": "basic", "auth-secret": "missing"}),
        json!({"auth-type": "digest", "auth-secret": "missing"}),
        json!({"auth-url": "http://$host/"}),
        json!({"proxy-ssl-verify": "on"}),
        json!({"backend-protocol": "FCGI"}),
    ] {
        assert_eq!(body(&annotations)[1..], ["return 503;"], "{annotations}");
    }
}

#[test]
fn snippets_are_written_where_they_are_allowed() {
    let objects = objects(&[ingress(&json!({
        "configuration-snippet": "more_set_headers \"X: 1\";",
        "server-snippet": "}",
    }))]);
    let settings = Settings { allow_snippets: true, ..settings() };
    let plan = crate::plan(&objects, &settings);
    let body = lines(&plan, "routes/ingress.shop.i/path-1.conf");
    assert_eq!(body.last(), Some(&"more_set_headers \"X: 1\";"));
    assert!(file(&plan, "warnings.txt").contains("its braces or quotes do not match"));
}

#[test]
fn an_ingress_that_the_server_refuses_is_left_out_alone() {
    let snippets = json!({"configuration-snippet": "wrong;", "server-snippet": "wrong;",
                          "limit-rps": "5"});
    let objects = objects(&[ingress(&snippets), named("j", "h.test", "/j", "b", &json!({}))]);
    let mut settings = Settings { allow_snippets: true, ..settings() };
    let plan = crate::plan(&objects, &settings);
    let server = "include /plan/routes/ingress.shop.i/server.conf;";
    assert!(lines(&plan, "servers/80.h.test.conf").contains(&server));
    assert_eq!(lines(&plan, "routes/ingress.shop.i/server.conf"), ["wrong;"]);
    let refused = (ResourceKind::Ingress, crate::plan::object::key("shop", "i"));
    settings.faults.refused.insert(refused, "unknown directive".to_owned());
    let without = crate::plan(&objects, &settings);
    assert_eq!(file(&without, "routes/ingress.shop.i/path-1.conf"), "return 503;\n");
    assert_eq!(file(&without, "routes/ingress.shop.i/maps.conf"), "");
    assert_eq!(file(&without, "routes/ingress.shop.i/server.conf"), "");
    assert!(file(&without, "warnings.txt").contains("Ingress shop/i is left out"));
    for same in ["routes/ingress.shop.j/path-1.conf", "servers/80.h.test.conf", "nginx.conf"] {
        assert_eq!(file(&plan, same), file(&without, same));
    }
    let updates: Vec<_> = without.statuses.iter().map(|one| one.key.name.as_str()).collect();
    assert!(updates.contains(&"j") && !updates.contains(&"i"), "it gets no address: {updates:?}");
}

#[test]
fn a_canary_takes_its_share_of_the_same_path() {
    let rules = json!({"canary": "true", "canary-weight": "20", "canary-by-header": "X-C",
                       "canary-by-cookie": "c"});
    let plan = planned(&[ingress(&json!({})), named("canary", "h.test", "/", "b", &rules)]);
    let variable = "ingress_i_in_shop_path_1";
    assert_eq!(
        lines(&plan, "routes/ingress.shop.i/maps.conf"),
        [
            &format!("split_clients $request_id ${variable}_share {{"),
            "20.00% shop.b.80;",
            "* shop.a.80;",
            "}",
            &format!("map $cookie_c ${variable}_cookie {{"),
            "always shop.b.80;",
            "never shop.a.80;",
            &format!("default ${variable}_share;"),
            "}",
            &format!("map $http_x_c ${variable} {{"),
            "always shop.b.80;",
            "never shop.a.80;",
            &format!("default ${variable}_cookie;"),
            "}",
        ]
    );
    assert!(!plan.files.contains_key("routes/ingress.shop.canary/path-1.conf"));
}

#[test]
fn tls_of_an_ingress_redirects_unless_told_otherwise() {
    let mut good = secret("good", "ed25519.crt", "ed25519.key");
    good["metadata"]["namespace"] = json!("shop");
    for (annotations, redirects) in [(json!({}), true), (json!({"ssl-redirect": "false"}), false)] {
        let mut ingress = ingress(&annotations);
        ingress["spec"]["tls"] = json!([{"hosts": ["h.test"], "secretName": "good"}]);
        let plan = planned(&[good.clone(), ingress]);
        let body = file(&plan, "routes/ingress.shop.i/path-1.conf");
        assert_eq!(body.contains("return 308 https://$host$request_uri;"), redirects);
        let server = lines(&plan, "servers/443.h.test.conf");
        assert!(server.contains(&"ssl_certificate /plan/certificates/shop.good.crt;"));
    }
}

#[test]
fn an_authentication_service_of_the_cluster_is_a_group() {
    let annotations = json!({"auth-url": "http://b.shop.svc.cluster.local/check",
                             "auth-response-headers": "X-User"});
    let plan = planned(&[ingress(&annotations)]);
    let locations = lines(&plan, "routes/ingress.shop.i/locations.conf");
    assert_eq!(locations[0], "location = /.weir/auth/ingress.shop.i {");
    assert!(locations.contains(&"proxy_pass http://shop.b.80/check;"), "{locations:?}");
    let body = lines(&plan, "routes/ingress.shop.i/path-1.conf");
    assert!(body.contains(&"proxy_set_header X-User $ingress_i_in_shop_auth_1;"), "{body:?}");
}

#[test]
fn an_ingress_and_a_route_share_the_server_of_a_host() {
    let rules = json!([{"matches": [{"path": {"type": "PathPrefix", "value": "/x"}}],
                        "backendRefs": [backend("b")]}]);
    let route = route("HTTPRoute", &json!(["h.test"]), &rules);
    let plan = planned(&[ingress(&json!({})), route]);
    let server = lines(&plan, "servers/80.h.test.conf");
    for line in [
        "include /plan/routes/ingress.shop.i/path-1.conf;",
        "include /plan/routes/httproute.shop.r/rule-1.conf;",
    ] {
        assert!(server.contains(&line), "{server:?}");
    }
}

#[test]
fn a_name_with_and_without_www_leads_to_the_one_that_is_served() {
    let plan = planned(&[ingress(&json!({"from-to-www-redirect": "true"}))]);
    let server = lines(&plan, "servers/80.www.h.test.conf");
    assert!(server.contains(&"return 308 $scheme://h.test$redirect_port$request_uri;"));
}

#[test]
fn only_trusted_proxies_tell_the_address_of_a_client() {
    let main = |settings: &crate::Settings| {
        let plan = crate::plan(&objects(&[ingress(&json!({}))]), settings);
        String::from_utf8(plan.files["nginx.conf"].clone()).unwrap()
    };
    let plain = main(&settings());
    assert!(plain.contains("proxy_set_header X-Forwarded-For $remote_addr;"), "{plain}");
    assert!(!plain.contains("real_ip_"), "{plain}");
    let trusted_proxies = vec!["10.0.0.0/8".to_owned()];
    let trusting = main(&crate::Settings { trusted_proxies, ..settings() });
    for line in ["10.0.0.0/8 1;", "set_real_ip_from 10.0.0.0/8;", "real_ip_recursive on;"] {
        assert!(trusting.contains(line), "{line} {trusting}");
    }
}

#[test]
fn without_addresses_a_status_is_not_written_again_and_again() {
    let settings = crate::Settings { addresses: Vec::new(), ..settings() };
    for (before, is_written) in [
        (Value::Null, false),
        (json!({"loadBalancer": {}}), false),
        (json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}), true),
    ] {
        let mut ingress = ingress(&json!({}));
        if !before.is_null() {
            ingress["status"] = before;
        }
        let plan = crate::plan(&objects(&[ingress]), &settings);
        assert_eq!(plan.statuses.iter().any(|one| one.kind == ResourceKind::Ingress), is_written);
    }
}
