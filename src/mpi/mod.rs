//! The real MPI, found at run time, behind safe calls.
//!
//! Everything here talks `PMPI_*`, so neither we nor other tools see our own traffic as the program's.

pub mod abi;
pub mod find;
mod functions;
pub mod gpu_aware;
mod request;

pub use abi::Abi;
pub use functions::Handle;
pub use request::Request;

use functions::Functions;
use once_cell::sync::OnceCell;
use std::ffi::{CString, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Once;

/// An MPI error code other than `MPI_SUCCESS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(pub c_int);

pub type Result<T> = std::result::Result<T, Error>;

pub const SUCCESS: c_int = 0;

/// Longest name or message any MPI writes, its terminator included: the standard ABI's bound on error
/// strings, which is larger than the bound on object names.
const MAX_STRING: usize = 1024;

fn check(code: c_int) -> Result<()> {
    if code == SUCCESS {
        Ok(())
    } else {
        Err(Error(code))
    }
}

/// The MPI of this process.
pub struct Mpi {
    pub abi: Abi,
    functions: Functions,
}

/// What MPI says of a datatype's place in memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub lower_bound: isize,
    pub extent: isize,
    pub true_lower_bound: isize,
    pub true_extent: isize,
}

/// How a datatype was made.
pub struct Envelope {
    pub combiner: c_int,
    integers: i64,
    addresses: i64,
    large_counts: i64,
    datatypes: i64,
}

/// What a derived datatype was made from.
pub struct Contents {
    /// The constructor's integer arguments; empty where it was given large counts.
    pub integers: Vec<c_int>,
    pub datatypes: Vec<Handle>,
}

static MPI: OnceCell<Mpi> = OnceCell::new();

