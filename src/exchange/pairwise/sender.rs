//! What this rank sends, in the order of steps.

use super::TAG;
use super::cut::{Segment, cut, keep_whole};
use super::window::{Pool, Posted, Window};
use crate::exchange::Result;
use crate::exchange::axes;
use crate::exchange::backoff::Backoff;
use crate::exchange::buffer::{Buffer, Kind};
use crate::exchange::context::Context;
use crate::exchange::form::{Form, forms};
use crate::exchange::message::{self, Message, Values};
use crate::exchange::outgoing::{Outgoing, Part, here};
use crate::exchange::side::{PIECE_BYTES, Piece, Side};
use crate::layout::Pattern;
use crate::report::{CallStats, Fate};
use crate::wire::{self, HEADER_BYTES};
use std::collections::VecDeque;
use std::iter::once;
use std::time::Instant;

/// Segments that a GPU codes at once: one alone would leave it idle. A CPU codes one on each thread, so that they travel
/// while the next ones are coded.
const ON_A_GPU: usize = 64;

pub struct Sender<'a> {
    context: Context<'a>,
    side: &'a Side,
    /// Raw messages, by rank.
    raw: Vec<usize>,
    /// Those to be coded, in the order of steps.
    messages: VecDeque<Message>,
    pattern: Option<Pattern>,
    /// The values of the message that the axes were looked for in.
    specimen: Option<(usize, Values)>,
    /// The next step.
    step: usize,
    /// The message that is being cut.
    current: Option<Cutting>,
    /// What is ready to be sent.
    loads: VecDeque<Load>,
    posted: Vec<Posted<'a>>,
    window: Window,
    pool: &'a mut Pool,
    backoffs: &'a mut [Backoff],
    outgoing: &'a mut Outgoing,
    stats: &'a mut CallStats,
}

/// A message of which some segments may have been sent.
struct Cutting {
    message: Message,
    values: Values,
    segments: VecDeque<Segment>,
    sent: usize,
    /// Bytes on the wire so far.
    bytes: usize,
    some_coded: bool,
}

impl Cutting {
    fn values_of(&self, segment: &Segment) -> *const u8 {
        let offset = segment.values.start * self.message.coded.item.bytes();
        self.values.pointer.wrapping_add(offset)
    }

    /// Puts the values of a segment behind its header as they are. Returns the bytes of both.
    ///
    /// # Safety
    /// The message must point to its values.
    unsafe fn copy(&self, segment: &Segment, buffer: &mut Buffer) -> Result<usize> {
        let (count, item) = (segment.values.len(), self.message.coded.item);
        let (memory, from) = (self.values.place.memory, self.values_of(segment));
        // SAFETY: the caller's promise; the buffer has room for the values after the header.
        unsafe { memory.copy(from, buffer.place(HEADER_BYTES), count * item.bytes())? };
        Ok(wire::raw_wire_bytes(count, item))
    }
}

/// Something to be sent to one rank.
struct Load {
    peer: usize,
    /// A buffer of ours; empty where the program's is sent from.
    buffer: Buffer,
    piece: Piece,
}

impl<'a> Sender<'a> {
    /// # Safety
    /// `side` must describe a live buffer, as MPI asks of the program, as long as this lives.
    pub unsafe fn new(
        context: Context<'a>,
        side: &'a Side,
        backoffs: &'a mut [Backoff],
        outgoing: &'a mut Outgoing,
        pool: &'a mut Pool,
        stats: &'a mut CallStats,
    ) -> Result<Self> {
        let started = Instant::now();
        let forms = forms(context, side, |peer| backoffs[peer].holds_back());
        let mut messages = message::coded(&forms);
        let (mut specimen, mut pattern) = (None, None);
        if let Some(longest) = message::longest(&messages) {
            // SAFETY: the caller's promise.
            let values = unsafe { Values::of(context, side, &messages[longest])? };
            let inference = &mut outgoing.inference;
            // SAFETY: these are the values of the longest message.
            pattern =
                unsafe { axes::choose(context, side, &mut messages, longest, &values, inference)? };
            specimen = Some((messages[longest].peer, values));
        }
        let raw = forms.iter().map(|form| match form {
            Form::Raw(bytes) => *bytes,
            Form::Coded(_) => 0,
        });
        // Those above this rank come first.
        messages.sort_by_key(|message| (message.peer < context.registration.rank, message.peer));
        stats.encode += started.elapsed().as_secs_f64();
        Ok(Self {
            raw: raw.collect(),
            context,
            side,
            messages: messages.into(),
            pattern,
            specimen,
            step: 1,
            current: None,
            loads: VecDeque::new(),
            posted: Vec::new(),
            window: Window::default(),
            pool,
            backoffs,
            outgoing,
            stats,
        })
    }

