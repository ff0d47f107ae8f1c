//! The balancing method: one slot that a directive of each balancer fills.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Subsystem, Template, Value, Word};

use crate::balance::{
    Balance, Better, ConsistentHash, HashBalance, IpHash, LeastConn, LeastTime, RandomBalance,
    RefusedParameters,
};
use crate::times::Until;

#[derive(Clone, Debug)]
pub struct BalanceMethod {
    pub(super) balance: Arc<dyn Balance>,
    name: Box<[u8]>,
}

/// The block that is being read, and the parameters that its method rejects, for the `server` lines
/// below it: nginx checks them in this order, too.
#[derive(Default)]
pub(super) struct GroupReading {
    pub group: Box<[u8]>,
    pub refused: RefusedParameters,
}

impl Value for BalanceMethod {
    const ARGS: RangeInclusive<usize> = 0..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let balance: Arc<dyn Balance> = match &*from.name.text {
            b"least_conn" => Arc::new(LeastConn),
            b"ip_hash" => Arc::new(IpHash),
            b"hash" => hash(from, load)?,
            b"random" => Arc::new(RandomBalance { two: random(from, load)? }),
            _ => Arc::new(least_time(from, load)?),
        };
        load.own.of::<GroupReading>().refused = balance.refused();
        Ok(Self { balance, name: from.name.text.clone() })
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        load.warn(from.error("load balancing method redefined"));
        if &*from.name.text == b"least_time" && *self.name == *b"least_time" {
            return Err(from.refuse("is duplicate"));
        }
        *self = Self::parse(from, load)?;
        Ok(())
    }
}

fn hash(from: &Directive, load: &mut Load<'_>) -> Result<Arc<dyn Balance>> {
    let key = Template::compile(from.arg(0), from, load)?;
    match from.args.get(1) {
        None => Ok(Arc::new(HashBalance { key })),
        Some(word) if &*word.text == b"consistent" => Ok(Arc::new(ConsistentHash { key })),
        Some(word) => Err(invalid(word, from)),
    }
}

fn random(from: &Directive, load: &Load<'_>) -> Result<Option<Better>> {
    match &from.args[..] {
        [] => Ok(None),
        [two, ..] if &*two.text != b"two" => Err(invalid(two, from)),
        [_] => Ok(Some(Better::LeastConn)),
        [_, by, ..] => match &*by.text {
            b"least_conn" => Ok(Some(Better::LeastConn)),
            text => {
                let until = text.strip_prefix(b"least_time=").and_then(|word| until(word, load));
                until.map(|until| Some(Better::LeastTime(until))).ok_or_else(|| invalid(by, from))
            }
        },
    }
}

fn least_time(from: &Directive, load: &Load<'_>) -> Result<LeastTime> {
    let inflight = match from.args.get(1) {
        None => false,
        Some(word) if &*word.text == b"inflight" => true,
        Some(word) => return Err(invalid(word, from)),
    };
    let word = from.arg(0);
    match until(&word.text.to_ascii_lowercase(), load) {
        Some(until) => Ok(LeastTime { until, inflight }),
        None => Err(from.error_at(word, format!("invalid value \"{word}\""))),
    }
}

fn until(word: &[u8], load: &Load<'_>) -> Option<Until> {
    match (load.subsystem, word) {
        (Subsystem::Stream, b"connect") => Some(Until::Connect),
        (Subsystem::Stream, b"first_byte") | (Subsystem::Http, b"header") => Some(Until::FirstByte),
        (_, b"last_byte") => Some(Until::LastByte),
        _ => None,
    }
}

fn invalid(word: &Word, from: &Directive) -> conf::Error {
    from.error_at(word, format!("invalid parameter \"{word}\""))
}
