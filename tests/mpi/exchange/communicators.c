/* Communicators come and go: parts of the world, turned round, dup'ed, freed, their handles used again. */
#include "exchange.h"

#include <stdlib.h>

static struct element real(void) { return (struct element){MPI_FLOAT, F32, 1}; }

static int ragged(int from, int to, int size) { return 400 * ((2 * from + to) % 5) + 900 + 0 * size; }

void check_communicators(void) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  MPI_Comm part, turned, alone, dup, cart, row;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
  exchange(part, real(), real(), ragged);
  exchange_equal(part, real(), real(), 1500);
  check("even and odd ranks");
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
  exchange(turned, real(), real(), ragged);
  check("ranks in reverse");
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 0 : MPI_UNDEFINED, 0, &alone);
  if (rank == 0) exchange(alone, real(), real(), ragged);
  check("one rank alone");
  exchange(MPI_COMM_SELF, real(), real(), ragged);
  check("MPI_COMM_SELF");
  int dims[2] = {0, 0}, periods[2] = {0, 0}, remain[2] = {0, 1};
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &cart);
  MPI_Cart_sub(cart, remain, &row);
  exchange(row, real(), real(), ragged);
  check("rows of a Cartesian grid");

  MPI_Comm_dup(part, &dup);
  exchange(dup, real(), real(), ragged);
  MPI_Comm_free(&part);
  exchange(dup, real(), real(), ragged);
  check("a dup outlives its communicator");
  MPI_Comm_free(&dup);
  MPI_Comm_free(&turned);
  MPI_Comm_free(&row);
  MPI_Comm_free(&cart);
  if (rank == 0) MPI_Comm_free(&alone);

  /* New members behind an old handle value: an answer kept by handle would be the wrong one. */
  MPI_Comm seen[120];
  int used_again = 0;
  for (int i = 0; i < 120; i++) {
    MPI_Comm comm;
    if (i % 3 == 0) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (i % 3 == 1) MPI_Comm_split(MPI_COMM_WORLD, rank < (size + 1) / 2, rank, &comm);
    if (i % 3 == 2) MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    for (int j = 0; j < i; j++) used_again += comm == seen[j];
    seen[i] = comm;
    if (i % 4 != 3) exchange(comm, real(), real(), ragged);
    if (i % 5 == 4)
      MPI_Comm_disconnect(&comm);
    else
      MPI_Comm_free(&comm);
    if (comm != MPI_COMM_NULL) fail("the handle outlives MPI_Comm_free");
  }
  if (!used_again) fail("no handle value was used again");
  check("120 communicators behind few handles");

  MPI_Errhandler handler;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int nothing[1] = {0};
  if (MPI_Alltoall(nothing, 1, MPI_FLOAT, nothing + 0, 1, MPI_FLOAT, MPI_COMM_NULL) == MPI_SUCCESS) fail("alltoall succeeds");
  if (MPI_Alltoallv(nothing, nothing, nothing, MPI_FLOAT, nothing, nothing, nothing, MPI_FLOAT, MPI_COMM_NULL) == MPI_SUCCESS)
    fail("alltoallv succeeds");
  check("MPI_COMM_NULL is an error");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Errhandler_free(&handler);
}
