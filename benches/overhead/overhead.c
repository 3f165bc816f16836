/* Times MPI_Alltoallv on communicators that are not registered, with no bytes and with a few. Prints
 * nanoseconds per call, the median of batches, as "what nanoseconds". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCHES = 101, CALLS = 2000, FLOATS = 4, MAX_RANKS = 64 };

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double nanoseconds_per_call(MPI_Comm comm, int floats) {
  float send[MAX_RANKS * FLOATS] = {0}, receive[MAX_RANKS * FLOATS];
  int counts[MAX_RANKS], places[MAX_RANKS], ranks;
  MPI_Comm_size(comm, &ranks);
  for (int rank = 0; rank < ranks; rank++) {
    counts[rank] = floats;
    places[rank] = rank * FLOATS;
  }
  static double times[BATCHES];
  /* The first batch warms up, and meets the communicator. */
  for (int batch = -1; batch < BATCHES; batch++) {
    double start = MPI_Wtime();
    for (int call = 0; call < CALLS; call++)
      MPI_Alltoallv(send, counts, places, MPI_FLOAT, receive, counts, places, MPI_FLOAT, comm);
    if (batch >= 0) times[batch] = (MPI_Wtime() - start) / CALLS * 1e9;
  }
  qsort(times, BATCHES, sizeof *times, ascending);
  return times[BATCHES / 2];
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > MAX_RANKS) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Comm comm = ranks == 1 ? MPI_COMM_SELF : MPI_COMM_WORLD;
  double none = nanoseconds_per_call(comm, 0), few = nanoseconds_per_call(comm, FLOATS);
  if (rank == 0) printf("none %.1f\nfew %.1f\n", none, few);
  MPI_Finalize();
  return 0;
}
