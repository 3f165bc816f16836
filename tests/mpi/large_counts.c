/* The calls of MPI 4 whose counts are MPI_Count: exact when plain, coded when not, as MPI_ and as PMPI_. */
#include "check.h"

#include <stdlib.h>

enum { N = 3000 };

static int count(int from, int to) { return 1500 + 400 * ((from + 2 * to) % 3); }

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  float *send = malloc(sizeof(float) * N * (size_t)size), *receive = untouched(sizeof(float) * N * (size_t)size);
  MPI_Count *counts = malloc(2 * (size_t)size * sizeof *counts), *rcounts = counts + size;
  MPI_Aint *displs = malloc(2 * (size_t)size * sizeof *displs), *rdispls = displs + size;
  for (int profiling = 0; profiling < 2; profiling++) {
    for (int peer = 0; peer < size; peer++) fill(send + peer * N, F32, N, rank, peer);
    long before = coded(MPI_COMM_WORLD);
    (profiling ? PMPI_Alltoall_c : MPI_Alltoall_c)(send, N, MPI_FLOAT, receive, N, MPI_FLOAT, MPI_COMM_WORLD);
    expect_coded(MPI_COMM_WORLD, before, size - 1);
    for (int peer = 0; peer < size; peer++) expect(receive + peer * N, F32, N, peer, rank);
    check("%sMPI_Alltoall_c", profiling ? "P" : "");

    for (int peer = 0; peer < size; peer++) {
      counts[peer] = count(rank, peer);
      rcounts[peer] = count(peer, rank);
      displs[peer] = peer * N;
      rdispls[peer] = (size - 1 - peer) * N;
      fill(send + peer * N, F32, counts[peer], rank, peer);
    }
    receive = (free(receive), untouched(sizeof(float) * N * (size_t)size));
    before = coded(MPI_COMM_WORLD);
    (profiling ? PMPI_Alltoallv_c : MPI_Alltoallv_c)(send, counts, displs, MPI_FLOAT, receive, rcounts, rdispls, MPI_FLOAT, MPI_COMM_WORLD);
    expect_coded(MPI_COMM_WORLD, before, size - 1);
    for (int peer = 0; peer < size; peer++) {
      expect(receive + rdispls[peer], F32, rcounts[peer], peer, rank);
      if (!is_untouched(receive + rdispls[peer] + rcounts[peer], sizeof(float) * (size_t)(N - rcounts[peer]))) fail("gap after block %d written", peer);
    }
    check("%sMPI_Alltoallv_c", profiling ? "P" : "");

    for (int peer = 0; peer < size; peer++) fill(receive + peer * N, F32, N, rank, peer);
    before = coded(MPI_COMM_WORLD);
    (profiling ? PMPI_Alltoall_c : MPI_Alltoall_c)(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive, N, MPI_FLOAT, MPI_COMM_WORLD);
    expect_coded(MPI_COMM_WORLD, before, size - 1);
    for (int peer = 0; peer < size; peer++) expect(receive + peer * N, F32, N, peer, rank);
    check("%sMPI_Alltoall_c in place", profiling ? "P" : "");
  }
  free(displs);
  free(counts);
  free(send);
  free(receive);
  return check_done();
}
