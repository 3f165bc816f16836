!> transpress.f90: tell libtranspress.so what it cannot see from outside.
!>
!> Compile this file with your program; nothing has to be linked. Each call looks the library up at run
!> time, and returns TRANSPRESS_ABSENT where it is not preloaded. transpress.h says what each call means.
!>
!> A communicator is an integer (mpif.h, module mpi) or a type(MPI_Comm) (module mpi_f08). The two need
!> not be told apart: call transpress_register(comm) either way.
!>
!> Extents go in Fortran order, fastest first, so the extents of an array a are just shape(a).
module transpress
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_double, c_f_procpointer, c_funptr, &
                                         c_int, c_int64_t, c_null_char, c_null_ptr, c_ptr
  use mpi_f08, only: MPI_Comm
  implicit none
  private

  integer, parameter, public :: TRANSPRESS_OK = 0
  integer, parameter, public :: TRANSPRESS_ABSENT = 1         ! the library is not preloaded
  integer, parameter, public :: TRANSPRESS_DISABLED = 2       ! codec or mode off, or a wrong variable
  integer, parameter, public :: TRANSPRESS_BAD_ARGUMENT = 3
  integer, parameter, public :: TRANSPRESS_NOT_REGISTERED = 4
  integer, parameter, public :: TRANSPRESS_DISAGREE = 5       ! ranks gave different values
  integer, parameter, public :: TRANSPRESS_NOT_AVAILABLE = 6  ! this version cannot do it yet
  integer, parameter, public :: TRANSPRESS_FAILED = 7         ! MPI failed or is not there

  !> What this rank did on one communicator since it was registered; transpress_stats_t of transpress.h.
  type, bind(C), public :: transpress_stats_t
    integer(c_int64_t) :: calls = 0
    integer(c_int64_t) :: messages_compressed = 0
    integer(c_int64_t) :: messages_raw = 0
    integer(c_int64_t) :: messages_escaped = 0
    integer(c_int64_t) :: bytes_before = 0
    integer(c_int64_t) :: bytes_after = 0
    real(c_double) :: seconds_encode = 0
    real(c_double) :: seconds_wire = 0
    real(c_double) :: seconds_decode = 0
    real(c_double) :: worst_error = 0
    real(c_double) :: mean_error = 0
  end type transpress_stats_t

  !> ierr = transpress_register(comm): collective.
  interface transpress_register
    module procedure register_integer, register_f08
  end interface transpress_register

  !> ierr = transpress_unregister(comm): collective.
  interface transpress_unregister
    module procedure unregister_integer, unregister_f08
  end interface transpress_unregister

  !> ierr = transpress_set_rate(comm, bits_per_value): collective.
  interface transpress_set_rate
    module procedure set_rate_integer, set_rate_f08
  end interface transpress_set_rate

  !> ierr = transpress_set_tolerance(comm, absolute): collective.
  interface transpress_set_tolerance
    module procedure set_tolerance_integer, set_tolerance_f08
  end interface transpress_set_tolerance

  !> ierr = transpress_set_bytes(comm, "f32"): collective.
  interface transpress_set_bytes
    module procedure set_bytes_integer, set_bytes_f08
  end interface transpress_set_bytes

  !> ierr = transpress_add_shape(comm, shape(block)): local. Fastest axis first; -1: from the count.
  interface transpress_add_shape
    module procedure add_shape_integer, add_shape_f08
  end interface transpress_add_shape

  !> ierr = transpress_add_layout(comm, "2c,100f,*"): local.
  interface transpress_add_layout
    module procedure add_layout_integer, add_layout_f08
  end interface transpress_add_layout

  !> ierr = transpress_stats(comm, stats): local.
  interface transpress_stats
    module procedure stats_integer, stats_f08
  end interface transpress_stats

  public :: transpress_register, transpress_unregister, transpress_set_rate, transpress_set_tolerance, &
            transpress_set_bytes, transpress_add_shape, transpress_add_layout, transpress_stats

  ! The library's entries for Fortran: a communicator as an integer, everything else as in C.
  abstract interface
    function takes_comm(comm) bind(C) result(code)
      import :: c_int
      integer(c_int), value :: comm
      integer(c_int) :: code
    end function takes_comm

    function takes_number(comm, number) bind(C) result(code)
      import :: c_int, c_double
      integer(c_int), value :: comm
      real(c_double), value :: number
      integer(c_int) :: code
    end function takes_number

    function takes_text(comm, text) bind(C) result(code)
      import :: c_int, c_char
      integer(c_int), value :: comm
      character(kind=c_char), intent(in) :: text(*)
      integer(c_int) :: code
    end function takes_text

    function takes_extents(comm, ndims, extents) bind(C) result(code)
      import :: c_int
      integer(c_int), value :: comm, ndims
      integer(c_int), intent(in) :: extents(*)
      integer(c_int) :: code
    end function takes_extents

    function takes_stats(comm, stats) bind(C) result(code)
      import :: c_int, transpress_stats_t
      integer(c_int), value :: comm
      type(transpress_stats_t), intent(inout) :: stats
      integer(c_int) :: code
    end function takes_stats
  end interface

  interface
    function c_dlsym(handle, name) bind(C, name="dlsym") result(address)
      import :: c_ptr, c_char, c_funptr
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: name(*)
      type(c_funptr) :: address
    end function c_dlsym
  end interface

