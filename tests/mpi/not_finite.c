/* Values that lossy coding cannot keep: NaN and Inf arrive bit for bit, and what is beside them is coded
 * as ever. Negative zeros and subnormals may lose bits, but nothing else changes. Prints how many of those
 * messages rank 0 sent compressed and how many escaped. */
#include "check.h"

#include "transpress.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 2000 };

static int rank, size;

static double get(const void *message, enum kind kind, long i) {
  return kind == F32 ? ((const float *)message)[i] : ((const double *)message)[i];
}

static void set(void *message, enum kind kind, long i, double value) {
  if (kind == F32) ((float *)message)[i] = (float)value;
  if (kind == F64) ((double *)message)[i] = value;
}

/* A NaN whose bits say who made it. */
static void set_nan(void *message, enum kind kind, long i) {
  const uint32_t single = 0xffc12345u;
  const uint64_t twice = 0xfff8123456789abcu;
  if (kind == F32) memcpy((char *)message + 4 * i, &single, 4);
  if (kind == F64) memcpy((char *)message + 8 * i, &twice, 8);
}

enum spoil { NAN_FIRST, NAN_LAST, PLUS_INF, MINUS_INF, NAN_WITH_ZEROS_AND_SUBNORMALS, SPOILS };

static void spoil(void *message, enum kind kind, enum spoil how) {
  double subnormal = kind == F32 ? 1e-41 : 1e-310;
  switch (how) {
  case NAN_FIRST: set_nan(message, kind, 0); break;
  case NAN_LAST: set_nan(message, kind, N - 1); break;
  case PLUS_INF: set(message, kind, N / 2, INFINITY); break;
  case MINUS_INF: set(message, kind, 17, -INFINITY); break;
  default:
    for (long i = 600; i < 700; i++) set(message, kind, i, i % 2 ? -0.0 : subnormal);
    set_nan(message, kind, 650);
  }
}

/* Which messages are spoiled: from even ranks to their successors. */
static int is_spoiled(int from, int to) { return from % 2 == 0 && to == (from + 1) % size; }

/* What is not finite is the same bit for bit; so all else is as near as in a message without it. */
static void expect_kept(char *got, char *want, enum kind kind, int time) {
  size_t unit = size_of(kind);
  for (long i = 0; i < N; i++) {
    if (isfinite(get(want, kind, i))) continue;
    if (memcmp(got + (size_t)i * unit, want + (size_t)i * unit, unit)) fail("time %d: value %ld became %g", time, i, get(got, kind, i));
    set(got, kind, i, 0);
    set(want, kind, i, 0);
  }
  expect_close(got, want, kind, N, "what is finite");
}

static void exchange(enum kind kind, enum spoil how) {
  size_t bytes = N * size_of(kind);
  MPI_Datatype type = kind == F32 ? MPI_FLOAT : MPI_DOUBLE;
  char *send = malloc(bytes * (size_t)size), *receive = untouched(bytes * (size_t)size), *want = malloc(bytes);
  for (int peer = 0; peer < size; peer++) {
    fill(send + (size_t)peer * bytes, kind, N, rank, peer);
    if (is_spoiled(rank, peer)) spoil(send + (size_t)peer * bytes, kind, how);
  }
  /* Often enough that a peer which keeps escaping is sent raw for a while, and is tried again. */
  for (int time = 0; time < 12; time++) {
    memset(receive, UNTOUCHED, bytes * (size_t)size);
    MPI_Alltoall(send, N, type, receive, N, type, MPI_COMM_WORLD);
    for (int peer = 0; peer < size; peer++) {
      if (!is_spoiled(peer, rank)) {
        expect(receive + (size_t)peer * bytes, kind, N, peer, rank);
        continue;
      }
      fill(want, kind, N, peer, rank);
      spoil(want, kind, how);
      expect_kept(receive + (size_t)peer * bytes, want, kind, time);
    }
  }
  free(send);
  free(receive);
  free(want);
}

/* Finite all over: zeros of both signs, subnormals, and nothing but these. */
static void small_values(enum kind kind) {
  size_t bytes = N * size_of(kind);
  MPI_Datatype type = kind == F32 ? MPI_FLOAT : MPI_DOUBLE;
  double subnormal = kind == F32 ? 1e-41 : 1e-310;
  char *send = malloc(bytes * (size_t)size), *receive = untouched(bytes * (size_t)size);
  for (int pure = 0; pure < 3; pure++) {
    for (int peer = 0; peer < size; peer++) {
      char *message = send + (size_t)peer * bytes;
      fill(message, kind, N, 0, 0);
      for (long i = 0; i < N; i++) {
        if (pure == 1) set(message, kind, i, i % 2 ? -0.0 : 0.0);
        if (pure == 2) set(message, kind, i, subnormal);
        if (pure == 0 && i % 100 < 8) set(message, kind, i, i % 2 ? -0.0 : subnormal);
      }
    }
    MPI_Alltoall(send, N, type, receive, N, type, MPI_COMM_WORLD);
    for (int peer = 0; peer < size; peer++) {
      const char *message = receive + (size_t)peer * bytes;
      for (long i = 0; i < N; i++) {
        double got = kind == F32 ? ((const float *)message)[i] : ((const double *)message)[i];
        double want = kind == F32 ? ((const float *)send)[i] : ((const double *)send)[i];
        double room = pure == 0 ? 0.1 : pure == 1 ? 0 : 10 * subnormal;
        if (!(fabs(got - want) <= room)) fail("%d: value %ld is %g, not %g", pure, i, got, want);
      }
    }
  }
  free(send);
  free(receive);
}

/* Finite, but past what a half-precision number holds: it must not come out as infinity. */
static void large_values(void) {
  float *send = malloc(sizeof(float) * N * (size_t)size), *receive = untouched(sizeof(float) * N * (size_t)size);
  for (long i = 0; i < N * size; i++) send[i] = 1e6f + (float)(i % N);
  MPI_Alltoall(send, N, MPI_FLOAT, receive, N, MPI_FLOAT, MPI_COMM_WORLD);
  for (long i = 0; i < N * size; i++)
    if (!(fabsf(receive[i] - send[i]) <= 1e5f)) fail("value %ld is %g, not %g", i, (double)receive[i], (double)send[i]);
  free(send);
  free(receive);
}

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  static const char *const names[] = {"NaN first", "NaN last", "Inf", "-Inf", "NaN among -0.0 and subnormals"};
  for (int kind = F32; kind <= F64; kind++) {
    for (int how = 0; how < SPOILS; how++) {
      exchange(kind, how);
      check("%s, %s", kind == F32 ? "float" : "double", names[how]);
    }
  }
  transpress_stats_t stats;
  if (rank == 0 && transpress_stats(MPI_COMM_WORLD, &stats) == TRANSPRESS_OK)
    printf("compressed %ld\nescaped %ld\n", (long)stats.messages_compressed, (long)stats.messages_escaped);
  for (int kind = F32; kind <= F64; kind++) {
    small_values(kind);
    check("%s, -0.0 and subnormals", kind == F32 ? "float" : "double");
  }
  large_values();
  check("a million is no infinity");
  return check_done();
}