    /// Whether MPI is done with everything.
    pub fn is_done(&self) -> bool {
        self.is_coded() && self.loads.is_empty() && self.posted.is_empty()
    }

    fn is_coded(&self) -> bool {
        self.step == self.context.registration.size && self.current.is_none()
    }

    /// Makes everything ready to be sent from buffers of ours.
    ///
    /// # Safety
    /// As [`Self::new`].
    pub unsafe fn code_all(&mut self) -> Result<()> {
        while !self.is_coded() {
            // SAFETY: the caller's promise.
            unsafe { self.code_next(true)? };
        }
        Ok(())
    }

    /// Sends the next thing, if the window has room and there is any.
    ///
    /// # Safety
    /// As [`Self::new`].
    pub unsafe fn send_next(&mut self) -> Result<bool> {
        if !self.window.has_room() {
            return Ok(false);
        }
        while self.loads.is_empty() && !self.is_coded() {
            // SAFETY: the caller's promise.
            unsafe { self.code_next(false)? };
        }
        let Some(Load {
            peer,
            buffer,
            piece,
        }) = self.loads.pop_front()
        else {
            return Ok(false);
        };
        let Context {
            mpi, registration, ..
        } = self.context;
        // SAFETY: the buffer is ours and goes with the request, or it is the program's, by the caller's promise.
        let request = unsafe {
            let start = piece.start.cast_const().cast();
            mpi.isend(
                start,
                piece.items,
                piece.datatype,
                peer,
                TAG,
                registration.private,
            )?
        };
        self.window.add(piece.bytes);
        self.posted.push(Posted::new(request, buffer, piece.bytes));
        Ok(true)
    }

    /// Takes buffers back that MPI is done with.
    pub fn reap(&mut self) -> Result<bool> {
        let mut index = 0;
        let before = self.posted.len();
        while index < self.posted.len() {
            if self.posted[index].is_done()? {
                let posted = self.posted.swap_remove(index);
                self.window.remove(posted.bytes);
                self.pool.give(posted.into_buffer());
            } else {
                index += 1;
            }
        }
        Ok(self.posted.len() < before)
    }

    /// Makes the next thing ready, if it is not nothing.
    ///
    /// # Safety
    /// As [`Self::new`].
    unsafe fn code_next(&mut self, staged: bool) -> Result<()> {
        // SAFETY: the caller's promise, in all three cases.
        unsafe {
            if let Some(mut cutting) = self.current.take() {
                if cutting.segments.is_empty() {
                    self.finish(&cutting);
                } else {
                    self.code_segments(&mut cutting)?;
                    self.current = Some(cutting);
                }
                return Ok(());
            }
            let Context { registration, .. } = self.context;
            let peer = (registration.rank + self.step) % registration.size;
            self.step += 1;
            let is_coded = self.messages.front().is_some_and(|next| next.peer == peer);
            if is_coded && let Some(message) = self.messages.pop_front() {
                self.start(message)
            } else {
                self.load_raw(peer, staged)
            }
        }
    }

    /// # Safety
    /// As [`Self::new`].
    unsafe fn start(&mut self, message: Message) -> Result<()> {
        let values = match self.specimen.take_if(|(peer, _)| *peer == message.peer) {
            Some((_, values)) => values,
            // SAFETY: the caller's promise.
            None => unsafe { Values::of(self.context, self.side, &message)? },
        };
        let is_fitted = self
            .pattern
            .is_some_and(|pattern| self.outgoing.inference.is_fitted(pattern));
        let segments = match is_fitted && !self.context.terms.is_variable() {
            true => keep_whole(&message),
            false => cut(&message),
        };
        self.current = Some(Cutting {
            segments: segments.into(),
            message,
            values,
            sent: 0,
            bytes: 0,
            some_coded: false,
        });
        Ok(())
    }

