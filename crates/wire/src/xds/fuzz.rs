//! What holds for any message of a control plane.

use alloc::vec::Vec;

use super::{DiscoveryResponse, XdsAddress, XdsAssignment, XdsCluster};
use crate::grpc::{framed, write_framed};
use crate::protobuf::{
    ProtobufFieldValue, ProtobufFields, write_bytes, write_fixed64, write_number,
};

/// Responses and resources are read without a panic and keep their bounds; fields that are written
/// again say the same, and so does a message in a stream.
pub fn xds(input: &[u8]) {
    for response in [DiscoveryResponse::read(input), DiscoveryResponse::read_delta(input)] {
        for message in response.iter().flat_map(|response| &response.resources) {
            message.message.iter().for_each(|message| resource(message));
        }
    }
    resource(input);
    fields(input);
    let mut stream = Vec::new();
    write_framed(&mut stream, |out| out.extend_from_slice(input));
    assert_eq!(framed(&stream).ok().flatten().map(|range| &stream[range]), Some(input));
    let _ = framed(input);
}

fn resource(message: &[u8]) {
    if let Ok(cluster) = XdsCluster::read(message) {
        assert!(!cluster.endpoints_name().is_empty());
        cluster.assignment.iter().for_each(assignment);
    }
    XdsAssignment::read(message).iter().for_each(assignment);
}

fn assignment(assignment: &XdsAssignment<'_>) {
    assert!(!assignment.name.is_empty());
    for locality in &assignment.localities {
        assert_ne!(locality.weight, Some(0));
        for endpoint in &locality.endpoints {
            assert_ne!(endpoint.weight, Some(0));
            match endpoint.address {
                XdsAddress::Socket { host, port } => assert!(!host.is_empty() && port > 0),
                XdsAddress::Pipe(path) => assert!(!path.is_empty()),
                XdsAddress::Internal => {}
            }
        }
    }
}

fn fields(input: &[u8]) {
    let Ok(fields) = ProtobufFields::new(input).collect::<Result<Vec<_>, _>>() else { return };
    let mut out = Vec::new();
    for (number, value) in &fields {
        match *value {
            ProtobufFieldValue::Varint(value) => write_number(*number, value, &mut out),
            ProtobufFieldValue::Fixed64(value) => write_fixed64(*number, value, &mut out),
            ProtobufFieldValue::Bytes(bytes) => write_bytes(*number, bytes, &mut out),
            // Nothing writes it.
            ProtobufFieldValue::Fixed32(_) => return,
        }
    }
    assert_eq!(ProtobufFields::new(&out).collect::<Result<Vec<_>, _>>(), Ok(fields));
    assert!(out.len() <= input.len(), "no shorter way to write it");
}
