//! The whole controller between an API server and a server that both only play along, with a plan
//! that is simpler than the real one.

mod api;
mod weir;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};
use testing::{Folder, eventually};

use crate::arguments::IngressArguments;
use crate::controller::Planning;
use crate::election::{LeaseName, take_part};
use crate::metrics::IngressMetrics;
use crate::plan::leave_out;
use crate::run::{ControllerParts, start};
use crate::{Objects, Plan, ResourceKey, ResourceKind, Settings, StatusUpdate};
use api::{CONFIG_MAPS, FakeApi, GATEWAYS, INGRESSES, SERVICES, SLICES};
use weir::FakeWeir;

/// A group for each Service, with its name; the names of ConfigMaps are in nginx.conf as well; the
/// spec of an Ingress is a file, unless it is left out; the status of a Gateway is the number of
/// Services, and whether the last plan is in use.
fn toy_plan(objects: &Objects, settings: &Settings) -> Plan {
    let mut plan = Plan::default();
    let mut main_file = String::new();
    for (key, _) in objects.of(ResourceKind::ConfigMap) {
        main_file.push_str(&format!("{}\n", key.name));
    }
    for (key, _) in objects.of(ResourceKind::Service) {
        plan.groups.insert(key.name.clone(), toy_servers(objects, key));
        plan.files.insert(format!("groups/http/{}.conf", key.name), b"x".to_vec());
        main_file.push_str(&format!("{}\n", key.name));
    }
    plan.files.insert("nginx.conf".to_owned(), main_file.into_bytes());
    for (key, ingress) in objects.of(ResourceKind::Ingress) {
        let text = ingress["spec"].to_string().into_bytes();
        plan.files.insert(format!("routes/ingress.a.{}/path-1.conf", key.name), text);
    }
    leave_out(&mut plan.files, |object| settings.faults.refused.contains_key(object));
    for (key, object) in objects.of(ResourceKind::Gateway) {
        let is_used = settings.faults.last.is_none();
        let status = json!({"services": plan.groups.len(), "used": is_used});
        if object["status"] != status {
            plan.statuses.push(StatusUpdate {
                kind: ResourceKind::Gateway,
                key: key.clone(),
                status,
            });
        }
    }
    plan
}

/// The addresses of the slice with the name of the Service.
fn toy_servers(objects: &Objects, service: &ResourceKey) -> Vec<String> {
    let slice = objects.get(ResourceKind::EndpointSlice, service);
    let addresses = slice.and_then(|slice| slice["addresses"].as_array());
    let addresses = addresses.into_iter().flatten().filter_map(Value::as_str);
    addresses.map(str::to_owned).collect()
}

const TOY: Planning = Planning {
    plan: toy_plan,
    servers: |objects, _, services| {
        let services = services.iter().map(|key| (key.name.clone(), toy_servers(objects, key)));
        services.collect()
    },
};

struct Played {
    api: FakeApi,
    weir: FakeWeir,
    metrics: Arc<IngressMetrics>,
    folder: Folder,
}

impl Played {
    fn new() -> Self {
        Self::with(FakeApi::new())
    }

    fn with(api: FakeApi) -> Self {
        let folder = Folder::new();
        let weir = FakeWeir::new(&folder.join("w"));
        let mut played = Self { api, weir, metrics: Arc::default(), folder };
        played.start();
        played
    }

    /// Starts a controller; earlier ones go on.
    fn start(&mut self) {
        let words = ["--folder", &self.folder.name("w"), "--check", "off", "--lease", "a/weir"];
        let words = words.map(str::to_owned);
        let arguments = IngressArguments::parse(&words).unwrap();
        self.metrics = Arc::default();
        let parts = ControllerParts {
            arguments: &arguments,
            kube: self.api.place(),
            server: self.weir.place(),
            metrics: self.metrics.clone(),
            planning: TOY,
        };
        start(parts, None).unwrap();
    }

    fn endpoints(&self, service: &str, addresses: &[&str]) {
        self.api.put(SERVICES, service, json!({}));
        self.slice(service, addresses);
    }

