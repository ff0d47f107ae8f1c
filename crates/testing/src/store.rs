//! A store as Valkey and Redis are, for the commands that machines share things with.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crate::{Peer, PeerConnection};

type StoreText = Vec<u8>;

/// The content of a store.
#[derive(Clone, Default)]
pub struct FakeStore {
    pub hashes: BTreeMap<StoreText, BTreeMap<StoreText, StoreText>>,
    /// The members of sorted sets, with their scores.
    pub members: BTreeMap<SetMember, i64>,
    /// The first three numbers of keys that have some.
    pub numbers: BTreeMap<StoreText, [i64; 3]>,
    streams: BTreeMap<StoreText, Vec<StreamChange>>,
    last_id: (u64, u64),
}

/// A set, and a member of it.
pub type SetMember = (StoreText, StoreText);

/// A change in a stream: its id, a name and a value.
type StreamChange = ((u64, u64), StoreText, StoreText);

/// The changes that a stream keeps.
const STREAM_LENGTH: usize = 16_384;

impl FakeStore {
    /// Serves a store at an address of its own. Commands wait while it is locked.
    pub fn start() -> (Arc<Mutex<Self>>, Peer) {
        let store = Arc::new(Mutex::new(Self::default()));
        let own = store.clone();
        let peer = Peer::playing(move |mut peer| {
            while let Some(command) = take_store_command(&mut peer) {
                let reply = own.lock().unwrap().reply_now(&command);
                if peer.send_raw(reply).is_none() {
                    return;
                }
            }
        });
        (store, peer)
    }

    /// Loses everything.
    pub fn clear(&mut self) {
        *self = Self { last_id: self.last_id, ..Self::default() };
    }

    /// The reply to a command that comes now.
    pub fn reply_now(&mut self, command: &[StoreText]) -> StoreText {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        self.reply(&words, now)
    }

    /// The reply to a command.
    pub fn reply(&mut self, words: &[&[u8]], now: Duration) -> StoreText {
        match words {
            [b"AUTH", b"user", b"geheim"] | [b"SELECT", b"3"] => b"+OK\r\n".to_vec(),
            [b"AUTH", ..] => b"-WRONGPASS invalid username-password pair\r\n".to_vec(),
            [b"TIME"] => {
                let (seconds, micros) = (now.as_secs().to_string(), now.subsec_micros());
                list(&[bulk(seconds.as_bytes()), bulk(micros.to_string().as_bytes())])
            }
            [b"ZADD", set, score, member] => {
                let member = (set.to_vec(), member.to_vec());
                integer(usize::from(self.members.insert(member, number(score)).is_none()))
            }
            [b"ZREMRANGEBYSCORE", set, b"-inf", most] => {
                self.members.retain(|(of, _), score| of != set || *score > number(most));
                integer(0)
            }
            [b"ZCARD", set] => integer(self.members.keys().filter(|(of, _)| of == set).count()),
            [b"PEXPIRE", _, ttl_ms] => {
                assert!((60_000..=86_400_000).contains(&number(ttl_ms)));
                integer(1)
            }
            [b"BITFIELD", key, b"INCRBY", b"i64", b"#0", count, rest @ ..] => {
                self.count(key, number(count), rest)
            }
            [b"HSETNX", key, field, value] => {
                let hash = self.hashes.entry(key.to_vec()).or_default();
                hash.entry(field.to_vec()).or_insert_with(|| value.to_vec());
                integer(0)
            }
            [b"HSET", key, field, value] => {
                let hash = self.hashes.entry(key.to_vec()).or_default();
                integer(usize::from(hash.insert(field.to_vec(), value.to_vec()).is_none()))
            }
            [b"HGET", key, field] => self.field(key, field),
            [b"HMGET", key, fields @ ..] => {
                list(&fields.iter().map(|field| self.field(key, field)).collect::<Vec<_>>())
            }
            [b"HDEL", key, fields @ ..] => {
                let hash = self.hashes.entry(key.to_vec()).or_default();
                integer(fields.iter().filter(|field| hash.remove(**field).is_some()).count())
            }
            [b"HSCAN", key, cursor, b"COUNT", count] => {
                self.scan(key, number(cursor) as u64, number(count) as usize)
            }
            [b"XADD", key, b"MAXLEN", b"~", _, b"*", name, value] => {
                self.add_change(key, name, value, now)
            }
            [b"XREAD", b"COUNT", count, b"STREAMS", key, after] => {
                let (after, most) = (id(after), number(count) as usize);
                let later = self.changes(key).iter().filter(|change| change.0 > after);
                let later: Vec<_> = later.take(most).map(shown).collect();
                if later.is_empty() { b"*-1\r\n".to_vec() } else { news(key, &later) }
            }
            [b"XRANGE", key, b"-", b"+", b"COUNT", b"1"] => {
                list(&self.changes(key).first().map(shown).into_iter().collect::<Vec<_>>())
            }
            [b"XREVRANGE", key, b"+", b"-", b"COUNT", b"1"] => {
                list(&self.changes(key).last().map(shown).into_iter().collect::<Vec<_>>())
            }
            _ => b"-ERR unknown command\r\n".to_vec(),
        }
    }

