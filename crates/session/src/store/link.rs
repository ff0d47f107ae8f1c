//! A connection to a store: pipelines of commands, and their replies.
//!
//! Every wait has a deadline, and whatever the store sends, no more is kept than the limits allow.
//! A connection that has failed once is not used again.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};

use net::tls::CertificateFault;
use net::{Address, Connect, Stream, Timer, buffers};
use upstream::ResolverPolicy;
use upstream::address::Endpoint;
use wire::resp::{RespCommands, RespError, RespLimits, RespReader, RespReply};

use super::address::StoreAddress;

/// The most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 4;
/// The cost of a byte that is parsed, relative to one that is only read.
const COST_OF_PARSING: usize = 4;

/// Bytes of all replies to a pipeline, and more for each command: three numbers of 64 bits fit.
const REPLIES_BYTES: usize = 64 * 1024;
const REPLY_BYTES: usize = 128;
/// Bytes of a text: a record of a table fits.
const TEXT_BYTES_MAX: usize = 80 * 1024;
/// Items of a reply: what a store tells at once of a table fits.
const ITEMS_MAX: usize = 8192;

pub(super) struct StoreLink {
    stream: Stream,
    timeout_ms: u64,
}

/// Why the store cannot be used.
#[derive(Debug)]
pub(super) enum StoreFault {
    Unresolved(String),
    Connection(io::Error),
    NotConnected(u64),
    /// The TLS handshake failed.
    Handshake(io::Error),
    /// The store's certificate is for another name than this.
    OtherName(String),
    NotSecured(u64),
    Silent(u64),
    Closed,
    Answer(RespError),
    /// An answer that is not one to the command.
    Unexpected(&'static str),
}

impl StoreLink {
    pub(super) async fn open(
        store: &StoreAddress,
        names: &ResolverPolicy,
    ) -> Result<Self, StoreFault> {
        let opening = StoreOpening { store, names, is_securing: Cell::new(false) };
        let timer = Timer::new();
        timer.set(store.timeout_ms);
        let opened = timer.limit(opening.connect()).await;
        let stream = opened.unwrap_or_else(|| Err(opening.too_late()))?;
        if matches!(&store.place, Endpoint::Named { .. } | Endpoint::At(Address::Ip(_))) {
            stream.set_nodelay();
        }
        Ok(Self { stream, timeout_ms: store.timeout_ms })
    }

    /// Sends commands and receives the replies to all of them.
    pub(super) async fn exchange(
        &mut self,
        commands: &RespCommands,
    ) -> Result<Vec<RespReply>, StoreFault> {
        let timer = Timer::new();
        timer.set(self.timeout_ms);
        let bytes_max = REPLIES_BYTES + REPLY_BYTES * commands.count() + commands.reply_bytes();
        let limits = RespLimits { text_bytes_max: TEXT_BYTES_MAX, items_max: ITEMS_MAX, bytes_max };
        let mut pipeline = Pipeline {
            stream: &mut self.stream,
            bytes: commands.bytes(),
            sent: 0,
            reader: RespReader::new(commands.count(), limits),
        };
        let done = timer.limit(poll_fn(|cx| pipeline.poll(cx))).await;
        done.unwrap_or(Err(StoreFault::Silent(self.timeout_ms)))?;
        Ok(pipeline.reader.into_replies())
    }
}

/// A connection to be opened.
struct StoreOpening<'a> {
    store: &'a StoreAddress,
    names: &'a ResolverPolicy,
    /// Whether a TLS handshake has begun.
    is_securing: Cell<bool>,
}

