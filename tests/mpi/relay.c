/* relay IN OUT TYPE CALLS COUNTS: the messages of the file IN go through MPI_Alltoallv, and what arrives
 * goes to the file OUT, which is there already, in the same order (by call, then by sender, then by
 * receiver), so that OUT is IN where nothing is lost. COUNTS are values per message, one number for all or
 * a comma-separated table, sender by sender. With one number the call is MPI_Alltoall. TYPE is the datatype
 * at the sender:
 *   float, real (Fortran's), double, complex, double_complex
 *   vector:NX,NY         NY rows of NX floats, with two floats between rows
 *   subarray:NX,NY,NZ    a box of floats within a larger one
 * Prints the sums over ranks of what the library counted. */
#include "check.h"

#include "transpress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { END = 64 }; /* bytes after the messages */
static int rank, size;

/* How the values of one message placing at the sender. */
struct placing {
  MPI_Datatype item;
  size_t value;   /* bytes of a value of COUNTS */
  int per_item;   /* values in an item */
  int extents[3]; /* the box, x fastest */
  int around[3];  /* the box it lies in */
  int at[3];      /* and where */
};

static void *must(void *memory) {
  if (!memory) MPI_Abort(MPI_COMM_WORLD, 2);
  return memory;
}

static struct placing parse(const char *type) {
  struct placing placing = {MPI_FLOAT, 4, 1, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}};
  int *n = placing.extents;
  if (strcmp(type, "real") == 0) {
    placing.item = MPI_REAL;
  } else if (strcmp(type, "double") == 0) {
    placing.item = MPI_DOUBLE;
    placing.value = 8;
  } else if (strcmp(type, "complex") == 0) {
    placing.item = MPI_C_FLOAT_COMPLEX;
    placing.value = 8;
  } else if (strcmp(type, "double_complex") == 0) {
    placing.item = MPI_C_DOUBLE_COMPLEX;
    placing.value = 16;
  } else if (sscanf(type, "vector:%d,%d", &n[0], &n[1]) == 2) {
    placing.around[0] = n[0] + 2;
    placing.around[1] = n[1];
    MPI_Type_vector(n[1], n[0], n[0] + 2, MPI_FLOAT, &placing.item);
  } else if (sscanf(type, "subarray:%d,%d,%d", &n[0], &n[1], &n[2]) == 3) {
    for (int d = 0; d < 3; d++) {
      placing.around[d] = n[d] + 3 - d;
      placing.at[d] = 2 - d;
    }
    MPI_Type_create_subarray(3, placing.around, n, placing.at, MPI_ORDER_FORTRAN, MPI_FLOAT, &placing.item);
  } else if (strcmp(type, "float") != 0) {
    fprintf(stderr, "relay: no type %s\n", type);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  placing.per_item = n[0] * n[1] * n[2];
  if (placing.per_item > 1) {
    MPI_Datatype plain = placing.item;
    MPI_Type_create_resized(plain, 0, 4L * placing.around[0] * placing.around[1] * placing.around[2], &placing.item);
    MPI_Type_free(&plain);
    MPI_Type_commit(&placing.item);
  }
  return placing;
}

/* Where value i of a rank's messages lies in memory, in values. */
static size_t place(const struct placing *placing, size_t i) {
  size_t item = i / (size_t)placing->per_item, in = i % (size_t)placing->per_item, stride = 1, to = 0;
  for (int d = 0; d < 3; d++) {
    size_t n = (size_t)placing->extents[d];
    to += (in % n + (size_t)placing->at[d]) * stride;
    in /= n;
    stride *= (size_t)placing->around[d];
  }
  return item * stride + to;
}

static long sum(uint64_t mine) {
  uint64_t all = 0;
  MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  return (long)all;
}

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 6) MPI_Abort(MPI_COMM_WORLD, 2);
  struct placing placing = parse(argv[3]);
  int calls = atoi(argv[4]), n = size * size, equal = strchr(argv[5], ',') == NULL;
  int *table = must(malloc((size_t)n * sizeof *table));
  char *text = strtok(argv[5], ",");
  for (int i = 0; i < n; i++) {
    table[i] = text ? atoi(text) : table[0];
    if (text) text = strtok(NULL, ",");
  }

  /* Values before each message in one call of the file. */
  size_t *start = must(calloc((size_t)n + 1, sizeof *start));
  for (int i = 0; i < n; i++) start[i + 1] = start[i] + (size_t)table[i];
  size_t first = start[rank * size], sent = start[(rank + 1) * size] - first, received = 0;
  int *s = must(malloc(4 * (size_t)size * sizeof *s)), *sd = s + size, *r = sd + size, *rd = r + size;
  for (int peer = 0; peer < size; peer++) {
    s[peer] = table[rank * size + peer] / placing.per_item;
    sd[peer] = (int)((start[rank * size + peer] - first) / (size_t)placing.per_item);
    r[peer] = table[peer * size + rank];
    rd[peer] = (int)received;
    received += (size_t)r[peer];
  }
  MPI_Datatype receive_type = placing.per_item > 1 ? MPI_FLOAT : placing.item;
  char *values = must(malloc(sent * placing.value + 1)), *send = untouched(place(&placing, sent) * placing.value + 64);
  char *receive = must(malloc(received * placing.value + END));
  FILE *in = must(fopen(argv[1], "rb")), *out = must(fopen(argv[2], "rb+"));
  for (int call = 0; call < calls; call++) {
    fseek(in, (long)(((size_t)call * start[n] + first) * placing.value), SEEK_SET);
    if (fread(values, placing.value, sent, in) != sent) fail("%s is too short", argv[1]);
    for (size_t i = 0; i < sent; i++) memcpy(send + place(&placing, i) * placing.value, values + i * placing.value, placing.value);
    memset(receive, UNTOUCHED, received * placing.value + END);
    if (equal)
      MPI_Alltoall(send, s[0], placing.item, receive, r[0], receive_type, MPI_COMM_WORLD);
    else
      MPI_Alltoallv(send, s, sd, placing.item, receive, r, rd, receive_type, MPI_COMM_WORLD);
    if (!is_untouched(receive + received * placing.value, END)) fail("written past the end");
    int fd = fileno(out);
    for (int peer = 0; peer < size; peer++) {
      off_t at = (off_t)(((size_t)call * start[n] + start[peer * size + rank]) * placing.value);
      size_t bytes = (size_t)r[peer] * placing.value;
      if (pwrite(fd, receive + (size_t)rd[peer] * placing.value, bytes, at) != (ssize_t)bytes) fail("%s is not written", argv[2]);
    }
  }
  check("%d calls", calls);
  transpress_stats_t stats;
  memset(&stats, 0, sizeof stats);
  transpress_stats(MPI_COMM_WORLD, &stats);
  long sums[] = {sum(stats.messages_compressed), sum(stats.messages_raw), sum(stats.messages_escaped),
                 sum(stats.bytes_before), sum(stats.bytes_after)};
  if (rank == 0)
    printf("compressed %ld\nraw %ld\nescaped %ld\nbefore %ld\nafter %ld\n", sums[0], sums[1], sums[2], sums[3], sums[4]);
  fclose(in);
  fclose(out);
  free(receive);
  free(send);
  free(values);
  free(s);
  free(start);
  free(table);
  if (placing.per_item > 1) MPI_Type_free(&placing.item);
  return check_done();
}
