use crate::backend::testing::{TestBackend, values};
use crate::h1::tests::Server;

#[test]
fn a_request_and_its_reply() {
    let backend = TestBackend::of_bytes(b",abc", "Status: 201 Made\r\nX: y\r\n\r\nhi");
    let server = Server::start(format!(
        "server {{ location / {{ scgi_pass {}; scgi_param SCGI 1;
         scgi_pass_request_headers off; }} }}",
        backend.address()
    ));
    let reply = server.ask("POST / HTTP/1.0\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
    assert!(reply.starts_with("HTTP/1.1 201 Made\r\n") && reply.ends_with("\r\n\r\nhi"), "{reply}");
    assert_eq!((values(&reply, "X"), values(&reply, "Status")), (vec!["y"], vec![]));
    let asked = "36:CONTENT_LENGTH\\x003\\x00SCGI\\x001\\x00HTTP_HOST\\x00h\\x00,abc";
    assert_eq!(backend.asked(), asked);
}
