/* Two types of one signature: what MPI_FLOATs left in order arrives in the order of any derived type. */
#include "exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 12, ITEMS = 120, TYPES = 12 };

/* A type of VALUES values (the first: of one): where in memory each lies, in values. */
struct shape {
  const char *name;
  MPI_Datatype type;
  int values, lowest, extent;
  int offset[VALUES];
};

static void resize(MPI_Datatype *type, MPI_Datatype base, int lowest, int extent) {
  int size;
  MPI_Type_size(base, &size);
  MPI_Datatype plain = *type;
  MPI_Type_create_resized(plain, (MPI_Aint)lowest * size, (MPI_Aint)extent * size, type);
  MPI_Type_free(&plain);
}

static void make_shapes(struct shape *s, MPI_Datatype base, int ranks) {
  int size;
  MPI_Type_size(base, &size);
  for (int t = 0; t < TYPES; t++) {
    s[t] = (struct shape){.name = "", .values = VALUES, .lowest = 0, .extent = VALUES};
    for (int i = 0; i < VALUES; i++) s[t].offset[i] = i;
  }
  s[0].name = "the base type";
  s[0].values = s[0].extent = 1;
  MPI_Type_dup(base, &s[0].type);

  s[1].name = "contiguous";
  MPI_Type_contiguous(VALUES, base, &s[1].type);

  s[2].name = "vector";
  s[2].extent = 16;
  MPI_Type_vector(3, 4, 6, base, &s[2].type);
  for (int i = 0; i < VALUES; i++) s[2].offset[i] = i / 4 * 6 + i % 4;

  s[3].name = "subarray";
  s[3].extent = 24;
  MPI_Type_create_subarray(2, (int[]){4, 6}, (int[]){3, 4}, (int[]){1, 2}, MPI_ORDER_C, base, &s[3].type);
  for (int i = 0; i < VALUES; i++) s[3].offset[i] = (i / 4 + 1) * 6 + i % 4 + 2;

  s[4].name = "resized column";
  s[4].extent = 1;
  MPI_Type_vector(VALUES, 1, ITEMS * ranks, base, &s[4].type);
  resize(&s[4].type, base, 0, 1);
  for (int i = 0; i < VALUES; i++) s[4].offset[i] = i * ITEMS * ranks;

  s[5].name = "struct";
  s[5].extent = 16;
  MPI_Type_create_struct(3, (int[]){1, 5, 6}, (MPI_Aint[]){0, 2 * size, 8 * size}, (MPI_Datatype[]){base, base, base}, &s[5].type);
  resize(&s[5].type, base, 0, 16);
  for (int i = 0; i < VALUES; i++) s[5].offset[i] = i == 0 ? 0 : i < 6 ? i + 1 : i + 2;

  s[6].name = "indexed out of order";
  MPI_Type_indexed(3, (int[]){4, 4, 4}, (int[]){8, 0, 4}, base, &s[6].type);
  for (int i = 0; i < VALUES; i++) s[6].offset[i] = (i + 8) % 12;

  s[7].name = "indexed from below";
  s[7].lowest = -2;
  s[7].extent = 16;
  MPI_Type_indexed(2, (int[]){2, 10}, (int[]){-2, 4}, base, &s[7].type);
  for (int i = 0; i < VALUES; i++) s[7].offset[i] = i < 2 ? i - 2 : i + 2;

  s[8].name = "nested";
  s[8].extent = 14;
  MPI_Datatype pair, pairs, half;
  MPI_Type_contiguous(2, base, &pair);
  MPI_Type_vector(2, 1, 2, pair, &pairs); /* 2, a hole of 2, 2 */
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 2 * size}, (MPI_Datatype[]){pairs, pair}, &half); /* 0 1 4 5, 2 3 */
  resize(&half, base, 0, 7);
  MPI_Type_contiguous(2, half, &s[8].type);
  for (int i = 0; i < VALUES; i++) s[8].offset[i] = i / 6 * 7 + (const int[]){0, 1, 4, 5, 2, 3}[i % 6];
  MPI_Type_free(&pair);
  MPI_Type_free(&pairs);
  MPI_Type_free(&half);

  s[9].name = "hvector with a small stride";
  s[9].extent = 13;
  MPI_Type_create_hvector(6, 2, 2 * size, base, &s[9].type);
  resize(&s[9].type, base, 0, 13);

  s[10].name = "hindexed block";
  s[10].extent = 20;
  MPI_Type_create_hindexed_block(2, 6, (MPI_Aint[]){14 * size, 0}, base, &s[10].type);
  for (int i = 0; i < VALUES; i++) s[10].offset[i] = i < 6 ? 14 + i : i - 6;

  s[11].name = "subarray in Fortran order, dup'ed";
  s[11].extent = 40;
  MPI_Datatype once;
  MPI_Type_create_subarray(3, (int[]){4, 5, 2}, (int[]){3, 2, 2}, (int[]){1, 2, 0}, MPI_ORDER_FORTRAN, base, &once);
  MPI_Type_dup(once, &s[11].type);
  MPI_Type_free(&once);
  for (int i = 0; i < VALUES; i++) s[11].offset[i] = i % 3 + 1 + 4 * (i / 3 % 2 + 2) + 20 * (i / 6);

  for (int t = 0; t < TYPES; t++) MPI_Type_commit(&s[t].type);
}

