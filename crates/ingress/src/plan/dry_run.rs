//! `weir-ingress plan`: what would become of objects in files, without a cluster.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::object::{key, list, text};
use super::{Plan, PlanFaults, Settings, plan};
use crate::arguments::{add_address, network};
use crate::{Objects, ResourceKind};

const USAGE: &str = "\
usage: weir-ingress plan [OPTION...] FILE|FOLDER...

Reads objects in JSON, as `kubectl get -A -o json KIND...` prints them, and prints the files that
would be written.

  --out FOLDER         writes the files, and groups.json and statuses.json, instead of printing them
  --folder FOLDER      the folder that nginx.conf names (the one of --out, or /etc/weir/ingress)
  --publish ADDRESS    where clients reach the servers; may be repeated
  --gateway-address ADDRESS
                       an address for a Gateway of its own, as for the controller; may be repeated
  --trusted-proxy NETWORK
                       a proxy in front, as for the controller; may be repeated
  --controller NAME    the name of the controller in classes (weir.dev/ingress)
  --control-socket S   (unix:FOLDER/control.sock)
  --allow-snippets     annotations may contain directives
";

/// `spec.controllerName` unless an option says otherwise.
const CONTROLLER: &str = "weir.dev/ingress";

/// The arguments are those after `plan`.
pub fn dry_run(arguments: &[String]) -> ExitCode {
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = writeln!(io::stderr(), "weir-ingress: {why}");
            ExitCode::FAILURE
        }
    }
}

struct DryRunOptions {
    settings: Settings,
    out: Option<PathBuf>,
    inputs: Vec<PathBuf>,
}

fn run(arguments: &[String]) -> Result<(), String> {
    if arguments.iter().any(|one| one == "--help" || one == "-h") {
        return io::stdout().write_all(USAGE.as_bytes()).map_err(|error| error.to_string());
    }
    let options = options(arguments)?;
    let mut objects = Objects::default();
    for input in &options.inputs {
        read(input, &mut objects)?;
    }
    let plan = plan(&objects, &options.settings);
    match &options.out {
        Some(folder) => write(&plan, folder),
        None => print(&plan).map_err(|error| error.to_string()),
    }
}

fn options(arguments: &[String]) -> Result<DryRunOptions, String> {
    let mut settings = Settings {
        controller_name: CONTROLLER.to_owned(),
        allow_snippets: false,
        addresses: Vec::new(),
        gateway_addresses: Vec::new(),
        trusted_proxies: Vec::new(),
        folder: String::new(),
        control_socket: String::new(),
        faults: PlanFaults::default(),
        now: "1970-01-01T00:00:00Z".to_owned(),
    };
    let (mut out, mut inputs) = (None, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().cloned().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--out" => out = Some(PathBuf::from(value()?)),
            "--folder" => settings.folder = value()?,
            "--publish" => settings.addresses.push(value()?),
            "--gateway-address" => add_address(&value()?, &mut settings.gateway_addresses)?,
            "--trusted-proxy" => settings.trusted_proxies.push(network(value()?)?),
            "--controller" => settings.controller_name = value()?,
            "--control-socket" => settings.control_socket = value()?,
            "--allow-snippets" => settings.allow_snippets = true,
            option if option.starts_with('-') => return Err(format!("unknown option {option}")),
            input => inputs.push(PathBuf::from(input)),
        }
    }
    if inputs.is_empty() {
        return Err(format!("no files are named\n{USAGE}"));
    }
    if settings.folder.is_empty() {
        settings.folder = match &out {
            Some(out) => absolute(out)?,
            None => "/etc/weir/ingress".to_owned(),
        };
    }
    if settings.control_socket.is_empty() {
        settings.control_socket = format!("unix:{}/control.sock", settings.folder);
    }
    Ok(DryRunOptions { settings, out, inputs })
}

fn absolute(path: &Path) -> Result<String, String> {
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    path.into_os_string().into_string().map_err(|_| "the folder's name is not UTF-8".to_owned())
}

