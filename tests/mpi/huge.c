/* One message of 2.2 GB, then displacements past 2^31 bytes: rank 0 sends, rank 1 receives. */
#include "check.h"

#include <math.h>
#include <stdlib.h>

static const long ITEM = 1 << 20; /* doubles per item of the derived type */
enum { ITEMS = 265, TAIL = 2 };

static double value(long i) { return 1 + (double)(i % 4096) / 4096; }

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype item;
  MPI_Type_contiguous((int)ITEM, MPI_DOUBLE, &item);
  MPI_Type_commit(&item);
  long total = ITEM * (ITEMS + TAIL);
  double *buffer = malloc((size_t)total * sizeof *buffer), *self = malloc((size_t)(ITEM * TAIL) * sizeof *self);
  if (rank == 0)
    for (long i = 0; i < total; i++) buffer[i] = value(i);
  /* The block to self lies past 2^31 bytes at the sender, and the message at the receiver's end. */
  int scounts[2] = {rank == 0 ? TAIL : 0, rank == 0 ? ITEMS : 0}, sdispls[2] = {ITEMS, 0};
  int rcounts[2] = {rank == 0 ? TAIL : ITEMS, 0}, rdispls[2] = {rank == 0 ? 0 : TAIL, 0};
  long before = coded(MPI_COMM_WORLD);
  MPI_Alltoallv(buffer, scounts, sdispls, item, rank == 0 ? self : buffer, rcounts, rdispls, item, MPI_COMM_WORLD);
  expect_coded(MPI_COMM_WORLD, before, rank == 0);
  for (long i = 0; rank == 0 && i < ITEM * TAIL; i++)
    if (self[i] != value(ITEM * ITEMS + i)) fail("value %ld of the block to self", i);
  for (long i = 0; rank == 1 && i < ITEM * ITEMS; i++)
    if (!(fabs(buffer[ITEM * TAIL + i] - value(i)) <= 1e-3)) fail("value %ld is %g", i, buffer[ITEM * TAIL + i]);
  check("2.2 GB");

  /* The same, and the message comes from past 2^31 bytes. */
  scounts[0] = 0;
  scounts[1] = rank == 0 ? TAIL : 0;
  sdispls[1] = ITEMS;
  rcounts[0] = rank == 0 ? 0 : TAIL;
  rdispls[0] = ITEMS;
  MPI_Alltoallv(buffer, scounts, sdispls, item, rank == 0 ? self : buffer, rcounts, rdispls, item, MPI_COMM_WORLD);
  for (long i = ITEM * ITEMS; rank == 1 && i < total; i++)
    if (!(fabs(buffer[i] - value(i)) <= 1e-3)) fail("value %ld is %g", i, buffer[i]);
  check("displacements past 2^31 bytes");
  MPI_Type_free(&item);
  free(buffer);
  free(self);
  return check_done();
}
