#include "exchange.h"

#include <stdlib.h>

enum { GAP = 3 }; /* items between two blocks */

void exchange(MPI_Comm comm, struct element send, struct element receive, counts *count) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  size_t unit = size_of(send.kind);
  int *table = malloc(4 * (size_t)size * sizeof *table);
  int *scounts = table, *sdispls = table + size, *rcounts = table + 2 * size, *rdispls = table + 3 * size;
  int send_items = 0, receive_items = 0;
  long messages = 0;
  for (int peer = 0; peer < size; peer++) {
    int values = count(rank, peer, size);
    scounts[peer] = values / send.values;
    sdispls[peer] = send_items;
    send_items += scounts[peer] + GAP;
    messages += may_be_coded(send.kind, values, rank, peer);
  }
  for (int peer = size - 1; peer >= 0; peer--) {
    rcounts[peer] = count(peer, rank, size) / receive.values;
    rdispls[peer] = receive_items;
    receive_items += rcounts[peer] + GAP;
  }
  size_t send_item = unit * (size_t)send.values, receive_item = unit * (size_t)receive.values;
  char *sendbuf = untouched((size_t)send_items * send_item);
  char *recvbuf = untouched((size_t)receive_items * receive_item);
  for (int peer = 0; peer < size; peer++)
    fill(sendbuf + (size_t)sdispls[peer] * send_item, send.kind, (long)scounts[peer] * send.values, rank, peer);

  long before = coded(comm);
  int error = MPI_Alltoallv(sendbuf, scounts, sdispls, send.type, recvbuf, rcounts, rdispls, receive.type, comm);
  if (error != MPI_SUCCESS) fail("MPI_Alltoallv returned %d", error);
  expect_coded(comm, before, messages);
  for (int peer = 0; peer < size; peer++) {
    const char *block = recvbuf + (size_t)rdispls[peer] * receive_item;
    long values = (long)rcounts[peer] * receive.values;
    expect(block, receive.kind, values, peer, rank);
    if (!is_untouched(block + (size_t)values * unit, GAP * receive_item)) fail("gap after block %d written", peer);
  }
  free(sendbuf);
  free(recvbuf);
  free(table);
}

void exchange_equal(MPI_Comm comm, struct element send, struct element receive, int values) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  size_t bytes = (size_t)values * size_of(send.kind);
  char *sendbuf = untouched(bytes * (size_t)size), *recvbuf = untouched(bytes * (size_t)size + 64);
  long messages = 0;
  for (int peer = 0; peer < size; peer++) {
    fill(sendbuf + (size_t)peer * bytes, send.kind, values, rank, peer);
    messages += may_be_coded(send.kind, values, rank, peer);
  }
  long before = coded(comm);
  int error = MPI_Alltoall(sendbuf, values / send.values, send.type, recvbuf, values / receive.values, receive.type, comm);
  if (error != MPI_SUCCESS) fail("MPI_Alltoall returned %d", error);
  expect_coded(comm, before, messages);
  for (int peer = 0; peer < size; peer++) expect(recvbuf + (size_t)peer * bytes, receive.kind, values, peer, rank);
  if (!is_untouched(recvbuf + bytes * (size_t)size, 64)) fail("written past the end");
  free(sendbuf);
  free(recvbuf);
}
