/* Six ranks in a ring of unequal messages: to the next rank a long one, then three short ones, then one that goes as
 * it is from the third call on, since it holds whole numbers. Nobody's long message may wait for the last one. */
#include "check.h"

#include <stdlib.h>

enum { LONG = 1500000, SHORT = 100, WHOLE = 1000000, CALLS = 4, RANKS = 6 };
static const int COUNTS[RANKS] = {0, LONG, SHORT, SHORT, SHORT, WHOLE};

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != RANKS) fail("%d ranks, not %d", size, RANKS);
  int scounts[RANKS], rcounts[RANKS], sdispls[RANKS], rdispls[RANKS], sent = 0, received = 0;
  for (int peer = 0; peer < RANKS; peer++) {
    scounts[peer] = COUNTS[(peer - rank + RANKS) % RANKS];
    rcounts[peer] = COUNTS[(rank - peer + RANKS) % RANKS];
    sdispls[peer] = sent;
    rdispls[peer] = received;
    sent += scounts[peer];
    received += rcounts[peer];
  }
  float *send = malloc(sizeof(float) * (size_t)sent), *receive = malloc(sizeof(float) * (size_t)received);
  for (int peer = 0; peer < RANKS; peer++) fill(send + sdispls[peer], F32, scounts[peer], rank, peer);
  int last = (rank + RANKS - 1) % RANKS, from = (rank + 1) % RANKS;
  for (int i = 0; i < WHOLE; i++) send[sdispls[last] + i] = (float)(i % 1009 * 7919 % 100003 + rank);
  for (int call = 0; call < CALLS; call++) {
    MPI_Alltoallv(send, scounts, sdispls, MPI_FLOAT, receive, rcounts, rdispls, MPI_FLOAT, MPI_COMM_WORLD);
    for (int peer = 0; peer < RANKS; peer++)
      if (peer != from) expect(receive + rdispls[peer], F32, rcounts[peer], peer, rank);
    for (int i = 0; i < WHOLE; i++)
      if (receive[rdispls[from] + i] != (float)(i % 1009 * 7919 % 100003 + from)) fail("whole number %d", i);
    check("call %d", call);
  }
  free(send);
  free(receive);
  return check_done();
}
