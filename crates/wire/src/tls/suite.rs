//! The cipher suites.

/// A cipher suite. The order is that of OpenSSL's default list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum TlsSuite {
    Tls13Aes256GcmSha384 = 0x1302,
    Tls13Chacha20Poly1305Sha256 = 0x1303,
    Tls13Aes128GcmSha256 = 0x1301,
    EcdheEcdsaAes256GcmSha384 = 0xc02c,
    EcdheRsaAes256GcmSha384 = 0xc030,
    EcdheEcdsaChacha20Poly1305 = 0xcca9,
    EcdheRsaChacha20Poly1305 = 0xcca8,
    EcdheEcdsaAes128GcmSha256 = 0xc02b,
    EcdheRsaAes128GcmSha256 = 0xc02f,
}

impl TlsSuite {
    /// The suites of TLS 1.3, in OpenSSL's default order.
    pub const TLS13: [Self; 3] =
        [Self::Tls13Aes256GcmSha384, Self::Tls13Chacha20Poly1305Sha256, Self::Tls13Aes128GcmSha256];

    /// The suites of TLS 1.2, in OpenSSL's default order.
    pub const TLS12: [Self; 6] = [
        Self::EcdheEcdsaAes256GcmSha384,
        Self::EcdheRsaAes256GcmSha384,
        Self::EcdheEcdsaChacha20Poly1305,
        Self::EcdheRsaChacha20Poly1305,
        Self::EcdheEcdsaAes128GcmSha256,
        Self::EcdheRsaAes128GcmSha256,
    ];

    /// Whether the server's key must be an RSA key; suites of TLS 1.3 leave that open.
    pub const fn has_rsa(self) -> bool {
        matches!(
            self,
            Self::EcdheRsaAes256GcmSha384
                | Self::EcdheRsaChacha20Poly1305
                | Self::EcdheRsaAes128GcmSha256
        )
    }

    /// IANA's number.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The suite with IANA's number.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::TLS13.into_iter().chain(Self::TLS12).find(|suite| suite.code() == code)
    }

    /// OpenSSL's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EcdheEcdsaAes256GcmSha384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
            Self::EcdheRsaAes256GcmSha384 => "ECDHE-RSA-AES256-GCM-SHA384",
            Self::EcdheEcdsaChacha20Poly1305 => "ECDHE-ECDSA-CHACHA20-POLY1305",
            Self::EcdheRsaChacha20Poly1305 => "ECDHE-RSA-CHACHA20-POLY1305",
            Self::EcdheEcdsaAes128GcmSha256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
            Self::EcdheRsaAes128GcmSha256 => "ECDHE-RSA-AES128-GCM-SHA256",
            _ => self.standard_name(),
        }
    }

    /// IANA's name.
    pub const fn standard_name(self) -> &'static str {
        match self {
            Self::Tls13Aes256GcmSha384 => "TLS_AES_256_GCM_SHA384",
            Self::Tls13Chacha20Poly1305Sha256 => "TLS_CHACHA20_POLY1305_SHA256",
            Self::Tls13Aes128GcmSha256 => "TLS_AES_128_GCM_SHA256",
            Self::EcdheEcdsaAes256GcmSha384 => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            Self::EcdheRsaAes256GcmSha384 => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            Self::EcdheEcdsaChacha20Poly1305 => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            Self::EcdheRsaChacha20Poly1305 => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            Self::EcdheEcdsaAes128GcmSha256 => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            Self::EcdheRsaAes128GcmSha256 => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        }
    }

    /// The length of the cipher's key.
    pub const fn strength_bits(self) -> u16 {
        match self {
            Self::Tls13Aes128GcmSha256
            | Self::EcdheEcdsaAes128GcmSha256
            | Self::EcdheRsaAes128GcmSha256 => 128,
            _ => 256,
        }
    }
}
