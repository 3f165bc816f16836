! Every real and complex kind through one Fortran interface: compile with -DMPIF, -DMPI_MODULE or -DMPI_F08.
! Prints "ok NAME" or "FAIL NAME", then what rank 0 sent compressed.
#if defined(MPIF)
#define USE_MPI_INTERFACE
#define HANDLE(name) integer
#elif defined(MPI_MODULE)
#define USE_MPI_INTERFACE use mpi
#define HANDLE(name) integer
#else
#define USE_MPI_INTERFACE use mpi_f08
#define HANDLE(name) type(name)
#endif
program kinds
  USE_MPI_INTERFACE
  use transpress
  implicit none
#ifdef MPIF
  include "mpif.h"
#endif
  integer, parameter :: n = 3000, single = kind(1.0), twice = kind(1d0)
  integer :: rank, ranks, ierr, failures
  double precision :: limit
  character(20) :: value
  type(transpress_stats_t) :: stats
  HANDLE(MPI_Datatype) :: made

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  failures = 0
  limit = 0
  call get_environment_variable("CHECK_F32", value)
  if (len_trim(value) > 0) read (value, *) limit

  call reals("MPI_REAL", MPI_REAL)
  call reals("MPI_REAL4", MPI_REAL4)
  call doubles("MPI_DOUBLE_PRECISION", MPI_DOUBLE_PRECISION)
  call doubles("MPI_REAL8", MPI_REAL8)
  call complexes("MPI_COMPLEX", MPI_COMPLEX)
  call complexes("MPI_COMPLEX8", MPI_COMPLEX8)
  call double_complexes("MPI_DOUBLE_COMPLEX", MPI_DOUBLE_COMPLEX)
  call double_complexes("MPI_COMPLEX16", MPI_COMPLEX16)
  call MPI_Type_create_f90_real(6, 30, made, ierr)
  call reals("f90 real of 6 digits", made)
  call MPI_Type_create_f90_real(15, 300, made, ierr)
  call doubles("f90 real of 15 digits", made)
  call MPI_Type_create_f90_complex(6, 30, made, ierr)
  call complexes("f90 complex of 6 digits", made)
  call MPI_Type_create_f90_complex(15, 300, made, ierr)
  call double_complexes("f90 complex of 15 digits", made)
  call MPI_Type_match_size(MPI_TYPECLASS_REAL, 4, made, ierr)
  call reals("matched real of 4 bytes", made)
  call integers("MPI_INTEGER", MPI_INTEGER)
  call logicals("MPI_LOGICAL", MPI_LOGICAL)
  call in_place()

  if (rank == 0) then
    if (transpress_stats(MPI_COMM_WORLD, stats) == TRANSPRESS_OK) then
      print "(a,i0)", "compressed ", stats%messages_compressed
    else
      print "(a)", "compressed 0"
    end if
    print "(a)", "done"
  end if
  call MPI_Finalize(ierr)
  if (failures > 0) error stop 1

