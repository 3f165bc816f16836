! What repeated compressed transforms do to weather-like fields.
!
! Spectral coefficients are made for five variables of unlike magnitude. One round trip is an inverse
! transform (coefficients to grid points) and a direct transform (grid points to coefficients); each
! takes as input what the one before it gave back, as in a model that goes there and back every time
! step. Without compression only rounding is lost. The program prints, for each variable, how far the
! coefficients are from the initial ones after 1, 10, 100, 1000, ... round trips.
!
! It knows nothing of transpress: run it plain, or under the library. On two cores, one round trip of the
! defaults takes about one second; of `--truncation 63`, less than a tenth, so that 1000 take a minute or two.
!
!   examples/ectrans_roundtrip.sh        builds it, runs it with several codecs, and prints one table
!   mpirun -n 4 ./ectrans_roundtrip --truncation 159 --levels 20 --round-trips 10
!
! Needs ecTrans in single precision (Debian: libectrans-dev, libfiat-dev).

! Gaussian random numbers that depend on nothing but their indices, so that every coefficient is the same
! however the program is spread over ranks.
module indexed_random
  use, intrinsic :: iso_fortran_env, only : int64, real64
  implicit none
  private
  public :: normal_pair

  integer(int64), parameter :: low_32_bits = 4294967295_int64
  real(real64), parameter :: two_pi = 8 * atan(1.0_real64)

contains

  ! A 32-bit integer hash. Products stay below 2**60, so nothing overflows.
  elemental integer(int64) function mixed(value)
    integer(int64), intent(in) :: value
    integer(int64), parameter :: multiplier = int(z'45d9f3b', int64)

    mixed = iand(value, low_32_bits)
    mixed = iand(ieor(mixed, ishft(mixed, -16)) * multiplier, low_32_bits)
    mixed = iand(ieor(mixed, ishft(mixed, -16)) * multiplier, low_32_bits)
    mixed = ieor(mixed, ishft(mixed, -16))
  end function mixed

  ! Two independent normal numbers of mean 0 and variance 1 (Box and Muller).
  pure function normal_pair(indices) result(pair)
    integer, intent(in) :: indices(:)
    real(real64) :: pair(2)
    real(real64) :: uniform(2)
    integer(int64) :: hash
    integer :: i

    hash = 0
    do i = 1, size(indices)
      hash = mixed(hash + int(z'9e3779b9', int64) + indices(i))
    end do
    uniform = (mixed(hash + [1_int64, 2_int64]) + 0.5_real64) / (low_32_bits + 1)
    pair = sqrt(-2 * log(uniform(1))) * [cos(two_pi * uniform(2)), sin(two_pi * uniform(2))]
  end function normal_pair

end module indexed_random

! The variables, and their coefficients.
module weather
  use, intrinsic :: iso_fortran_env, only : real64
  use indexed_random, only : normal_pair
  implicit none
  private
  public :: variable, variables, coefficients

  ! The complex coefficient of wavenumbers (m, n) is `amplitude * n**(-slope)` times a random number whose real
  ! and imaginary parts have variance 1: a red spectrum, with most of the variance in the large scales.
  type :: variable
    character(len=12) :: name
    logical           :: has_levels   ! .false.: one field, at the surface
    real(real64)      :: mean(2)      ! global mean at the highest and at the lowest level
    real(real64)      :: amplitude(2) ! likewise
    real(real64)      :: slope
  end type variable

  type(variable), parameter :: variables(*) = [ &
    & variable('temperature',  .true.,  [210d0, 290d0],   [8d0, 8d0],       2d0), & ! K
    & variable('vorticity',    .true.,  [0d0, 0d0],       [3d-6, 3d-6],     1d0), & ! 1/s
    & variable('humidity',     .true.,  [3d-6, 5d-3],     [6d-7, 1d-3],   1.7d0), & ! kg/kg
    & variable('wind',         .true.,  [5d0, 5d0],       [12d0, 12d0],     2d0), & ! m/s, one component
    & variable('log-pressure', .false., [11.5d0, 11.5d0], [0.05d0, 0.05d0], 2d0)]   ! ln(Pa), at the surface

  real(real64), parameter :: correlation = 0.92_real64 ! of a level with the next