    /// Adds to the first number of a key, and reads or sets the other two.
    fn count(&mut self, key: &[u8], count: i64, rest: &[&[u8]]) -> StoreText {
        let numbers = self.numbers.entry(key.to_vec()).or_default();
        numbers[0] += count;
        let shown = numbers.map(|number| format!(":{number}\r\n").into_bytes());
        match rest {
            [b"GET", b"i64", b"#1", b"GET", b"i64", b"#2"] => {}
            [b"SET", b"i64", b"#1", second, b"SET", b"i64", b"#2", third] => {
                (numbers[1], numbers[2]) = (number(second), number(third));
            }
            _ => return b"-ERR syntax error\r\n".to_vec(),
        }
        list(&shown)
    }

    fn field(&self, key: &[u8], field: &[u8]) -> StoreText {
        let found = self.hashes.get(key).and_then(|hash| hash.get(field));
        found.map_or_else(|| b"$-1\r\n".to_vec(), |value| bulk(value))
    }

    /// Fields in the order of their hashes: a scan has those that are there all the time.
    fn scan(&self, key: &[u8], cursor: u64, count: usize) -> StoreText {
        let fields = self.hashes.get(key).into_iter().flatten();
        let mut fields: Vec<_> = fields.map(|(field, value)| (hash(field), field, value)).collect();
        fields.sort();
        fields.retain(|(hash, ..)| *hash > cursor);
        let next = if fields.len() > count { fields[count - 1].0 } else { 0 };
        fields.truncate(count);
        let items = fields.iter().flat_map(|(_, field, value)| [bulk(field), bulk(value)]);
        list(&[bulk(next.to_string().as_bytes()), list(&items.collect::<Vec<_>>())])
    }

    fn add_change(&mut self, key: &[u8], name: &[u8], value: &[u8], now: Duration) -> StoreText {
        let (last_ms, last_number) = self.last_id;
        let ms = now.as_millis() as u64;
        self.last_id = if ms > last_ms { (ms, 0) } else { (last_ms, last_number + 1) };
        let stream = self.streams.entry(key.to_vec()).or_default();
        stream.push((self.last_id, name.to_vec(), value.to_vec()));
        if stream.len() > STREAM_LENGTH {
            stream.remove(0);
        }
        bulk(shown_id(self.last_id).as_bytes())
    }

    fn changes(&self, key: &[u8]) -> &[StreamChange] {
        self.streams.get(key).map_or(&[], Vec::as_slice)
    }
}

/// The next command of a connection, word by word.
pub fn take_store_command(peer: &mut PeerConnection) -> Option<Vec<StoreText>> {
    let word = |peer: &mut PeerConnection| {
        let length = take_length(peer, b'$')?;
        let mut word = peer.exactly(length + 2)?;
        word.truncate(length);
        Some(word)
    };
    let count = take_length(peer, b'*')?;
    (0..count).map(|_| word(peer)).collect()
}

fn take_length(peer: &mut PeerConnection, kind: u8) -> Option<usize> {
    let line = peer.until(b"\r\n")?;
    assert_eq!(line[0], kind);
    str::from_utf8(&line[1..line.len() - 2]).ok()?.parse().ok()
}

fn number(word: &[u8]) -> i64 {
    str::from_utf8(word).unwrap().parse().unwrap()
}

fn id(word: &[u8]) -> (u64, u64) {
    let (ms, number) = str::from_utf8(word).unwrap().split_once('-').unwrap();
    (ms.parse().unwrap(), number.parse().unwrap())
}

fn shown_id((ms, number): (u64, u64)) -> String {
    format!("{ms}-{number}")
}

fn shown((id, name, value): &StreamChange) -> StoreText {
    list(&[bulk(shown_id(*id).as_bytes()), list(&[bulk(name), bulk(value)])])
}

fn news(key: &[u8], changes: &[StoreText]) -> StoreText {
    list(&[list(&[bulk(key), list(changes)])])
}

/// FNV-1a; never 0, which is the beginning.
fn hash(field: &[u8]) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    (field.iter().fold(0xcbf2_9ce4_8422_2325, add) >> 1).max(1)
}

fn integer(number: usize) -> StoreText {
    format!(":{number}\r\n").into_bytes()
}

fn bulk(text: &[u8]) -> StoreText {
    [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
}

fn list(items: &[StoreText]) -> StoreText {
    [format!("*{}\r\n", items.len()).into_bytes(), items.concat()].concat()
}
