#include "check.h"

#include "transpress.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY = 240 };
static char why[WHY];
static pthread_mutex_t why_lock = PTHREAD_MUTEX_INITIALIZER;
static double limit[2];
static int must_be_coded;
static int failures;

int check_init(int *argc, char ***argv, int level) {
  int provided = MPI_THREAD_SINGLE;
  if (level == MPI_THREAD_SINGLE)
    MPI_Init(argc, argv);
  else
    MPI_Init_thread(argc, argv, level, &provided);
  const char *f32 = getenv("CHECK_F32"), *f64 = getenv("CHECK_F64");
  limit[F32] = f32 ? atof(f32) : 0;
  limit[F64] = f64 ? atof(f64) : 0;
  must_be_coded = getenv("CHECK_COMPRESSED") != NULL;
  return provided;
}

void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&why_lock);
  if (!why[0]) vsnprintf(why, WHY, format, arguments);
  pthread_mutex_unlock(&why_lock);
  va_end(arguments);
}

void check(const char *format, ...) {
  char name[WHY];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(name, WHY, format, arguments);
  va_end(arguments);

  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char *all = malloc((size_t)size * WHY);
  MPI_Gather(why, WHY, MPI_CHAR, all, WHY, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    int failed = 0;
    for (int r = 0; r < size; r++)
      if (all[r * WHY]) {
        printf("FAIL %s: rank %d: %s\n", name, r, all + r * WHY);
        failed = 1;
      }
    if (!failed) printf("ok %s\n", name);
    failures += failed;
    fflush(stdout);
  }
  free(all);
  why[0] = 0;
}

int check_done(void) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) puts("done");
  MPI_Finalize();
  return failures > 0;
}

size_t size_of(enum kind kind) { return kind == F32 ? 4 : kind == F64 ? 8 : 1; }

static double smooth(int from, int to, long i) {
  return 1.5 + 0.5 * sin(0.02 * (double)i + from + 0.3 * to);
}

void fill(void *message, enum kind kind, long values, int from, int to) {
  unsigned state = 12345u + 7919u * (unsigned)from + 104729u * (unsigned)to;
  for (long i = 0; i < values; i++) {
    if (kind == F32) ((float *)message)[i] = (float)smooth(from, to, i);
    if (kind == F64) ((double *)message)[i] = smooth(from, to, i);
    if (kind == EXACT) {
      state = state * 1664525u + 1013904223u;
      ((unsigned char *)message)[i] = (unsigned char)(state >> 24);
    }
  }
}

int may_be_coded(enum kind kind, long values, int from, int to) {
  return kind != EXACT && from != to && values * (long)size_of(kind) >= MIN_BYTES;
}

double relative_error(const void *x, const void *y, enum kind kind, long values) {
  double error = 0, norm = 0;
  for (long i = 0; i < values; i++) {
    double a = kind == F32 ? ((const float *)x)[i] : ((const double *)x)[i];
    double b = kind == F32 ? ((const float *)y)[i] : ((const double *)y)[i];
    error += (a - b) * (a - b);
    norm += b * b;
  }
  return norm > 0 ? sqrt(error / norm) : sqrt(error);
}

static void expect_equal(const void *got, const void *want, size_t bytes, const char *what) {
  const unsigned char *g = got, *w = want;
  for (size_t i = 0; i < bytes; i++)
    if (g[i] != w[i]) {
      fail("%s: byte %zu of %zu is %02x, not %02x", what, i, bytes, g[i], w[i]);
      return;
    }
}

void expect_close(const void *got, const void *want, enum kind kind, long values, const char *what) {
  if (limit[kind] == 0) {
    expect_equal(got, want, (size_t)values * size_of(kind), what);
    return;
  }
  double error = relative_error(got, want, kind, values);
  if (!(error <= limit[kind])) fail("%s: relative error %.3g of %ld values", what, error, values);
}

void expect(const void *message, enum kind kind, long values, int from, int to) {
  size_t bytes = (size_t)values * size_of(kind);
  void *want = malloc(bytes + 1);
  char what[60];
  snprintf(what, sizeof what, "message %d to %d", from, to);
  fill(want, kind, values, from, to);
  if (may_be_coded(kind, values, from, to))
    expect_close(message, want, kind, values, what);
  else
    expect_equal(message, want, bytes, what);
  free(want);
}

long coded(MPI_Comm comm) {
  transpress_stats_t stats;
  return transpress_stats(comm, &stats) == TRANSPRESS_OK ? (long)stats.messages_compressed : 0;
}

void expect_coded(MPI_Comm comm, long before, long messages) {
  long sent = coded(comm) - before;
  if (must_be_coded && sent != messages) fail("%ld messages compressed, not %ld", sent, messages);
}

void *untouched(size_t bytes) {
  void *memory = malloc(bytes + 1);
  memset(memory, UNTOUCHED, bytes);
  return memory;
}

int is_untouched(const void *memory, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    if (((const unsigned char *)memory)[i] != UNTOUCHED) return 0;
  return 1;
}

void exchange_floats(int values) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  size_t message = sizeof(float) * (size_t)values;
  float *send = malloc(message * (size_t)size), *receive = untouched(message * (size_t)size);
  for (int peer = 0; peer < size; peer++) fill(send + (size_t)peer * values, F32, values, rank, peer);
  MPI_Alltoall(send, values, MPI_FLOAT, receive, values, MPI_FLOAT, MPI_COMM_WORLD);
  for (int peer = 0; peer < size; peer++) expect(receive + (size_t)peer * values, F32, values, peer, rank);
  free(send);
  free(receive);
}
