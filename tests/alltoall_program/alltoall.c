/* An all-to-all of smooth floats, 64 KiB to each rank. Prints the largest error that any rank received. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 16384 };

static float value(int from, int to, int at) {
  return sinf(1e-3f * (float)at + (float)from) + (float)to;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  float *send = malloc(sizeof(float) * COUNT * (size_t)ranks);
  float *receive = malloc(sizeof(float) * COUNT * (size_t)ranks);
  if (!send || !receive) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int to = 0; to < ranks; to++)
    for (int at = 0; at < COUNT; at++) send[to * COUNT + at] = value(rank, to, at);

  MPI_Alltoall(send, COUNT, MPI_FLOAT, receive, COUNT, MPI_FLOAT, MPI_COMM_WORLD);

  double error = 0, worst = 0;
  for (int from = 0; from < ranks; from++)
    for (int at = 0; at < COUNT; at++)
      error = fmax(error, fabs((double)receive[from * COUNT + at] - (double)value(from, rank, at)));
  MPI_Reduce(&error, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("error %.9g\n", worst);

  free(send);
  free(receive);
  MPI_Finalize();
  return 0;
}
