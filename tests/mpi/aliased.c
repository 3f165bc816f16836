/* The send buffer is the receive buffer, and MPI_IN_PLACE is not said: forbidden, but some programs do it and
 * some MPIs let them. */
#include "check.h"

#include <stdlib.h>

enum { N = 3000 };

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  float *buffer = malloc(sizeof(float) * N * (size_t)size);
  int *counts = malloc(2 * (size_t)size * sizeof *counts), *displs = counts + size;
  for (int v = 0; v < 2; v++) {
    for (int peer = 0; peer < size; peer++) {
      counts[peer] = N;
      displs[peer] = peer * N;
      fill(buffer + peer * N, F32, N, rank, peer);
    }
    long before = coded(MPI_COMM_WORLD);
    if (v)
      MPI_Alltoallv(buffer, counts, displs, MPI_FLOAT, buffer, counts, displs, MPI_FLOAT, MPI_COMM_WORLD);
    else
      MPI_Alltoall(buffer, N, MPI_FLOAT, buffer, N, MPI_FLOAT, MPI_COMM_WORLD);
    expect_coded(MPI_COMM_WORLD, before, size - 1);
    for (int peer = 0; peer < size; peer++) expect(buffer + peer * N, F32, N, peer, rank);
    check("%s from and to one buffer", v ? "alltoallv" : "alltoall");
  }
  free(counts);
  free(buffer);
  return check_done();
}
