//! The filters of a rule or a backend: read and checked, before anything is written.

use serde_json::Value;

use super::attach::RouteFaults;
use super::targets::{self, BackendTarget, BackendUser};
use crate::plan::names;
use crate::plan::object::{list, number, text};
use crate::plan::patterns::decoded_path;
use crate::plan::planner::Planner;

/// Changes of the fields of a request or a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldChanges {
    pub(super) set: Vec<(String, String)>,
    pub(super) add: Vec<(String, String)>,
    pub(super) remove: Vec<String>,
}

/// How a filter changes the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathChange {
    Full(String),
    /// Replaces the prefix that the rule has matched.
    Prefix(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    pub(super) scheme: Option<String>,
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) path: Option<PathChange>,
    pub(super) status: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UrlRewrite {
    pub(super) host: Option<String>,
    pub(super) path: Option<PathChange>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mirror {
    pub(super) target: BackendTarget,
    /// A share of the requests: numerator and denominator.
    pub(super) share: (u64, u64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cors {
    pub(super) origins: Vec<String>,
    pub(super) methods: Vec<String>,
    pub(super) headers: Vec<String>,
    pub(super) exposed: Vec<String>,
    pub(super) allows_credentials: bool,
    pub(super) age_max: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filters {
    pub(super) request: FieldChanges,
    pub(super) response: FieldChanges,
    pub(super) redirect: Option<Redirect>,
    pub(super) rewrite: UrlRewrite,
    pub(super) mirrors: Vec<Mirror>,
    pub(super) cors: Option<Cors>,
    /// The rule answers with an error: a filter is missing that must not be left out.
    pub(super) is_broken: bool,
}

impl Filters {
    /// `Err`: the rule cannot be used.
    pub(super) fn read(
        planner: &mut Planner<'_>,
        user: BackendUser<'_>,
        values: &[Value],
        faults: &mut RouteFaults,
    ) -> Result<Self, String> {
        let mut filters = Self::default();
        for value in values {
            match text(value, "/type").unwrap_or_default() {
                "RequestHeaderModifier" => {
                    filters.request = changes(value.get("requestHeaderModifier"))?;
                }
                "ResponseHeaderModifier" => {
                    filters.response = changes(value.get("responseHeaderModifier"))?;
                }
                "RequestRedirect" => filters.redirect = Some(redirect(value)?),
                "URLRewrite" => filters.rewrite = rewrite(value)?,
                "RequestMirror" => match mirror(planner, user, value)? {
                    Ok(mirror) => filters.mirrors.push(mirror),
                    // The request itself goes on; only its copy goes nowhere.
                    Err(fault) => faults.unresolved.push(fault),
                },
                "CORS" => filters.cors = Some(cors(value)?),
                "ExtensionRef" => {
                    let kind = text(value, "/extensionRef/kind").unwrap_or_default();
                    let message = format!("a filter of the kind {kind} is not supported");
                    faults.unresolved.push(("InvalidKind", message));
                    filters.is_broken = true;
                }
                other => return Err(format!("the filter {other} is not supported")),
            }
        }
        Ok(filters)
    }

    /// Whether a backend may have them.
    pub(super) fn is_for_backend(&self) -> bool {
        let Self { redirect, rewrite, mirrors, cors, is_broken, .. } = self;
        let is_plain = redirect.is_none() && mirrors.is_empty() && cors.is_none();
        is_plain && *rewrite == UrlRewrite::default() && !is_broken
    }
}

/// Fields that belong to the connection, which a proxy manages itself.
const OF_CONNECTION: [&str; 4] = ["connection", "content-length", "transfer-encoding", "upgrade"];

fn field_name(name: &str) -> Result<String, String> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_sound = names::is_token(name) && name.bytes().all(is_known) && !name.starts_with('-');
    if !is_sound {
        return Err(format!("the name {name:?} of a header field is not supported"));
    }
    if OF_CONNECTION.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("the header field {name} cannot be changed"));
    }
    Ok(name.to_owned())
}

fn changes(value: Option<&Value>) -> Result<FieldChanges, String> {
    let value = value.unwrap_or(&Value::Null);
    let read = |pointer| {
        let pairs = list(value, pointer).iter().map(|one| {
            let name = field_name(text(one, "/name").unwrap_or_default())?;
            let content = text(one, "/value").unwrap_or_default();
            if !names::is_printable(content) || content.trim().is_empty() {
                return Err(format!("the value of the header field {name} is not valid"));
            }
            Ok((name, content.trim().to_owned()))
        });
        pairs.collect::<Result<Vec<_>, String>>()
    };
    let (set, add) = (read("/set")?, read("/add")?);
    if let Some((name, _)) = add.iter().find(|(name, _)| !names::is_plain_field(name)) {
        return Err(format!("nothing can be added to the header field {name}"));
    }
    let remove = list(value, "/remove").iter().map(|one| field_name(one.as_str().unwrap_or("")));
    Ok(FieldChanges { set, add, remove: remove.collect::<Result<_, _>>()? })
}

fn path_change(value: &Value, pointer: &str) -> Result<Option<PathChange>, String> {
    let Some(path) = value.pointer(pointer) else { return Ok(None) };
    let checked = |name| {
        let path = text(path, name).unwrap_or_default();
        // The empty prefix is the root.
        let path = if path.is_empty() { "/" } else { path };
        decoded_path(path).map(|_| path.to_owned())
    };
    match text(path, "/type").unwrap_or_default() {
        "ReplaceFullPath" => Ok(Some(PathChange::Full(checked("/replaceFullPath")?))),
        "ReplacePrefixMatch" => Ok(Some(PathChange::Prefix(checked("/replacePrefixMatch")?))),
        other => Err(format!("the change {other} of the path is not supported")),
    }
}

fn host(value: &Value, pointer: &str) -> Result<Option<String>, String> {
    match text(value, pointer) {
        None => Ok(None),
        Some(host) if names::is_name(host) => Ok(Some(host.to_owned())),
        Some(host) => Err(format!("{host:?} is not a host name")),
    }
}

fn redirect(value: &Value) -> Result<Redirect, String> {
    let scheme = text(value, "/requestRedirect/scheme").map(str::to_ascii_lowercase);
    if scheme.as_deref().is_some_and(|scheme| !matches!(scheme, "http" | "https")) {
        return Err("the scheme of a redirect is neither http nor https".to_owned());
    }
    let port = number(value, "/requestRedirect/port");
    let port = port.map(u16::try_from).transpose().map_err(|_| "the port is not valid")?;
    let status = number(value, "/requestRedirect/statusCode").unwrap_or(302);
    let status = u16::try_from(status).ok();
    let status = status.filter(|status| matches!(status, 301 | 302 | 303 | 307 | 308));
    Ok(Redirect {
        scheme,
        host: host(value, "/requestRedirect/hostname")?,
        port,
        path: path_change(value, "/requestRedirect/path")?,
        status: status.ok_or("the status of a redirect is not supported")?,
    })
}

fn rewrite(value: &Value) -> Result<UrlRewrite, String> {
    Ok(UrlRewrite {
        host: host(value, "/urlRewrite/hostname")?,
        path: path_change(value, "/urlRewrite/path")?,
    })
}

fn mirror(
    planner: &mut Planner<'_>,
    user: BackendUser<'_>,
    value: &Value,
) -> Result<Result<Mirror, (&'static str, String)>, String> {
    let percent = number(value, "/requestMirror/percent");
    let part = |name| u64::try_from(number(value, name)?).ok();
    let share = match (percent, value.pointer("/requestMirror/fraction")) {
        (None, None) => Some((1, 1)),
        (Some(percent), None) => u64::try_from(percent).ok().map(|percent| (percent, 100)),
        (None, Some(_)) => part("/requestMirror/fraction/numerator")
            .zip(part("/requestMirror/fraction/denominator").or(Some(100))),
        (Some(_), Some(_)) => None,
    };
    let share = share.filter(|(part, whole)| part <= whole && *whole > 0 && *whole <= 1_000_000);
    let share = share.ok_or("the share of a mirror is not valid")?;
    let reference = value.pointer("/requestMirror/backendRef").unwrap_or(&Value::Null);
    let target = targets::target(planner, user, reference);
    Ok(target.map(|target| Mirror { target, share }))
}

fn cors(value: &Value) -> Result<Cors, String> {
    let read = |pointer: &str, is_sound: fn(&str) -> bool| {
        let all = list(value, pointer).iter().map(|one| {
            let one = one.as_str().unwrap_or_default();
            let is_known = one == "*" || is_sound(one);
            is_known.then(|| one.to_owned()).ok_or_else(|| format!("CORS: {one:?} is not valid"))
        });
        all.collect::<Result<Vec<_>, _>>()
    };
    Ok(Cors {
        origins: read("/cors/allowOrigins", is_origin)?,
        methods: read("/cors/allowMethods", names::is_token)?,
        headers: read("/cors/allowHeaders", names::is_token)?,
        exposed: read("/cors/exposeHeaders", names::is_token)?,
        allows_credentials: value.pointer("/cors/allowCredentials") == Some(&Value::Bool(true)),
        age_max: number(value, "/cors/maxAge").unwrap_or(5).max(0),
    })
}

fn is_origin(text: &str) -> bool {
    crate::plan::nginx_conf::is_origin(text)
}
