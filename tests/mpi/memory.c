/* Memory beside the program's own in one large MPI_Alltoallv: memory HOW MIB, with HOW dense or gaps, and MIB per pair of
 * ranks. Prints the most of any rank, in KiB. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long status_kib(const char *name) {
  FILE *status = fopen("/proc/self/status", "r");
  char line[200];
  long kib = -1;
  while (status && fgets(line, sizeof line, status))
    if (!strncmp(line, name, strlen(name))) sscanf(line + strlen(name), ": %ld", &kib);
  if (status) fclose(status);
  if (kib < 0) fail("no %s", name);
  return kib;
}

/* From here on VmHWM is the largest of now and later. */
static void forget_peak(void) {
  FILE *clear = fopen("/proc/self/clear_refs", "w");
  if (!clear || fputs("5", clear) < 0 || fclose(clear)) fail("the peak cannot be cleared");
}

static long most(long kib) {
  MPI_Allreduce(MPI_IN_PLACE, &kib, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  return kib;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  int has_gaps = !strcmp(argv[1], "gaps"), items = atoi(argv[2]) << 17, values = 2 * items, per_item = has_gaps ? 3 : 2;
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Datatype pair, type;
  MPI_Type_contiguous(2, MPI_FLOAT, &pair);
  MPI_Type_create_resized(pair, 0, (MPI_Aint)sizeof(float) * per_item, &type);
  MPI_Type_commit(&type);
  size_t block = (size_t)items * (size_t)per_item;
  float *receive = untouched(block * sizeof(float) * (size_t)size), *packed = malloc((size_t)values * sizeof(float));
  float *send = untouched(block * sizeof(float) * (size_t)size);
  int *counts = malloc(2 * (size_t)size * sizeof *counts), *displs = counts + size;
  /* The same to every rank. */
  fill(packed, F32, values, rank, size);
  for (int peer = 0; peer < size; peer++) {
    counts[peer] = items;
    displs[peer] = peer * items;
    for (int i = 0; i < values; i++) send[(size_t)peer * block + (size_t)(i / 2 * per_item + i % 2)] = packed[i];
  }
  forget_peak();
  long before = status_kib("VmRSS");
  MPI_Alltoallv(send, counts, displs, type, receive, counts, displs, type, MPI_COMM_WORLD);
  long peak = status_kib("VmHWM") - before;
  int next = (rank + 1) % size;
  for (int i = 0; i < values; i++) packed[i] = receive[(size_t)next * block + (size_t)(i / 2 * per_item + i % 2)];
  expect(packed, F32, values, next, size);
  peak = most(peak);
  if (rank == 0) printf("peak %ld\n", peak);
  MPI_Type_free(&type);
  MPI_Type_free(&pair);
  free(packed);
  free(send);
  free(receive);
  free(counts);
  check("one large call");
  return check_done();
}
