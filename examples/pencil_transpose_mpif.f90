! A pencil transpose in Fortran, with mpif.h: from whole lines in x to whole lines in y.
!
!   mpifort include/transpress.f90 examples/pencil_transpose_mpif.f90 -o pencil_transpose
!   mpirun -n 4 ./pencil_transpose                                      plain MPI
!   mpirun -n 4 env LD_PRELOAD=libtranspress.so ./pencil_transpose      compressed
!
! The grid is cut into boxes of bx x by x nz. Before, a rank holds the boxes of its y for all x; after,
! those of its x for all y. So it sends one box to each rank, and every message has the same shape.
program pencil_transpose
  use transpress
  implicit none
  include "mpif.h"
  integer, parameter :: bx = 24, by = 20, nz = 16, box = bx * by * nz
  double precision, allocatable :: before(:, :, :, :), after(:, :, :, :)
  integer, allocatable :: counts(:), displs(:)
  double precision :: worst, largest, accepted
  integer :: rank, ranks, ierr, peer, x, y, z
  integer :: comm
  logical :: present
  type(transpress_stats_t) :: stats

  call MPI_Init(ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
  call MPI_Comm_rank(comm, rank, ierr)
  call MPI_Comm_size(comm, ranks, ierr)
  allocate (before(bx, by, nz, 0:ranks - 1), after(bx, by, nz, 0:ranks - 1))
  allocate (counts(0:ranks - 1), displs(0:ranks - 1))
  counts = [(box, peer = 0, ranks - 1)]
  displs = [(peer * box, peer = 0, ranks - 1)]

  ! Once, at set-up: compress what goes over this communicator, and this is what a message looks like,
  ! in Fortran's own order of axes. Without the library both return TRANSPRESS_ABSENT, and nothing else
  ! happens.
  present = transpress_register(comm) == TRANSPRESS_OK
  ierr = transpress_add_shape(comm, shape(before(:, :, :, 0)))

  do peer = 0, ranks - 1
    do z = 1, nz
      do y = 1, by
        do x = 1, bx
          before(x, y, z, peer) = field(peer * bx + x, rank * by + y, z)
        end do
      end do
    end do
  end do

  ! The transpose itself is what it always was.
  call MPI_Alltoallv(before, counts, displs, MPI_DOUBLE_PRECISION, &
                     after, counts, displs, MPI_DOUBLE_PRECISION, comm, ierr)

  worst = 0
  do peer = 0, ranks - 1
    do z = 1, nz
      do y = 1, by
        do x = 1, bx
          worst = max(worst, abs(after(x, y, z, peer) / field(rank * bx + x, peer * by + y, z) - 1))
        end do
      end do
    end do
  end do
  call MPI_Allreduce(worst, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, comm, ierr)

  accepted = merge(1d-3, 0d0, present)
  if (rank == 0) print "(a,es9.2)", "max relative error", largest
  if (transpress_stats(comm, stats) == TRANSPRESS_OK) then
    if (rank == 0 .and. stats%bytes_after > 0) &
      print "(a,f6.2,a)", "bytes", dble(stats%bytes_before) / dble(stats%bytes_after), " times fewer"
  end if

  call MPI_Comm_free(comm, ierr) ! and its registration with it
  call MPI_Finalize(ierr)
  if (largest > accepted) stop 1

contains

  !> The field: smooth, and known at every point of the whole grid.
  pure double precision function field(x, y, z)
    integer, intent(in) :: x, y, z
    field = 2 + sin(0.20d0 * x) * cos(0.15d0 * y) + 0.3d0 * sin(0.25d0 * z)
  end function field
end program pencil_transpose
