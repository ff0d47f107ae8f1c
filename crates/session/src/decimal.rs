//! Numbers as text, appended without `fmt`.

/// Appends a number.
pub fn write(number: u64, out: &mut Vec<u8>) {
    write_padded(number, 1, out);
}

/// Appends a number with at least three digits: a status.
pub fn write_three(number: u64, out: &mut Vec<u8>) {
    write_padded(number, 3, out);
}

/// Appends milliseconds as seconds: `1.042`.
pub fn write_seconds(ms: u64, out: &mut Vec<u8>) {
    write(ms / 1000, out);
    out.push(b'.');
    write_three(ms % 1000, out);
}

/// The digits of the largest number.
const DIGITS_MAX: usize = 20;

/// Gives a number as text.
pub fn with_text<T>(number: u64, take: impl FnOnce(&[u8]) -> T) -> T {
    with_padded(number, 1, take)
}

fn write_padded(number: u64, least: usize, out: &mut Vec<u8>) {
    with_padded(number, least, |text| out.extend_from_slice(text));
}

fn with_padded<T>(number: u64, least: usize, take: impl FnOnce(&[u8]) -> T) -> T {
    let mut digits = [b'0'; DIGITS_MAX];
    let (mut at, mut rest) = (DIGITS_MAX, number);
    while rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    take(&digits[at.min(DIGITS_MAX - least)..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_whole() {
        for number in [0, 7, 10, 404, u64::MAX] {
            assert_eq!(text(|out| write(number, out)), number.to_string());
        }
        assert_eq!(text(|out| write_three(9, out)), "009");
        assert_eq!(text(|out| write_three(1024, out)), "1024");
        assert_eq!(text(|out| write_seconds(61_005, out)), "61.005");
    }
}
