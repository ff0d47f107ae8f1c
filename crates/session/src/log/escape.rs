//! The escaping of values in log lines: `escape=default`, `json` or `none`.

/// How the values of variables are escaped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LogEscape {
    /// `"`, `\`, control characters and bytes above ASCII become `\xHH`; a missing value is `-`.
    #[default]
    Default,
    /// Values are escaped as in JSON strings; a missing value is empty.
    Json,
    /// Values are not escaped; a missing value is empty.
    None,
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

impl LogEscape {
    /// The escaping with this name in `escape=`.
    pub(super) fn of(name: &[u8]) -> Option<Self> {
        match name {
            b"default" => Some(Self::Default),
            b"json" => Some(Self::Json),
            b"none" => Some(Self::None),
            _ => None,
        }
    }

    /// The text of a missing value.
    pub(super) fn absent(self) -> &'static [u8] {
        if self == Self::Default { b"-" } else { b"" }
    }

    /// Escapes `out` from `start` on. Nearly always there is nothing to escape.
    pub(super) fn apply(self, out: &mut Vec<u8>, start: usize) {
        let growth = match self {
            Self::Default => &DEFAULT,
            Self::Json => &JSON,
            Self::None => return,
        };
        let more: usize = out[start..].iter().map(|byte| growth[*byte as usize] as usize).sum();
        if more > 0 {
            self.spread(out, start, more);
        }
    }

    /// Escapes from the end, so that no byte is overwritten before it is read.
    fn spread(self, out: &mut Vec<u8>, start: usize, more: usize) {
        let (mut from, mut to) = (out.len(), out.len() + more);
        out.resize(to, 0);
        while from > start {
            from -= 1;
            let (text, length) = self.written(out[from]);
            to -= length;
            out[to..to + length].copy_from_slice(&text[..length]);
        }
    }

    fn written(self, byte: u8) -> ([u8; 6], usize) {
        let (high, low) = (HEX[byte as usize >> 4], HEX[byte as usize & 15]);
        match self {
            Self::Default if DEFAULT[byte as usize] > 0 => ([b'\\', b'x', high, low, 0, 0], 4),
            Self::Json if JSON[byte as usize] == 1 => ([b'\\', letter(byte), 0, 0, 0, 0], 2),
            Self::Json if JSON[byte as usize] > 1 => ([b'\\', b'u', b'0', b'0', high, low], 6),
            _ => ([byte, 0, 0, 0, 0, 0], 1),
        }
    }
}

const fn letter(byte: u8) -> u8 {
    match byte {
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        other => other,
    }
}

/// The number of bytes by which each byte grows.
const DEFAULT: [u8; 256] = {
    let mut growth = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        if byte < 0x20 || byte > 0x7e || byte == b'"' as usize || byte == b'\\' as usize {
            growth[byte] = 3;
        }
        byte += 1;
    }
    growth
};

const JSON: [u8; 256] = {
    let mut growth = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        growth[byte] = match byte as u8 {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
            0..0x20 => 5,
            _ => 0,
        };
        byte += 1;
    }
    growth
};

#[cfg(test)]
mod tests {
    use super::LogEscape;

    fn escaped(escape: LogEscape, value: &[u8]) -> Vec<u8> {
        let mut out = b"\"before\" ".to_vec();
        let start = out.len();
        out.extend_from_slice(value);
        escape.apply(&mut out, start);
        assert!(out.starts_with(b"\"before\" "));
        out.split_off(start)
    }

    #[test]
    fn values_are_escaped_as_nginx_does() {
        let value = b"a\"b\\c\x1bd\x7f\xffe\n/";
        let default = br#"a\x22b\x5Cc\x1Bd\x7F\xFFe\x0A/"#;
        assert_eq!(escaped(LogEscape::Default, value), default);
        let json = b"a\\\"b\\\\c\\u001Bd\x7f\xffe\\n/";
        assert_eq!(escaped(LogEscape::Json, value), json);
        assert_eq!(escaped(LogEscape::None, value), value);
    }

    #[test]
    fn every_byte_survives_a_json_reader() {
        let all: Vec<u8> = (0..=255).collect();
        let text = escaped(LogEscape::Json, &all);
        assert!(text.iter().all(|byte| *byte >= 0x20));
        assert_eq!(text.windows(2).filter(|pair| pair == b"\\u").count(), 32 - 5);
    }
}