contains

  !> The smooth value that rank from sends to rank to.
  elemental double precision function smooth(from, to, i)
    integer, intent(in) :: from, to, i
    smooth = 1.5d0 + 0.5d0 * sin(0.02d0 * i + from + 0.3d0 * to)
  end function smooth

  subroutine verdict(name, error)
    character(*), intent(in) :: name
    double precision, intent(in) :: error
    double precision :: worst
    call MPI_Allreduce(error, worst, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
    if (.not. worst <= limit) failures = failures + 1
    if (rank /= 0) return
    if (worst <= limit) then
      print "(2a)", "ok ", name
    else
      print "(3a,es10.2)", "FAIL ", name, " error", worst
    end if
  end subroutine verdict

  !> Equal counts in displacements with a gap of one value between blocks.
  subroutine plan(counts, displs)
    integer, intent(out) :: counts(0:), displs(0:)
    integer :: i
    counts = n
    displs = [(i * (n + 1), i = 0, ranks - 1)]
  end subroutine plan

  subroutine reals(name, datatype)
    character(*), intent(in) :: name
    HANDLE(MPI_Datatype), intent(in) :: datatype
    real(single) :: send(0:n, 0:ranks - 1), receive(0:n, 0:ranks - 1)
    integer :: counts(0:ranks - 1), displs(0:ranks - 1), i, peer
    double precision :: error
    send = real(reshape([((smooth(rank, peer, i), i = 0, n), peer = 0, ranks - 1)], shape(send)), single)
    call plan(counts, displs)
    receive = -1
    call MPI_Alltoallv(send, counts, displs, datatype, receive, counts, displs, datatype, MPI_COMM_WORLD, ierr)
    error = 0
    do peer = 0, ranks - 1
      error = max(error, maxval(abs(dble(receive(:n - 1, peer)) - dble(real(smooth(peer, rank, [(i, i = 0, n - 1)]), single)))))
      if (receive(n, peer) /= -1) error = huge(error)
    end do
    call verdict(name, error)
  end subroutine reals

  subroutine doubles(name, datatype)
    character(*), intent(in) :: name
    HANDLE(MPI_Datatype), intent(in) :: datatype
    real(twice) :: send(0:n, 0:ranks - 1), receive(0:n, 0:ranks - 1)
    integer :: counts(0:ranks - 1), displs(0:ranks - 1), i, peer
    double precision :: error
    send = reshape([((smooth(rank, peer, i), i = 0, n), peer = 0, ranks - 1)], shape(send))
    call plan(counts, displs)
    receive = -1
    call MPI_Alltoallv(send, counts, displs, datatype, receive, counts, displs, datatype, MPI_COMM_WORLD, ierr)
    error = 0
    do peer = 0, ranks - 1
      error = max(error, maxval(abs(receive(:n - 1, peer) - smooth(peer, rank, [(i, i = 0, n - 1)]))))
      if (receive(n, peer) /= -1) error = huge(error)
    end do
    call verdict(name, error)
  end subroutine doubles

  subroutine complexes(name, datatype)
    character(*), intent(in) :: name
    HANDLE(MPI_Datatype), intent(in) :: datatype
    complex(single) :: send(0:n - 1, 0:ranks - 1), receive(0:n - 1, 0:ranks - 1), want
    integer :: i, peer
    double precision :: error
    do peer = 0, ranks - 1
      do i = 0, n - 1
        send(i, peer) = cmplx(smooth(rank, peer, i), -smooth(peer, rank, i), single)
      end do
    end do
    call MPI_Alltoall(send, n, datatype, receive, n, datatype, MPI_COMM_WORLD, ierr)
    error = 0
    do peer = 0, ranks - 1
      do i = 0, n - 1
        want = cmplx(smooth(peer, rank, i), -smooth(rank, peer, i), single)
        error = max(error, dble(abs(receive(i, peer) - want)))
      end do
    end do
    call verdict(name, error)
  end subroutine complexes

  subroutine double_complexes(name, datatype)
    character(*), intent(in) :: name
    HANDLE(MPI_Datatype), intent(in) :: datatype
    complex(twice) :: send(0:n - 1, 0:ranks - 1), receive(0:n - 1, 0:ranks - 1), want
    integer :: i, peer
    double precision :: error
    do peer = 0, ranks - 1
      do i = 0, n - 1
        send(i, peer) = cmplx(smooth(rank, peer, i), -smooth(peer, rank, i), twice)
      end do
    end do
    call MPI_Alltoall(send, n, datatype, receive, n, datatype, MPI_COMM_WORLD, ierr)
    error = 0
    do peer = 0, ranks - 1
      do i = 0, n - 1
        want = cmplx(smooth(peer, rank, i), -smooth(rank, peer, i), twice)
        error = max(error, abs(receive(i, peer) - want))
      end do
    end do
    call verdict(name, error)
  end subroutine double_complexes

  subroutine integers(name, datatype)
    character(*), intent(in) :: name
    HANDLE(MPI_Datatype), intent(in) :: datatype
    integer :: send(0:n - 1, 0:ranks - 1), receive(0:n - 1, 0:ranks - 1), i, peer
    send = reshape([((i + 1000003 * (rank + 7 * peer), i = 0, n - 1), peer = 0, ranks - 1)], shape(send))
    call MPI_Alltoall(send, n, datatype, receive, n, datatype, MPI_COMM_WORLD, ierr)
    send = reshape([((i + 1000003 * (peer + 7 * rank), i = 0, n - 1), peer = 0, ranks - 1)], shape(send))
    call verdict(name, merge(0d0, huge(0d0), all(send == receive)))
  end subroutine integers

  subroutine logicals(name, datatype)
    character(*), intent(in) :: name
    HANDLE(MPI_Datatype), intent(in) :: datatype
    logical :: send(0:n - 1, 0:ranks - 1), receive(0:n - 1, 0:ranks - 1)
    integer :: i, peer
    send = reshape([((mod(i * (rank + 1) + peer, 3) == 0, i = 0, n - 1), peer = 0, ranks - 1)], shape(send))
    call MPI_Alltoall(send, n, datatype, receive, n, datatype, MPI_COMM_WORLD, ierr)
    send = reshape([((mod(i * (peer + 1) + rank, 3) == 0, i = 0, n - 1), peer = 0, ranks - 1)], shape(send))
    call verdict(name, merge(0d0, huge(0d0), all(send .eqv. receive)))
  end subroutine logicals

  !> Fortran's MPI_IN_PLACE is another address than C's.
  subroutine in_place()
    real(single) :: buffer(0:n - 1, 0:ranks - 1)
    integer :: counts(0:ranks - 1), displs(0:ranks - 1), i, peer, time
    double precision :: error
    counts = n
    displs = [(i * n, i = 0, ranks - 1)]
    error = 0
    do time = 1, 2
      buffer = real(reshape([((smooth(rank, peer, i), i = 0, n - 1), peer = 0, ranks - 1)], shape(buffer)), single)
      if (time == 1) then
        call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, n, MPI_REAL, MPI_COMM_WORLD, ierr)
      else
        call MPI_Alltoallv(MPI_IN_PLACE, counts, displs, MPI_DATATYPE_NULL, buffer, counts, displs, MPI_REAL, MPI_COMM_WORLD, ierr)
      end if
      do peer = 0, ranks - 1
        error = max(error, maxval(abs(dble(buffer(:, peer)) - dble(real(smooth(peer, rank, [(i, i = 0, n - 1)]), single)))))
      end do
    end do
    call verdict("MPI_IN_PLACE", error)
  end subroutine in_place
end program kinds