impl Mpi {
    /// The MPI of this process; `None` where there is none (yet), or one that lacks a function of MPI 3.
    pub fn get() -> Option<&'static Self> {
        MPI.get_or_try_init(|| {
            let abi = Abi::detect().ok_or(())?;
            let functions = Functions::load().map_err(|name| {
                static SAY_IT: Once = Once::new();
                SAY_IT.call_once(|| {
                    tracing::error!("this MPI has no {name}: nothing is compressed");
                });
            })?;
            Ok::<_, ()>(Self { abi, functions })
        })
        .ok()
    }

    /// Whether MPI calls may be made now.
    pub fn is_active(&self) -> bool {
        let (mut started, mut ended) = (0, 0);
        // SAFETY: both calls are allowed at any time and write one int each.
        unsafe {
            (self.functions.initialized)(&raw mut started);
            (self.functions.finalized)(&raw mut ended);
        }
        started != 0 && ended == 0
    }

    /// Whether the communicator has two groups.
    pub fn is_inter(&self, comm: Handle) -> Result<bool> {
        let mut flag = 0;
        // SAFETY: MPI checks the handle and writes one int.
        check(unsafe { (self.functions.comm_test_inter)(comm, &raw mut flag) })?;
        Ok(flag != 0)
    }

    pub fn rank(&self, comm: Handle) -> Result<usize> {
        let mut rank = 0;
        // SAFETY: MPI checks the handle and writes one int.
        check(unsafe { (self.functions.comm_rank)(comm, &raw mut rank) })?;
        Ok(rank.unsigned_abs() as usize)
    }

    pub fn size(&self, comm: Handle) -> Result<usize> {
        let mut size = 0;
        // SAFETY: MPI checks the handle and writes one int.
        check(unsafe { (self.functions.comm_size)(comm, &raw mut size) })?;
        Ok(size.unsigned_abs() as usize)
    }

    /// The name given with `MPI_Comm_set_name`, or MPI's own for the predefined ones; may be empty.
    pub fn comm_name(&self, comm: Handle) -> Result<String> {
        // SAFETY: the buffer holds the longest name any MPI writes.
        self.read_string(|text, length| unsafe {
            (self.functions.comm_get_name)(comm, text, length)
        })
    }

    /// The name of a predefined datatype.
    pub fn type_name(&self, datatype: Handle) -> Result<String> {
        // SAFETY: the buffer holds the longest name any MPI writes.
        self.read_string(|text, length| unsafe {
            (self.functions.type_get_name)(datatype, text, length)
        })
    }

    /// MPI's words for an error code.
    pub fn error_text(&self, error: Error) -> String {
        // SAFETY: the buffer holds the longest message any MPI writes.
        self.read_string(|text, length| unsafe {
            (self.functions.error_string)(error.0, text, length)
        })
        .unwrap_or_else(|_| format!("error {}", error.0))
    }

    fn read_string(
        &self,
        call: impl FnOnce(*mut std::ffi::c_char, *mut c_int) -> c_int,
    ) -> Result<String> {
        let mut text = [0u8; MAX_STRING];
        let mut length = 0;
        check(call(text.as_mut_ptr().cast(), &raw mut length))?;
        let end = usize::try_from(length).unwrap_or(0).min(MAX_STRING);
        Ok(String::from_utf8_lossy(&text[..end]).into_owned())
    }

    /// A new communicator over the same ranks, with nothing else inherited: no attribute is copied, so no
    /// copy callback of the program runs, and errors come back as codes. Collective.
    pub fn private_copy(&self, comm: Handle) -> Result<Handle> {
        let mut group = 0;
        let mut copy = 0;
        // SAFETY: MPI checks the handles; each output is written as one handle.
        unsafe {
            check((self.functions.comm_group)(comm, &raw mut group))?;
            let made = check((self.functions.comm_create)(comm, group, &raw mut copy));
            (self.functions.group_free)(&raw mut group);
            made?;
            check((self.functions.comm_set_errhandler)(
                copy,
                self.abi.errors_return,
            ))?;
        }
        Ok(copy)
    }

    /// For each rank of the communicator, whether it shares memory with this one. Collective.
    pub fn on_node(&self, comm: Handle) -> Result<Vec<bool>> {
        let size = self.size(comm)?;
        let rank = self.rank(comm)? as c_int;
        let mut node = 0;
        // SAFETY: MPI checks the handles and writes one handle.
        check(unsafe {
            (self.functions.comm_split_type)(
                comm,
                self.abi.comm_type_shared,
                rank,
                self.abi.info_null,
                &raw mut node,
            )
        })?;
        let ranks: Vec<c_int> = (0..size as c_int).collect();
        let translated = self.translate_ranks(comm, &ranks, node);
        self.comm_free(node);
        Ok(translated?.into_iter().map(|rank| rank >= 0).collect())
    }

    /// The rank in `comm` of rank 0 of `MPI_COMM_WORLD`, where it belongs to it.
    pub fn rank_of_world_root(&self, comm: Handle) -> Result<Option<usize>> {
        let translated = self.translate_ranks(self.abi.comm_world, &[0], comm)?;
        Ok(translated
            .first()
            .and_then(|&rank| usize::try_from(rank).ok()))
    }

    /// The ranks within `to` of some ranks of `from`; negative for those it has not.
    fn translate_ranks(&self, from: Handle, ranks: &[c_int], to: Handle) -> Result<Vec<c_int>> {
        let mut translated = vec![-1; ranks.len()];
        let (mut from_group, mut to_group) = (0, 0);
        // SAFETY: both groups are live until freed below, and both arrays are equally long.
        unsafe {
            check((self.functions.comm_group)(from, &raw mut from_group))?;
            check((self.functions.comm_group)(to, &raw mut to_group))?;
            let done = check((self.functions.group_translate_ranks)(
                from_group,
                ranks.len() as c_int,
                ranks.as_ptr(),
                to_group,
                translated.as_mut_ptr(),
            ));
            (self.functions.group_free)(&raw mut from_group);
            (self.functions.group_free)(&raw mut to_group);
            done?;
        }
        Ok(translated)
    }

    pub fn comm_free(&self, mut comm: Handle) {
        // SAFETY: the handle is one of ours, made by `private_copy` or `on_node`, and freed once.
        unsafe { (self.functions.comm_free)(&raw mut comm) };
    }

    /// A key under which a pointer can be kept on communicators; `delete` runs when one is freed, and the
    /// pointer is not copied to duplicates.
    pub fn create_keyval(&self, delete: DeleteAttribute) -> Result<c_int> {
        let mut key = 0;
        // SAFETY: both callbacks have the types MPI calls them with, handles aside (see `functions`).
        check(unsafe {
            (self.functions.comm_create_keyval)(
                copy_nothing as *const c_void,
                delete as *const c_void,
                &raw mut key,
                null_mut(),
            )
        })?;
        Ok(key)
    }

    pub fn set_attribute(&self, comm: Handle, key: c_int, value: usize) -> Result<()> {
        // SAFETY: MPI stores the pointer without following it.
        check(unsafe { (self.functions.comm_set_attr)(comm, key, without_provenance_mut(value)) })
    }

    /// Runs the delete callback of the attribute.
    pub fn delete_attribute(&self, comm: Handle, key: c_int) -> Result<()> {
        // SAFETY: MPI checks both arguments.
        check(unsafe { (self.functions.comm_delete_attr)(comm, key) })
    }

    /// The largest of every rank's value. Collective.
    pub fn max_over(&self, comm: Handle, value: c_int) -> Result<c_int> {
        let mut values = [value];
        self.max_over_all(comm, &mut values)?;
        Ok(values[0])
    }

    /// The same for each of some values, equally many on every rank.
    pub fn max_over_all(&self, comm: Handle, values: &mut [c_int]) -> Result<()> {
        let mut largest = vec![0; values.len()];
        self.allreduce(
            values.as_ptr().cast(),
            largest.as_mut_ptr().cast(),
            values.len() as c_int,
            self.abi.int,
            self.abi.max,
            comm,
        )?;
        values.copy_from_slice(&largest);
        Ok(())
    }

    /// The bitwise or of every rank's words, which are equally many on every rank. Collective.
    pub fn or_over(&self, comm: Handle, words: &[u64]) -> Result<Vec<u64>> {
        let mut joined = vec![0u64; words.len()];
        let bytes = size_of_val(words) as c_int;
        self.allreduce(
            words.as_ptr().cast(),
            joined.as_mut_ptr().cast(),
            bytes,
            self.abi.byte,
            self.abi.bor,
            comm,
        )?;
        Ok(joined)
    }

    fn allreduce(
        &self,
        send: *const c_void,
        receive: *mut c_void,
        count: c_int,
        datatype: Handle,
        op: Handle,
        comm: Handle,
    ) -> Result<()> {
        // SAFETY: the callers above pass distinct buffers of `count` elements of `datatype`.
        check(unsafe { (self.functions.allreduce)(send, receive, count, datatype, op, comm) })
    }

    /// Hands an error to the communicator's error handler; comes back only where that returns.
    pub fn raise(&self, comm: Handle, message: &str) -> Error {
        let code = self.own_error_code().unwrap_or(self.abi.err_other);
        if let Ok(text) = CString::new(message) {
            // SAFETY: MPI checks the code and copies the string.
            unsafe { (self.functions.add_error_string)(code, text.as_ptr()) };
        }
        self.raise_code(comm, Error(code))
    }

    /// An error code of ours, made once; its text is that of the latest error. `None` where MPI gives none.
    fn own_error_code(&self) -> Option<c_int> {
        static CODE: OnceCell<c_int> = OnceCell::new();
        let made = CODE.get_or_try_init(|| {
            let (mut class, mut code) = (0, 0);
            // A class of its own: MPICH looks up the text of a code under a predefined class wrongly.
            // SAFETY: MPI writes one int each time.
            unsafe {
                check((self.functions.add_error_class)(&raw mut class))?;
                check((self.functions.add_error_code)(class, &raw mut code))?;
            }
            Ok::<_, Error>(code)
        });
        made.ok().copied()
    }

    /// As [`Self::raise`], for a code that MPI gave.
    pub fn raise_code(&self, comm: Handle, error: Error) -> Error {
        // SAFETY: MPI checks the handle; the handler is the program's or MPI's own.
        unsafe { (self.functions.comm_call_errhandler)(comm, error.0) };
        error
    }

    /// Bytes that one item of the datatype sends.
    pub fn type_size(&self, datatype: Handle) -> Result<usize> {
        if let Some(type_size) = self.functions.type_size_c.or(self.functions.type_size_x) {
            let mut size = 0i64;
            // SAFETY: MPI checks the handle and writes one MPI_Count.
            check(unsafe { type_size(datatype, &raw mut size) })?;
            return Ok(usize::try_from(size).unwrap_or(0));
        }
        let mut size = 0;
        // SAFETY: MPI checks the handle and writes one int.
        check(unsafe { (self.functions.type_size)(datatype, &raw mut size) })?;
        Ok(usize::try_from(size).unwrap_or(0))
    }

    pub fn type_extent(&self, datatype: Handle) -> Result<Extent> {
        let mut of = Extent {
            lower_bound: 0,
            extent: 0,
            true_lower_bound: 0,
            true_extent: 0,
        };
        // SAFETY: MPI checks the handle and writes two MPI_Aint each time.
        unsafe {
            check((self.functions.type_get_extent)(
                datatype,
                &raw mut of.lower_bound,
                &raw mut of.extent,
            ))?;
            check((self.functions.type_get_true_extent)(
                datatype,
                &raw mut of.true_lower_bound,
                &raw mut of.true_extent,
            ))?;
        }
        Ok(of)
    }

    pub fn type_envelope(&self, datatype: Handle) -> Result<Envelope> {
        let mut envelope = Envelope {
            combiner: 0,
            integers: 0,
            addresses: 0,
            large_counts: 0,
            datatypes: 0,
        };
        if let Some(get_envelope) = self.functions.type_get_envelope_c {
            // SAFETY: MPI checks the handle and writes the five numbers.
            check(unsafe {
                get_envelope(
                    datatype,
                    &raw mut envelope.integers,
                    &raw mut envelope.addresses,
                    &raw mut envelope.large_counts,
                    &raw mut envelope.datatypes,
                    &raw mut envelope.combiner,
                )
            })?;
            return Ok(envelope);
        }
        let (mut integers, mut addresses, mut datatypes) = (0, 0, 0);
        // SAFETY: MPI checks the handle and writes the four numbers.
        check(unsafe {
            (self.functions.type_get_envelope)(
                datatype,
                &raw mut integers,
                &raw mut addresses,
                &raw mut datatypes,
                &raw mut envelope.combiner,
            )
        })?;
        envelope.integers = i64::from(integers);
        envelope.addresses = i64::from(addresses);
        envelope.datatypes = i64::from(datatypes);
        Ok(envelope)
    }

    /// The constructor's arguments. The datatypes among them are new references: those that are not
    /// predefined must be given to [`Self::type_free`].
    pub fn type_contents(&self, datatype: Handle, envelope: &Envelope) -> Result<Contents> {
        let room = |count: i64| usize::try_from(count).unwrap_or(0);
        let mut integers = vec![0; room(envelope.integers)];
        let mut addresses = vec![0isize; room(envelope.addresses)];
        let mut large_counts = vec![0i64; room(envelope.large_counts)];
        let mut handles = vec![0u8; room(envelope.datatypes) * self.abi.handle_bytes];
        // SAFETY: every array has the room that the envelope of this very datatype asks for.
        check(unsafe {
            match self.functions.type_get_contents_c {
                Some(get_contents) => get_contents(
                    datatype,
                    envelope.integers,
                    envelope.addresses,
                    envelope.large_counts,
                    envelope.datatypes,
                    integers.as_mut_ptr(),
                    addresses.as_mut_ptr(),
                    large_counts.as_mut_ptr(),
                    handles.as_mut_ptr().cast(),
                ),
                None => (self.functions.type_get_contents)(
                    datatype,
                    envelope.integers as c_int,
                    envelope.addresses as c_int,
                    envelope.datatypes as c_int,
                    integers.as_mut_ptr(),
                    addresses.as_mut_ptr(),
                    handles.as_mut_ptr().cast(),
                ),
            }
        })?;
        let datatypes = handles
            .chunks_exact(self.abi.handle_bytes)
            .map(|bytes| {
                bytes
                    .iter()
                    .rev()
                    .fold(0, |handle, &byte| handle << 8 | usize::from(byte))
            })
            .collect();
        Ok(Contents {
            integers,
            datatypes,
        })
    }

    pub fn type_free(&self, mut datatype: Handle) {
        // SAFETY: the handle is a reference that `type_contents` or `type_of_bytes` made.
        unsafe { (self.functions.type_free)(&raw mut datatype) };
    }

    /// A committed datatype of `bytes` contiguous bytes.
    pub fn type_of_bytes(&self, bytes: usize) -> Result<Handle> {
        let mut datatype = 0;
        // SAFETY: MPI writes one handle, then commits it.
        unsafe {
            check((self.functions.type_contiguous)(
                bytes as c_int,
                self.abi.byte,
                &raw mut datatype,
            ))?;
            check((self.functions.type_commit)(&raw mut datatype))?;
        }
        Ok(datatype)
    }

    /// The error of MPI for a datatype that cannot be used in messages, one that is not committed. `comm`
    /// must be ours, so that the error comes back as a code.
    pub fn check_usable(&self, datatype: Handle, comm: Handle) -> Result<()> {
        // Packing nothing: MPI_Pack_size does not look whether a datatype is committed.
        let nothing = [0u8; 8];
        // SAFETY: a buffer of no items.
        unsafe { self.pack(nothing.as_ptr().cast(), 0, datatype, &mut [0; 8], comm) }
    }

    /// Copies `items` items of a datatype at `source` into `target`, one after the other.
    ///
    /// # Safety
    /// `source` must be a buffer of `items` items of `datatype`.
    pub unsafe fn pack(
        &self,
        source: *const c_void,
        items: c_int,
        datatype: Handle,
        target: &mut [u8],
        comm: Handle,
    ) -> Result<()> {
        let room = c_int::try_from(target.len()).unwrap_or(c_int::MAX);
        if source.is_null() && items > 0 {
            let target = (target.as_mut_ptr().cast(), room, self.abi.byte);
            // SAFETY: the caller's promise; both are there until this returns.
            return unsafe { self.send_to_self((source, items, datatype), target, comm) };
        }
        let mut position = 0;
        // SAFETY: the caller's promise for the source; MPI checks the room in the target.
        check(unsafe {
            (self.functions.pack)(
                source,
                items,
                datatype,
                target.as_mut_ptr().cast(),
                room,
                &raw mut position,
                comm,
            )
        })
    }

    /// The reverse of [`Self::pack`].
    ///
    /// # Safety
    /// `target` must be a buffer of `items` items of `datatype`.
    pub unsafe fn unpack(
        &self,
        source: &[u8],
        target: *mut c_void,
        items: c_int,
        datatype: Handle,
        comm: Handle,
    ) -> Result<()> {
        let room = c_int::try_from(source.len()).unwrap_or(c_int::MAX);
        if target.is_null() && items > 0 {
            let source = (source.as_ptr().cast(), room, self.abi.byte);
            // SAFETY: the caller's promise; both are there until this returns.
            return unsafe { self.send_to_self(source, (target, items, datatype), comm) };
        }
        let mut position = 0;
        // SAFETY: the caller's promise for the target; MPI checks the length of the source.
        check(unsafe {
            (self.functions.unpack)(
                source.as_ptr().cast(),
                room,
                &raw mut position,
                target,
                items,
                datatype,
                comm,
            )
        })
    }

    /// What MPI_Pack and MPI_Unpack do, by a message of this rank to itself: MPICH's take no `MPI_BOTTOM`.
    ///
    /// # Safety
    /// As [`Self::pack`] and [`Self::unpack`], for buffer, items and datatype of either end.
    unsafe fn send_to_self(
        &self,
        source: (*const c_void, c_int, Handle),
        target: (*mut c_void, c_int, Handle),
        comm: Handle,
    ) -> Result<()> {
        const TAG: c_int = 0x7478;
        let rank = self.rank(comm)?;
        // SAFETY: the caller's promise; both requests are waited for, or given up.
        unsafe {
            let receive = self.irecv(target.0, target.1, target.2, rank, TAG, comm)?;
            match self.isend(source.0, source.1, source.2, rank, TAG, comm) {
                Ok(sent) => receive.wait().and(sent.wait()),
                // Nothing will come.
                Err(error) => receive.cancel().and(Err(error)),
            }
        }
    }

    /// The handle behind a Fortran communicator.
    pub fn comm_from_fortran(&self, comm: c_int) -> Handle {
        type Convert = unsafe extern "C" fn(c_int) -> Handle;
        let convert = match self.abi.family {
            abi::Family::Mpich => None,
            abi::Family::OpenMpi => find::next(c"PMPI_Comm_f2c"),
            abi::Family::Standard => find::next(c"PMPI_Comm_fromint"),
        };
        match convert {
            // SAFETY: both MPIs define the symbol with this signature.
            Some(address) => unsafe { std::mem::transmute::<*mut c_void, Convert>(address)(comm) },
            None => comm as u32 as Handle,
        }
    }

    /// Starts sending `items` of `datatype` to `peer`.
    ///
    /// # Safety
    /// The buffer must stay as it is until the request is complete.
    pub unsafe fn isend(
        &self,
        buffer: *const c_void,
        items: c_int,
        datatype: Handle,
        peer: usize,
        tag: c_int,
        comm: Handle,
    ) -> Result<Request<'_>> {
        // SAFETY: the caller's promise; the request takes the handle.
        Request::start(self, |request| unsafe {
            (self.functions.isend)(buffer, items, datatype, peer as c_int, tag, comm, request)
        })
    }

    /// Starts receiving at most `items` of `datatype` from `peer`.
    ///
    /// # Safety
    /// The buffer must stay valid and untouched until the request is complete.
    pub unsafe fn irecv(
        &self,
        buffer: *mut c_void,
        items: c_int,
        datatype: Handle,
        peer: usize,
        tag: c_int,
        comm: Handle,
    ) -> Result<Request<'_>> {
        // SAFETY: the caller's promise; the request takes the handle.
        Request::start(self, |request| unsafe {
            (self.functions.irecv)(buffer, items, datatype, peer as c_int, tag, comm, request)
        })
    }

    /// `PMPI_Alltoallv`; with large counts, `PMPI_Alltoallv_c` where this MPI has it. `None` where it has
    /// not.
    ///
    /// # Safety
    /// As MPI asks: both halves describe live buffers, their arrays as long as the communicator.
    pub unsafe fn alltoallv(
        &self,
        send: &Half,
        receive: &Half,
        comm: Handle,
    ) -> Option<Result<()>> {
        if let (Some(send_ints), Some(receive_ints)) = (send.as_ints(), receive.as_ints()) {
            // SAFETY: the caller's promise; MPI copies the arrays' contents before it returns.
            return Some(check(unsafe {
                (self.functions.alltoallv)(
                    send.buffer.cast_const(),
                    send_ints.0.as_ptr(),
                    send_ints.1.as_ptr(),
                    send.datatype,
                    receive.buffer,
                    receive_ints.0.as_ptr(),
                    receive_ints.1.as_ptr(),
                    receive.datatype,
                    comm,
                )
            }));
        }
        let alltoallv_c = self.functions.alltoallv_c?;
        // SAFETY: as above.
        Some(check(unsafe {
            alltoallv_c(
                send.buffer.cast_const(),
                send.counts.as_ptr(),
                send.displacements.as_ptr(),
                send.datatype,
                receive.buffer,
                receive.counts.as_ptr(),
                receive.displacements.as_ptr(),
                receive.datatype,
                comm,
            )
        }))
    }

    /// `PMPI_Alltoall`, or with large counts `PMPI_Alltoall_c` where this MPI has it. `None` where it has not.
    ///
    /// # Safety
    /// As MPI asks: both halves describe live buffers, and all their blocks are alike.
    pub unsafe fn alltoall(&self, send: &Half, receive: &Half, comm: Handle) -> Option<Result<()>> {
        let items = |half: &Half| half.counts.first().copied().unwrap_or(0);
        let (sent, received) = (items(send), items(receive));
        if let (Ok(sent), Ok(received)) = (c_int::try_from(sent), c_int::try_from(received)) {
            // SAFETY: the caller's promise.
            return Some(check(unsafe {
                (self.functions.alltoall)(
                    send.buffer.cast_const(),
                    sent,
                    send.datatype,
                    receive.buffer,
                    received,
                    receive.datatype,
                    comm,
                )
            }));
        }
        let alltoall_c = self.functions.alltoall_c?;
        // SAFETY: as above.
        Some(check(unsafe {
            alltoall_c(
                send.buffer.cast_const(),
                sent,
                send.datatype,
                receive.buffer,
                received,
                receive.datatype,
                comm,
            )
        }))
    }

    /// What stands for `MPI_IN_PLACE` as the half that is sent.
    pub fn in_place(&self, receive: &Half) -> Half {
        Half {
            buffer: without_provenance_mut(self.abi.in_place),
            ..receive.clone()
        }
    }

    fn status_ignore(&self) -> *mut c_void {
        without_provenance_mut(self.abi.status_ignore)
    }
}

