/* What a host without MPI loads: the whole MPI program, libmpi with it. */
#include <mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "transpress.h"

enum { N = 5000 };

int plugin_main(void) {
  int rank, size, failed = 0;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double *send = malloc(sizeof(double) * N * (size_t)size), *receive = calloc(N * (size_t)size, sizeof(double));
  for (int i = 0; i < N * size; i++) send[i] = 2 + sin(0.01 * (i % N) + rank);
  MPI_Alltoall(send, N, MPI_DOUBLE, receive, N, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int i = 0; i < N * size; i++) failed |= !(fabs(receive[i] - (2 + sin(0.01 * (i % N) + i / N))) < 1e-2);
  transpress_stats_t stats = {0};
  transpress_stats(MPI_COMM_WORLD, &stats);
  if (rank == 0) {
    printf("compressed %d\n", (int)stats.messages_compressed);
    puts(failed ? "FAIL plugin" : "ok plugin");
    puts("done");
  }
  fflush(stdout);
  MPI_Finalize();
  return failed;
}
