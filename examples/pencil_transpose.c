/* A pencil transpose in C: from whole lines in x to whole lines in y.
 *
 *   mpicc -I include examples/pencil_transpose.c -o pencil_transpose -lm
 *   mpirun -n 4 ./pencil_transpose                                      plain MPI
 *   mpirun -n 4 env LD_PRELOAD=libtranspress.so ./pencil_transpose      compressed
 *
 * The grid is cut into BX x BY x NZ boxes. Before, rank r holds the boxes of its y for all x; after, those
 * of its x for all y. So rank r sends one box to each rank, and every message has the same shape.
 */
#include "transpress.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BX = 24, BY = 20, NZ = 16, BOX = BX * BY * NZ };

/* The field: smooth, and known at every point (x, y, z) of the whole grid. */
static double field(int x, int y, int z) { return 2 + sin(0.20 * x) * cos(0.15 * y) + 0.3 * sin(0.25 * z); }

int main(int argc, char **argv) {
  int rank, ranks;
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);

  /* Once, at set-up: compress what goes over this communicator, and this is what a message looks like,
   * fastest axis first. Without the library both calls return TRANSPRESS_ABSENT, and nothing else
   * happens. */
  int present = transpress_register(comm) == TRANSPRESS_OK;
  const int extents[] = {BX, BY, NZ};
  transpress_add_shape(comm, 3, extents);

  double *before = malloc(sizeof(double) * BOX * (size_t)ranks), *after = malloc(sizeof(double) * BOX * (size_t)ranks);
  int *counts = malloc(2 * (size_t)ranks * sizeof *counts), *displs = counts + ranks;
  for (int to = 0; to < ranks; to++) {
    counts[to] = BOX;
    displs[to] = to * BOX;
    double *box = before + displs[to];
    for (int z = 0; z < NZ; z++)
      for (int y = 0; y < BY; y++)
        for (int x = 0; x < BX; x++) *box++ = field(to * BX + x, rank * BY + y, z);
  }

  /* The transpose itself is what it always was. */
  MPI_Alltoallv(before, counts, displs, MPI_DOUBLE, after, counts, displs, MPI_DOUBLE, comm);

  double worst = 0;
  for (int from = 0; from < ranks; from++) {
    const double *box = after + displs[from];
    for (int z = 0; z < NZ; z++)
      for (int y = 0; y < BY; y++)
        for (int x = 0; x < BX; x++) {
          double want = field(rank * BX + x, from * BY + y, z);
          worst = fmax(worst, fabs(*box++ - want) / fabs(want));
        }
  }
  MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE, MPI_MAX, comm);

  double accepted = present ? 1e-3 : 0;
  transpress_stats_t stats;
  if (rank == 0) printf("max relative error %.2e\n", worst);
  if (rank == 0 && transpress_stats(comm, &stats) == TRANSPRESS_OK && stats.bytes_after > 0)
    printf("bytes %.2f times fewer\n", (double)stats.bytes_before / (double)stats.bytes_after);

  free(before);
  free(after);
  free(counts);
  MPI_Comm_free(&comm); /* and its registration with it */
  MPI_Finalize();
  return !(worst <= accepted);
}
