/* auto CALLS N: as many calls of MPI_Alltoallv on MPI_COMM_WORLD, with N floats for each pair of ranks; every third of
 * them with a few. Prints how many messages rank 0 sent compressed in the last 10 calls. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

enum { FEW = 50 };

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  int calls = atoi(argv[1]), n = atoi(argv[2]), rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  float *send = malloc(sizeof(float) * (size_t)n * (size_t)size), *receive = malloc(sizeof(float) * (size_t)n * (size_t)size);
  int *counts = malloc(2 * (size_t)size * sizeof *counts), *displs = counts + size;
  long before = 0;
  for (int call = 0; call < calls; call++) {
    int count = call % 3 == 2 ? FEW : n;
    for (int peer = 0; peer < size; peer++) {
      counts[peer] = count;
      displs[peer] = peer * n;
      fill(send + peer * n, F32, count, rank, peer);
    }
    if (call == calls - 10) before = coded(MPI_COMM_WORLD);
    MPI_Alltoallv(send, counts, displs, MPI_FLOAT, receive, counts, displs, MPI_FLOAT, MPI_COMM_WORLD);
    for (int peer = 0; peer < size; peer++) expect(receive + peer * n, F32, count, peer, rank);
    if (call % 10 == 9) check("calls to %d", call);
  }
  if (rank == 0) printf("compressed %ld\n", coded(MPI_COMM_WORLD) - before);
  free(counts);
  free(send);
  free(receive);
  return check_done();
}
