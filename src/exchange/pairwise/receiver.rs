//! What this rank receives, in the order of steps.

use super::TAG;
use super::cut::{MOST_SEGMENT_BYTES, segments};
use super::window::{Pool, Posted, Window};
use crate::codec::{self, Decode, Memory, Place};
use crate::exchange::Result;
use crate::exchange::backoff::Backoff;
use crate::exchange::buffer::{Buffer, Kind};
use crate::exchange::context::{Context, HEADER_WORDS};
use crate::exchange::form::{Coded, Form, forms};
use crate::exchange::side::{Piece, Side};
use crate::wire::{Fault, HEADER_BYTES, Header, raw_wire_bytes};
use std::collections::VecDeque;
use std::iter::once;
use std::time::Instant;

/// Segments of one message that receives are posted for.
const AHEAD: usize = 2;

pub struct Receiver<'a> {
    context: Context<'a>,
    side: &'a Side,
    /// Ranks that no receive was posted for yet, in the order of steps.
    waiting: VecDeque<(usize, Form)>,
    /// What is under way, in the order of steps.
    streams: Vec<Stream<'a>>,
    window: Window,
    pool: &'a mut Pool,
    backoffs: &'a mut [Backoff],
    received: Received,
}

/// What came of receiving.
#[derive(Default)]
pub struct Received {
    pub faults: Vec<(usize, Fault)>,
    /// Spent on decoding.
    pub seconds: f64,
}

/// What one rank sends to this one.
struct Stream<'a> {
    peer: usize,
    content: Content,
    posted: VecDeque<Posted<'a>>,
    /// Where the block is not in one piece: its bytes, to be put in their places when all have come.
    room: Vec<u64>,
    fault: Option<Fault>,
}

enum Content {
    /// What is not yet posted of a message that comes as it is.
    Raw(VecDeque<Piece>),
    Segments(Segments),
}

struct Segments {
    coded: Coded,
    /// Where the values go to.
    target: *mut u8,
    place: Place,
    kind: Kind,
    /// Segments that no receive is posted for.
    left: usize,
    /// Values that have arrived.
    values: usize,
    /// Some segment was coded.
    some_coded: bool,
    /// What the window counts a segment as.
    estimate: usize,
}

impl<'a> Receiver<'a> {
    pub fn new(
        context: Context<'a>,
        side: &'a Side,
        backoffs: &'a mut [Backoff],
        pool: &'a mut Pool,
    ) -> Self {
        let forms = forms(context, side, |peer| backoffs[peer].holds_back());
        let (rank, size) = (context.registration.rank, context.registration.size);
        let waiting = (1..size)
            .map(|step| (rank + size - step) % size)
            .map(|peer| (peer, forms[peer]))
            .filter(|&(_, form)| form != Form::Raw(0))
            .collect();
        Self {
            context,
            side,
            waiting,
            streams: Vec::new(),
            window: Window::default(),
            pool,
            backoffs,
            received: Received::default(),
        }
    }

