use alloc::vec::Vec;
use alloc::{format, vec};

use super::*;
use crate::protobuf::{write_bytes, write_message, write_number};

fn message(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn nested(numbers: &[u32], inner: &[u8]) -> Vec<u8> {
    numbers
        .iter()
        .rev()
        .fold(inner.to_vec(), |inner, number| message(|out| write_bytes(*number, &inner, out)))
}

fn socket(host: &str, port: u64) -> Vec<u8> {
    nested(
        &[1, 1, 1],
        &message(|out| {
            write_bytes(2, host.as_bytes(), out);
            write_number(3, port, out);
        }),
    )
}

fn weight(number: u32, value: u64) -> Vec<u8> {
    message(|out| write_message(number, out, |out| write_number(1, value, out)))
}

fn assignment(endpoint: &[u8], locality: &[u8]) -> Vec<u8> {
    message(|out| {
        write_bytes(1, b"app", out);
        write_message(2, out, |out| {
            write_bytes(2, endpoint, out);
            out.extend_from_slice(locality);
        });
    })
}

#[test]
fn endpoints_are_read_with_their_places() {
    let endpoint = [socket("10.0.0.1", 80), message(|out| write_number(2, 3, out)), weight(4, 7)];
    let locality = [weight(3, 5), message(|out| write_number(5, 1, out))];
    let bytes = assignment(&endpoint.concat(), &locality.concat());
    let read = XdsAssignment::read(&bytes).unwrap();
    let expected = XdsEndpoint {
        address: XdsAddress::Socket { host: "10.0.0.1", port: 80 },
        health: XdsHealth::Draining,
        weight: Some(7),
    };
    let locality = XdsLocality {
        weight: Some(5),
        priority: 1,
        endpoints: vec![expected],
        is_elsewhere: false,
    };
    assert_eq!((read.name, read.localities, read.drops), ("app", vec![locality], false));
}

#[test]
fn addresses_are_sockets_pipes_or_inside_envoy() {
    let read = |endpoint: &[u8]| {
        let bytes = assignment(endpoint, b"");
        XdsAssignment::read(&bytes).map(|read| format!("{:?}", read.localities[0].endpoints))
    };
    assert!(read(&nested(&[1, 1, 2, 1], b"/run/a")).unwrap().contains("Pipe(\"/run/a\")"));
    assert!(read(&nested(&[1, 1, 3], b"")).unwrap().contains("Internal"));
    for (endpoint, what) in [
        (b"".to_vec(), "an endpoint has no address"),
        (socket("", 80), "an endpoint has no address"),
        (nested(&[1, 1, 2], b""), "an endpoint has no address"),
        (socket("10.0.0.1", 0), "10.0.0.1 has an invalid port"),
        (socket("10.0.0.1", 65_536), "10.0.0.1 has an invalid port"),
        ([socket("10.0.0.1", 80), weight(4, 0)].concat(), "the weight 0 is invalid"),
        ([socket("10.0.0.1", 80), weight(4, 1 << 32)].concat(), "the weight 4294967296 is invalid"),
        (nested(&[1, 1, 1, 2], b"\xff"), "the message is broken"),
    ] {
        assert_eq!(read(&endpoint), Err(InvalidXds::new(what)), "{endpoint:?}");
    }
    let far = assignment(&socket("10.0.0.1", 80), &message(|out| write_number(5, 129, out)));
    assert_eq!(XdsAssignment::read(&far), Err(InvalidXds::new("priority 129 is too high")));
    assert!(XdsAssignment::read(b"").is_err(), "no name");
}

#[test]
fn a_cluster_says_where_its_endpoints_are() {
    let cluster = |kind: u64, more: &[u8]| {
        message(|out| {
            write_bytes(1, b"app", out);
            write_number(2, kind, out);
            out.extend_from_slice(more);
        })
    };
    let eds = |source: u32, name: &str| {
        message(|out| {
            write_message(3, out, |out| {
                write_message(1, out, |out| write_bytes(source, b"", out));
                write_bytes(2, name.as_bytes(), out);
            });
        })
    };
    let ads = cluster(3, &eds(3, "of-app"));
    let read = XdsCluster::read(&ads).unwrap();
    assert_eq!((read.kind, read.endpoints_name()), (XdsClusterKind::Eds, "of-app"));
    let own = cluster(3, &eds(5, ""));
    assert_eq!(XdsCluster::read(&own).unwrap().endpoints_name(), "app");
    for (kind, more) in [(3, eds(1, "")), (4, vec![]), (9, vec![]), (0, nested(&[38, 1], b"x"))] {
        let bytes = cluster(kind, &more);
        let kind = XdsCluster::read(&bytes).unwrap().kind;
        assert!(matches!(kind, XdsClusterKind::Other(_)), "{bytes:?}: {kind:?}");
    }
    let fixed = cluster(0, &nested(&[33], &assignment(&socket("10.0.0.1", 80), b"")));
    let read = XdsCluster::read(&fixed).unwrap();
    assert_eq!(read.assignment.unwrap().localities[0].endpoints.len(), 1);
    let unread = cluster(1, &[nested(&[24], b""), message(|out| write_number(6, 1, out))].concat());
    let read = XdsCluster::read(&unread).unwrap();
    assert_eq!(
        (read.kind, read.unread),
        (XdsClusterKind::Dns, vec!["transport_socket", "lb_policy"])
    );
    assert!(XdsCluster::read(b"\x10\x03").is_err(), "no name");
}

#[test]
fn responses_of_both_variants_are_read() {
    let any = |kind: &str, value: &[u8]| {
        message(|out| {
            write_bytes(1, kind.as_bytes(), out);
            write_bytes(2, value, out);
        })
    };
    let resource = message(|out| {
        write_bytes(1, b"v7", out);
        write_bytes(2, &any(CLUSTER, b"x"), out);
        write_bytes(3, b"app", out);
    });
    let head = |out: &mut Vec<u8>| {
        write_bytes(1, b"v1", out);
        write_bytes(4, CLUSTER.as_bytes(), out);
        write_bytes(5, b"n1", out);
    };
    let state = message(|out| {
        head(out);
        write_bytes(2, &any(CLUSTER, b"x"), out);
        write_bytes(2, &any(WRAPPED, &resource), out);
    });
    let plain = XdsResource { type_url: CLUSTER, message: Some(b"x"), ..XdsResource::default() };
    let named = XdsResource { name: "app", version: "v7", ..plain.clone() };
    let expected = DiscoveryResponse {
        version: "v1",
        type_url: CLUSTER,
        nonce: "n1",
        resources: vec![plain, named.clone()],
        removed: vec![],
    };
    assert_eq!(DiscoveryResponse::read(&state), Ok(expected.clone()));
    let delta = message(|out| {
        head(out);
        write_bytes(2, &resource, out);
        write_message(2, out, |out| write_bytes(3, b"same", out));
        write_bytes(6, b"gone", out);
    });
    let same = XdsResource { name: "same", ..XdsResource::default() };
    let expected =
        DiscoveryResponse { resources: vec![named, same], removed: vec!["gone"], ..expected };
    assert_eq!(DiscoveryResponse::read_delta(&delta), Ok(expected));
    assert!(DiscoveryResponse::read(b"\x12\x05").is_err());
}

#[test]
fn requests_leave_out_what_is_empty() {
    let request = DiscoveryRequest { type_url: "t", ..DiscoveryRequest::default() };
    let written = message(|out| request.write(["a"], out));
    assert_eq!(written, b"\x1a\x01a\x22\x01t");
    let request = DiscoveryRequest {
        node: Some(b"N"),
        type_url: "t",
        version: "v",
        nonce: "n",
        error: Some("why"),
    };
    let written = message(|out| request.write([], out));
    assert_eq!(written, b"\x0a\x01v\x12\x01N\x22\x01t\x2a\x01n\x32\x07\x08\x03\x12\x03why");
    let request = DeltaDiscoveryRequest {
        type_url: "t",
        subscribe: &["a"],
        unsubscribe: &["b"],
        error: Some(""),
        ..DeltaDiscoveryRequest::default()
    };
    let written = message(|out| request.write([("a", "1")], out));
    assert_eq!(written, b"\x12\x01t\x1a\x01a\x22\x01b\x2a\x06\x0a\x01a\x12\x011\x3a\x02\x08\x03");
}

#[test]
fn a_node_has_its_name_and_its_place() {
    let node = XdsNode {
        id: "me",
        metadata: b"M",
        locality: ["r", "", ""],
        agent: "weir",
        ..XdsNode::default()
    };
    assert_eq!(message(|out| node.write(out)), b"\x0a\x02me\x1a\x01M\x22\x03\x0a\x01r\x32\x04weir");
    assert_eq!(message(|out| XdsNode::default().write(out)), b"");
}
