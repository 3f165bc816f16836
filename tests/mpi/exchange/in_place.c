/* MPI_IN_PLACE: MPI ignores the send side, whatever is there. */
#include "exchange.h"

#include <stdint.h>
#include <stdlib.h>

/* Count of the block between two ranks; in place it is the same both ways. */
static int pair(int a, int b) { return 900 + 300 * ((a + b) % 4); }

static void all_to_all(enum kind kind, MPI_Datatype type, int values_per_item, int sendcount, MPI_Datatype sendtype) {
  int rank, size, items = 1300;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  long values = (long)items * values_per_item;
  size_t bytes = (size_t)values * size_of(kind);
  char *buffer = untouched(bytes * (size_t)size);
  for (int peer = 0; peer < size; peer++) fill(buffer + (size_t)peer * bytes, kind, values, rank, peer);
  MPI_Alltoall(MPI_IN_PLACE, sendcount, sendtype, buffer, items, type, MPI_COMM_WORLD);
  for (int peer = 0; peer < size; peer++) expect(buffer + (size_t)peer * bytes, kind, values, peer, rank);
  free(buffer);
}

static void all_to_allv(enum kind kind, MPI_Datatype type, int values_per_item, const int *sendcounts,
                        const int *sdispls, MPI_Datatype sendtype) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int *counts = malloc(2 * (size_t)size * sizeof *counts), *displs = counts + size, items = 0;
  for (int peer = 0; peer < size; peer++) {
    counts[peer] = pair(rank, peer);
    displs[peer] = items;
    items += counts[peer] + 1;
  }
  size_t item = size_of(kind) * (size_t)values_per_item;
  char *buffer = untouched((size_t)items * item);
  for (int peer = 0; peer < size; peer++)
    fill(buffer + (size_t)displs[peer] * item, kind, (long)counts[peer] * values_per_item, rank, peer);
  MPI_Alltoallv(MPI_IN_PLACE, sendcounts, sdispls, sendtype, buffer, counts, displs, type, MPI_COMM_WORLD);
  for (int peer = 0; peer < size; peer++) {
    char *block = buffer + (size_t)displs[peer] * item;
    expect(block, kind, (long)counts[peer] * values_per_item, peer, rank);
    if (!is_untouched(block + (size_t)counts[peer] * item, item)) fail("gap after block %d written", peer);
  }
  free(buffer);
  free(counts);
}

void check_in_place(void) {
  static const struct {
    const char *name;
    enum kind kind;
    int values_per_item;
  } rows[] = {{"float", F32, 1}, {"double", F64, 1}, {"complex", F32, 2}, {"int", EXACT, 4}};
  const MPI_Datatype types[] = {MPI_FLOAT, MPI_DOUBLE, MPI_C_FLOAT_COMPLEX, MPI_INT};
  const int garbage[1] = {INT32_MIN};
  for (int t = 0; t < 4; t++) {
    enum kind kind = rows[t].kind;
    int per_item = rows[t].values_per_item;
    all_to_all(kind, types[t], per_item, 0, MPI_DATATYPE_NULL);
    check("alltoall in place, MPI_DATATYPE_NULL, %s", rows[t].name);
    all_to_all(kind, types[t], per_item, -77, MPI_CHAR);
    check("alltoall in place, garbage count, %s", rows[t].name);
    all_to_allv(kind, types[t], per_item, NULL, NULL, MPI_DATATYPE_NULL);
    check("alltoallv in place, NULL counts, %s", rows[t].name);
    all_to_allv(kind, types[t], per_item, garbage, garbage, MPI_SHORT);
    check("alltoallv in place, garbage counts, %s", rows[t].name);
  }
}
