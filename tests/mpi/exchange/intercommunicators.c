/* Between two groups of unlike size: plain MPI, whatever is registered. */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

enum { N = 2000 };

static void expect_exact(const float *got, int from, int to) {
  float want[N];
  fill(want, F32, N, from, to);
  if (memcmp(got, want, sizeof want)) fail("message %d to %d changed", from, to);
}

static void between(int left) {
  int rank, remote, group;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int is_left = rank < left;
  MPI_Comm local, inter;
  MPI_Comm_split(MPI_COMM_WORLD, is_left, rank, &local);
  MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, is_left ? left : 0, 7, &inter);
  MPI_Comm_remote_size(inter, &remote);
  MPI_Comm_size(inter, &group);
  int first = is_left ? left : 0; /* the world rank of the other side's rank 0 */
  float *send = malloc(sizeof(float) * N * (size_t)remote), *receive = untouched(sizeof(float) * N * (size_t)remote + 16);
  for (int peer = 0; peer < remote; peer++) fill(send + peer * N, F32, N, rank, first + peer);
  for (int v = 0; v < 2; v++) {
    if (v) {
      int *counts = malloc(2 * (size_t)remote * sizeof *counts), *displs = counts + remote;
      for (int peer = 0; peer < remote; peer++) counts[peer] = N, displs[peer] = peer * N;
      MPI_Alltoallv(send, counts, displs, MPI_FLOAT, receive, counts, displs, MPI_FLOAT, inter);
      free(counts);
    } else {
      MPI_Alltoall(send, N, MPI_FLOAT, receive, N, MPI_FLOAT, inter);
    }
    for (int peer = 0; peer < remote; peer++) expect_exact(receive + peer * N, first + peer, rank);
    if (!is_untouched(receive + remote * N, 16)) fail("written past the end");
    memset(receive, UNTOUCHED, sizeof(float) * N * (size_t)remote);
    check("%s between groups of %d and the rest", v ? "alltoallv" : "alltoall", left);
  }
  free(send);
  free(receive);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&local);
}

void check_intercommunicators(void) {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > 1) between(1);
  if (size > 2) between(2);
  if (size > 4) between(size / 2);
}
