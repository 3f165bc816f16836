/* One exchange of floats on MPI_COMM_WORLD, twice over; says how many messages rank 0 sent compressed. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 5000 };

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  float *send = malloc(sizeof(float) * N * (size_t)size), *receive = untouched(sizeof(float) * N * (size_t)size);
  for (int peer = 0; peer < size; peer++) fill(send + peer * N, F32, N, rank, peer);
  for (int time = 0; time < 2; time++) {
    MPI_Alltoall(send, N, MPI_FLOAT, receive, N, MPI_FLOAT, MPI_COMM_WORLD);
    for (int peer = 0; peer < size; peer++) expect(receive + peer * N, F32, N, peer, rank);
    check("exchange %d", time);
  }
  if (rank == 0) printf("compressed %ld\n", coded(MPI_COMM_WORLD));
  free(send);
  free(receive);
  return check_done();
}