/// MPI's `MPI_Comm_delete_attr_function`.
pub type DeleteAttribute = unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void) -> c_int;

/// MPI's `MPI_Comm_copy_attr_function`, for attributes that duplicates do not get.
unsafe extern "C" fn copy_nothing(
    _comm: Handle,
    _key: c_int,
    _extra: *mut c_void,
    _value: *mut c_void,
    _copy: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: MPI passes a valid pointer for the answer.
    unsafe { *flag = 0 };
    SUCCESS
}

/// The send or the receive half of an all-to-all. Counts and displacements in items of the datatype.
#[derive(Clone)]
pub struct Half {
    pub buffer: *mut c_void,
    pub datatype: Handle,
    pub counts: Vec<i64>,
    pub displacements: Vec<isize>,
}

impl Half {
    pub fn fits_ints(&self) -> bool {
        self.as_ints().is_some()
    }

    /// Counts and displacements as ints, where all of them fit.
    fn as_ints(&self) -> Option<(Vec<c_int>, Vec<c_int>)> {
        let counts = self.counts.iter().map(|&count| c_int::try_from(count).ok());
        let displacements = self
            .displacements
            .iter()
            .map(|&items| c_int::try_from(items).ok());
        Some((
            counts.collect::<Option<_>>()?,
            displacements.collect::<Option<_>>()?,
        ))
    }
}
