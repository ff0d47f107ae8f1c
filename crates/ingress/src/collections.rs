//! Where the API server has the objects of each kind.

use crate::ResourceKind;

/// One kind as the API server knows it.
pub(crate) struct KindPlace {
    /// The plural, as in paths, in rules of access and in the log.
    pub(crate) plural: &'static str,
    /// Empty: the core group.
    group: &'static str,
    /// Those that mean the same here, the best one first.
    pub(crate) versions: &'static [&'static str],
    pub(crate) has_namespace: bool,
    /// What is left out of a list.
    selector: &'static str,
}

const GATEWAY: &str = "gateway.networking.k8s.io";

pub(crate) const KINDS: [ResourceKind; 15] = [
    ResourceKind::GatewayClass,
    ResourceKind::Gateway,
    ResourceKind::HttpRoute,
    ResourceKind::GrpcRoute,
    ResourceKind::TlsRoute,
    ResourceKind::TcpRoute,
    ResourceKind::ReferenceGrant,
    ResourceKind::BackendTlsPolicy,
    ResourceKind::IngressClass,
    ResourceKind::Ingress,
    ResourceKind::Service,
    ResourceKind::EndpointSlice,
    ResourceKind::Secret,
    ResourceKind::ConfigMap,
    ResourceKind::Namespace,
];

impl ResourceKind {
    pub(crate) fn place(self) -> KindPlace {
        let namespaced = |plural, group, versions| KindPlace {
            plural,
            group,
            versions,
            has_namespace: true,
            selector: "",
        };
        let global = |plural, group, versions| KindPlace {
            has_namespace: false,
            ..namespaced(plural, group, versions)
        };
        match self {
            Self::GatewayClass => global("gatewayclasses", GATEWAY, &["v1"]),
            Self::Gateway => namespaced("gateways", GATEWAY, &["v1"]),
            Self::HttpRoute => namespaced("httproutes", GATEWAY, &["v1"]),
            Self::GrpcRoute => namespaced("grpcroutes", GATEWAY, &["v1"]),
            Self::TlsRoute => namespaced("tlsroutes", GATEWAY, &["v1", "v1alpha3", "v1alpha2"]),
            Self::TcpRoute => namespaced("tcproutes", GATEWAY, &["v1", "v1alpha2"]),
            Self::ReferenceGrant => namespaced("referencegrants", GATEWAY, &["v1", "v1beta1"]),
            Self::BackendTlsPolicy => {
                namespaced("backendtlspolicies", GATEWAY, &["v1", "v1alpha3"])
            }
            Self::IngressClass => global("ingressclasses", "networking.k8s.io", &["v1"]),
            Self::Ingress => namespaced("ingresses", "networking.k8s.io", &["v1"]),
            Self::Service => namespaced("services", "", &["v1"]),
            Self::EndpointSlice => namespaced("endpointslices", "discovery.k8s.io", &["v1"]),
            // Helm keeps its charts in secrets, which are large and many.
            Self::Secret => KindPlace {
                selector: "?fieldSelector=type%21%3Dhelm.sh%2Frelease.v1",
                ..namespaced("secrets", "", &["v1"])
            },
            Self::ConfigMap => namespaced("configmaps", "", &["v1"]),
            Self::Namespace => global("namespaces", "", &["v1"]),
        }
    }
}

impl KindPlace {
    fn version_path(&self, version: &str) -> String {
        match self.group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        }
    }

    /// The path of all objects.
    pub(crate) fn list_path(&self, version: &str) -> String {
        format!("{}/{}{}", self.version_path(version), self.plural, self.selector)
    }

    /// The path of the status of an object. Names in it need no encoding: the API server takes
    /// letters, digits, `-` and `.` only.
    pub(crate) fn status_path(&self, version: &str, namespace: &str, name: &str) -> String {
        let within =
            if self.has_namespace { format!("/namespaces/{namespace}") } else { String::new() };
        format!("{}{within}/{}/{name}/status", self.version_path(version), self.plural)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api_server() {
        let place = ResourceKind::HttpRoute.place();
        let listed = "/apis/gateway.networking.k8s.io/v1/httproutes";
        assert_eq!(place.list_path("v1"), listed);
        let status = "/apis/gateway.networking.k8s.io/v1/namespaces/a/httproutes/b/status";
        assert_eq!(place.status_path("v1", "a", "b"), status);
        let class = "/apis/gateway.networking.k8s.io/v1/gatewayclasses/weir/status";
        assert_eq!(ResourceKind::GatewayClass.place().status_path("v1", "", "weir"), class);
        assert_eq!(ResourceKind::Service.place().list_path("v1"), "/api/v1/services");
    }
}
