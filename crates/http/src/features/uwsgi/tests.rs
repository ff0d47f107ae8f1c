use crate::backend::testing::{TestBackend, values};
use crate::h1::tests::Server;
use crate::testing::refusal;

#[test]
fn a_request_and_its_reply() {
    let backend = TestBackend::of_bytes(b"tail", "HTTP/1.1 201 Made\r\nStatus: z\r\n\r\nhi");
    let server = Server::start(format!(
        "server {{ location / {{ uwsgi_pass uwsgi://{}; uwsgi_modifier1 5; uwsgi_modifier2 6;
         uwsgi_param A $request_method; uwsgi_string tail; }} }}",
        backend.address()
    ));
    let reply = server.ask("GET / HTTP/1.0\r\nHost: h\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 201 Made\r\n") && reply.ends_with("\r\n\r\nhi"), "{reply}");
    assert_eq!(values(&reply, "Status"), ["z"]);
    let asked = "\\x05\\x16\\x00\\x06\\x01\\x00A\\x03\\x00GET\\t\\x00HTTP_HOST\\x01\\x00htail";
    assert_eq!(backend.asked(), asked);
}

#[test]
fn tls_has_the_settings_of_uwsgi() {
    let http = "server { location / { uwsgi_pass suwsgi://127.0.0.1:1; uwsgi_ssl_verify on; } }";
    assert_eq!(refusal(http), "no uwsgi_ssl_trusted_certificate for uwsgi_ssl_verify:1");
}
