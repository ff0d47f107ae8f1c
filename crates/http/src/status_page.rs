//! Pages about the program itself: written piece by piece, so that a long one neither stays in
//! memory nor keeps a worker from its other clients.

use std::task::{Context, Poll};

use metrics::tree::{JsonPage, StatusTree};

use crate::exchange::{Body, BodyError, BodyLog, BodyStream, Bytes, Chunk, Exchange, Flow};

/// A page up to this length is sent as one piece, with its length.
const WHOLE_MAX: usize = 64 * 1024;
/// The least length of a piece of a longer one.
const PIECE_MIN: usize = 16 * 1024;
/// What a step takes of a task's share besides its bytes: one that writes nothing has looked at an
/// item, too.
const STEP_BYTES: usize = 1024;

/// A page that is written in pieces.
pub(crate) trait WrittenPage: 'static {
    /// Appends the next piece. False: nothing is left.
    fn write_piece(&mut self, out: &mut Vec<u8>) -> bool;
}

impl WrittenPage for JsonPage {
    fn write_piece(&mut self, out: &mut Vec<u8>) -> bool {
        JsonPage::write_piece(self, out)
    }
}

/// Answers with a tree.
pub(crate) fn json(x: &mut Exchange, tree: StatusTree) -> Flow {
    answer(x, b"application/json", JsonPage::new(tree))
}

/// Answers with a page, which nobody may cache.
pub(crate) fn answer(x: &mut Exchange, content_type: &[u8], mut page: impl WrittenPage) -> Flow {
    x.reply.status = 200;
    head(x, content_type);
    let mut text = x.reply.text();
    while text.len() < WHOLE_MAX && net::has_share() {
        if !write_step(&mut page, &mut text) {
            x.reply.set_bytes(Bytes::Owned(text));
            return Flow::Done;
        }
    }
    let begun = (!text.is_empty()).then_some(text);
    x.reply.body = Body::Stream(Box::new(PageBody { begun, unfinished: Vec::new(), page }));
    Flow::Done
}

/// Answers with a short text and a status.
pub(crate) fn text(x: &mut Exchange, status: u16, content_type: &[u8], text: Vec<u8>) -> Flow {
    x.reply.status = status;
    head(x, content_type);
    x.reply.set_bytes(Bytes::Owned(text));
    Flow::Done
}

fn head(x: &mut Exchange, content_type: &[u8]) {
    x.reply.set_content_type(content_type);
    x.reply.fields.append(b"Cache-Control", b"no-store");
}

/// The value of an argument of the request, as it is written.
pub(crate) fn argument<'x>(x: &'x Exchange, name: &[u8]) -> Option<&'x [u8]> {
    argument_of(&x.request.args, name)
}

/// The value of one of these arguments, as it is written.
pub(crate) fn argument_of<'a>(args: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    args.split(|byte| *byte == b'&').find_map(|argument| {
        let mut parts = argument.splitn(2, |byte| *byte == b'=');
        (parts.next() == Some(name)).then(|| parts.next().unwrap_or_default())
    })
}

/// The address of the server that the client has reached, without its port.
pub(crate) fn server_address(x: &Exchange) -> Vec<u8> {
    match x.client.local() {
        Some(address) => address.ip().to_string().into_bytes(),
        None => b"unix:".to_vec(),
    }
}

/// The parts of a path between slashes.
pub(crate) fn parts(path: &[u8]) -> Vec<&[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).collect()
}

struct PageBody<P> {
    /// What was written before it turned out to be long.
    begun: Option<Vec<u8>>,
    /// What was written of a piece when the task's share was over.
    unfinished: Vec<u8>,
    page: P,
}

/// Writes the next step of a page, and counts it as work of the task. False: nothing is left.
fn write_step(page: &mut impl WrittenPage, out: &mut Vec<u8>) -> bool {
    let before = out.len();
    let goes_on = page.write_piece(out);
    net::spend(out.len() - before + STEP_BYTES);
    goes_on
}

impl<P: WrittenPage> BodyStream for PageBody<P> {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        _: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        if let Some(begun) = self.begun.take() {
            return Poll::Ready(Ok(Some(Chunk::Bytes(Bytes::Owned(begun)))));
        }
        let mut piece = std::mem::take(&mut self.unfinished);
        piece.reserve(PIECE_MIN + PIECE_MIN / 4);
        while piece.len() < PIECE_MIN {
            if net::poll_share(cx).is_pending() {
                self.unfinished = piece;
                return Poll::Pending;
            }
            if !write_step(&mut self.page, &mut piece) {
                break;
            }
        }
        let piece = (!piece.is_empty()).then(|| Chunk::Bytes(Bytes::Owned(piece)));
        Poll::Ready(Ok(piece))
    }
}
