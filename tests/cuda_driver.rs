//! The driver layer of src/codec/cuda against a stand-in for CUDA's driver (tests/gpu/fake), which does everything as
//! late as CUDA allows, and whose device memory nobody else can touch.
//!
//! What a process has of CUDA stays there, so each test runs in a process of its own: this program once more.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::ffi::{CStr, c_int, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::{null, null_mut, without_provenance};

use common::gpu;
use transpress::codec::cuda::{self, Device, Location};
use transpress::log;

const CHILD: &str = "CUDA_DRIVER_TEST";

/// A process for the test of this name.
struct Process {
    test: &'static str,
    driver: Option<u32>,
    env: Vec<(&'static str, String)>,
}

/// What became of it.
struct Outcome {
    /// What it called the driver for, in order; what work was done when ("run ..."), and contexts made.
    log: Vec<String>,
    stderr: String,
}

impl Process {
    fn new(test: &'static str) -> Self {
        Self {
            test,
            driver: Some(gpu::CURRENT),
            env: vec![],
        }
    }

    fn driver(mut self, version: u32) -> Self {
        self.driver = Some(version);
        self
    }

    /// On a machine without CUDA.
    fn without_driver(mut self) -> Self {
        self.driver = None;
        self
    }

    fn env(mut self, name: &'static str, value: impl ToString) -> Self {
        self.env.push((name, value.to_string()));
        self
    }

    /// Has `body` run in it. `None` inside: there is nothing left to do.
    fn run(self, body: impl FnOnce()) -> Option<Outcome> {
        if std::env::var_os(CHILD).is_some() {
            log::install(tracing::level_filters::LevelFilter::WARN);
            body();
            return None;
        }
        let file = self.log_file();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([self.test, "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .env("FAKE_CUDA_LOG", &file)
            .env("FAKE_CUDA_KERNELS", gpu::kernels())
            .env_remove("LD_LIBRARY_PATH")
            .envs(self.env);
        if let Some(version) = self.driver {
            command.env("LD_LIBRARY_PATH", gpu::driver(version));
        }
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && stdout.contains("1 passed"),
            "{command:?}\n{:?}\n{stdout}\n{stderr}",
            output.status
        );
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(&file);
        let without_pid = |line: &str| line.split_once(' ').unwrap().1.to_owned();
        Some(Outcome {
            log: text.lines().map(without_pid).collect(),
            stderr,
        })
    }

    fn log_file(&self) -> PathBuf {
        let variables: String = self.env.iter().map(|(_, value)| value.as_str()).collect();
        let name = format!(
            "cuda-{}-{}-{:?}-{}.log",
            std::process::id(),
            self.test,
            self.driver,
            variables.replace(['/', ':'], "_")
        );
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
    }
}

impl Outcome {
    /// How often the driver was called by this name.
    fn count(&self, call: &str) -> usize {
        let name = |line: &&String| line.split(' ').next() == Some(call);
        self.log.iter().filter(name).count()
    }

    /// The lines of the log in which these words begin lines, in this order.
    #[track_caller]
    fn in_order(&self, begins: &[&str]) {
        let mut lines = self.log.iter();
        for begin in begins {
            let found = lines.any(|line| line.starts_with(begin));
            assert!(found, "no {begin} in its place: {:#?}", self.log);
        }
    }

    #[track_caller]
    fn said_once(&self, words: &[&str]) {
        let said: Vec<_> = self.stderr.lines().collect();
        let said: Vec<_> = said
            .into_iter()
            .filter(|line| line.starts_with("transpress: "))
            .collect();
        let all = said.len() == 1 && words.iter().all(|word| said[0].contains(word));
        assert!(all, "{words:?}: {said:?}");
    }

    #[track_caller]
    fn said_nothing(&self) {
        assert!(!self.stderr.contains("transpress: "), "{}", self.stderr);
    }
}

/// The program's side: CUDA as a program calls it.
mod program {
    use super::*;

    pub type Context = *mut c_void;
    pub type Stream = *mut c_void;