fn read(path: &Path, objects: &mut Objects) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    if path.is_dir() {
        let entries = fs::read_dir(path).map_err(|error| failed(&error))?;
        let mut files: Vec<_> = entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .collect();
        files.sort();
        return files.iter().try_for_each(|file| read(file, objects));
    }
    let bytes = fs::read(path).map_err(|error| failed(&error))?;
    for value in serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>() {
        insert(value.map_err(|error| failed(&error))?, objects).map_err(|why| failed(&why))?;
    }
    Ok(())
}

pub(crate) fn insert(value: Value, objects: &mut Objects) -> Result<(), String> {
    if let Value::Array(all) = value {
        return all.into_iter().try_for_each(|one| insert(one, objects));
    }
    if value.get("items").is_some() {
        return list(&value, "/items").iter().try_for_each(|one| insert(one.clone(), objects));
    }
    let name = text(&value, "/metadata/name").ok_or("an object has no name")?;
    let kind_name = text(&value, "/kind").ok_or("an object has no kind")?;
    let kind = kind(kind_name).ok_or_else(|| format!("the kind {kind_name} is not supported"))?;
    let namespace = match kind {
        ResourceKind::GatewayClass | ResourceKind::IngressClass | ResourceKind::Namespace => "",
        _ => text(&value, "/metadata/namespace").unwrap_or("default"),
    };
    objects.insert(kind, key(namespace, name), value);
    Ok(())
}

fn kind(name: &str) -> Option<ResourceKind> {
    Some(match name {
        "GatewayClass" => ResourceKind::GatewayClass,
        "Gateway" => ResourceKind::Gateway,
        "HTTPRoute" => ResourceKind::HttpRoute,
        "GRPCRoute" => ResourceKind::GrpcRoute,
        "TLSRoute" => ResourceKind::TlsRoute,
        "TCPRoute" => ResourceKind::TcpRoute,
        "ReferenceGrant" => ResourceKind::ReferenceGrant,
        "BackendTLSPolicy" => ResourceKind::BackendTlsPolicy,
        "IngressClass" => ResourceKind::IngressClass,
        "Ingress" => ResourceKind::Ingress,
        "Service" => ResourceKind::Service,
        "EndpointSlice" => ResourceKind::EndpointSlice,
        "Secret" => ResourceKind::Secret,
        "ConfigMap" => ResourceKind::ConfigMap,
        "Namespace" => ResourceKind::Namespace,
        _ => return None,
    })
}

fn write(plan: &Plan, folder: &Path) -> Result<(), String> {
    for (name, bytes) in &plan.files {
        write_file(&folder.join(name), bytes)?;
    }
    // The servers as the API would keep them, so that the configuration can be tried as it is.
    for (group, servers) in &plan.groups {
        let (subsystem, name) = group.split_once('/').unwrap_or(("http", group));
        let lines: String = servers.iter().map(|server| format!("server {server};\n")).collect();
        write_file(&folder.join(format!("groups/{subsystem}/{name}.servers")), lines.as_bytes())?;
    }
    let groups = serde_json::to_vec_pretty(&plan.groups).map_err(|error| error.to_string())?;
    write_file(&folder.join("groups.json"), &groups)?;
    let statuses = serde_json::to_vec_pretty(&statuses(plan)).map_err(|error| error.to_string())?;
    write_file(&folder.join("statuses.json"), &statuses)
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
    let written = parent.and_then(|()| fs::write(path, bytes));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

fn statuses(plan: &Plan) -> Vec<Value> {
    let shown = |one: &super::StatusUpdate| {
        json!({
            "kind": format!("{:?}", one.kind),
            "namespace": one.key.namespace,
            "name": one.key.name,
            "status": one.status,
        })
    };
    plan.statuses.iter().map(shown).collect()
}

fn print(plan: &Plan) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (name, bytes) in &plan.files {
        writeln!(out, "# ---- {name}")?;
        match name.ends_with(".key") {
            true => writeln!(out, "# ({} bytes)", bytes.len())?,
            false => out.write_all(bytes)?,
        }
    }
    for (group, servers) in &plan.groups {
        writeln!(out, "# ---- servers of {group}")?;
        servers.iter().try_for_each(|server| writeln!(out, "{server}"))?;
    }
    writeln!(out, "# ---- statuses")?;
    writeln!(out, "{:#}", Value::from(statuses(plan)))
}