    fn slice(&self, service: &str, addresses: &[&str]) {
        let labels = json!({"kubernetes.io/service-name": service});
        let slice = json!({"metadata": {"labels": labels}, "addresses": addresses});
        self.api.put(SLICES, service, slice);
    }

    fn expect(&self, group: &str, servers: &str) {
        eventually(servers, || (self.weir.servers(group) == servers).then_some(()));
    }
}

#[test]
fn endpoints_reach_the_server_without_a_reload() {
    let played = Played::new();
    played.endpoints("web", &["10.0.0.1:80"]);
    played.expect("web", "10.0.0.1:80");
    assert_eq!(played.weir.main_file(), "web\n");
    let generation = played.weir.generation();
    let plans = || played.metrics.plans.load(Ordering::Relaxed);
    let planned = plans();
    for last in 2..7 {
        let servers = ["10.0.0.1:80".to_owned(), format!("10.0.0.{last}:80")];
        played.slice("web", &servers.each_ref().map(String::as_str));
        played.expect("web", &servers.join(" "));
    }
    assert!(plans() <= planned + 1, "there is nothing to plan; one may have been under way");
    assert_eq!(played.weir.generation(), generation);
    played.endpoints("api", &["10.0.0.3:80"]);
    played.expect("api", "10.0.0.3:80");
    assert!(played.weir.generation() > generation);
    assert_eq!(played.weir.unknown(), 0, "the server is told of a group when it knows it");
}

#[test]
fn watches_that_are_cut_or_too_old_lose_nothing() {
    let played = Played::new();
    played.endpoints("web", &["10.0.0.1:80"]);
    played.expect("web", "10.0.0.1:80");
    let lists = played.api.lists();
    played.api.cut();
    played.endpoints("web", &["10.0.0.2:80"]);
    played.expect("web", "10.0.0.2:80");
    assert_eq!(played.api.lists(), lists, "a watch that was cut goes on");
    played.api.delete(SLICES, "web");
    played.api.compact();
    played.endpoints("web", &["10.0.0.3:80"]);
    played.expect("web", "10.0.0.3:80");
    assert!(played.api.lists() > lists, "what is too old is listed again");
    assert_eq!(played.weir.puts().1, 0, "the group was never empty");
}

#[test]
fn an_api_server_that_is_gone_changes_nothing() {
    let mut played = Played::new();
    played.endpoints("web", &["10.0.0.1:80"]);
    played.expect("web", "10.0.0.1:80");
    played.api.kill();
    let age = || Some(()).filter(|()| played.metrics.age_ms.load(Ordering::Relaxed) > 0);
    eventually("age", age);
    assert_eq!(played.weir.servers("web"), "10.0.0.1:80");
    played.weir.restart();
    played.expect("web", "10.0.0.1:80");
    played.api.start();
    played.endpoints("web", &["10.0.0.2:80"]);
    played.expect("web", "10.0.0.2:80");
    assert_eq!(played.weir.puts().1, 0);
}

#[test]
fn nothing_is_concluded_while_one_kind_is_unknown() {
    let mut api = FakeApi::new();
    api.kill();
    let mut played = Played::with(api);
    assert_eq!(played.weir.main_file(), "");
    played.api.start();
    played.api.set_absent("/apis/gateway.networking.k8s.io/v1/tcproutes");
    played.api.set_absent("/apis/gateway.networking.k8s.io/v1alpha2/tcproutes");
    played.endpoints("web", &["10.0.0.1:80"]);
    played.expect("web", "10.0.0.1:80");
}

#[test]
fn a_refused_configuration_leaves_the_old_one_and_says_so() {
    let played = Played::new();
    played.endpoints("web", &["10.0.0.1:80"]);
    played.expect("web", "10.0.0.1:80");
    played.api.put(CONFIG_MAPS, "bad", json!({}));
    let refused = || played.metrics.is_refused.load(Ordering::Relaxed);
    eventually("refusal", || refused().then_some(()));
    assert_eq!(played.weir.main_file(), "web\n");
    let on_disk = std::fs::read_to_string(played.folder.join("w/nginx.conf")).unwrap();
    assert_eq!(on_disk, "web\n", "a server that starts now starts with it");
    played.endpoints("web", &["10.0.0.2:80"]);
    played.expect("web", "10.0.0.2:80");
    played.api.delete(CONFIG_MAPS, "bad");
    eventually("acceptance", || (!refused()).then_some(()));
}