    /// Whether everything has arrived and been read.
    pub fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.streams.is_empty()
    }

    /// Posts receives until the window is full. The lowest step that is not done has one whatever the window
    /// holds: all that the window waits for may wait for it.
    ///
    /// # Safety
    /// `side` must describe a live buffer, as MPI asks of the program, and nothing else use it.
    pub unsafe fn post(&mut self) -> Result<()> {
        for index in 0.. {
            let is_lowest = index == 0;
            if index == self.streams.len() && (is_lowest || self.window.has_room()) {
                let next = self.waiting.pop_front();
                let open = |(peer, form)| Stream::new(self.context, self.side, peer, form);
                self.streams.extend(next.map(open));
            }
            let Some(stream) = self.streams.get_mut(index) else {
                break;
            };
            while self.window.has_room() || is_lowest && stream.posted.is_empty() {
                // SAFETY: the caller's promise.
                match unsafe { stream.post(self.context, self.pool)? } {
                    Some(bytes) => self.window.add(bytes),
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// Reads one message that has arrived, if any has.
    ///
    /// # Safety
    /// As [`Self::post`].
    pub unsafe fn read_next(&mut self) -> Result<bool> {
        for index in 0..self.streams.len() {
            let stream = &mut self.streams[index];
            let Some(posted) = stream.posted.front_mut() else {
                continue;
            };
            let Some(bytes) = stream.content.arrived(posted)? else {
                continue;
            };
            let Some(posted) = stream.posted.pop_front() else {
                continue;
            };
            self.window.remove(posted.bytes);
            let mut buffer = posted.into_buffer();
            let started = Instant::now();
            // SAFETY: the caller's promise.
            unsafe { stream.read(self.context, &mut buffer, bytes)? };
            self.pool.give(buffer);
            if stream.is_done() {
                let stream = self.streams.remove(index);
                // SAFETY: the caller's promise.
                unsafe { self.finish(stream)? };
            }
            self.received.seconds += started.elapsed().as_secs_f64();
            // SAFETY: the caller's promise.
            unsafe { self.post()? };
            return Ok(true);
        }
        Ok(false)
    }

    /// After the last message of a rank: a block that is not in one piece goes to its place.
    ///
    /// # Safety
    /// As [`Self::post`].
    unsafe fn finish(&mut self, mut stream: Stream) -> Result<()> {
        let Context {
            mpi, registration, ..
        } = self.context;
        let peer = stream.peer;
        if let Content::Segments(segments) = &stream.content {
            self.backoffs[peer].record(!segments.some_coded);
        }
        if let Some(fault) = stream.fault.take() {
            self.received.faults.push((peer, fault));
        } else if !stream.room.is_empty() {
            let (start, bytes) = (stream.room.as_ptr().cast(), self.side.bytes(peer));
            // SAFETY: the room was made for these bytes; the block is the caller's promise.
            unsafe {
                let bytes = std::slice::from_raw_parts(start, bytes);
                self.side.scatter(mpi, registration.private, peer, bytes)?;
            }
        }
        Ok(())
    }

    pub fn into_received(self) -> Received {
        self.received
    }
}

impl Content {
    /// The bytes of a message, once it has arrived; those of a raw one do not matter.
    fn arrived(&self, posted: &mut Posted) -> Result<Option<usize>> {
        match self {
            Self::Raw(_) => Ok(posted.is_done()?.then_some(0)),
            Self::Segments(_) => Ok(posted.received()?),
        }
    }
}

impl Drop for Stream<'_> {
    /// After an error or a panic MPI may still write to the room: it stays allocated for ever.
    fn drop(&mut self) {
        if !self.posted.is_empty() {
            std::mem::forget(std::mem::take(&mut self.room));
        }
    }
}

impl<'a> Stream<'a> {
    fn new(context: Context, side: &Side, peer: usize, form: Form) -> Self {
        let mut room = Vec::new();
        let content = match form {
            Form::Raw(bytes) => {
                let pieces = side.pieces(context.mpi, peer).unwrap_or_else(|| {
                    room.resize(bytes.div_ceil(8), 0);
                    Piece::of_bytes(context.mpi, room.as_mut_ptr().cast(), bytes).collect()
                });
                Content::Raw(pieces.into())
            }
            Form::Coded(coded) => {
                let mut place = side.place();
                let target = side.piece(peer, coded.item.bytes()).unwrap_or_else(|| {
                    place.memory = Memory::Host;
                    coded.room(&mut room)
                });
                let left = segments(&coded);
                let bytes = context.terms.wire_bytes(coded.count, coded.item);
                Content::Segments(Segments {
                    coded,
                    target,
                    place,
                    kind: side.buffer_kind(),
                    left,
                    values: 0,
                    some_coded: false,
                    estimate: bytes / left,
                })
            }
        };
        Self {
            peer,
            content,
            posted: VecDeque::new(),
            room,
            fault: None,
        }
    }

    fn is_done(&self) -> bool {
        let is_posted = match &self.content {
            Content::Raw(pieces) => pieces.is_empty(),
            Content::Segments(segments) => segments.left == 0,
        };
        is_posted && self.posted.is_empty()
    }

    /// Posts the next receive, if there is one to be posted now; what the window is to count it as.
    ///
    /// # Safety
    /// As [`Receiver::post`].
    unsafe fn post(&mut self, context: Context<'a>, pool: &mut Pool) -> Result<Option<usize>> {
        let byte = context.mpi.abi.byte;
        let (buffer, piece) = match &mut self.content {
            Content::Raw(pieces) => match pieces.pop_front() {
                Some(piece) => (Buffer::default(), piece),
                None => return Ok(None),
            },
            Content::Segments(segments) => {
                if segments.left == 0 || self.posted.len() >= AHEAD {
                    return Ok(None);
                }
                segments.left -= 1;
                let longest = HEADER_BYTES + MOST_SEGMENT_BYTES;
                let Coded { count, item, .. } = segments.coded;
                let room = raw_wire_bytes(count, item).min(longest);
                let mut buffer = pool.take(room, segments.kind);
                let start = buffer.place(0).1;
                let piece = Piece {
                    start,
                    items: room as i32,
                    datatype: byte,
                    bytes: segments.estimate,
                };
                (buffer, piece)
            }
        };
        let comm = context.registration.private;
        // SAFETY: the buffer is ours and goes with the request, or it is the program's, by the caller's promise, or
        // the stream's, which is there until everything has arrived.
        let request = unsafe {
            let start = piece.start.cast();
            let (items, datatype) = (piece.items, piece.datatype);
            context
                .mpi
                .irecv(start, items, datatype, self.peer, TAG, comm)?
        };
        self.posted
            .push_back(Posted::new(request, buffer, piece.bytes));
        Ok(Some(piece.bytes))
    }

    /// Reads a message that has arrived. After a fault, what else comes from this rank is left alone.
    ///
    /// # Safety
    /// As [`Receiver::post`].
    unsafe fn read(&mut self, context: Context, buffer: &mut Buffer, bytes: usize) -> Result<()> {
        let Content::Segments(segments) = &mut self.content else {
            return Ok(());
        };
        if bytes > 0 && self.fault.is_none() {
            buffer.fetch(once(0..HEADER_BYTES.min(bytes)))?;
            // SAFETY: the target has room for the values of the message, by the caller's promise.
            self.fault = unsafe { segments.read(context, buffer, bytes) }.err();
        }
        let is_last = segments.left == 0 && self.posted.is_empty();
        if is_last && self.fault.is_none() && segments.values != segments.coded.count {
            self.fault = Some(Fault::Mismatch {
                what: "count",
                sent: segments.values,
                expected: segments.coded.count,
            });
        }
        Ok(())
    }
}

fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: the same memory, as bytes.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

impl Segments {
    /// Reads a segment.
    ///
    /// # Safety
    /// `target` must have room for the values of the message.
    unsafe fn read(
        &mut self,
        context: Context,
        buffer: &mut Buffer,
        bytes: usize,
    ) -> std::result::Result<(), Fault> {
        let Coded { item, count, .. } = self.coded;
        let coding = context.terms.coding;
        let expected = 1..=count - self.values;
        let words = &buffer[..bytes.div_ceil(8)];
        let header = Header::read(bytes_of(words), coding, item, expected, bytes)?;
        // SAFETY: that many values have arrived before, and as many as the header says still have room.
        let target = unsafe { self.target.add(self.values * item.bytes()) };
        if header.escaped {
            let bytes = header.count * item.bytes();
            if size_of_val(words) < HEADER_BYTES + bytes {
                return Err(Fault::Payload);
            }
            let (memory, from) = buffer.place(HEADER_BYTES);
            // SAFETY: the buffer has these bytes, and the target room for them.
            let copied = unsafe { memory.copy(from, (self.place.memory, target), bytes) };
            copied.map_err(|error| Fault::Gpu(error.to_string()))?;
        } else {
            self.some_coded = true;
            let message = Decode {
                coding,
                item,
                values: target,
                place: self.place,
                count: header.count,
                axes: &header.axes,
                masked: header.masked,
                fitted: header.fitted,
                payload: words.get(HEADER_WORDS..).unwrap_or_default(),
                on_device: buffer.on_device(HEADER_BYTES),
            };
            // SAFETY: the target has room for the values of the segment, and is aligned for them.
            let decoded = unsafe { codec::decode(&[message], context.settings.threads) };
            if decoded != [true] {
                return Err(Fault::Payload);
            }
        }
        self.values += header.count;
        Ok(())
    }
}