contains

  ! Coefficient (m, n) of variable `v` on `levels` levels, the highest first. First axis: real and imaginary part;
  ! second axis: level.
  pure function coefficients(v, levels, m, n) result(values)
    integer, intent(in) :: v, levels, m, n
    real(real64) :: values(2, levels)
    real(real64) :: random(2), depth
    integer :: level

    random = normal_pair([v, m, n, 0])
    do level = 1, levels
      random = correlation * random + sqrt(1 - correlation**2) * normal_pair([v, m, n, level])
      depth = real(level, real64) / levels
      if (n == 0) then ! the global mean
        values(:, level) = [between(variables(v)%mean, depth), 0.0_real64]
      else
        values(:, level) = between(variables(v)%amplitude, depth) * real(n, real64)**(-variables(v)%slope) * random
      end if
    end do
    if (m == 0) values(2, :) = 0 ! the zonal mean is real
  end function coefficients

  ! From the first end to the second as `part` goes from 0 to 1, by equal ratios.
  pure real(real64) function between(ends, part)
    real(real64), intent(in) :: ends(2), part

    between = ends(1)**(1 - part) * ends(2)**part
  end function between

end module weather

! The command line.
module options
  use, intrinsic :: iso_fortran_env, only : error_unit
  implicit none
  private
  public :: read_options, truncation, levels, round_trips

  integer, protected :: truncation = 159
  integer, protected :: levels = 20
  integer, protected :: round_trips = 10

contains

  ! `proceed` is .false. where there is nothing to run; `status` is then what to exit with. Only a rank that is
  ! `talkative` says why.
  subroutine read_options(talkative, proceed, status)
    logical, intent(in) :: talkative
    logical, intent(out) :: proceed
    integer, intent(out) :: status
    character(len=64) :: option
    integer :: i

    proceed = .false.
    status = 2
    i = 1
    do while (i <= command_argument_count())
      call get_command_argument(i, option)
      select case (option)
      case ('-h', '--help')
        if (talkative) call print_help()
        status = 0
        return
      case ('--truncation')
        if (.not. read_number(i + 1, option, 7, truncation)) return
      case ('--levels')
        if (.not. read_number(i + 1, option, 1, levels)) return
      case ('--round-trips')
        if (.not. read_number(i + 1, option, 1, round_trips)) return
      case default
        if (talkative) write (error_unit, '(3a)') 'ectrans_roundtrip: unknown option ', trim(option), '; see --help'
        return
      end select
      i = i + 2
    end do
    proceed = .true.
    status = 0

  contains

    logical function read_number(position, name, least, number)
      integer, intent(in) :: position, least
      character(len=*), intent(in) :: name
      integer, intent(inout) :: number
      character(len=64) :: text
      integer :: candidate, error

      call get_command_argument(position, text)
      read (text, *, iostat=error) candidate
      read_number = len_trim(text) > 0 .and. verify(trim(text), '0123456789') == 0 .and. error == 0
      if (read_number) read_number = candidate >= least
      if (read_number) then
        number = candidate
      else if (talkative) then
        write (error_unit, '(5a,i0)') 'ectrans_roundtrip: ', trim(name), ' "', trim(text), &
          & '": accepted is a whole number from ', least
      end if
    end function read_number

  end subroutine read_options

  subroutine print_help()
    print '(a)', 'Usage: mpirun -n RANKS ectrans_roundtrip [OPTIONS]', '', &
      & 'Transforms weather-like fields from spectral coefficients to grid points and back, again and again,', &
      & 'and prints the relative error of the coefficients after 1, 10, 100, ... round trips.', '', &
      & 'Options:'
    print '(a,i0,a)', &
      & '  --truncation N   largest wavenumber; the grid has 2 (N + 1) latitudes [default: ', truncation, ']', &
      & '  --levels N       levels of each variable but the one at the surface [default: ', levels, ']', &
      & '  --round-trips N  how often to go there and back [default: ', round_trips, ']'
    print '(a)', '  --help           this text'
  end subroutine print_help

end module options

program ectrans_roundtrip
  use, intrinsic :: iso_fortran_env, only : int64, real64
  use parkind1, only : jpim, jprb ! integers, and the reals of the transforms (single precision)
  use mpl_module, only : mpl_init, mpl_end, mpl_nproc, mpl_myrank, mpl_groups_create, mpl_allreduce
  use options, only : read_options, truncation, levels, round_trips
  use weather, only : variables, coefficients
  implicit none
