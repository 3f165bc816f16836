! Every call of the module transpress, with an integer communicator (-DMPI_MODULE) or a type(MPI_Comm); the
! argument says under what: absent or there.
program module_calls
#ifdef MPI_MODULE
  use mpi
#else
  use mpi_f08
#endif
  use transpress
  implicit none
  integer, parameter :: n = 24 * 20 * 10
#ifdef MPI_MODULE
  integer :: comm
#else
  type(MPI_Comm) :: comm
#endif
  integer :: ierr, rank, ranks, failures, status
  integer, parameter :: unset = -1
  character(20) :: under
  type(transpress_stats_t) :: stats

  failures = 0
  call MPI_Init(ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
  call MPI_Comm_rank(comm, rank, ierr)
  call MPI_Comm_size(comm, ranks, ierr)
  call get_command_argument(1, under)
  status = merge(TRANSPRESS_ABSENT, TRANSPRESS_OK, under == "absent")

  call want("register", transpress_register(comm), status)
  call want("set_rate", transpress_set_rate(comm, 8d0), status)
  call want("set_bytes", transpress_set_bytes(comm, "f64"), status)
  call want("add_shape", transpress_add_shape(comm, [24, 20, unset]), status)
  call want("add_layout", transpress_add_layout(comm, "2c,24,*"), status)
  call exchange()
  call want("stats", transpress_stats(comm, stats), status)
  if (status == TRANSPRESS_OK) then
    call want("calls", int(stats%calls), 1)
    call want("compressed", int(stats%messages_compressed), ranks - 1)
    call want("bytes", int(stats%bytes_before), 8 * n * (ranks - 1))
    if (stats%bytes_after * 6 > stats%bytes_before) call want("ratio", int(stats%bytes_after), 0)
    call want("bad rate", transpress_set_rate(comm, 99d0), TRANSPRESS_BAD_ARGUMENT)
    call want("bad bytes", transpress_set_bytes(comm, "f65"), TRANSPRESS_BAD_ARGUMENT)
    call want("bad shape", transpress_add_shape(comm, [unset, unset]), TRANSPRESS_BAD_ARGUMENT)
    call want("bad layout", transpress_add_layout(comm, "c2"), TRANSPRESS_BAD_ARGUMENT)
    call want("tolerance", transpress_set_tolerance(comm, -1d-3), TRANSPRESS_BAD_ARGUMENT)
    call want("tolerance", transpress_set_tolerance(comm, 1d-3), TRANSPRESS_OK)
  else
    call want("tolerance", transpress_set_tolerance(comm, 1d-3), status)
  end if
  call want("unregister", transpress_unregister(comm), status)
  if (status == TRANSPRESS_OK) call want("stats after", transpress_stats(comm, stats), TRANSPRESS_NOT_REGISTERED)
  call MPI_Comm_free(comm, ierr)
  if (rank == 0 .and. failures == 0) print "(2a)", "ok module ", trim(under)
  if (rank == 0) print "(a)", "done"
  call MPI_Finalize(ierr)
  if (failures > 0) error stop 1

contains

  subroutine want(call_name, got, code)
    character(*), intent(in) :: call_name
    integer, intent(in) :: got, code
    if (got == code) return
    failures = failures + 1
    print "(3a,i0,a,i0)", "FAIL ", call_name, " gives ", got, ", not ", code
  end subroutine want

  subroutine exchange()
    double precision :: send(n, ranks), receive(n, ranks)
    integer :: i, peer
    do peer = 1, ranks
      send(:, peer) = [(2 + sin(0.01d0 * i), i = 1, n)]
    end do
    call MPI_Alltoall(send, n, MPI_DOUBLE_PRECISION, receive, n, MPI_DOUBLE_PRECISION, comm, ierr)
    if (maxval(abs(receive - send)) > 0.1d0) call want("exchange", 1, 0)
  end subroutine exchange
end program module_calls
