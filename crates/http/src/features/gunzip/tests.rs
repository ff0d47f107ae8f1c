use std::task::{Context, Poll};

use libdeflater::{CompressionLvl, Compressor};

use super::stream;
use crate::exchange::{Body, BodyLog, BodyStream, Bytes, Chunk};
use crate::testing::{TestAnswer, TestSite, TestedFilter, site};

fn zipped(text: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(CompressionLvl::new(6).unwrap());
    let mut out = vec![0; compressor.gzip_compress_bound(text.len())];
    let length = compressor.gzip_compress(text, &mut out).unwrap();
    out.truncate(length);
    out
}

fn files(content: &[u8]) -> TestSite {
    let site = site("server { gunzip on; gzip_vary on; gzip_static always; error_log e.log; }");
    site.file("a.html.gz", content);
    site.open_logs();
    site
}

fn get(site: &TestSite) -> TestAnswer {
    site.get("/a.html")
}

#[test]
fn a_client_without_gzip_receives_the_expanded_body() {
    let answer = get(&files(&zipped(b"expanded")));
    assert_eq!((answer.status(), answer.body().as_str()), (200, "expanded"));
    assert_eq!(answer.field("content-encoding"), None);
    assert_eq!((answer.field("content-length"), answer.field("accept-ranges")), (None, None));
    assert!(answer.field("etag").unwrap().starts_with("W/\""));
    assert!(answer.x.varies);
}

#[test]
fn a_client_with_gzip_receives_the_compressed_body() {
    let content = zipped(b"expanded");
    let answer = files(&content).get_with("/a.html", "Accept-Encoding: gzip\n");
    assert_eq!(answer.bytes(), content);
    assert_eq!(answer.field("content-encoding").unwrap(), "gzip");
    assert!(answer.x.varies);
}

#[test]
fn several_members() {
    let content = [zipped(b"one "), zipped(b""), zipped(b"two")].concat();
    assert_eq!(get(&files(&content)).body(), "one two");
}

#[test]
fn invalid_gzip_is_an_error() {
    let good = zipped(b"expanded");
    let mut bad_sum = good.clone();
    let last = bad_sum.len() - 8;
    bad_sum[last] ^= 1;
    for (content, message) in [
        (b"plain text".to_vec(), "inflate() failed: 0, -3"),
        (good[..good.len() - 1].to_vec(), "inflate() returned -5 on response end"),
        (good[..5].to_vec(), "inflate() returned -5 on response end"),
        (bad_sum, "inflate() failed: 0, -3"),
        ([&good[..], b"garbage"].concat(), "inflate() failed: 0, -3"),
    ] {
        let mut found = expand(&content, 1024);
        assert_eq!(found.1.take().as_deref(), Some(message));
    }
    assert!(get(&files(b"plain text")).broken);
}

/// The output for input in pieces, and the error.
fn expand(content: &[u8], size: usize) -> (Vec<u8>, Option<String>) {
    struct Pieces(Vec<Vec<u8>>);
    impl BodyStream for Pieces {
        fn poll_chunk(
            &mut self,
            _: &mut Context<'_>,
            _: &mut dyn BodyLog,
        ) -> Poll<Result<Option<Chunk>, crate::exchange::BodyError>> {
            Poll::Ready(Ok(self.0.pop().map(|piece| Chunk::Bytes(Bytes::Owned(piece)))))
        }
    }
    let pieces = content.chunks(size).rev().map(<[u8]>::to_vec).collect();
    let body = Body::Stream(Box::new(Pieces(pieces)));
    let mut stream = TestedFilter::new(body, stream::Gunzip::new(1000));
    let mut text = Vec::new();
    loop {
        match stream.poll() {
            Poll::Ready(Ok(Some(Chunk::Bytes(bytes)))) => {
                assert!(!bytes.is_empty() && bytes.len() <= 1000);
                text.extend_from_slice(bytes.as_ref());
            }
            Poll::Ready(Ok(None)) => return (text, None),
            Poll::Ready(Err(crate::exchange::BodyError::Coding(message))) => {
                return (text, Some(message.into_owned()));
            }
            _ => panic!("nothing else is given"),
        }
    }
}

#[test]
fn output_does_not_depend_on_pieces() {
    let text: Vec<u8> = (0..20_000_u32).flat_map(|n| (n % 977).to_string().into_bytes()).collect();
    let content = [zipped(&text), zipped(b"end")].concat();
    for size in [1, 2, 3, 100, 4096, content.len()] {
        let (found, error) = expand(&content, size);
        assert_eq!(error, None, "{size}");
        assert!(found.strip_suffix(b"end") == Some(&text[..]), "{size}");
    }
}

#[test]
fn an_empty_body_is_an_error() {
    assert_eq!(expand(b"", 1).1.unwrap(), "inflate() returned -5 on response end");
}

#[test]
fn a_gzip_bomb_is_expanded_in_small_pieces() {
    // 100 MB of zeros; every piece is checked for its size.
    let content = zipped(&vec![0; 100 << 20]);
    assert!(content.len() < 200_000);
    let (text, error) = expand(&content, 4096);
    assert_eq!((text.len(), error), (100 << 20, None));
}
