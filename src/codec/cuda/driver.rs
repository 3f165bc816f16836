//! The edge to the CUDA driver: its functions, found at run time, and its errors.
//!
//! Types and constants are cudarc's, its functions are not called. They would look for `libcuda.so` before
//! `libcuda.so.1` (on many machines a stub that is there for linking), they panic where the library or a symbol is
//! missing, and they take the driver's answer as a Rust enum, which is undefined behaviour for the error codes
//! that later drivers add. So the few functions needed are looked up here, and answers stay numbers.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::ptr::null;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUmodule, CUstream, cudaError_enum,
};

/// The driver's name since CUDA began; what is called `libcuda.so` may be anything.
const LIBRARY: &CStr = c"libcuda.so.1";

/// A `CUresult` that may be unknown to us.
type Code = c_uint;

/// A call of the driver that failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error {
    call: &'static str,
    code: Code,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failure of `call` that we found out ourselves.
    pub(super) const fn new(call: &'static str, code: cudaError_enum) -> Self {
        Self {
            call,
            code: code as Code,
        }
    }

    pub(super) fn is(&self, code: cudaError_enum) -> bool {
        self.code == code as Code
    }

    /// Whether the context is gone, or all of CUDA, so that nothing more can be done with what was made there.
    pub(super) fn is_of_lost_context(&self) -> bool {
        use cudaError_enum as cuda;
        [
            cuda::CUDA_ERROR_DEINITIALIZED,
            cuda::CUDA_ERROR_NOT_INITIALIZED,
            cuda::CUDA_ERROR_CONTEXT_IS_DESTROYED,
            cuda::CUDA_ERROR_INVALID_CONTEXT,
            // What a stream, an event or a module is whose context was destroyed.
            cuda::CUDA_ERROR_INVALID_HANDLE,
        ]
        .into_iter()
        .any(|code| self.is(code))
    }

    /// The driver's name for the code, such as CUDA_ERROR_OUT_OF_MEMORY.
    fn name(&self) -> Option<&'static str> {
        let driver = DRIVER.get()?.as_ref()?;
        let mut name: *const c_char = null();
        // SAFETY: the driver writes the address of a C string of its own, or null; any number may be asked for.
        unsafe { (driver.functions.get_error_name)(self.code, &raw mut name) };
        if name.is_null() {
            return None;
        }
        // SAFETY: such names are constants of the driver, which stays loaded.
        unsafe { CStr::from_ptr(name) }.to_str().ok()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The symbols carry the version of their interface, which tells a reader nothing.
        let call = self.call.trim_end_matches("_v2");
        match self.name() {
            Some(name) => write!(f, "{call}: {name} ({})", self.code),
            None => write!(f, "{call}: error {}", self.code),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

fn check(call: &'static str, code: Code) -> Result<()> {
    if code == cudaError_enum::CUDA_SUCCESS as Code {
        Ok(())
    } else {
        Err(Error { call, code })
    }
}

macro_rules! functions {
    ($( $field:ident = $symbol:literal ( $($arg:ident: $type:ty),* ); )*) => {
        /// Addresses in the driver. All are of CUDA 7.0 or before.
        struct Functions {
            get_error_name: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
            $( $field: unsafe extern "C" fn($($type),*) -> Code, )*
        }

        impl Functions {
            /// The error is the first name that the driver lacks.
            fn find(library: Library) -> std::result::Result<Self, &'static str> {
                Ok(Self {
                    get_error_name: {
                        let address = library.symbol("cuGetErrorName\0").ok_or("cuGetErrorName")?;
                        // SAFETY: cuda.h gives the function this type, the enum aside.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Code, *mut *const c_char) -> Code>(address) }
                    },
                    $( $field: {
                        let address = library.symbol(concat!($symbol, "\0")).ok_or($symbol)?;
                        // SAFETY: cuda.h gives the function this type, enums aside.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> Code>(address) }
                    }, )*
                })
            }
        }

        impl Driver {
            $(
                #[allow(clippy::too_many_arguments, reason = "they are the driver's")]
                /// # Safety
                /// What cuda.h asks of the arguments.
                pub(super) unsafe fn $field(&self, $($arg: $type),*) -> Result<()> {
                    // SAFETY: the caller's promise.
                    check($symbol, unsafe { (self.functions.$field)($($arg),*) })
                }
            )*
        }
    };
}

