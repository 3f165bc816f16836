//! Messages through an all-to-all: what was sent, what arrived, and what the library counted.

use super::{Mpi, Output, Run, SCRATCH};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A value of a message.
pub trait Value: Copy + Into<f64> {
    fn to_bytes(self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! value {
    ($type:ty) => {
        impl Value for $type {
            fn to_bytes(self) -> Vec<u8> {
                self.to_ne_bytes().to_vec()
            }

            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(bytes.try_into().expect("bytes of a value"))
            }
        }
    };
}
value!(f32);
value!(f64);

/// An all-to-all with every communicator registered and everything else as by default.
#[derive(Clone)]
pub struct Relay {
    run: Run,
    ranks: usize,
    datatype: String,
    /// Items of the datatype from each rank to each, sender by sender.
    table: Vec<usize>,
    is_equal: bool,
}

impl Relay {
    /// MPI_Alltoall of `count` items each; the names of datatypes are those of relay.c.
    pub fn alltoall(mpi: Mpi, ranks: usize, datatype: &str, count: usize) -> Self {
        Self {
            is_equal: true,
            ..Self::alltoallv(mpi, ranks, datatype, vec![count; ranks * ranks])
        }
    }

    /// MPI_Alltoallv.
    pub fn alltoallv(mpi: Mpi, ranks: usize, datatype: &str, table: Vec<usize>) -> Self {
        assert_eq!(table.len(), ranks * ranks);
        Self {
            run: Run::new(mpi, "relay")
                .ranks(ranks)
                .env("TRANSPRESS_REPORT", "off")
                .env("TRANSPRESS_COMMS", "all"),
            ranks,
            datatype: datatype.into(),
            table,
            is_equal: false,
        }
    }

    pub fn env(mut self, name: &str, value: impl ToString) -> Self {
        self.run = self.run.env(name, value);
        self
    }

    /// With the stand-in for CUDA, on whose GPU messages are coded.
    pub fn on_gpu(mut self) -> Self {
        self.run = self.run.with_fake_gpu();
        self.env("TRANSPRESS_DEVICE", "cuda")
            .env("TRANSPRESS_REPORT", "stderr")
    }

    /// Sends all messages, as many calls as they make. They lie by call, by sender and by receiver.
    #[track_caller]
    pub fn send<T: Value>(&self, sent: &[T]) -> Arrived<T> {
        static RELAYS: AtomicUsize = AtomicUsize::new(0);
        let number = RELAYS.fetch_add(1, Ordering::Relaxed);
        let base = Path::new(SCRATCH).join(format!("relay-{}-{number}", std::process::id()));
        let (from, to) = (base.with_extension("in"), base.with_extension("back"));
        let parts = if self.datatype.ends_with("complex") {
            2
        } else {
            1
        };
        let table: Vec<usize> = self.table.iter().map(|items| items * parts).collect();
        let per_call: usize = table.iter().sum();
        assert!(sent.len().is_multiple_of(per_call) && !sent.is_empty());
        let calls = sent.len() / per_call;
        let bytes: Vec<u8> = sent.iter().flat_map(|value| value.to_bytes()).collect();
        fs::write(&from, &bytes).expect("messages");
        fs::write(&to, "").expect("messages");
        let items = if self.is_equal {
            &self.table[..1]
        } else {
            &self.table
        };
        let items: Vec<_> = items.iter().map(usize::to_string).collect();
        let output = self
            .run
            .clone()
            .arg(from.display().to_string())
            .arg(to.display().to_string())
            .arg(&self.datatype)
            .arg(calls.to_string())
            .arg(items.join(","))
            .output()
            .passes();
        let back = fs::read(&to).expect("messages");
        for path in [from, to] {
            fs::remove_file(path).expect("messages");
        }
        assert_eq!(back.len(), bytes.len(), "{output}");
        let values = back.chunks(size_of::<T>()).map(T::from_bytes).collect();
        let arrived = Arrived {
            sent: sent.to_vec(),
            values,
            ranks: self.ranks,
            table,
            output,
        };
        arrived.expect_own_blocks();
        arrived
    }
}

/// One message: what was sent, and what came of it.
pub struct Message<'a, T> {
    pub call: usize,
    pub from: usize,
    pub to: usize,
    pub sent: &'a [T],
    pub arrived: &'a [T],
}

impl<T: Value> Message<'_, T> {
    pub fn is_exact(&self) -> bool {
        let mut pairs = self.sent.iter().zip(self.arrived);
        pairs.all(|(sent, arrived)| sent.to_bytes() == arrived.to_bytes())
    }

    /// Relative L2 error.
    pub fn error(&self) -> f64 {
        relative_error(self.sent, self.arrived)
    }
}

/// |x − y| ÷ |x|.
pub fn relative_error<T: Value>(x: &[T], y: &[T]) -> f64 {
    let (mut difference, mut norm) = (0.0, 0.0);
    for (&x, &y) in x.iter().zip(y) {
        let (x, y): (f64, f64) = (x.into(), y.into());
        difference += (x - y) * (x - y);
        norm += x * x;
    }
    if difference == 0.0 {
        0.0
    } else {
        (difference / norm).sqrt()
    }
}

/// What a relay brought.
pub struct Arrived<T> {
    pub sent: Vec<T>,
    pub values: Vec<T>,
    pub output: Output,
    ranks: usize,
    table: Vec<usize>,
}

impl<T: Value> Arrived<T> {
    fn all_messages(&self) -> impl Iterator<Item = Message<'_, T>> {
        let mut start = 0;
        let per_call = self.table.len();
        let calls = self.sent.len() / self.table.iter().sum::<usize>();
        (0..calls * per_call).map(move |index| {
            let pair = index % per_call;
            let range = start..start + self.table[pair];
            start = range.end;
            Message {
                call: index / per_call,
                from: pair / self.ranks,
                to: pair % self.ranks,
                sent: &self.sent[range.clone()],
                arrived: &self.values[range],
            }
        })
    }

    /// Those from one rank to another.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_, T>> {
        self.all_messages()
            .filter(|message| message.from != message.to)
    }

    #[track_caller]
    fn expect_own_blocks(&self) {
        let mut own = self
            .all_messages()
            .filter(|message| message.from == message.to);
        assert!(own.all(|message| message.is_exact()), "{}", self.output);
    }

    pub fn is_exact(&self) -> bool {
        self.messages().all(|message| message.is_exact())
    }

    /// The largest relative L2 error of a message.
    pub fn worst_error(&self) -> f64 {
        let errors = self.messages().map(|message| message.error());
        // NaN is worse than any number.
        errors.fold(
            0.0,
            |worst, error| if error <= worst { worst } else { error },
        )
    }

    /// "compressed", "raw", "escaped": messages. "before", "after": bytes to other ranks.
    #[track_caller]
    pub fn count(&self, what: &str) -> f64 {
        self.output.number(what)
    }

    /// Every message went compressed.
    #[track_caller]
    pub fn expect_compressed(&self) -> &Self {
        let messages = self.messages().count() as f64;
        assert_eq!(self.count("compressed"), messages, "{}", self.output);
        self
    }

    /// No message went compressed, and each arrived bit for bit.
    #[track_caller]
    pub fn expect_raw(&self) -> &Self {
        assert_eq!(self.count("compressed"), 0.0, "{}", self.output);
        assert!(self.is_exact(), "{}", self.output);
        self
    }
}
