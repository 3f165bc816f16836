//! The MPI functions that transpress calls itself, always by their `PMPI_` name.
//!
//! Handles travel as `usize`: Open MPI's and the standard ABI's are pointers, MPICH's are ints that
//! the calling convention passes in the low half of the same register.

use super::find;
use std::ffi::{c_char, c_int, c_void};

macro_rules! functions {
    (required { $( $field:ident = $symbol:literal ( $($arg:ty),* ); )* }
     optional { $( $(#[$opt_doc:meta])* $opt_field:ident = $opt_symbol:literal ( $($opt_arg:ty),* ); )* }) => {
        /// Addresses of MPI's functions; every one that is not an `Option` was found.
        pub struct Functions {
            $( pub $field: unsafe extern "C" fn($($arg),*) -> c_int, )*
            $( $(#[$opt_doc])* pub $opt_field: Option<unsafe extern "C" fn($($opt_arg),*) -> c_int>, )*
        }

        impl Functions {
            /// Looks every function up; the error is the first name this MPI lacks.
            pub fn load() -> Result<Self, &'static str> {
                Ok(Self {
                    $( $field: {
                        let name = concat!($symbol, "\0");
                        let address = address(name).ok_or($symbol)?;
                        // SAFETY: MPI defines the symbol with this signature, handles aside (see above).
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) -> c_int>(address) }
                    }, )*
                    $( $opt_field: address(concat!($opt_symbol, "\0")).map(|address| {
                        // SAFETY: as above.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($opt_arg),*) -> c_int>(address) }
                    }), )*
                })
            }
        }
    };
}

fn address(name_with_nul: &'static str) -> Option<*mut c_void> {
    find::next(std::ffi::CStr::from_bytes_with_nul(name_with_nul.as_bytes()).ok()?)
}

/// An MPI handle of any kind, as it is passed.
pub type Handle = usize;
/// Where MPI writes a handle: eight bytes, zeroed before, whatever the ABI's width.
type HandleOut = *mut usize;
type Ints = *const c_int;
type IntOut = *mut c_int;

functions! {
    required {
        initialized = "PMPI_Initialized"(IntOut);
        finalized = "PMPI_Finalized"(IntOut);
        comm_rank = "PMPI_Comm_rank"(Handle, IntOut);
        comm_size = "PMPI_Comm_size"(Handle, IntOut);
        comm_test_inter = "PMPI_Comm_test_inter"(Handle, IntOut);
        comm_get_name = "PMPI_Comm_get_name"(Handle, *mut c_char, IntOut);
        comm_group = "PMPI_Comm_group"(Handle, HandleOut);
        comm_create = "PMPI_Comm_create"(Handle, Handle, HandleOut);
        comm_split_type = "PMPI_Comm_split_type"(Handle, c_int, c_int, Handle, HandleOut);
        comm_free = "PMPI_Comm_free"(HandleOut);
        comm_create_keyval = "PMPI_Comm_create_keyval"(*const c_void, *const c_void, IntOut, *mut c_void);
        comm_set_attr = "PMPI_Comm_set_attr"(Handle, c_int, *mut c_void);
        comm_delete_attr = "PMPI_Comm_delete_attr"(Handle, c_int);
        comm_set_errhandler = "PMPI_Comm_set_errhandler"(Handle, Handle);
        comm_call_errhandler = "PMPI_Comm_call_errhandler"(Handle, c_int);
        add_error_class = "PMPI_Add_error_class"(IntOut);
        add_error_code = "PMPI_Add_error_code"(c_int, IntOut);
        add_error_string = "PMPI_Add_error_string"(c_int, *const c_char);
        error_string = "PMPI_Error_string"(c_int, *mut c_char, IntOut);
        group_translate_ranks = "PMPI_Group_translate_ranks"(Handle, c_int, Ints, Handle, IntOut);
        group_free = "PMPI_Group_free"(HandleOut);
        allreduce = "PMPI_Allreduce"(*const c_void, *mut c_void, c_int, Handle, Handle, Handle);
        alltoall = "PMPI_Alltoall"(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle);
        alltoallv = "PMPI_Alltoallv"(*const c_void, Ints, Ints, Handle, *mut c_void, Ints, Ints, Handle, Handle);
        isend = "PMPI_Isend"(*const c_void, c_int, Handle, c_int, c_int, Handle, HandleOut);
        irecv = "PMPI_Irecv"(*mut c_void, c_int, Handle, c_int, c_int, Handle, HandleOut);
        test = "PMPI_Test"(HandleOut, IntOut, *mut c_void);
        wait = "PMPI_Wait"(HandleOut, *mut c_void);
        cancel = "PMPI_Cancel"(HandleOut);
        get_count = "PMPI_Get_count"(*const c_void, Handle, IntOut);
        type_get_envelope = "PMPI_Type_get_envelope"(Handle, IntOut, IntOut, IntOut, IntOut);
        type_get_contents = "PMPI_Type_get_contents"(Handle, c_int, c_int, c_int, IntOut, *mut isize, *mut c_void);
        type_get_name = "PMPI_Type_get_name"(Handle, *mut c_char, IntOut);
        type_get_extent = "PMPI_Type_get_extent"(Handle, *mut isize, *mut isize);
        type_get_true_extent = "PMPI_Type_get_true_extent"(Handle, *mut isize, *mut isize);
        type_size = "PMPI_Type_size"(Handle, IntOut);
        type_contiguous = "PMPI_Type_contiguous"(c_int, Handle, HandleOut);
        type_commit = "PMPI_Type_commit"(HandleOut);
        type_free = "PMPI_Type_free"(HandleOut);
        pack = "PMPI_Pack"(*const c_void, c_int, Handle, *mut c_void, c_int, IntOut, Handle);
        unpack = "PMPI_Unpack"(*const c_void, c_int, IntOut, *mut c_void, c_int, Handle, Handle);
    }
    optional {
        /// MPI 3; gone from the standard ABI, where [`Functions::type_size_c`] is.
        type_size_x = "PMPI_Type_size_x"(Handle, *mut i64);
        /// MPI 4.
        type_size_c = "PMPI_Type_size_c"(Handle, *mut i64);
        /// MPI 4: the only way to look into a type that was made with large counts.
        type_get_envelope_c = "PMPI_Type_get_envelope_c"(Handle, *mut i64, *mut i64, *mut i64, *mut i64, IntOut);
        type_get_contents_c = "PMPI_Type_get_contents_c"(Handle, i64, i64, i64, i64, IntOut, *mut isize, *mut i64, *mut c_void);
        /// MPI 4.
        alltoall_c = "PMPI_Alltoall_c"(*const c_void, i64, Handle, *mut c_void, i64, Handle, Handle);
        alltoallv_c = "PMPI_Alltoallv_c"(*const c_void, *const i64, *const isize, Handle, *mut c_void, *const i64, *const isize, Handle, Handle);
    }
}
