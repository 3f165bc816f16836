//! Where the events of `tracing` go: one line each on stderr, written at once.
//!
//! The library may speak from atexit handlers, from any thread and inside programs that have closed
//! or redirected stderr. So there is no lock, no heap and no thread-local on the way: a line is put
//! together on the stack and handed to a single write(2), and a line that cannot be written is lost.

use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Installs the log for this process and returns whether it did: the first call counts.
pub fn install(level: LevelFilter) -> bool {
    tracing::subscriber::set_global_default(Log { level }).is_ok()
}

struct Log {
    level: LevelFilter,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::new();
        event.record(&mut line);
        write_stderr(line.finish());
    }

    // Spans are ignored; `enabled` refuses them, so none of these is reached in practice.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

const PREFIX: &str = "transpress: ";
/// Longer lines are cut. Below PIPE_BUF, so lines of several ranks on one pipe do not mix.
const CAPACITY: usize = 2048;
const CUT: &str = "...\n";

/// A line that grows on the stack.
struct Line {
    text: [u8; CAPACITY],
    used: usize,
    cut: bool,
}

impl Line {
    fn new() -> Self {
        let mut line = Self {
            text: [0; CAPACITY],
            used: 0,
            cut: false,
        };
        line.push(PREFIX.as_bytes());
        line
    }

    /// Appends all of `bytes`, or nothing from here on; room for the end is kept.
    fn push(&mut self, bytes: &[u8]) {
        let end = self.used + bytes.len();
        self.cut |= end > CAPACITY - CUT.len();
        if !self.cut {
            self.text[self.used..end].copy_from_slice(bytes);
            self.used = end;
        }
    }

    fn finish(&mut self) -> &[u8] {
        let end = if self.cut { CUT } else { "\n" }.as_bytes();
        self.text[self.used..self.used + end.len()].copy_from_slice(end);
        &self.text[..self.used + end.len()]
    }

    /// Whether nothing but the prefix is there yet.
    fn is_empty(&self) -> bool {
        self.used == PREFIX.len()
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            // An event is one line, whatever a message quotes.
            let c = if c.is_control() { ' ' } else { c };
            self.push(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(())
    }
}

impl Visit for Line {
    /// The message as it is, every other field as `name=value`.
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let space = if self.is_empty() { "" } else { " " };
        // Line::write_str cannot fail; a value whose Debug fails is left half written.
        let _ = match field.name() {
            "message" => write!(self, "{space}{value:?}"),
            name => write!(self, "{space}{name}={value:?}"),
        };
    }
}

/// One write(2) to stderr. The program's errno stays what it was.
fn write_stderr(line: &[u8]) {
    // SAFETY: errno's address is valid for this thread, and `line` is readable for its length.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        while libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) < 0
            && *errno == libc::EINTR
        {}
        *errno = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `event` would write, by a subscriber that keeps it.
    fn line_of(event: impl FnOnce()) -> String {
        use std::sync::{Arc, Mutex};

        struct Keep(Log, Arc<Mutex<String>>);
        impl Subscriber for Keep {
            fn enabled(&self, metadata: &Metadata<'_>) -> bool {
                self.0.enabled(metadata)
            }
            fn event(&self, event: &Event<'_>) {
                let mut line = Line::new();
                event.record(&mut line);
                *self.1.lock().unwrap() += std::str::from_utf8(line.finish()).unwrap();
            }
            fn new_span(&self, attributes: &Attributes<'_>) -> Id {
                self.0.new_span(attributes)
            }
            fn record(&self, _: &Id, _: &Record<'_>) {}
            fn record_follows_from(&self, _: &Id, _: &Id) {}
            fn enter(&self, _: &Id) {}
            fn exit(&self, _: &Id) {}
        }

        let kept = Arc::new(Mutex::new(String::new()));
        let log = Log {
            level: LevelFilter::WARN,
        };
        tracing::subscriber::with_default(Keep(log, kept.clone()), event);
        kept.lock().unwrap().clone()
    }

    #[test]
    fn an_event_is_a_prefixed_line() {
        assert_eq!(
            line_of(|| tracing::warn!("rank {} is odd", 3)),
            "transpress: rank 3 is odd\n"
        );
    }

    #[test]
    fn fields_follow_the_message() {
        assert_eq!(
            line_of(|| tracing::error!(peer = 2, cause = "short", "bad header")),
            "transpress: bad header peer=2 cause=\"short\"\n"
        );
    }

    #[test]
    fn a_message_of_several_lines_becomes_one() {
        assert_eq!(line_of(|| tracing::warn!("a\nb\tc")), "transpress: a b c\n");
    }

    #[test]
    fn lower_levels_and_spans_are_silent() {
        assert_eq!(
            line_of(|| {
                tracing::info!("quiet");
                tracing::error_span!("span").in_scope(|| tracing::debug!("quiet"));
            }),
            ""
        );
    }

    #[test]
    fn a_long_line_is_cut_and_says_so() {
        let line = line_of(|| tracing::warn!("{}", "é".repeat(CAPACITY)));
        assert!(line.len() <= CAPACITY && line.ends_with("...\n"), "{line}");
    }
}