#[test]
fn an_object_that_the_server_refuses_holds_nothing_else_back() {
    let played = Played::new();
    let route = |name: &str| {
        let file = played.folder.join(format!("w/routes/ingress.a.{name}/path-1.conf"));
        std::fs::read_to_string(file).unwrap_or_default()
    };
    played.api.put(INGRESSES, "one", json!({"spec": "bad"}));
    played.api.put(INGRESSES, "two", json!({"spec": "good"}));
    played.endpoints("web", &["10.0.0.1:80"]);
    played.expect("web", "10.0.0.1:80");
    eventually("route", || (route("two") == "\"good\"").then_some(()));
    assert_eq!(route("one"), "return 503;\n");
    let refused = || played.metrics.is_refused.load(Ordering::Relaxed);
    eventually("acceptance", || (!refused()).then_some(()));
    played.api.put(INGRESSES, "one", json!({"spec": "better"}));
    eventually("route", || (route("one") == "\"better\"").then_some(()));
}

#[test]
fn statuses_say_what_the_server_uses() {
    let played = Played::new();
    let status = || played.api.object(GATEWAYS, "gate")["status"].clone();
    let expect = |wanted: Value| eventually("status", || (status() == wanted).then_some(()));
    played.api.put(GATEWAYS, "gate", json!({}));
    played.endpoints("web", &["10.0.0.1:80"]);
    expect(json!({"services": 1, "used": true}));
    played.api.put(CONFIG_MAPS, "bad", json!({}));
    expect(json!({"services": 1, "used": false}));
    played.api.delete(CONFIG_MAPS, "bad");
    expect(json!({"services": 1, "used": true}));
}

#[test]
fn another_controller_goes_on_where_one_was_killed() {
    let mut played = Played::new();
    played.endpoints("web", &["10.0.0.1:80"]);
    played.expect("web", "10.0.0.1:80");
    played.start();
    played.endpoints("web", &["10.0.0.2:80"]);
    played.expect("web", "10.0.0.2:80");
    assert_eq!(played.weir.puts().1, 0);
}

#[test]
fn statuses_are_written_over_conflicts() {
    let played = Played::new();
    played.api.refuse_statuses(2);
    played.api.put(GATEWAYS, "gate", json!({}));
    played.endpoints("web", &["10.0.0.1:80"]);
    let is_written =
        || played.api.object(GATEWAYS, "gate")["status"] == json!({"services": 1, "used": true});
    eventually("status", || is_written().then_some(()));
    let conflicts = played.metrics.status_conflicts.load(Ordering::Relaxed);
    assert!(conflicts >= 2, "{conflicts}");
}

#[test]
fn of_several_replicas_one_leads() {
    let api = FakeApi::new();
    let replicas: BTreeMap<String, Arc<AtomicBool>> =
        ["one", "two", "three"].map(|name| (name.to_owned(), Arc::default())).into();
    for (identity, leads) in &replicas {
        let text = |text: &str| text.to_owned();
        let lease =
            LeaseName { namespace: text("a"), name: text("weir"), identity: text(identity) };
        let (place, leads) = (api.place(), leads.clone());
        thread::spawn(move || take_part(place, lease, leads));
    }
    let leaders = || -> Vec<&String> {
        let leads = |(_, leads): &(&String, &Arc<AtomicBool>)| leads.load(Ordering::SeqCst);
        replicas.iter().filter(leads).map(|(name, _)| name).collect()
    };
    let leader = eventually("leader", || leaders().first().map(|name| (*name).clone()));
    assert_eq!(leaders().len(), 1);
    assert_eq!(api.holder(), Some(leader));
}
