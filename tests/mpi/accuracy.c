/* How near known fields arrive, by layout: prints "CASE ERROR", relative L2; of unlike fields side by side,
 * the worst field's. */
#include "check.h"

#include "transpress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NX = 24, NY = 20, NZ = 12, N = NX * NY * NZ };

/* x fastest; rough along none of the three axes. */
static double field(int x, int y, int z) { return 3 + sin(0.23 * x + 0.1) * cos(0.31 * y) + 0.5 * sin(0.4 * z + 0.2 * x); }

/* Re and im of unlike size and phase, interleaved. */
static double complex_field(long i) {
  long point = i / 2;
  int x = (int)(point % NX), y = (int)(point / NX);
  return i % 2 ? 0.02 * cos(0.29 * x + 0.17 * y) : 5 + sin(0.2 * x) * cos(0.11 * y);
}

/* Twelve quantities of unlike magnitude, side by side at every point. */
static const double scale[] = {1e5, 300, 1e-3, 2e-5, 40, 1e-7, 9e4, 0.5, 1e-2, 3e3, 1e-4, 7};
static double unlike(long i) { return scale[i % 12] * (2 + sin(0.01 * (double)(i / 12) + (double)(i % 12))); }

/* The error of one message of n floats along `layout` or `extents`. */
static double error_of(MPI_Comm world, const char *layout, const int *extents, int ndims, long n, const float *message, int fields) {
  int size, rank;
  MPI_Comm comm;
  MPI_Comm_dup(world, &comm);
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  if (transpress_register(comm) != TRANSPRESS_OK) fail("not registered");
  if (layout && transpress_add_layout(comm, layout) != TRANSPRESS_OK) fail("layout %s refused", layout);
  if (extents && transpress_add_shape(comm, ndims, extents) != TRANSPRESS_OK) fail("shape refused");
  float *send = malloc(sizeof(float) * (size_t)n * (size_t)size), *receive = untouched(sizeof(float) * (size_t)n * (size_t)size);
  for (long i = 0; i < n * size; i++) send[i] = message[i % n];
  MPI_Alltoall(send, (int)n, MPI_FLOAT, receive, (int)n, MPI_FLOAT, comm);
  if (coded(comm) != size - 1) fail("%ld messages compressed", coded(comm));
  const float *got = receive + n * ((rank + 1) % size);
  double worst = 0;
  for (int f = 0; f < fields; f++) {
    double error = 0, norm = 0;
    for (long i = f; i < n; i += fields) {
      error += ((double)got[i] - message[i]) * ((double)got[i] - message[i]);
      norm += (double)message[i] * message[i];
    }
    worst = fmax(worst, sqrt(error / norm));
  }
  free(send);
  free(receive);
  MPI_Comm_free(&comm);
  return worst;
}

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float *message = malloc(sizeof(float) * 12 * N);
  MPI_Comm world = MPI_COMM_WORLD;
  double errors[10];
  int e = 0;
  for (int z = 0, i = 0; z < NZ; z++)
    for (int y = 0; y < NY; y++)
      for (int x = 0; x < NX; x++) message[i++] = (float)field(x, y, z);
  errors[e++] = error_of(world, "*", NULL, 0, N, message, 1);
  errors[e++] = error_of(world, NULL, (int[]){NX, -1}, 2, N, message, 1);
  errors[e++] = error_of(world, NULL, (int[]){NX, NY, NZ}, 3, N, message, 1);
  errors[e++] = error_of(world, "24,20,*", NULL, 0, N, message, 1);
  errors[e++] = error_of(world, "20,24,*", NULL, 0, N, message, 1);
  for (long i = 0; i < 2 * N; i++) message[i] = (float)complex_field(i);
  errors[e++] = error_of(world, "*", NULL, 0, 2 * N, message, 2);
  errors[e++] = error_of(world, "2c,24,*", NULL, 0, 2 * N, message, 2);
  for (long i = 0; i < 12 * N; i++) message[i] = (float)unlike(i);
  errors[e++] = error_of(world, "*", NULL, 0, 12 * N, message, 12);
  errors[e++] = error_of(world, "12f,*", NULL, 0, 12 * N, message, 12);
  check("exchanges");
  static const char *const names[] = {"flat", "2-D", "3-D", "3-D by layout", "3-D swapped", "complex flat", "complex split", "fields flat", "fields apart"};
  for (int i = 0; rank == 0 && i < e; i++) printf("%s %.6e\n", names[i], errors[i]);
  free(message);
  return check_done();
}
