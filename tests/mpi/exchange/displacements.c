/* Where blocks lie: below the buffer's address, one upon another at the sender, in any order. */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

enum { N = 1600 };

void check_displacements(void) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int *table = calloc(3 * (size_t)size, sizeof *table), *counts = table, *sdispls = table + size, *rdispls = table + 2 * size;
  size_t total = (size_t)N * (size_t)size;
  float *send = malloc(total * sizeof *send), *receive = untouched((total + N) * sizeof *receive);

  /* Negative displacements at both ends: the address given is past the data. */
  for (int peer = 0; peer < size; peer++) {
    counts[peer] = N - 5;
    sdispls[peer] = -(peer + 1) * N;
    rdispls[peer] = -(size - peer) * N;
    fill(send + total + sdispls[peer], F32, N - 5, rank, peer);
  }
  MPI_Alltoallv(send + total, counts, sdispls, MPI_FLOAT, receive + total, counts, rdispls, MPI_FLOAT, MPI_COMM_WORLD);
  for (int peer = 0; peer < size; peer++) {
    expect(receive + total + rdispls[peer], F32, N - 5, peer, rank);
    if (!is_untouched(receive + total + rdispls[peer] + N - 5, 5 * sizeof *receive)) fail("gap after block %d written", peer);
  }
  if (!is_untouched(receive + total, N * sizeof *receive)) fail("written past the last block");
  check("negative displacements");

  /* Every peer gets the same block. */
  for (int peer = 0; peer < size; peer++) {
    sdispls[peer] = 0;
    rdispls[peer] = peer * N;
  }
  fill(send, F32, N - 5, rank, 0);
  MPI_Alltoallv(send, counts, sdispls, MPI_FLOAT, receive, counts, rdispls, MPI_FLOAT, MPI_COMM_WORLD);
  float *want = malloc(N * sizeof *want);
  for (int peer = 0; peer < size; peer++) {
    fill(want, F32, N - 5, peer, 0);
    if (peer == rank && memcmp(receive + peer * N, want, (N - 5) * sizeof *want)) fail("the block to self differs");
    expect_close(receive + peer * N, want, F32, N - 5, "shared block");
  }
  check("one send block for all");

  /* Send blocks that overlap by half. */
  fill(send, F32, N * (long)size, rank, 0);
  for (int peer = 0; peer < size; peer++) sdispls[peer] = peer * N / 2;
  MPI_Alltoallv(send, counts, sdispls, MPI_FLOAT, receive, counts, rdispls, MPI_FLOAT, MPI_COMM_WORLD);
  float *whole = malloc(total * sizeof *whole);
  for (int peer = 0; peer < size; peer++) {
    fill(whole, F32, (long)total, peer, 0);
    expect_close(receive + peer * N, whole + rank * N / 2, F32, N - 5, "overlapping block");
  }
  check("overlapping send blocks");
  fill(whole, F32, (long)total, rank, 0);
  if (memcmp(whole, send, total * sizeof *send)) fail("the send buffer changed");
  check("the send buffer is only read");
  free(whole);
  free(want);
  free(send);
  free(receive);
  free(table);
}