    macro_rules! driver {
        ($(fn $name:ident = $symbol:literal ($($arg:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {
            $(
                pub fn $name($($arg: $type),*) $(-> $answer)? {
                    type Function = unsafe extern "C" fn($($type),*) $(-> $answer)?;
                    let address = symbol($symbol);
                    // SAFETY: the stand-in's header gives the function this type; pointers are to live variables.
                    unsafe { std::mem::transmute::<*mut c_void, Function>(address)($($arg),*) }
                }
            )*
        };
    }

    driver! {
        fn init = c"cuInit"(flags: u32) -> u32;
        fn primary_retain = c"cuDevicePrimaryCtxRetain"(context: *mut Context, device: c_int) -> u32;
        fn primary_reset = c"cuDevicePrimaryCtxReset_v2"(device: c_int) -> u32;
        fn context_create = c"cuCtxCreate_v2"(context: *mut Context, flags: u32, device: c_int) -> u32;
        fn context_destroy = c"cuCtxDestroy_v2"(context: Context) -> u32;
        fn context_current = c"cuCtxGetCurrent"(context: *mut Context) -> u32;
        fn context_set = c"cuCtxSetCurrent"(context: Context) -> u32;
        fn mem_alloc = c"cuMemAlloc_v2"(address: *mut u64, bytes: usize) -> u32;
        fn mem_alloc_async = c"cuMemAllocAsync"(address: *mut u64, bytes: usize, stream: Stream) -> u32;
        fn mem_alloc_managed = c"cuMemAllocManaged"(address: *mut u64, bytes: usize, flags: u32) -> u32;
        fn mem_host_alloc = c"cuMemHostAlloc"(address: *mut *mut c_void, bytes: usize, flags: u32) -> u32;
        fn mem_host_register = c"cuMemHostRegister_v2"(address: *mut c_void, bytes: usize, flags: u32) -> u32;
        fn memset_u32_async = c"cuMemsetD32Async"(to: u64, value: u32, count: usize, stream: Stream) -> u32;
        fn stream_create = c"cuStreamCreate"(stream: *mut Stream, flags: u32) -> u32;
        fn backing = c"fake_cuda_backing"(address: u64) -> *mut c_void;
        fn contexts = c"fake_cuda_contexts"() -> u32;
        fn shut_down = c"fake_cuda_shut_down"();
    }

    fn symbol(name: &CStr) -> *mut c_void {
        // SAFETY: both are C strings.
        let address = unsafe {
            let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
            assert!(!library.is_null());
            libc::dlsym(library, name.as_ptr())
        };
        assert!(!address.is_null(), "{name:?}");
        address
    }

    #[track_caller]
    pub fn ok(code: u32) {
        assert_eq!(code, 0);
    }

    /// As programs of CUDA's runtime begin: the primary context of a device is current.
    pub fn begin(device: c_int) -> Context {
        let mut context = null_mut();
        ok(init(0));
        ok(primary_retain(&raw mut context, device));
        ok(context_set(context));
        context
    }

    pub fn new_context(device: c_int) -> Context {
        let mut context = null_mut();
        ok(context_create(&raw mut context, 0, device));
        context
    }

    pub fn current() -> Context {
        let mut context = null_mut();
        ok(context_current(&raw mut context));
        context
    }

    pub fn alloc(bytes: usize) -> u64 {
        let mut address = 0;
        ok(mem_alloc(&raw mut address, bytes));
        address
    }

    pub fn alloc_from_pool(bytes: usize) -> u64 {
        let mut address = 0;
        ok(mem_alloc_async(&raw mut address, bytes, null_mut()));
        address
    }

    pub fn alloc_managed(bytes: usize) -> u64 {
        let mut address = 0;
        ok(mem_alloc_managed(&raw mut address, bytes, 1));
        address
    }

    pub fn alloc_pinned(bytes: usize) -> u64 {
        let mut address = null_mut();
        ok(mem_host_alloc(&raw mut address, bytes, 0));
        address as u64
    }

    pub fn stream(flags: u32) -> Stream {
        let mut stream = null_mut();
        ok(stream_create(&raw mut stream, flags));
        stream
    }

    /// Words in memory of a device, as they are now.
    pub fn words_at(address: u64, count: usize) -> Vec<u32> {
        let words = backing(address).cast::<u32>();
        // SAFETY: the allocation has as many words.
        unsafe { std::slice::from_raw_parts(words, count) }.to_vec()
    }
}
use program::ok;

const BLOCKING: u32 = 0;
const NON_BLOCKING: u32 = 1;

const IMAGE: &CStr = c".version 7.0
.target sm_70
.address_size 64
.visible .entry double_words(
    .param .u64 double_words_param_0,
    .param .u32 double_words_param_1
)
{
    ret;
}
.visible .entry astray(.param .u64 astray_param_0)
{
    ret;
}
";

fn at(address: u64) -> *const u8 {
    without_provenance(address as usize)
}

#[track_caller]
fn device_of(address: u64) -> &'static Device {
    match cuda::locate(at(address)) {
        Ok(Location::Device(device)) => device,
        Ok(Location::Host) => panic!("taken for the host's"),
        Err(error) => panic!("{error}"),
    }
}

fn is_host(address: *const u8) -> bool {
    matches!(cuda::locate(address), Ok(Location::Host))
}

fn is(one: &Device, other: &Device) -> bool {
    std::ptr::eq(one, other)
}

/// Doubles words in memory of a device.
fn double(entered: &cuda::Entered, address: u64, count: u32) -> cuda::Result<()> {
    let (mut address, mut count) = (address, count);
    let mut args = [(&raw mut address).cast(), (&raw mut count).cast()];
    // SAFETY: so many words are there, for this test alone, and the kernel has these arguments.
    unsafe { entered.launch(c"double_words", count.div_ceil(32), 32, &mut args) }
}

/// What a call does: words go to a device, are doubled there and come back.
fn round_trip(device: &'static Device, words: &[u32]) -> cuda::Result<Vec<u32>> {
    assert!(device.load(IMAGE, true));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let memory = device.lend_memory(bytes.len())?;
    let mut result = device.lend_pinned(bytes.len())?;
    let entered = device.enter()?;
    entered.begin()?;
    // SAFETY: the buffers are lent until the work is done, and have so many bytes.
    unsafe {
        entered.upload(memory.address(), &bytes)?;
        double(&entered, memory.address(), words.len() as u32)?;
        let to = result.bytes_mut().as_mut_ptr();
        entered.download(to, memory.address(), bytes.len())?;
    }
    entered.finish()?;
    let words = result.bytes()[..bytes.len()].chunks_exact(4);
    Ok(words
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect())
}

#[test]
fn without_cuda_in_the_process() {
    let outcome = Process::new("without_cuda_in_the_process").run(|| {
        let word = 1u32;
        assert!(is_host((&raw const word).cast()));
        assert!(is_host(null()));
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        assert!(!maps.contains("libcuda"));
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(outcome.log, Vec::<String>::new());
    outcome.said_nothing();
}

#[test]
fn without_a_driver_on_the_machine() {
    let outcome = Process::new("without_a_driver_on_the_machine")
        .without_driver()
        .run(|| {
            assert!(is_host(null()));
            assert!(cuda::for_host_buffers(0).unwrap().is_none());
            assert!(cuda::describe(IMAGE).unwrap().is_none());
        });
    let Some(outcome) = outcome else { return };
    outcome.said_nothing();
}

/// What was not there may come, as with a Python program that imports a package for GPUs.
#[test]
fn loaded_later() {
    Process::new("loaded_later").run(|| {
        let word = 1u32;
        assert!(is_host((&raw const word).cast()));
        assert!(is_host((&raw const word).cast()));
        program::begin(0);
        let memory = program::alloc(64);
        assert!(is(device_of(memory), device_of(memory + 1)));
    });
}

/// An MPI that is linked with CUDA loads it into programs that know nothing of it.
#[test]
fn loaded_but_not_initialised() {
    let outcome = Process::new("loaded_but_not_initialised").run(|| {
        assert_eq!(program::contexts(), 0);
        let word = 1u32;
        assert!(is_host((&raw const word).cast()));
        assert_eq!(program::contexts(), 0);
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(outcome.log.len(), 1, "{:?}", outcome.log);
    assert_eq!(outcome.count("cuInit"), 0);
}

#[test]
fn every_kind_of_memory() {
    // Versions of the driver differ in what they say of some.
    let variants = [
        ("FAKE_CUDA_DEVICES", "1"),
        ("FAKE_CUDA_UNKNOWN", "error"),
        ("FAKE_CUDA_MANAGED", "host"),
    ];
    for (name, value) in variants {
        let process = Process::new("every_kind_of_memory").env(name, value);
        let outcome = process.run(|| {
            let context = program::begin(0);
            let word = 1u32;
            assert!(is_host((&raw const word).cast()));
            assert!(is_host(null()));
            assert!(is_host(at(program::alloc_pinned(100))));
            let mut registered = vec![0u8; 10_000];
            let begin = registered.as_mut_ptr();
            ok(program::mem_host_register(begin.cast(), 10_000, 0));
            assert!(is_host(begin));
            assert!(is_host(begin.wrapping_add(5_000)));

            let memory = program::alloc(10_000);
            let device = device_of(memory);
            for address in [memory + 1, memory + 5_000, memory + 9_999] {
                assert!(is(device_of(address), device));
            }
            assert!(is_host(at(memory + 10_000)));
            let managed = program::alloc_managed(10_000);
            assert!(is(device_of(managed), device));
            assert!(is(device_of(managed + 9_999), device));
            let pool = program::alloc_from_pool(10_000);
            assert!(is(device_of(pool + 77), device));

            assert_eq!(program::current(), context);
            assert_eq!(program::contexts(), 1);
        });
        if outcome.is_none() {
            return;
        }
    }
}

#[test]
fn memory_of_another_device() {
    let process = Process::new("memory_of_another_device").env("FAKE_CUDA_DEVICES", 2);
    process.run(|| {
        let second = program::begin(1);
        let there = program::alloc(100);
        let first = program::begin(0);
        let here = program::alloc(100);
        assert_ne!(first, second);
        assert!(!is(device_of(here), device_of(there)));
        let words = [1, 2, 3];
        assert_eq!(round_trip(device_of(there), &words).unwrap(), [2, 4, 6]);
        assert_eq!(program::current(), first);
        assert_eq!(program::contexts(), 2);
    });
}

/// Memory of a pool has no context: the current one will do, or the primary one where the program has it.
#[test]
fn memory_of_a_pool() {
    let process = Process::new("memory_of_a_pool").env("FAKE_CUDA_DEVICES", 2);
    let outcome = process.run(|| {
        let context = program::begin(0);
        let pool = program::alloc_from_pool(100);
        let device = device_of(program::alloc(100));
        assert!(is(device_of(pool), device));
        // Other threads have no context, or one of another device.
        std::thread::spawn(move || {
            assert!(program::current().is_null());
            assert!(is(device_of(pool), device));
            assert!(program::current().is_null());
            let other = program::begin(1);
            assert!(is(device_of(pool), device));
            assert_eq!(round_trip(device_of(pool), &[5]).unwrap(), [10]);
            assert_eq!(program::current(), other);
        })
        .join()
        .unwrap();
        assert_eq!(program::current(), context);
        assert_eq!(program::contexts(), 2);
    });
    let Some(outcome) = outcome else { return };
    // Two are the program's.
    assert_eq!(outcome.count("cuDevicePrimaryCtxRetain"), 3);
}

/// Where the program has no context that would do, none is made.
#[test]
fn memory_that_nobody_can_work_on() {
    let process = Process::new("memory_that_nobody_can_work_on").env("FAKE_CUDA_DEVICES", 2);
    process.run(|| {
        ok(program::init(0));
        program::new_context(1);
        let pool = program::alloc_from_pool(100);
        ok(program::context_set(null_mut()));
        let error = cuda::locate(at(pool)).err().unwrap();
        assert!(error.to_string().contains("CUDA_ERROR_INVALID_CONTEXT"));
        assert_eq!(program::contexts(), 1);
    });
}

#[test]
fn two_contexts_on_one_device() {
    Process::new("two_contexts_on_one_device").run(|| {
        ok(program::init(0));
        program::new_context(0);
        let first = program::alloc(100);
        let context = program::new_context(0);
        let second = program::alloc(100);
        assert!(!is(device_of(first), device_of(second)));
        // Work there takes a function, a stream and an event of the right context.
        for address in [first, second] {
            assert_eq!(round_trip(device_of(address), &[7]).unwrap(), [14]);
            assert_eq!(program::current(), context);
        }
        assert_eq!(program::contexts(), 2);
    });
}

#[test]
fn the_current_context_stays() {
    Process::new("the_current_context_stays").run(|| {
        ok(program::init(0));
        let memory_context = program::new_context(0);
        let device = device_of(program::alloc(100));
        let context = program::new_context(0);
        let entered = device.enter().unwrap();
        assert_eq!(program::current(), memory_context);
        drop(entered);
        assert_eq!(program::current(), context);
        let pending = device.enter().unwrap().defer().unwrap();
        assert_eq!(program::current(), context);
        drop(pending);
        assert_eq!(program::current(), context);
    });
}

/// The order in which the driver is called, and in which the work is done.
#[test]
fn a_call_from_upload_to_download() {
    let outcome = Process::new("a_call_from_upload_to_download").run(|| {
        program::begin(0);
        let device = device_of(program::alloc(100));
        let words: Vec<u32> = (0..1000).collect();
        let doubled: Vec<u32> = words.iter().map(|word| 2 * word).collect();
        assert_eq!(round_trip(device, &words).unwrap(), doubled);
        assert_eq!(round_trip(device, &words).unwrap(), doubled);
    });
    let Some(outcome) = outcome else { return };
    outcome.in_order(&[
        "cuEventRecord",
        "cuStreamWaitEvent",
        "cuMemcpyHtoDAsync",
        "cuLaunchKernel kernel=double_words grid=32 threads=32",
        "cuMemcpyDtoHAsync",
        "cuStreamSynchronize",
        "run copy",
        "run kernel name=double_words",
        "run copy",
        "cuCtxPopCurrent",
    ]);
    // What the first call needed serves the second.
    assert_eq!(outcome.count("cuMemAlloc_"), 0);
    for once in ["cuStreamCreate", "cuModuleGetFunction"] {
        assert_eq!(outcome.count(once), 1, "{once}");
    }
    assert_eq!(outcome.count("cuModuleLoadDataEx"), 2); // whether it can be, and the kernel
    assert_eq!(outcome.count("cuMemAlloc"), 2); // the program's and ours
    assert_eq!(outcome.count("cuMemHostRegister"), 2); // staging and result
}

/// What the program left on the default stream or on a blocking one comes first.
#[test]
fn work_that_the_program_has_not_waited_for() {
    Process::new("work_that_the_program_has_not_waited_for").run(|| {
        const LEGACY: usize = 1;
        const PER_THREAD: usize = 2;
        program::begin(0);
        let streams = [
            null_mut(),
            without_provenance::<c_void>(LEGACY).cast_mut(),
            without_provenance::<c_void>(PER_THREAD).cast_mut(),
            program::stream(BLOCKING),
        ];
        for (stream, value) in streams.into_iter().zip(10..) {
            let memory = program::alloc(64);
            let device = device_of(memory);
            let read = |begin: bool| {
                let mut word = [0; 4];
                let entered = device.enter().unwrap();
                if begin {
                    entered.begin().unwrap();
                }
                // SAFETY: four bytes are there, and the work is waited for.
                unsafe { entered.download(word.as_mut_ptr(), memory, 4).unwrap() };
                entered.finish().unwrap();
                u32::from_le_bytes(word)
            };
            ok(program::memset_u32_async(memory, value, 16, stream));
            assert_ne!(read(false), value, "the stand-in is too eager");
            assert_eq!(read(true), value);
        }
    });
}

/// As no MPI does: the program's kernels there may take long, and may wait for the call to end.
#[test]
fn work_on_non_blocking_streams_is_left_alone() {
    Process::new("work_on_non_blocking_streams_is_left_alone").run(|| {
        program::begin(0);
        let stream = program::stream(NON_BLOCKING);
        let memory = program::alloc(64);
        ok(program::memset_u32_async(memory, 5, 16, stream));
        let entered = device_of(memory).enter().unwrap();
        entered.begin().unwrap();
        entered.finish().unwrap();
        assert_eq!(program::words_at(memory, 1), [0xa5a5_a5a5]);
    });
}

/// Nothing has arrived before somebody waited for it: the stand-in would tell if nobody did.
#[test]
fn waiting() {
    Process::new("waiting").run(|| {
        program::begin(0);
        let memory = program::alloc(64);
        let device = device_of(memory);
        assert!(device.load(IMAGE, true));
        let bytes = 3u32.to_le_bytes().repeat(16);

        let put = || {
            let entered = device.enter().unwrap();
            // SAFETY: so many bytes are there; all of the work is waited for below.
            unsafe { entered.upload(memory, &bytes).unwrap() };
            double(&entered, memory, 16).unwrap();
            entered
        };
        let entered = put();
        assert_eq!(program::words_at(memory, 2), [0xa5a5_a5a5; 2]);
        entered.synchronize().unwrap();
        assert_eq!(program::words_at(memory, 2), [6; 2]);
        double(&entered, memory, 8).unwrap();
        assert_eq!(program::words_at(memory, 2), [6; 2]);
        drop(entered);
        assert_eq!(program::words_at(memory, 9)[7..], [12, 6]);

        let mut pending = put().defer().unwrap();
        assert!(!pending.is_done().unwrap());
        assert_eq!(program::words_at(memory, 1), [12]);
        while !pending.is_done().unwrap() {}
        assert_eq!(program::words_at(memory, 1), [6]);
        assert!(pending.is_done().unwrap());

        // SAFETY: so many bytes are there, and the work is waited for.
        let zeroed = || unsafe { device.enter().unwrap().fill_zero(memory, 64).unwrap() };
        zeroed();
        assert_eq!(program::words_at(memory, 16), [0; 16]);
        put().defer().unwrap().wait().unwrap();
        assert_eq!(program::words_at(memory, 1), [6]);
        zeroed();
        drop(put().defer().unwrap());
        assert_eq!(program::words_at(memory, 1), [6]);
    });
}

/// What is uploaded is the program's again at once, and the copy of it is not lent to anybody before it was read.
#[test]
fn uploads_are_staged() {
    Process::new("uploads_are_staged").run(|| {
        program::begin(0);
        let memory = program::alloc(1 << 20);
        let device = device_of(memory);
        let entered = device.enter().unwrap();
        for part in 0..100u32 {
            let bytes = part.to_le_bytes().repeat(16);
            // SAFETY: so many bytes are there, and the work is waited for.
            unsafe {
                entered
                    .upload(memory + 64 * u64::from(part), &bytes)
                    .unwrap()
            };
            device.lend_pinned(64).unwrap().bytes_mut().fill(0xff);
        }
        entered.finish().unwrap();
        for part in 0..100u32 {
            let words = program::words_at(memory + 64 * u64::from(part), 16);
            assert_eq!(words, [part; 16]);
        }
    });
}

/// Copies between managed, page-locked and device memory, and between devices.
#[test]
fn copies() {
    let process = Process::new("copies").env("FAKE_CUDA_DEVICES", 2);
    process.run(|| {
        program::begin(1);
        let far = program::alloc(64);
        program::begin(0);
        let (near, managed) = (program::alloc(64), program::alloc_managed(64));
        let device = device_of(near);
        let mut pinned = device.lend_pinned(64).unwrap();
        pinned.words_mut()[..8].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let entered = device.enter().unwrap();
        // SAFETY: all have 64 bytes, and the work is waited for.
        unsafe {
            let from = pinned.words().as_ptr() as u64;
            entered.copy(managed, from, 64).unwrap();
            entered.copy(far, managed, 64).unwrap();
            entered.copy(near, far, 64).unwrap();
            entered.copy(near, far, 0).unwrap();
        }
        entered.finish().unwrap();
        assert_eq!(program::words_at(near, 4), [1, 0, 2, 0]);
    });
}

#[test]
fn lent_buffers() {
    let outcome = Process::new("lent_buffers").run(|| {
        program::begin(0);
        let device = device_of(program::alloc(64));
        let (one, other) = (
            device.lend_memory(100).unwrap(),
            device.lend_memory(100).unwrap(),
        );
        let address = one.address();
        assert_ne!(address, other.address());
        drop(one);
        assert_eq!(device.lend_memory(60_000).unwrap().address(), address);
        assert_ne!(device.lend_memory(100_000).unwrap().address(), address);
        // The smallest that will do.
        assert_eq!(device.lend_memory(100).unwrap().address(), address);

        // Large ones are kept for whoever needs one.
        let large = device.lend_memory(5 << 20).unwrap().address();
        let small: Vec<_> = (0..5).map(|_| device.lend_memory(100).unwrap()).collect();
        assert!(small.iter().all(|memory| memory.address() != large));
        assert_eq!(device.lend_memory(4 << 20).unwrap().address(), large);

        let mut pinned = device.lend_pinned(5 << 20).unwrap();
        assert!(pinned.words().iter().all(|&word| word == 0));
        assert!(pinned.bytes_mut().len() >= 5 << 20);
        assert!(device.lend_memory(usize::MAX).is_err());
        let many: Vec<_> = (0..40).map(|_| device.lend_memory(1000).unwrap()).collect();
        drop(many);
    });
    let Some(outcome) = outcome else { return };
    assert!(outcome.count("cuMemFree") > 5);
}

/// MPI does not wait for our stream: it gets no memory that work of somebody before is still to use.
#[test]
fn settled_memory() {
    let outcome = Process::new("settled_memory").run(|| {
        program::begin(0);
        let device = device_of(program::alloc(64));
        let work = device.enter().unwrap();
        let lent = device.lend_memory(100).unwrap();
        let busy = lent.address();
        // SAFETY: the memory was lent for more bytes, and who is lent it next works on the same stream.
        unsafe { work.fill_zero(busy, 100).unwrap() };
        drop(lent);
        assert_eq!(device.lend_memory(100).unwrap().address(), busy);
        let settled = device.lend_settled_memory(100).unwrap().address();
        assert_ne!(settled, busy);
        assert_eq!(device.lend_settled_memory(100).unwrap().address(), settled);
        work.finish().unwrap();
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(outcome.count("cuMemAlloc"), 3);
}

/// Where memory is short, what lies idle is given up for what is needed.
#[test]
fn memory_runs_out() {
    let process = Process::new("memory_runs_out")
        .env("FAKE_CUDA_FAIL", "cuMemAlloc:3:2" /* out of memory */);
    let outcome = process.run(|| {
        program::begin(0);
        let device = device_of(program::alloc(64));
        drop(device.lend_memory(100).unwrap());
        device.lend_settled_memory(1 << 20).unwrap();
    });
    let Some(outcome) = outcome else { return };
    outcome.in_order(&[
        "cuMemAlloc",
        "cuMemAlloc",
        "cuMemAlloc",
        "cuMemFree",
        "cuMemAlloc",
    ]);
}

/// Each call of the driver may fail: that is an error with its name, and nothing else happens.
#[test]
fn failing_calls() {
    let calls = [
        "cuCtxGetId",
        "cuCtxPushCurrent",
        "cuCtxGetDevice",
        "cuStreamCreate",
        "cuEventCreate",
        "cuMemAlloc:2",
        "cuEventRecord",
        "cuStreamWaitEvent",
        "cuMemcpyHtoDAsync",
        "cuModuleGetFunction",
        "cuLaunchKernel",
        "cuMemcpyDtoHAsync",
        "cuStreamSynchronize",
    ];
    for call in calls {
        let process = Process::new("failing_calls").env("FAKE_CUDA_FAIL", call);
        let outcome = process.run(|| {
            let context = program::begin(0);
            let memory = program::alloc(64);
            let result = match cuda::locate(at(memory)) {
                Ok(Location::Device(device)) => round_trip(device, &[1]),
                Ok(Location::Host) => panic!("taken for the host's"),
                Err(error) => Err(error),
            };
            let error = result.unwrap_err().to_string();
            let call = std::env::var("FAKE_CUDA_FAIL").unwrap();
            let call = call.split(':').next().unwrap();
            assert_eq!(error, format!("{call}: CUDA_ERROR_UNKNOWN (999)"));
            assert_eq!(program::current(), context);
        });
        if outcome.is_none() {
            return;
        }
    }
}

/// Where host memory cannot be page-locked, copies work all the same.
#[test]
fn memory_that_cannot_be_page_locked() {
    let process = Process::new("memory_that_cannot_be_page_locked")
        .env("FAKE_CUDA_FAIL", "cuMemHostRegister");
    let outcome = process.run(|| {
        program::begin(0);
        let device = device_of(program::alloc(64));
        assert_eq!(round_trip(device, &[1, 2]).unwrap(), [2, 4]);
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(outcome.count("cuMemHostUnregister"), 0);
    outcome.said_nothing();
}

/// An error in a kernel stays with the context; the program's own calls see it, too.
#[test]
fn a_kernel_goes_astray() {
    Process::new("a_kernel_goes_astray").run(|| {
        let context = program::begin(0);
        let memory = program::alloc(64);
        let device = device_of(memory);
        assert!(device.load(IMAGE, true));
        let entered = device.enter().unwrap();
        let mut address = memory;
        // SAFETY: the kernel has this argument.
        unsafe {
            let mut args = [(&raw mut address).cast()];
            entered.launch(c"astray", 1, 1, &mut args).unwrap();
            entered.launch(c"astray", 0, 1, &mut args).unwrap();
            let error = entered.launch(c"unknown", 1, 1, &mut args).unwrap_err();
            assert!(error.to_string().ends_with("CUDA_ERROR_NOT_FOUND (500)"));
        }
        let error = entered.finish().unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("CUDA_ERROR_LAUNCH_FAILED (719)")
        );
        assert_eq!(program::current(), context);
        assert!(device.enter().is_err());
    });
}

#[test]
fn kernels_that_cannot_be_loaded() {
    let process = Process::new("kernels_that_cannot_be_loaded").env("FAKE_CUDA_CAPABILITY", "6.1");
    let outcome = process.run(|| {
        program::begin(0);
        let device = device_of(program::alloc(64));
        assert!(!device.load(IMAGE, true));
        assert!(!device.load(IMAGE, true));
        // The memory there can still be copied.
        let mut words = [0u8; 8];
        let entered = device.enter().unwrap();
        // SAFETY: so many bytes are there, and the work is waited for.
        unsafe {
            entered
                .download(words.as_mut_ptr(), program::alloc(64), 8)
                .unwrap()
        };
        assert!(double(&entered, 0, 1).is_err());
        entered.finish().unwrap();
        assert_eq!(words, [0xa5; 8]);
    });
    let Some(outcome) = outcome else { return };
    outcome.said_once(&["Fake GPU 0", "6.1", "7.0", "on the CPU instead"]);
    assert_eq!(outcome.count("cuModuleLoadDataEx"), 0);
}

#[test]
fn a_driver_that_does_not_take_the_kernels() {
    let process =
        Process::new("a_driver_that_does_not_take_the_kernels").env("FAKE_CUDA_PTX", "6.5");
    let outcome = process.run(|| {
        program::begin(0);
        let device = device_of(program::alloc(64));
        assert!(!device.load(IMAGE, true));
        assert!(!device.load(IMAGE, true));
    });
    let Some(outcome) = outcome else { return };
    outcome.said_once(&[
        "cuModuleLoadDataEx: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)",
        "Unsupported .version 7.0",
        "on the CPU instead",
    ]);
    assert_eq!(outcome.count("cuModuleLoadDataEx"), 1);
}

#[test]
fn a_driver_that_is_too_old() {
    let process = Process::new("a_driver_that_is_too_old").driver(6050);
    let outcome = process.run(|| {
        program::begin(0);
        let memory = program::alloc(64);
        assert!(is_host(at(memory)) && is_host(at(memory)));
        assert!(cuda::for_host_buffers(0).unwrap().is_none());
    });
    let Some(outcome) = outcome else { return };
    outcome.said_once(&["too old", "cuDevicePrimaryCtxGetState"]);
}

/// Drivers before CUDA 12 do not number contexts.
#[test]
fn a_driver_without_numbers_of_contexts() {
    let process = Process::new("a_driver_without_numbers_of_contexts").driver(11000);
    process.run(|| {
        ok(program::init(0));
        let context = program::new_context(0);
        let device = device_of(program::alloc(64));
        assert_eq!(round_trip(device, &[1]).unwrap(), [2]);
        ok(program::context_destroy(context));
        // The new context is in the place of the old: what is found is the old one's device, once.
        assert_eq!(program::new_context(0), context);
        let memory = program::alloc(64);
        let first = round_trip(device_of(memory), &[1]);
        assert!(first.is_err());
        assert_eq!(round_trip(device_of(memory), &[1]).unwrap(), [2]);
        assert_eq!(program::current(), context);
    });
}

#[test]
fn a_context_is_destroyed() {
    let outcome = Process::new("a_context_is_destroyed").run(|| {
        ok(program::init(0));
        let context = program::new_context(0);
        let memory = program::alloc(64);
        let device = device_of(memory);
        assert_eq!(round_trip(device, &[1]).unwrap(), [2]);
        let mut lent = (
            device.lend_memory(64).unwrap(),
            device.lend_pinned(64).unwrap(),
        );
        let entered = device.enter().unwrap();
        // SAFETY: so many bytes are there; the work is done when the context is destroyed.
        unsafe { entered.upload(memory, &[1; 64]).unwrap() };
        let pending = entered.defer().unwrap();
        ok(program::context_destroy(context));
        // Another one in its place.
        assert_eq!(program::new_context(0), context);

        assert!(device.enter().is_err());
        assert!(device.is_lost());
        drop(pending);
        // Page-locked memory is still memory.
        lent.1.bytes_mut().fill(1);
        drop(lent);

        let new = device_of(program::alloc(64));
        assert!(!is(new, device));
        assert_eq!(round_trip(new, &[1]).unwrap(), [2]);
        assert_eq!(program::current(), context);
    });
    let Some(outcome) = outcome else { return };
    // What is gone with its context is not freed once more.
    assert_eq!(outcome.count("cuMemFree"), 0);
}

/// cudaDeviceReset.
#[test]
fn a_primary_context_is_reset() {
    Process::new("a_primary_context_is_reset").run(|| {
        let context = program::begin(0);
        let device = device_of(program::alloc(64));
        assert_eq!(round_trip(device, &[1]).unwrap(), [2]);
        ok(program::primary_reset(0));
        assert_eq!(program::begin(0), context);
        let new = device_of(program::alloc(64));
        assert!(!is(new, device));
        assert_eq!(round_trip(new, &[1]).unwrap(), [2]);
    });
}

/// At the end of a process, CUDA goes before those who use it.
#[test]
fn cuda_shuts_down() {
    Process::new("cuda_shuts_down").run(|| {
        program::begin(0);
        let memory = program::alloc(64);
        let device = device_of(memory);
        let lent = (
            device.lend_memory(64).unwrap(),
            device.lend_pinned(64).unwrap(),
        );
        let entered = device.enter().unwrap();
        // SAFETY: so many bytes are there; nothing happens to them after CUDA's end.
        unsafe { entered.upload(memory, &[1; 64]).unwrap() };
        let pending = device.enter().unwrap().defer().unwrap();
        program::shut_down();
        drop((pending, entered, lent));
        assert!(is_host(at(memory)));
        let error = device.enter().err().unwrap();
        assert_eq!(
            error.to_string(),
            "cuCtxGetId: CUDA_ERROR_DEINITIALIZED (4)"
        );
        assert!(cuda::for_host_buffers(0).is_err());
    });
}

#[test]
fn threads() {
    Process::new("threads").run(|| {
        let context = program::begin(0);
        let memory = program::alloc(64);
        std::thread::scope(|scope| {
            for thread in 0..8u32 {
                scope.spawn(move || {
                    let device = device_of(memory);
                    for round in 0..20 {
                        let words = [thread, round, 1000];
                        let doubled = words.map(|word| 2 * word);
                        assert_eq!(round_trip(device, &words).unwrap(), doubled);
                    }
                    assert!(program::current().is_null());
                });
            }
        });
        assert_eq!(program::current(), context);
        assert_eq!(program::contexts(), 1);
    });
}

/// `TRANSPRESS_DEVICE=cuda`: ranks of a node take the devices by turns.
#[test]
fn buffers_of_the_host() {
    let process = Process::new("buffers_of_the_host").env("FAKE_CUDA_DEVICES", 2);
    let outcome = process.run(|| {
        let device = cuda::for_host_buffers(3).unwrap().unwrap();
        assert!(is(cuda::for_host_buffers(1).unwrap().unwrap(), device));
        assert_eq!(round_trip(device, &[1]).unwrap(), [2]);
        assert!(program::current().is_null());
        assert_eq!(program::contexts(), 1);
        // The program's own choice comes first.
        program::begin(0);
        assert!(!is(cuda::for_host_buffers(3).unwrap().unwrap(), device));
    });
    let Some(outcome) = outcome else { return };
    let made: Vec<_> = outcome
        .log
        .iter()
        .filter(|line| line.starts_with("context made"))
        .collect();
    assert_eq!(made, ["context made device=1", "context made device=0"]);
}

#[test]
fn no_device() {
    let process = Process::new("no_device").env("FAKE_CUDA_DEVICES", 0);
    process.run(|| {
        assert!(cuda::for_host_buffers(0).unwrap().is_none());
        let found = cuda::describe(IMAGE).unwrap().unwrap();
        assert!(found.devices.is_empty());
    });
}

#[test]
fn a_description() {
    let process = Process::new("a_description").env("FAKE_CUDA_DEVICES", 2);
    process.run(|| {
        let found = cuda::describe(IMAGE).unwrap().unwrap();
        assert_eq!(found.driver_version, 12040);
        let [first, second] = &found.devices[..] else {
            panic!("{}", found.devices.len());
        };
        assert_eq!((&*first.name, &*second.name), ("Fake GPU 0", "Fake GPU 1"));
        assert_eq!((first.capability, first.bytes), ((9, 0), 80 << 30));
        assert_eq!(first.kernels, Ok(()));
    });
}

/// What all of this rests on: the host cannot touch what is on a device.
#[test]
fn device_memory_is_out_of_reach() {
    Process::new("device_memory_is_out_of_reach").run(|| {
        program::begin(0);
        let memory = program::alloc(64);
        // SAFETY: the child does nothing but read, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the address is mapped, if not to be read: that ends this process, as it should.
            unsafe {
                let byte = at(memory).read_volatile();
                libc::_exit(c_int::from(byte));
            }
        }
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        // Rust's handler of SIGSEGV lets the default one end the process.
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV);
    });
}
