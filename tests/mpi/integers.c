/* Indices as integers of several lengths, and as bytes: each exchange is checked bit by bit. Prints how many messages
 * rank 0 sent compressed. */
#include "check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 9000 };

/* Item i from one rank to another: the low bytes of a slowly growing index. */
static void item(unsigned char *target, size_t bytes, long i, int from, int to) {
  int64_t index = 1000 * from + 100 * to + i / 7;
  memcpy(target, &index, bytes);
}

static void exchange(MPI_Datatype type, size_t bytes, const char *name) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  size_t length = N * bytes;
  unsigned char *send = malloc(length * (size_t)size), *receive = malloc(length * (size_t)size);
  int *counts = malloc(2 * (size_t)size * sizeof *counts), *displs = counts + size;
  for (int peer = 0; peer < size; peer++) {
    counts[peer] = type == MPI_BYTE ? (int)length : N;
    displs[peer] = peer * counts[peer];
    for (long i = 0; i < N; i++) item(send + (size_t)peer * length + (size_t)i * bytes, bytes, i, rank, peer);
  }
  MPI_Alltoallv(send, counts, displs, type, receive, counts, displs, type, MPI_COMM_WORLD);
  for (int peer = 0; peer < size; peer++)
    for (long i = 0; i < N; i++) {
      unsigned char want[8];
      item(want, bytes, i, peer, rank);
      if (memcmp(receive + (size_t)peer * length + (size_t)i * bytes, want, bytes)) {
        fail("item %ld of rank %d", i, peer);
        break;
      }
    }
  check("%s", name);
  free(counts);
  free(send);
  free(receive);
}

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  exchange(MPI_INT, 4, "MPI_INT");
  exchange(MPI_INT64_T, 8, "MPI_INT64_T");
  exchange(MPI_SHORT, 2, "MPI_SHORT");
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  exchange(pair, 8, "pairs of MPI_INT");
  MPI_Type_free(&pair);
  exchange(MPI_BYTE, 4, "MPI_BYTE");
  exchange(MPI_CHAR, 1, "MPI_CHAR");
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("compressed %ld\n", coded(MPI_COMM_WORLD));
  return check_done();
}