functions! {
    init = "cuInit"(flags: c_uint);
    driver_get_version = "cuDriverGetVersion"(version: *mut c_int);
    device_get_count = "cuDeviceGetCount"(count: *mut c_int);
    device_get = "cuDeviceGet"(device: *mut CUdevice, ordinal: c_int);
    device_get_name = "cuDeviceGetName"(name: *mut c_char, length: c_int, device: CUdevice);
    device_total_mem = "cuDeviceTotalMem_v2"(bytes: *mut usize, device: CUdevice);
    device_get_attribute = "cuDeviceGetAttribute"(value: *mut c_int, attribute: c_uint, device: CUdevice);
    device_primary_ctx_get_state = "cuDevicePrimaryCtxGetState"(device: CUdevice, flags: *mut c_uint, active: *mut c_int);
    device_primary_ctx_retain = "cuDevicePrimaryCtxRetain"(context: *mut CUcontext, device: CUdevice);
    ctx_get_current = "cuCtxGetCurrent"(context: *mut CUcontext);
    ctx_get_device = "cuCtxGetDevice"(device: *mut CUdevice);
    ctx_push_current = "cuCtxPushCurrent_v2"(context: CUcontext);
    ctx_pop_current = "cuCtxPopCurrent_v2"(context: *mut CUcontext);
    pointer_get_attributes = "cuPointerGetAttributes"(count: c_uint, attributes: *mut c_uint, data: *mut *mut c_void, address: CUdeviceptr);
    stream_create = "cuStreamCreate"(stream: *mut CUstream, flags: c_uint);
    stream_destroy = "cuStreamDestroy_v2"(stream: CUstream);
    stream_synchronize = "cuStreamSynchronize"(stream: CUstream);
    stream_wait_event = "cuStreamWaitEvent"(stream: CUstream, event: CUevent, flags: c_uint);
    event_create = "cuEventCreate"(event: *mut CUevent, flags: c_uint);
    event_record = "cuEventRecord"(event: CUevent, stream: CUstream);
    event_query = "cuEventQuery"(event: CUevent);
    event_synchronize = "cuEventSynchronize"(event: CUevent);
    mem_alloc = "cuMemAlloc_v2"(address: *mut CUdeviceptr, bytes: usize);
    mem_free = "cuMemFree_v2"(address: CUdeviceptr);
    mem_host_register = "cuMemHostRegister_v2"(address: *mut c_void, bytes: usize, flags: c_uint);
    mem_host_unregister = "cuMemHostUnregister"(address: *mut c_void);
    memcpy_async = "cuMemcpyAsync"(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    memcpy_htod_async = "cuMemcpyHtoDAsync_v2"(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    memcpy_dtoh_async = "cuMemcpyDtoHAsync_v2"(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    memset_d8_async = "cuMemsetD8Async"(to: CUdeviceptr, value: u8, bytes: usize, stream: CUstream);
    module_load_data_ex = "cuModuleLoadDataEx"(module: *mut CUmodule, image: *const c_void, options: c_uint, names: *mut c_uint, values: *mut *mut c_void);
    module_unload = "cuModuleUnload"(module: CUmodule);
    module_get_function = "cuModuleGetFunction"(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    launch_kernel = "cuLaunchKernel"(
        function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
        block_z: c_uint, shared: c_uint, stream: CUstream, args: *mut *mut c_void, extra: *mut *mut c_void);
}

type CtxGetId = unsafe extern "C" fn(CUcontext, *mut u64) -> Code;

pub struct Driver {
    functions: Functions,
    /// CUDA 12.
    ctx_get_id: Option<CtxGetId>,
}

/// `None` inside: there is a driver, but one without what is needed.
static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();

impl Driver {
    /// The driver, where somebody has loaded it into this process. Nothing is loaded and nothing called: in a
    /// program without CUDA this is a question to the dynamic loader, and that is all.
    pub fn in_process() -> Option<&'static Self> {
        /// How many libraries had been loaded when the driver was not among them. To look for its name takes some
        /// 20 µs, to ask for this number 10 ns.
        static WITHOUT: AtomicU64 = AtomicU64::new(u64::MAX);
        if let Some(known) = DRIVER.get() {
            return known.as_ref();
        }
        let loaded = libraries_loaded();
        if WITHOUT.load(Ordering::Relaxed) == loaded {
            return None;
        }
        let found = Self::opened_with(libc::RTLD_NOLOAD);
        if found.is_none() {
            WITHOUT.store(loaded, Ordering::Relaxed);
        }
        found
    }

    /// The driver, loaded if need be.
    pub fn load() -> Option<&'static Self> {
        Self::opened_with(0)
    }

    fn opened_with(flag: c_int) -> Option<&'static Self> {
        // Only a library that is there settles the matter: it may come later.
        if let Some(known) = DRIVER.get() {
            return known.as_ref();
        }
        let library = Library::open(flag)?;
        DRIVER.get_or_init(|| Self::find(library)).as_ref()
    }

    fn find(library: Library) -> Option<Self> {
        let functions = match Functions::find(library) {
            Ok(functions) => functions,
            Err(name) => {
                tracing::warn!(
                    "the CUDA driver is too old: it has no {name}; device memory is taken for the host's"
                );
                return None;
            }
        };
        let ctx_get_id = library.symbol("cuCtxGetId\0").map(|address| {
            // SAFETY: cuda.h gives the function this type, the enum aside.
            unsafe { std::mem::transmute::<*mut c_void, CtxGetId>(address) }
        });
        Some(Self {
            functions,
            ctx_get_id,
        })
    }

    /// A number that no other context has. Drivers before CUDA 12 can only say where the context is, and that place
    /// may be taken by another one later.
    pub(super) fn identity(&self, context: CUcontext) -> Result<u64> {
        let Some(get_id) = self.ctx_get_id else {
            return Ok(context.addr() as u64);
        };
        let mut id = 0;
        // SAFETY: `id` outlives the call; the driver says so itself if it does not know the context.
        check("cuCtxGetId", unsafe { get_id(context, &raw mut id) })?;
        Ok(id)
    }

    /// The thread's current context, if it has one.
    pub(super) fn current(&self) -> Result<Option<CUcontext>> {
        let mut context: CUcontext = std::ptr::null_mut();
        // SAFETY: `context` outlives the call.
        unsafe { self.ctx_get_current(&raw mut context) }?;
        Ok((!context.is_null()).then_some(context))
    }

    pub(super) fn device(&self, ordinal: c_int) -> Result<CUdevice> {
        let mut device = 0;
        // SAFETY: `device` outlives the call.
        unsafe { self.device_get(&raw mut device, ordinal) }?;
        Ok(device)
    }

    pub(super) fn devices(&self) -> Result<c_int> {
        let mut count = 0;
        // SAFETY: `count` outlives the call.
        unsafe { self.device_get_count(&raw mut count) }?;
        Ok(count)
    }
}

/// How many libraries this process has loaded since it began.
fn libraries_loaded() -> u64 {
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        loaded: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid `info`, and `loaded` is the number handed to dl_iterate_phdr.
        unsafe { *loaded.cast::<u64>() = (*info).dlpi_adds };
        1
    }
    let mut loaded = 0u64;
    // SAFETY: `first` has the type of a callback, and uses `loaded` only during the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut loaded).cast()) };
    loaded
}

/// A handle of the dynamic loader, which stays open: the driver is never unloaded under us.
#[derive(Clone, Copy)]
struct Library(*mut c_void);

impl Library {
    fn open(flag: c_int) -> Option<Self> {
        // SAFETY: a C string; the driver's initialisers run where it is loaded, which is what loading it means.
        let handle = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_LAZY | flag) };
        (!handle.is_null()).then_some(Self(handle))
    }

    fn symbol(self, name_with_nul: &'static str) -> Option<*mut c_void> {
        let name = CStr::from_bytes_with_nul(name_with_nul.as_bytes()).ok()?;
        // SAFETY: the handle is open, and `name` a C string.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}