#include "setup_trans0.h"
#include "setup_trans.h"
#include "trans_inq.h"
#include "inv_trans.h"
#include "dir_trans.h"

  ! ecTrans spreads coefficients over wave sets by m, and over field sets by field; its transposes between
  ! latitudes and wavenumbers are all-to-alls among the ranks of one field set.
  integer(jpim) :: ranks, my_rank, wave_sets, field_sets, my_field_set
  integer(jpim) :: my_values, my_points, my_wavenumbers
  integer(jpim), allocatable :: wavenumbers(:) ! the m on this rank
  integer(jpim), allocatable :: start_of(:)    ! m -> where its coefficients begin: n = m, m + 1, ...
  integer(jpim), allocatable :: field_set(:)   ! of each field
  integer, allocatable :: variable_of(:), level_of(:)

  ! Fields go by variable, then by level. Axes, fastest first:
  real(jprb), allocatable :: spectral(:, :), initial(:, :) ! fields on this rank; (re, im) of each (m, n)
  real(jprb), allocatable :: grid(:, :, :)                 ! points on this rank; all fields; one block

  integer :: trip, next_print, status
  integer(int64) :: started, stopped, ticks_per_second
  real(real64) :: worst
  logical :: proceed

  call mpl_init(ldinfo=.false.)
  ranks = mpl_nproc()
  my_rank = mpl_myrank() ! from 1
  call read_options(my_rank == 1, proceed, status)
  if (.not. proceed) then
    call mpl_end(ldmeminfo=.false.)
    stop status, quiet=.true.
  end if

  call set_up_transforms()
  call set_up_fields()
  if (my_rank == 1) call print_set_up()

  next_print = 1
  call system_clock(started, ticks_per_second)
  do trip = 1, round_trips
    call inv_trans(pspscalar=spectral, pgp=grid, kproma=my_points, kvsetsc=field_set)
    if (trip == 1) call print_ranges()
    call dir_trans(pspscalar=spectral, pgp=grid, kproma=my_points, kvsetsc=field_set)
    if (trip == next_print .or. trip == round_trips) call print_errors(trip, worst)
    if (trip == next_print) next_print = 10 * next_print
  end do
  call system_clock(stopped)

  if (my_rank == 1) then
    print '(a,f0.3)', 'seconds per round trip: ', real(stopped - started, real64) / ticks_per_second / round_trips
    print '(a,i0,a,es9.3)', 'max error over variables after ', round_trips, ' round trips: ', worst
  end if
  call mpl_end(ldmeminfo=.false.)