impl StoreOpening<'_> {
    /// Connects to the first address that accepts.
    async fn connect(&self) -> Result<Stream, StoreFault> {
        let place = &self.store.place;
        let mut fault = StoreFault::Unresolved(format!("host not found: {place}"));
        for address in addresses(place, self.names).await?.into_iter().take(ADDRESSES_MAX) {
            match self.connect_to(&address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => fault = self.fault(error),
            }
        }
        Err(fault)
    }

    async fn connect_to(&self, address: &Address) -> io::Result<Stream> {
        self.is_securing.set(false);
        let transport = self.store.tls.as_ref().map(|tls| tls.transport.clone());
        let is_secured = transport.is_some();
        let begun = Connect { transport, ..Connect::default() }.begin(address);
        let mut connecting = begun.map_err(|(_, error)| error)?;
        poll_fn(|cx| {
            let polled = connecting.poll(cx);
            self.is_securing.set(is_secured && connecting.is_securing());
            polled
        })
        .await
    }

    fn fault(&self, error: io::Error) -> StoreFault {
        match &self.store.tls {
            Some(tls) if CertificateFault::of(&error) == Some(CertificateFault::OtherName) => {
                StoreFault::OtherName(tls.name().to_owned())
            }
            _ if self.is_securing.get() => StoreFault::Handshake(error),
            _ => StoreFault::Connection(error),
        }
    }

    fn too_late(&self) -> StoreFault {
        let timeout_ms = self.store.timeout_ms;
        match self.is_securing.get() {
            true => StoreFault::NotSecured(timeout_ms),
            false => StoreFault::NotConnected(timeout_ms),
        }
    }
}

/// Names are looked up by `resolver`, or by the system in another thread, because it may block.
async fn addresses(place: &Endpoint, names: &ResolverPolicy) -> Result<Vec<Address>, StoreFault> {
    let (host, port) = match place {
        Endpoint::At(address) => return Ok(vec![address.clone()]),
        Endpoint::Named { host, port } => (host, *port),
    };
    let Some(resolver) = names.resolver() else {
        let place = place.clone();
        return Ok(net::offload(move || place.addresses()).await);
    };
    let found = resolver.addresses(host).await;
    let found = found.map_err(|error| StoreFault::Unresolved(error.to_string()))?;
    let at_port = |ip| Address::Ip(SocketAddr::new(ip, port));
    Ok(found.addresses.into_iter().map(at_port).collect())
}

/// Commands on their way. Replies are read while commands are still being written: a store stops
/// reading while nobody takes its replies.
struct Pipeline<'a> {
    stream: &'a mut Stream,
    bytes: &'a [u8],
    sent: usize,
    reader: RespReader,
}

impl Pipeline<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StoreFault>> {
        if let Poll::Ready(Err(error)) = self.poll_send(cx) {
            return Poll::Ready(Err(StoreFault::Connection(error)));
        }
        self.poll_receive(cx)
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.bytes.len() {
            ready!(net::poll_share(cx));
            let slices = [IoSlice::new(&self.bytes[self.sent..])];
            let count = ready!(self.stream.poll_write(cx, &slices))?;
            self.sent += count;
            net::spend(count);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StoreFault>> {
        while !self.reader.is_done() {
            ready!(net::poll_share(cx));
            let mut input = Vec::new();
            let read = ready!(self.stream.poll_read(cx, &mut input));
            net::spend(input.len() * COST_OF_PARSING);
            let taken = match read {
                Ok(0) => Err(StoreFault::Closed),
                Ok(_) => self.reader.receive(&input).map_err(StoreFault::Answer),
                Err(error) => Err(StoreFault::Connection(error)),
            };
            buffers::give_back(input);
            taken?;
        }
        Poll::Ready(Ok(()))
    }
}

impl std::fmt::Display for StoreFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unresolved(reason) => f.write_str(reason),
            Self::Connection(error) => write!(f, "{error}"),
            Self::NotConnected(ms) => write!(f, "no connection within {ms} ms"),
            Self::Handshake(error) => match CertificateFault::of(error) {
                Some(fault) => write!(f, "its certificate is not trusted ({fault})"),
                None => write!(f, "the TLS handshake failed ({error})"),
            },
            Self::OtherName(name) => write!(f, "its certificate is not for \"{name}\""),
            Self::NotSecured(ms) => write!(f, "no TLS handshake within {ms} ms"),
            Self::Silent(ms) => write!(f, "no answer within {ms} ms"),
            Self::Closed => f.write_str("it has closed the connection"),
            Self::Answer(error) => write!(f, "{error}"),
            Self::Unexpected(reason) => f.write_str(reason),
        }
    }
}
