/* The program may call PMPI_ itself; to the library that is the same call. */
#include "exchange.h"

#include <stdlib.h>

enum { N = 3000 };

void check_profiling(void) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  float *send = malloc(sizeof(float) * N * (size_t)size), *receive = untouched(sizeof(float) * N * (size_t)size);
  int *counts = malloc(2 * (size_t)size * sizeof *counts), *displs = counts + size;
  for (int peer = 0; peer < size; peer++) {
    counts[peer] = N;
    displs[peer] = peer * N;
    fill(send + peer * N, F32, N, rank, peer);
  }
  long before = coded(MPI_COMM_WORLD);
  PMPI_Alltoallv(send, counts, displs, MPI_FLOAT, receive, counts, displs, MPI_FLOAT, MPI_COMM_WORLD);
  expect_coded(MPI_COMM_WORLD, before, size - 1);
  for (int peer = 0; peer < size; peer++) expect(receive + peer * N, F32, N, peer, rank);
  check("PMPI_Alltoallv");
  before = coded(MPI_COMM_WORLD);
  PMPI_Alltoall(send, N, MPI_FLOAT, receive, N, MPI_FLOAT, MPI_COMM_WORLD);
  expect_coded(MPI_COMM_WORLD, before, size - 1);
  for (int peer = 0; peer < size; peer++) expect(receive + peer * N, F32, N, peer, rank);
  check("PMPI_Alltoall");
  free(send);
  free(receive);
  free(counts);
}