contains

  subroutine set_up_transforms()
    integer(jpim) :: latitudes, i
    integer(jpim) :: longitudes(2 * (truncation + 1)) ! of each latitude

    field_sets = 1
    do i = 2, int(sqrt(real(ranks)))
      if (mod(ranks, i) == 0) field_sets = i
    end do
    wave_sets = ranks / field_sets

    ! The octahedral grid: 20 points next to the poles, and 4 more on each latitude towards the equator.
    latitudes = size(longitudes)
    longitudes = [(20 + 4 * (min(i, latitudes + 1 - i) - 1), i = 1, latitudes)]

    call mpl_groups_create(wave_sets, field_sets)
    call setup_trans0(kprintlev=0, kmax_resol=1, kprgpns=wave_sets, kprgpew=field_sets, kprtrw=wave_sets, &
      & ldeq_regions=.true., prad=6371229.0_jprb, ldalloperm=.true.)
    call setup_trans(ksmax=int(truncation, jpim), kdgl=latitudes, kloen=longitudes, ldsplit=.true., ldusefftw=.true.)

    call trans_inq(kspec2=my_values, kgptot=my_points, knump=my_wavenumbers, kmysetv=my_field_set)
    allocate (wavenumbers(my_wavenumbers), start_of(0:truncation))
    call trans_inq(kmyms=wavenumbers, kasm0=start_of)
  end subroutine set_up_transforms

  subroutine set_up_fields()
    integer :: fields, field, first, last, v, level, i, m, n, at
    real(real64), allocatable :: values(:, :)

    variable_of = [integer ::]
    level_of = [integer ::]
    do v = 1, size(variables)
      variable_of = [variable_of, (v, level = 1, levels_of(v))]
      level_of = [level_of, (level, level = 1, levels_of(v))]
    end do
    fields = size(variable_of)
    field_set = [((field - 1) * field_sets / fields + 1, field = 1, fields)]

    allocate (spectral(count(field_set == my_field_set), my_values), grid(my_points, fields, 1))
    first = findloc(field_set, my_field_set, dim=1)
    last = first + size(spectral, 1) - 1
    do i = 1, my_wavenumbers
      m = wavenumbers(i)
      do n = m, truncation
        at = start_of(m) + 2 * (n - m)
        do v = variable_of(first), variable_of(last)
          values = coefficients(v, levels_of(v), m, n)
          do field = first, last
            if (variable_of(field) == v) spectral(field - first + 1, at:at + 1) = real(values(:, level_of(field)), jprb)
          end do
        end do
      end do
    end do
    initial = spectral
  end subroutine set_up_fields

  pure integer function levels_of(v)
    integer, intent(in) :: v

    levels_of = merge(levels, 1, variables(v)%has_levels)
  end function levels_of

  subroutine print_set_up()
    integer :: set

    print '(a,i0,a,i0,a,i0,a,i0,a,i0,a,*(1x,i0))', 'T', truncation, ', ', size(variable_of), ' fields, ', ranks, &
      & ' ranks: ', wave_sets, ' wave sets, ', field_sets, ' field sets of fields:', &
      & (count(field_set == set), set = 1, field_sets)
    print '(30x,*(a14))', adjustr(variables%name)
  end subroutine print_set_up

  ! Smallest and largest value of each variable on the grid: do they look like weather?
  subroutine print_ranges()
    real(real64) :: smallest(size(variables)), largest(size(variables))
    integer :: field, v

    smallest = huge(smallest)
    largest = -huge(largest)
    do field = 1, size(variable_of)
      v = variable_of(field)
      smallest(v) = min(smallest(v), real(minval(grid(:, field, 1)), real64))
      largest(v) = max(largest(v), real(maxval(grid(:, field, 1)), real64))
    end do
    call mpl_allreduce(smallest, 'min', ldreprod=.false.)
    call mpl_allreduce(largest, 'max', ldreprod=.false.)
    if (my_rank == 1) print '(a30,*(es14.2))', 'smallest on the grid', smallest
    if (my_rank == 1) print '(a30,*(es14.2))', 'largest on the grid', largest
  end subroutine print_ranges

  ! The relative L2 error of the coefficients, without n = 0 (the global mean, which would hide the rest): of all
  ! levels of a variable together, and of its worst level. `worst` is the largest of the former.
  subroutine print_errors(trip, worst)
    integer, intent(in) :: trip
    real(real64), intent(out) :: worst
    real(real64), dimension(size(variable_of)) :: error, norm ! of each field, squared
    real(real64), dimension(size(variables)) :: error_of_all, error_of_worst
    integer :: first, last, i, m, from, to, v

    error = 0
    norm = 0
    first = findloc(field_set, my_field_set, dim=1)
    last = first + size(spectral, 1) - 1
    do i = 1, my_wavenumbers
      m = wavenumbers(i)
      from = start_of(m) + merge(2, 0, m == 0)
      to = start_of(m) + 2 * (truncation - m) + 1
      error(first:last) = error(first:last) &
        & + sum((real(spectral(:, from:to), real64) - initial(:, from:to))**2, dim=2)
      norm(first:last) = norm(first:last) + sum(real(initial(:, from:to), real64)**2, dim=2)
    end do
    call mpl_allreduce(error, 'sum', ldreprod=.false.)
    call mpl_allreduce(norm, 'sum', ldreprod=.false.)

    worst = 0
    do v = 1, size(variables)
      error_of_all(v) = sqrt(sum(error, variable_of == v) / sum(norm, variable_of == v))
      error_of_worst(v) = sqrt(maxval(error / norm, variable_of == v))
      if (.not. error_of_all(v) <= worst) worst = error_of_all(v) ! also where it is NaN
    end do
    if (my_rank == 1) print '(i7,a23,*(es14.3))', trip, 'round trips: error', error_of_all
    if (my_rank == 1) print '(a30,*(es14.3))', 'worst level', error_of_worst
  end subroutine print_errors

end program ectrans_roundtrip
