//! Compression of certificates (RFC 8879) with zlib. rustls caches the result: a chain is
//! compressed once, not in each handshake.

use rustls::CertificateCompressionAlgorithm;
use rustls::compress::{CertCompressor, CompressionFailed, CompressionLevel};
use zlib_rs::{DeflateConfig, ReturnCode, compress_bound, compress_slice};

/// All supported algorithms.
pub(super) const COMPRESSORS: &[&dyn CertCompressor] = &[&ZlibCompressor];

#[derive(Debug)]
struct ZlibCompressor;

impl CertCompressor for ZlibCompressor {
    fn compress(
        &self,
        input: Vec<u8>,
        level: CompressionLevel,
    ) -> Result<Vec<u8>, CompressionFailed> {
        let config = match level {
            CompressionLevel::Interactive => DeflateConfig::default(),
            CompressionLevel::Amortized => DeflateConfig::best_compression(),
        };
        let mut output = vec![0; compress_bound(input.len())];
        match compress_slice(&mut output, &input, config) {
            (compressed, ReturnCode::Ok) => Ok(compressed.to_vec()),
            _ => Err(CompressionFailed),
        }
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Zlib
    }
}
