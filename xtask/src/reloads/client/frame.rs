//! Text frames of WebSocket (RFC 6455 5.2) of less than 126 bytes, which is all that is sent here.

const FIN_TEXT: u8 = 0x81;
const MASKED: u8 = 0x80;
const LENGTH_MAX: usize = 125;

/// The frame of a text; a client masks it.
pub(in crate::reloads) fn write(text: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    assert!(text.len() <= LENGTH_MAX, "longer frames have another form");
    let mut frame = vec![FIN_TEXT, text.len() as u8];
    let mask = match mask {
        Some(mask) => {
            frame[1] |= MASKED;
            frame.extend_from_slice(&mask);
            mask
        }
        None => [0; 4],
    };
    frame.extend(text.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
    frame
}

/// The text of the first frame, and the frame's length; `None`: there is more to come.
pub(in crate::reloads) fn read(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let length = usize::from(*bytes.get(1)? & !MASKED);
    let (mask, start) = match bytes[1] & MASKED {
        0 => ([0; 4], 2),
        _ => (bytes.get(2..6)?.try_into().ok()?, 6),
    };
    let data = bytes.get(start..start + length)?;
    let text = data.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]).collect();
    Some((text, start + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for mask in [None, Some([1, 2, 3, 4])] {
            let frame = write(b"hello", mask);
            assert_eq!(read(&frame), Some((b"hello".to_vec(), frame.len())));
            assert_eq!(read(&frame[..frame.len() - 1]), None);
        }
        // RFC 6455 5.7: a masked "Hello".
        let hello = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(write(b"Hello", Some([0x37, 0xfa, 0x21, 0x3d])), hello);
    }
}
