/* MPI_THREAD_MULTIPLE: four threads, each on a communicator of its own, all at once. */
#include "check.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, N = 2500, TIMES = 15 };

static void *work(void *argument) {
  MPI_Comm comm = *(MPI_Comm *)argument;
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  float *send = malloc(sizeof(float) * N * (size_t)size), *receive = untouched(sizeof(float) * N * (size_t)size);
  int *counts = malloc(2 * (size_t)size * sizeof *counts), *displs = counts + size;
  for (int peer = 0; peer < size; peer++) {
    counts[peer] = N;
    displs[peer] = peer * N;
    fill(send + peer * N, F32, N, rank, peer);
  }
  for (int time = 0; time < TIMES; time++) {
    long before = coded(comm);
    MPI_Alltoallv(send, counts, displs, MPI_FLOAT, receive, counts, displs, MPI_FLOAT, comm);
    expect_coded(comm, before, size - 1);
    for (int peer = 0; peer < size; peer++) expect(receive + peer * N, F32, N, peer, rank);
  }
  free(send);
  free(receive);
  free(counts);
  return NULL;
}

int main(int argc, char **argv) {
  if (check_init(&argc, &argv, MPI_THREAD_MULTIPLE) < MPI_THREAD_MULTIPLE) fail("this MPI has no MPI_THREAD_MULTIPLE");
  MPI_Comm comms[THREADS];
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; t++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
  for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, work, &comms[t]);
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  for (int t = 0; t < THREADS; t++) MPI_Comm_free(&comms[t]);
  check("threads");
  return check_done();
}