/* Byte position of value i of the block for a peer, in a buffer whose address is its lowest byte. */
static size_t position(const struct shape *s, int peer, long i, size_t unit) {
  int items = VALUES * ITEMS / s->values;
  long item = i / s->values;
  long at = ((long)peer * items + item) * s->extent + s->offset[i % s->values] - s->lowest;
  return (size_t)at * unit;
}

static void transfer(const struct shape *send, const struct shape *receive, enum kind kind, int equal) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const long values = VALUES * ITEMS;
  size_t unit = size_of(kind), room = (size_t)(size * ITEMS * 41) * unit + 64;
  char *from = untouched(room), *to = untouched(room), *message = malloc((size_t)values * unit);
  for (int peer = 0; peer < size; peer++) {
    fill(message, kind, values, rank, peer);
    for (long i = 0; i < values; i++) memcpy(from + position(send, peer, i, unit), message + (size_t)i * unit, unit);
  }
  int scount = VALUES * ITEMS / send->values, rcount = VALUES * ITEMS / receive->values;
  char *sendbuf = from - send->lowest * (int)unit, *recvbuf = to - receive->lowest * (int)unit;
  long before = coded(MPI_COMM_WORLD);
  if (equal) {
    MPI_Alltoall(sendbuf, scount, send->type, recvbuf, rcount, receive->type, MPI_COMM_WORLD);
  } else {
    int *table = malloc(4 * (size_t)size * sizeof *table);
    for (int peer = 0; peer < size; peer++) {
      table[peer] = scount;
      table[size + peer] = peer * scount;
      table[2 * size + peer] = rcount;
      table[3 * size + peer] = peer * rcount;
    }
    MPI_Alltoallv(sendbuf, table, table + size, send->type, recvbuf, table + 2 * size, table + 3 * size, receive->type, MPI_COMM_WORLD);
    free(table);
  }
  expect_coded(MPI_COMM_WORLD, before, size - 1);
  for (int peer = 0; peer < size; peer++) {
    for (long i = 0; i < values; i++) {
      char *value = to + position(receive, peer, i, unit);
      memcpy(message + (size_t)i * unit, value, unit);
      memset(value, UNTOUCHED, unit);
    }
    expect(message, kind, values, peer, rank);
  }
  if (!is_untouched(to, room)) fail("a gap was written");
  free(from);
  free(to);
  free(message);
}

void check_signatures(void) {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int kind = F32; kind <= F64; kind++) {
    struct shape shapes[TYPES];
    make_shapes(shapes, kind == F32 ? MPI_FLOAT : MPI_DOUBLE, size);
    const char *base = kind == F32 ? "MPI_FLOAT" : "MPI_DOUBLE";
    for (int t = 1; t < TYPES; t++) {
      transfer(&shapes[0], &shapes[t], kind, 0);
      check("%s to %s", base, shapes[t].name);
      transfer(&shapes[t], &shapes[0], kind, 0);
      check("%s to %s", shapes[t].name, base);
      transfer(&shapes[t], &shapes[t % (TYPES - 1) + 1], kind, 1);
      check("%s to %s of %s", shapes[t].name, shapes[t % (TYPES - 1) + 1].name, base);
    }
    for (int t = 0; t < TYPES; t++) MPI_Type_free(&shapes[t].type);
  }
}
