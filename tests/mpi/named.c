/* The same floats on communicators of three names, each used once in either call. */
#include "check.h"

#include <stdlib.h>

enum { N = 5000 };

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm comms[3] = {MPI_COMM_WORLD};
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[2]);
  MPI_Comm_set_name(comms[1], "rows");
  MPI_Comm_set_name(comms[2], "the columns");
  float *send = malloc(sizeof(float) * N * (size_t)size), *receive = untouched(sizeof(float) * N * (size_t)size);
  int *counts = malloc(2 * (size_t)size * sizeof *counts), *displs = counts + size;
  for (int peer = 0; peer < size; peer++) {
    counts[peer] = N;
    displs[peer] = peer * N;
    fill(send + peer * N, F32, N, rank, peer);
  }
  for (int c = 0; c < 3; c++) {
    MPI_Alltoall(send, N, MPI_FLOAT, receive, N, MPI_FLOAT, comms[c]);
    for (int peer = 0; peer < size; peer++) expect(receive + peer * N, F32, N, peer, rank);
    MPI_Alltoallv(send, counts, displs, MPI_FLOAT, receive, counts, displs, MPI_FLOAT, comms[c]);
    for (int peer = 0; peer < size; peer++) expect(receive + peer * N, F32, N, peer, rank);
  }
  check("three communicators");
  MPI_Comm_free(&comms[1]);
  MPI_Comm_free(&comms[2]);
  free(counts);
  free(send);
  free(receive);
  return check_done();
}
