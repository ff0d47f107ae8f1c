//! `split_clients`: a variable that distributes the values of a text by hash. Each value gets a
//! percentage of all texts, and the same text always has the same value.
//!
//! The hash is nginx's, so that clients keep their shares after a move to Weir.

use std::sync::Arc;

use conf::{Directive, Error, Load, Result, Template, VariableId, units};

use crate::Session;
use crate::variables::{self, TextChoice, Variable};

/// 100 percent, in hundredths of a percent.
const WHOLE: u64 = 10_000;

/// A compiled block: the values with their shares, in order.
struct Split {
    source: Template,
    parts: Vec<ClientShare>,
}

struct ClientShare {
    /// The first hash beyond this share; `None` for all remaining hashes.
    end: Option<u32>,
    value: Box<[u8]>,
}

/// Reads a `split_clients` block and defines its variable.
pub fn declare<X: Session>(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let source = Template::compile(from.arg(0), from, load)?;
    let name = variables::claim(from.arg(1), from, load)?;
    let split = Arc::new(Split { source, parts: parts(from)? });
    let choice: Arc<dyn TextChoice> = split.clone();
    let variable = Variable::cached(move |x: &mut X, out| split.get(x, out));
    variables::define(name, Variable { choice: Some(choice), ..variable }, load);
    Ok(())
}

fn parts(from: &Directive) -> Result<Vec<ClientShare>> {
    let lines = from.block.iter().flatten();
    let shares = lines.map(share).collect::<Result<Vec<_>>>()?;
    let (mut sum, mut end) = (0, 0);
    let part = |(share, value): (Option<u64>, Box<[u8]>)| {
        sum = share.map_or(WHOLE, |share| sum + share);
        end += share.unwrap_or_default().min(WHOLE) * u64::from(u32::MAX) / WHOLE;
        match sum {
            // The last share gets the rest that rounding leaves.
            WHOLE => Ok(ClientShare { end: None, value }),
            0..WHOLE => Ok(ClientShare { end: Some(end as u32), value }),
            _ => {
                let message = "percent total is greater than 100%";
                Err(Error::at(from.close.unwrap_or(from.end), message))
            }
        }
    };
    shares.into_iter().map(part).collect()
}

/// The share in hundredths of a percent, `None` for the rest; and its value.
fn share(line: &Directive) -> Result<(Option<u64>, Box<[u8]>)> {
    if line.block.is_some() {
        return Err(line.error("unexpected \"{\""));
    }
    // nginx ignores further words.
    let [value, ..] = &line.args[..] else {
        return Err(line.error("invalid number of the split_clients parameters"));
    };
    if &*line.name.text == b"*" {
        return Ok((None, value.text.clone()));
    }
    let number = line.name.text.strip_suffix(b"%");
    match number.and_then(|number| units::fixed_point(number, 2)) {
        Some(share @ 1..) => Ok((Some(share), value.text.clone())),
        _ => Err(line.error(format!("invalid percent value \"{}\"", line.name))),
    }
}

impl Split {
    fn get<X: Session>(&self, x: &mut X, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        self.source.render(x, out);
        let value = self.choose(&out[start..]);
        out.truncate(start);
        out.extend_from_slice(value);
        true
    }
}

impl TextChoice for Split {
    fn source(&self) -> Option<VariableId> {
        self.source.as_variable()
    }

    fn choose(&self, text: &[u8]) -> &[u8] {
        let hash = murmur_hash_2(text);
        let part = self.parts.iter().find(|part| part.end.is_none_or(|end| hash < end));
        part.map_or(&b""[..], |part| &part.value)
    }
}

/// Austin Appleby's MurmurHash2 with the seed 0.
fn murmur_hash_2(text: &[u8]) -> u32 {
    const FACTOR: u32 = 0x5bd1_e995;
    let (words, rest) = text.as_chunks::<4>();
    let mut hash = words.iter().fold(text.len() as u32, |hash, word| {
        let word = u32::from_le_bytes(*word).wrapping_mul(FACTOR);
        hash.wrapping_mul(FACTOR) ^ (word ^ word >> 24).wrapping_mul(FACTOR)
    });
    if !rest.is_empty() {
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u32::from_le_bytes(last)).wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(FACTOR);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::murmur_hash_2;

    #[test]
    fn the_hash_is_nginxs() {
        // By the reference implementation, MurmurHash2 with the seed 0.
        let table: [(&[u8], u32); 6] = [
            (b"", 0),
            (b"1", 1_228_156_847),
            (b"ab", 446_775_395),
            (b"abc", 324_500_635),
            (b"abcd", 646_393_889),
            (b"192.0.2.1 Mozilla", 2_505_954_677),
        ];
        for (text, expected) in table {
            assert_eq!(murmur_hash_2(text), expected, "{}", text.escape_ascii());
        }
    }
}
