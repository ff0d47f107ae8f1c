//! The arguments of `weir ingress`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use discover::{ApiServerOptions, HttpPlace, SERVER, namespace_of_pod, seed, time};

use crate::controller::ControllerSettings;
use crate::election::LeaseName;
use crate::plan::{GATEWAY_ADDRESSES_MAX, is_network};
use crate::{PlanFaults, ResourceKey, Settings};

/// `weir ingress --help` prints it, too.
pub const HELP: &str = include_str!("help.txt");

const FOLDER: &str = "/run/weir-ingress";
const CONTROLLER: &str = "weir.dev/ingress";
const LEASE: &str = "weir-ingress";
const OWNER: &str = "ingress";
const EMPTY_AFTER_MS: u64 = 30_000;

#[derive(Clone, Debug)]
pub(crate) struct IngressArguments {
    server: String,
    folder: String,
    pub(crate) is_prepare: bool,
    check: Option<String>,
    controller: String,
    allows_snippets: bool,
    addresses: Vec<String>,
    pub(crate) gateway_addresses: Vec<IpAddr>,
    trusted_proxies: Vec<String>,
    publish_service: Option<ResourceKey>,
    pub(crate) writes_status: bool,
    lease: Option<ResourceKey>,
    pub(crate) empty_after_ms: Option<u64>,
    pub(crate) owner: String,
    pub(crate) metrics: Option<String>,
    pub(crate) kube: ApiServerOptions,
}

impl Default for IngressArguments {
    fn default() -> Self {
        Self {
            server: SERVER.to_owned(),
            folder: FOLDER.to_owned(),
            is_prepare: false,
            check: None,
            controller: CONTROLLER.to_owned(),
            allows_snippets: false,
            addresses: Vec::new(),
            gateway_addresses: Vec::new(),
            trusted_proxies: Vec::new(),
            publish_service: None,
            writes_status: true,
            lease: None,
            empty_after_ms: Some(EMPTY_AFTER_MS),
            owner: OWNER.to_owned(),
            metrics: None,
            kube: ApiServerOptions::default(),
        }
    }
}

impl IngressArguments {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut parsed = Self::default();
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().cloned().ok_or(format!("{word} requires a value"));
            match &**word {
                "-s" => parsed.server = value()?,
                "--folder" => parsed.folder = folder(&value()?)?,
                "--prepare" => parsed.is_prepare = true,
                "--check" => parsed.check = Some(value()?),
                "--controller" => parsed.controller = value()?,
                "--allow-snippets" => parsed.allows_snippets = true,
                "--publish" => parsed.addresses.push(value()?),
                "--gateway-address" => add_address(&value()?, &mut parsed.gateway_addresses)?,
                "--trusted-proxy" => parsed.trusted_proxies.push(network(value()?)?),
                "--publish-service" => parsed.publish_service = Some(key(&value()?)?),
                "--no-status" => parsed.writes_status = false,
                "--lease" => parsed.lease = Some(key(&value()?)?),
                "--empty-after" => parsed.empty_after_ms = time(&value()?)?,
                "-o" => parsed.owner = value()?,
                "--metrics" => parsed.metrics = Some(value()?),
                "--kube" => parsed.kube.url = Some(value()?),
                "--token" => parsed.kube.token = Some(value()?.into()),
                "--ca" => parsed.kube.roots = Some(value()?.into()),
                _ => return Err(format!("unknown argument \"{word}\" (weir ingress --help)")),
            }
        }
        Ok(parsed)
    }

    /// The control socket: reloads are asked for nowhere else.
    pub(crate) fn place(&self) -> Result<HttpPlace, String> {
        let place = HttpPlace::parse(&self.server, Path::new(""))?;
        let is_socket = place.is_socket();
        is_socket.then_some(place).ok_or_else(|| format!("\"{}\" is no socket", self.server))
    }

    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    /// `None`: only the server checks configurations.
    pub(crate) fn check_program(&self) -> Option<PathBuf> {
        match self.check.as_deref() {
            Some("off") => None,
            Some(program) => Some(program.into()),
            None => {
                let own = std::env::current_exe().ok()?;
                Some(own.with_file_name("weir")).filter(|program| program.is_file())
            }
        }
    }

    pub(crate) fn controller_settings(&self) -> ControllerSettings {
        ControllerSettings {
            plan: Settings {
                controller_name: self.controller.clone(),
                allow_snippets: self.allows_snippets,
                addresses: self.addresses.clone(),
                gateway_addresses: self.gateway_addresses.clone(),
                trusted_proxies: self.trusted_proxies.clone(),
                folder: self.folder.clone(),
                control_socket: self.server.clone(),
                faults: PlanFaults::default(),
                now: String::new(),
            },
            publish_service: self.publish_service.clone(),
        }
    }

    pub(crate) fn lease(&self) -> Result<LeaseName, String> {
        let key = match &self.lease {
            Some(key) => key.clone(),
            None => ResourceKey {
                namespace: namespace_of_pod()
                    .ok_or("this is no pod; name a Lease with --lease, or use --no-status")?,
                name: LEASE.to_owned(),
            },
        };
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "weir".to_owned());
        let identity = format!("{host}_{:016x}", seed());
        Ok(LeaseName { namespace: key.namespace, name: key.name, identity })
    }
}