contains

  !> Whether the library is there and has the entry. The null handle is RTLD_DEFAULT: all that is loaded.
  logical function found(name, address)
    character(*), intent(in) :: name
    type(c_funptr), intent(out) :: address
    address = c_dlsym(c_null_ptr, name // c_null_char)
    found = c_associated(address)
  end function found

  integer function call_with_comm(name, comm) result(ierr)
    character(*), intent(in) :: name
    integer, intent(in) :: comm
    type(c_funptr) :: address
    procedure(takes_comm), pointer :: entry
    ierr = TRANSPRESS_ABSENT
    if (.not. found(name, address)) return
    call c_f_procpointer(address, entry)
    ierr = entry(int(comm, c_int))
  end function call_with_comm

  integer function call_with_number(name, comm, number) result(ierr)
    character(*), intent(in) :: name
    integer, intent(in) :: comm
    real(c_double), intent(in) :: number
    type(c_funptr) :: address
    procedure(takes_number), pointer :: entry
    ierr = TRANSPRESS_ABSENT
    if (.not. found(name, address)) return
    call c_f_procpointer(address, entry)
    ierr = entry(int(comm, c_int), number)
  end function call_with_number

  integer function call_with_text(name, comm, text) result(ierr)
    character(*), intent(in) :: name, text
    integer, intent(in) :: comm
    type(c_funptr) :: address
    procedure(takes_text), pointer :: entry
    ierr = TRANSPRESS_ABSENT
    if (.not. found(name, address)) return
    call c_f_procpointer(address, entry)
    ierr = entry(int(comm, c_int), trim(text) // c_null_char)
  end function call_with_text

  integer function register_integer(comm) result(ierr)
    integer, intent(in) :: comm
    ierr = call_with_comm("transpress_register_f", comm)
  end function register_integer

  integer function register_f08(comm) result(ierr)
    type(MPI_Comm), intent(in) :: comm
    ierr = register_integer(comm%MPI_VAL)
  end function register_f08

  integer function unregister_integer(comm) result(ierr)
    integer, intent(in) :: comm
    ierr = call_with_comm("transpress_unregister_f", comm)
  end function unregister_integer

  integer function unregister_f08(comm) result(ierr)
    type(MPI_Comm), intent(in) :: comm
    ierr = unregister_integer(comm%MPI_VAL)
  end function unregister_f08

  integer function set_rate_integer(comm, bits_per_value) result(ierr)
    integer, intent(in) :: comm
    real(c_double), intent(in) :: bits_per_value
    ierr = call_with_number("transpress_set_rate_f", comm, bits_per_value)
  end function set_rate_integer

  integer function set_rate_f08(comm, bits_per_value) result(ierr)
    type(MPI_Comm), intent(in) :: comm
    real(c_double), intent(in) :: bits_per_value
    ierr = set_rate_integer(comm%MPI_VAL, bits_per_value)
  end function set_rate_f08

  integer function set_tolerance_integer(comm, absolute) result(ierr)
    integer, intent(in) :: comm
    real(c_double), intent(in) :: absolute
    ierr = call_with_number("transpress_set_tolerance_f", comm, absolute)
  end function set_tolerance_integer

  integer function set_tolerance_f08(comm, absolute) result(ierr)
    type(MPI_Comm), intent(in) :: comm
    real(c_double), intent(in) :: absolute
    ierr = set_tolerance_integer(comm%MPI_VAL, absolute)
  end function set_tolerance_f08

  integer function set_bytes_integer(comm, element) result(ierr)
    integer, intent(in) :: comm
    character(*), intent(in) :: element
    ierr = call_with_text("transpress_set_bytes_f", comm, element)
  end function set_bytes_integer

  integer function set_bytes_f08(comm, element) result(ierr)
    type(MPI_Comm), intent(in) :: comm
    character(*), intent(in) :: element
    ierr = set_bytes_integer(comm%MPI_VAL, element)
  end function set_bytes_f08

  integer function add_shape_integer(comm, extents) result(ierr)
    integer, intent(in) :: comm
    integer, intent(in) :: extents(:)
    type(c_funptr) :: address
    procedure(takes_extents), pointer :: entry
    ierr = TRANSPRESS_ABSENT
    if (.not. found("transpress_add_shape_f", address)) return
    call c_f_procpointer(address, entry)
    ierr = entry(int(comm, c_int), int(size(extents), c_int), int(extents, c_int))
  end function add_shape_integer

  integer function add_shape_f08(comm, extents) result(ierr)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: extents(:)
    ierr = add_shape_integer(comm%MPI_VAL, extents)
  end function add_shape_f08

  integer function add_layout_integer(comm, layout) result(ierr)
    integer, intent(in) :: comm
    character(*), intent(in) :: layout
    ierr = call_with_text("transpress_add_layout_f", comm, layout)
  end function add_layout_integer

  integer function add_layout_f08(comm, layout) result(ierr)
    type(MPI_Comm), intent(in) :: comm
    character(*), intent(in) :: layout
    ierr = add_layout_integer(comm%MPI_VAL, layout)
  end function add_layout_f08

  integer function stats_integer(comm, stats) result(ierr)
    integer, intent(in) :: comm
    type(transpress_stats_t), intent(inout) :: stats
    type(c_funptr) :: address
    procedure(takes_stats), pointer :: entry
    ierr = TRANSPRESS_ABSENT
    if (.not. found("transpress_stats_f", address)) return
    call c_f_procpointer(address, entry)
    ierr = entry(int(comm, c_int), stats)
  end function stats_integer

  integer function stats_f08(comm, stats) result(ierr)
    type(MPI_Comm), intent(in) :: comm
    type(transpress_stats_t), intent(inout) :: stats
    ierr = stats_integer(comm%MPI_VAL, stats)
  end function stats_f08

end module transpress
