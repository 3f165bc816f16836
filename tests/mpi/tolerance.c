/* Tolerances that the program sets, by communicator and for a time: no value is further away. */
#include "check.h"

#include "transpress.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NX = 40, NY = 30, NZ = 8, N = NX * NY * NZ };

static double value(long i, int from, int to) {
  long x = i % NX, y = i / NX % NY, z = i / NX / NY;
  return 250 + 40 * sin(0.11 * (double)x + from) * cos(0.07 * (double)y) + 15 * sin(0.4 * (double)z + to);
}

/* What is missing, which must arrive as it is. */
static int is_missing(long i) { return i / 7 % 11 == 3; }

/* The largest error of messages of n reals, as many as a datatype holds side by side in `parts`. */
static double error_of(MPI_Comm comm, MPI_Datatype type, int is_double, int parts, int missing) {
  int size, rank, bytes = is_double ? 8 : 4;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  long all = (long)N * size;
  char *send = malloc((size_t)(all * bytes)), *receive = untouched((size_t)(all * bytes));
  for (long i = 0; i < all; i++) {
    double v = missing && is_missing(i % N) ? NAN : value(i % N, rank, (int)(i / N));
    if (is_double) ((double *)send)[i] = v;
    else ((float *)send)[i] = (float)v;
  }
  long before = coded(comm);
  MPI_Alltoall(send, N / parts, type, receive, N / parts, type, comm);
  if (coded(comm) != before + size - 1) fail("%ld messages compressed", coded(comm) - before);
  double worst = 0;
  for (long i = 0; i < all; i++) {
    double v = value(i % N, (int)(i / N), rank), got = is_double ? ((double *)receive)[i] : ((float *)receive)[i];
    if (!is_double) v = (float)v;
    if (missing && is_missing(i % N)) {
      if (!isnan(got)) fail("a missing value came as %g", got);
    } else if (!(fabs(got - v) <= worst)) worst = fabs(got - v);
  }
  free(send);
  free(receive);
  return worst;
}

static void keeps(MPI_Comm comm, double tolerance, const char *name) {
  const struct {
    const char *name;
    MPI_Datatype type;
    int is_double, parts, missing;
  } messages[] = {
      {"float", MPI_FLOAT, 0, 1, 0},         {"double", MPI_DOUBLE, 1, 1, 0},          {"float with gaps", MPI_FLOAT, 0, 1, 1},
      {"double with gaps", MPI_DOUBLE, 1, 1, 1}, {"complex", MPI_C_FLOAT_COMPLEX, 0, 2, 0}, {"double complex", MPI_C_DOUBLE_COMPLEX, 1, 2, 0},
  };
  for (size_t m = 0; m < sizeof messages / sizeof *messages; m++) {
    double worst = error_of(comm, messages[m].type, messages[m].is_double, messages[m].parts, messages[m].missing);
    if (!(worst <= tolerance)) fail("%g is above %g", worst, tolerance);
    if (!(worst > tolerance / 100)) fail("%g is far below %g", worst, tolerance);
    check("%s %s", name, messages[m].name);
  }
}

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Comm coarse, fine;
  MPI_Comm_dup(MPI_COMM_WORLD, &coarse);
  MPI_Comm_dup(MPI_COMM_WORLD, &fine);
  if (transpress_register(coarse) != TRANSPRESS_OK || transpress_register(fine) != TRANSPRESS_OK) fail("not registered");
  if (transpress_set_tolerance(coarse, 0.3) != TRANSPRESS_OK) fail("not set");
  if (transpress_set_tolerance(fine, 2e-3) != TRANSPRESS_OK) fail("not set");
  keeps(coarse, 0.3, "coarse");
  keeps(fine, 2e-3, "fine");
  if (transpress_set_tolerance(coarse, 0.02) != TRANSPRESS_OK) fail("not set");
  keeps(coarse, 0.02, "finer");
  MPI_Comm_free(&coarse);
  MPI_Comm_free(&fine);
  return check_done();
}