fn folder(text: &str) -> Result<String, String> {
    let text = text.trim_end_matches('/');
    let is_good = text.starts_with('/') && !text.chars().any(char::is_control);
    is_good.then(|| text.to_owned()).ok_or_else(|| format!("\"{text}\" is not an absolute path"))
}

fn key(text: &str) -> Result<ResourceKey, String> {
    let is_name = |name: &str| {
        let is_good = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
        !name.is_empty() && name.bytes().all(is_good)
    };
    let parts = text.split_once('/');
    let parts = parts.filter(|(namespace, name)| is_name(namespace) && is_name(name));
    let (namespace, name) = parts.ok_or_else(|| format!("\"{text}\" is not NAMESPACE/NAME"))?;
    Ok(ResourceKey { namespace: namespace.to_owned(), name: name.to_owned() })
}

/// Adds an address that Gateways may have.
pub(crate) fn add_address(text: &str, addresses: &mut Vec<IpAddr>) -> Result<(), String> {
    let address: IpAddr = text.parse().map_err(|_| format!("\"{text}\" is not an address"))?;
    if address.is_unspecified() || addresses.contains(&address) {
        return Err(format!("\"{text}\" cannot be the address of one Gateway"));
    }
    if addresses.len() == GATEWAY_ADDRESSES_MAX {
        return Err(format!("there are more than {GATEWAY_ADDRESSES_MAX} addresses for Gateways"));
    }
    addresses.push(address);
    Ok(())
}

pub(crate) fn network(text: String) -> Result<String, String> {
    match is_network(&text) {
        true => Ok(text),
        false => Err(format!("\"{text}\" is not an address or a network")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<IngressArguments, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        IngressArguments::parse(&words)
    }

    #[test]
    fn options_are_read() {
        let parsed = parse("-s /run/x --folder /a/b/ --publish 192.0.2.1 --empty-after never");
        let parsed = parsed.unwrap();
        let settings = parsed.controller_settings().plan;
        assert_eq!((&*settings.folder, &*settings.control_socket), ("/a/b", "/run/x"));
        assert_eq!(
            (settings.addresses, settings.allow_snippets),
            (vec!["192.0.2.1".into()], false)
        );
        assert_eq!(parsed.empty_after_ms, None);
        assert!(parsed.place().is_ok());
        let lease = parse("--lease a/b").unwrap().lease().unwrap();
        assert_eq!((&*lease.namespace, &*lease.name), ("a", "b"));
        for wrong in [
            "x",
            "-x",
            "-s",
            "--folder a",
            "--folder /",
            "--lease a",
            "--lease a/b/c",
            "--publish-service A/b",
            "--trusted-proxy 10.0.0.0/33",
            "--empty-after 5d",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("-s http://127.0.0.1:80/api").unwrap().place().is_err());
        assert_eq!(parse("--check off").unwrap().check_program(), None);
    }

    #[test]
    fn every_option_is_in_the_help() {
        let source = include_str!("arguments.rs");
        let options = source.lines().filter_map(|line| line.trim().strip_prefix("\"-"));
        for option in options.filter_map(|rest| rest.split_once("\" =>")) {
            assert!(HELP.contains(&format!("  -{} ", option.0)), "{}", option.0);
        }
    }
}
