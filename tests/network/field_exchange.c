/* MPI_Alltoallv of a real field, plain and compressed by turns, timed and checked.
 *
 *   field_exchange FIELD NX NY NZ BYTES WARM_UP CALLS plain|coded|both
 *
 * FIELD holds NX*NY*NZ floats, x fastest, periodic in x. Every rank sends BYTES to every other: planes of the
 * field, its levels up and down again, turned in x by another angle for each pair and call, so that no two
 * messages are alike. The calls go over two copies of MPI_COMM_WORLD, named "plain" and "coded":
 * TRANSPRESS_COMMS=coded has the second one compressed. WARM_UP calls of each kind come before the CALLS that
 * are timed: from a barrier to the end on the slowest rank.
 *
 * Rank 0 prints one line of JSON. Errors are of what the other ranks sent; counts are of the timed calls,
 * summed over the ranks. Exits with 1 when a message that was not compressed arrives changed.
 */
#include "transpress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count, size);
  if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
  return memory;
}

static void refuse(const char *what) {
  if (rank == 0) fprintf(stderr, "field_exchange: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

/* Where messages come from. */
struct field {
  int nx, ny, nz;
  float *values;
};

static struct field read_field(char **argument) {
  struct field field = {atoi(argument[1]), atoi(argument[2]), atoi(argument[3]), NULL};
  if (field.nx < 1 || field.ny < 1 || field.nz < 2) refuse("a field has 1x1x2 points and more");
  size_t count = (size_t)field.nx * (size_t)field.ny * (size_t)field.nz;
  field.values = allocate(count, sizeof(float));
  FILE *file = fopen(argument[0], "rb");
  if (!file || fread(field.values, sizeof(float), count, file) != count) refuse("FIELD is missing or too short");
  fclose(file);
  return field;
}

static void fill(const struct field *field, int from, int to, int call, float *message, size_t count) {
  size_t row = (size_t)field->nx, rows = (size_t)field->ny, there_and_back = 2 * ((size_t)field->nz - 1);
  size_t turned = (size_t)(11 * from + 29 * to + 5 * call) % row;
  for (size_t done = 0, at = 0; done < count; done += row, at++) {
    size_t level = at / rows % there_and_back;
    if (level >= (size_t)field->nz) level = there_and_back - level;
    const float *source = field->values + (level * rows + at % rows) * row;
    for (size_t x = 0; x < row && done + x < count; x++) message[done + x] = source[(x + turned) % row];
  }
}

/* How near messages came. */
struct errors {
  double relative; /* sum of |x - x'| / |x| */
  double values;
  double largest; /* |x - x'| */
};

static void compare(const float *sent, const float *got, size_t count, struct errors *errors) {
  for (size_t i = 0; i < count; i++) {
    double error = fabs((double)got[i] - (double)sent[i]);
    /* Also one that is not a number. */
    if (!(error <= errors->largest)) errors->largest = error;
    errors->relative += sent[i] == 0 ? error > 0 : error / fabs((double)sent[i]);
  }
  errors->values += (double)count;
}

/* One kind of call. */
struct kind {
  MPI_Comm comm;
  int is_wanted;
  double *seconds;
  struct errors errors, own;
};

static struct kind make_kind(const char *name, const char *wanted, int calls) {
  struct kind kind = {.is_wanted = !strcmp(wanted, name) || !strcmp(wanted, "both")};
  kind.seconds = allocate((size_t)calls + 1, sizeof(double));
  MPI_Comm_dup(MPI_COMM_WORLD, &kind.comm);
  MPI_Comm_set_name(kind.comm, name);
  return kind;
}

struct buffers {
  float *send, *receive, *expected;
  int *counts, *places;
  size_t count;
};

static struct buffers make_buffers(size_t bytes) {
  size_t count = bytes / sizeof(float), size = (size_t)ranks;
  struct buffers buffers = {allocate(count * size, sizeof(float)), allocate(count * size, sizeof(float)),
                            allocate(count, sizeof(float)), allocate(size, sizeof(int)), allocate(size, sizeof(int)), count};
  for (int peer = 0; peer < ranks; peer++) {
    buffers.counts[peer] = (int)count;
    buffers.places[peer] = (int)count * peer;
  }
  return buffers;
}

/* Seconds of one call; what arrives is compared with what was sent. */
static double exchange(struct kind *kind, const struct field *field, const struct buffers *buffers, int call) {
  size_t count = buffers->count;
  for (int peer = 0; peer < ranks; peer++) fill(field, rank, peer, call, buffers->send + count * (size_t)peer, count);
  /* NaN where nothing arrives. */
  memset(buffers->receive, 0xff, count * (size_t)ranks * sizeof(float));
  MPI_Barrier(kind->comm);
  double start = MPI_Wtime();
  MPI_Alltoallv(buffers->send, buffers->counts, buffers->places, MPI_FLOAT, buffers->receive, buffers->counts,
                buffers->places, MPI_FLOAT, kind->comm);
  double here = MPI_Wtime() - start, slowest;
  MPI_Allreduce(&here, &slowest, 1, MPI_DOUBLE, MPI_MAX, kind->comm);
  for (int peer = 0; peer < ranks; peer++) {
    fill(field, peer, rank, call, buffers->expected, count);
    compare(buffers->expected, buffers->receive + count * (size_t)peer, count, peer == rank ? &kind->own : &kind->errors);
  }
  return slowest;
}

static struct errors over_ranks(struct errors here) {
  struct errors all;
  double sums[2] = {here.relative, here.values}, sum[2];
  /* MPI_MAX need not keep what is not a number. */
  double largest = isnan(here.largest) ? HUGE_VAL : here.largest;
  MPI_Allreduce(sums, sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&largest, &all.largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  all.relative = sum[0];
  all.values = sum[1];
  return all;
}

enum { COMPRESSED, RAW, ESCAPED, BEFORE, AFTER, COUNTS };

/* What the library counted so far; false where it compresses nothing on this communicator. */
static int count(MPI_Comm comm, uint64_t counts[COUNTS]) {
  transpress_stats_t stats;
  int known = transpress_stats(comm, &stats) == TRANSPRESS_OK;
  memset(counts, 0, COUNTS * sizeof *counts);
  if (!known) return 0;
  counts[COMPRESSED] = stats.messages_compressed;
  counts[RAW] = stats.messages_raw;
  counts[ESCAPED] = stats.messages_escaped;
  counts[BEFORE] = stats.bytes_before;
  counts[AFTER] = stats.bytes_after;
  return 1;
}

static void print_seconds(const char *name, const struct kind *kind, int calls) {
  printf("\"%s\": [", name);
  for (int call = 0; kind->is_wanted && call < calls; call++) printf("%s%.6f", call ? ", " : "", kind->seconds[call]);
  printf("], ");
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 9) refuse("FIELD NX NY NZ BYTES WARM_UP CALLS plain|coded|both");
  struct field field = read_field(argv + 1);
  struct buffers buffers = make_buffers((size_t)atoll(argv[5]));
  int warm_up = atoi(argv[6]), calls = atoi(argv[7]);
  if (calls < 1) refuse("no calls");
  struct kind plain = make_kind("plain", argv[8], calls), coded = make_kind("coded", argv[8], calls);
  if (!plain.is_wanted && !coded.is_wanted) refuse("plain, coded or both");

  uint64_t before[COUNTS] = {0}, after[COUNTS], here[COUNTS], counted[COUNTS];
  for (int call = -warm_up; call < calls; call++) {
    if (call == 0) count(coded.comm, before);
    if (plain.is_wanted) plain.seconds[call < 0 ? 0 : call] = exchange(&plain, &field, &buffers, call + warm_up);
    if (coded.is_wanted) coded.seconds[call < 0 ? 0 : call] = exchange(&coded, &field, &buffers, call + warm_up);
  }
  int is_counted = count(coded.comm, after);
  for (int i = 0; i < COUNTS; i++) here[i] = after[i] - before[i];
  MPI_Allreduce(here, counted, COUNTS, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);

  struct errors of_plain = over_ranks(plain.errors), of_coded = over_ranks(coded.errors);
  struct errors own = over_ranks(plain.own.largest == 0 ? coded.own : plain.own);
  int is_right = of_plain.largest == 0 && own.largest == 0 && (is_counted || of_coded.largest == 0);
  if (rank == 0) {
    printf("{\"ranks\": %d, \"bytes\": %zu, ", ranks, buffers.count * sizeof(float));
    print_seconds("plain_seconds", &plain, calls);
    print_seconds("coded_seconds", &coded, calls);
    printf("\"counted\": %s, \"compressed\": %llu, \"raw\": %llu, \"escaped\": %llu, ", is_counted ? "true" : "false",
           (unsigned long long)counted[COMPRESSED], (unsigned long long)counted[RAW], (unsigned long long)counted[ESCAPED]);
    printf("\"bytes_before\": %llu, \"bytes_after\": %llu, ", (unsigned long long)counted[BEFORE], (unsigned long long)counted[AFTER]);
    printf("\"mean_relative_error\": %.6e, \"largest_error\": %.6e}\n",
           of_coded.values > 0 ? of_coded.relative / of_coded.values : 0, isinf(of_coded.largest) ? 1e300 : of_coded.largest);
    if (!is_right) fprintf(stderr, "field_exchange: messages that nobody compressed arrived changed\n");
  }
  MPI_Finalize();
  return is_right ? 0 : 1;
}