    /// Codes the next segments of a message.
    ///
    /// # Safety
    /// As [`Self::new`].
    unsafe fn code_segments(&mut self, cutting: &mut Cutting) -> Result<()> {
        let started = Instant::now();
        let kind = self.side.buffer_kind();
        let at_once = match cutting.values.place.coder {
            Some(_) => ON_A_GPU,
            None => self.context.settings.threads,
        };
        let at_once = at_once.min(cutting.segments.len());
        let segments: Vec<_> = cutting.segments.drain(..at_once).collect();
        let item = cutting.message.coded.item;
        let raw_bytes = |segment: &Segment| wire::raw_wire_bytes(segment.values.len(), item);
        let mut buffers: Vec<_> = segments
            .iter()
            .map(|segment| self.pool.take(raw_bytes(segment), kind))
            .collect();
        let mut parts = Vec::with_capacity(segments.len());
        for (index, (segment, buffer)) in segments.iter().zip(&mut buffers).enumerate() {
            let (count, raw_bytes) = (segment.values.len(), raw_bytes(segment));
            if count == 0 {
                continue;
            }
            let slot_bytes = self.context.terms.wire_bytes(count, item).min(raw_bytes);
            parts.push(Part {
                message: &cutting.message,
                segment: cutting.sent + index,
                count,
                axes: &segment.axes,
                values: cutting.values_of(segment),
                place: cutting.values.place,
                bytes_if_refused: raw_bytes,
                on_device: buffer.on_device(0),
                slot: &mut buffer[..slot_bytes / 8],
            });
        }
        let (outgoing, stats) = (&mut self.outgoing, &mut self.stats);
        // SAFETY: each part points to its values.
        let outcomes = unsafe { outgoing.code(self.context, self.pattern, &mut parts, stats) };
        let mut outcomes = outcomes.into_iter();
        for (segment, mut buffer) in segments.iter().zip(buffers) {
            let bytes = match segment.values.is_empty() {
                true => 0,
                false => match outcomes.next() {
                    Some(outcome) => {
                        buffer.publish(once(0..here(&outcome)))?;
                        match outcome {
                            Ok(sent) => {
                                cutting.some_coded = true;
                                sent.bytes
                            }
                            // SAFETY: the caller's promise.
                            Err(_) => unsafe { cutting.copy(segment, &mut buffer)? },
                        }
                    }
                    None => 0,
                },
            };
            cutting.sent += 1;
            cutting.bytes += bytes;
            self.load_buffer(cutting.message.peer, buffer, bytes);
        }
        self.stats.encode += started.elapsed().as_secs_f64();
        Ok(())
    }

    /// Counts a message whose segments are all on their way.
    fn finish(&mut self, cutting: &Cutting) {
        let Message { peer, coded, .. } = cutting.message;
        self.backoffs[peer].record(!cutting.some_coded);
        let fate = if cutting.some_coded {
            Fate::Compressed
        } else {
            Fate::Escaped
        };
        self.stats.count(fate, coded.raw_bytes(), cutting.bytes);
    }

    /// # Safety
    /// As [`Self::new`].
    unsafe fn load_raw(&mut self, peer: usize, staged: bool) -> Result<()> {
        let Context {
            mpi, registration, ..
        } = self.context;
        let bytes = self.raw[peer];
        self.stats.count(Fate::Raw, bytes, bytes);
        if !staged && let Some(pieces) = self.side.pieces(mpi, peer) {
            let load = |piece| Load {
                peer,
                buffer: Buffer::default(),
                piece,
            };
            self.loads.extend(pieces.into_iter().map(load));
            return Ok(());
        }
        let mut gathered = vec![0; bytes];
        // SAFETY: the caller's promise.
        unsafe {
            let comm = registration.private;
            self.side.gather(mpi, comm, peer, &mut gathered)?;
        }
        for chunk in gathered.chunks(PIECE_BYTES) {
            let mut buffer = self.pool.take(chunk.len(), Kind::Plain);
            // SAFETY: the buffer has room for so many bytes.
            unsafe {
                let target = buffer.as_mut_ptr().cast();
                std::ptr::copy_nonoverlapping(chunk.as_ptr(), target, chunk.len());
            }
            self.load_buffer(peer, buffer, chunk.len());
        }
        Ok(())
    }

    fn load_buffer(&mut self, peer: usize, mut buffer: Buffer, bytes: usize) {
        let piece = Piece {
            start: buffer.place(0).1,
            items: bytes as i32,
            datatype: self.context.mpi.abi.byte,
            bytes,
        };
        self.loads.push_back(Load {
            peer,
            buffer,
            piece,
        });
    }
}
