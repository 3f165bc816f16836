/* Every predefined datatype: reals and complex numbers are coded, everything else arrives bit for bit. */
#include "exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int equal(int from, int to, int size) { return 2400 + 0 * (from + to + size); }
static int ragged(int from, int to, int size) { return 480 * ((from + 2 * to) % 4) + 0 * size; }

static void check_type(MPI_Datatype type, const char *name, enum kind kind) {
  if (type == MPI_DATATYPE_NULL) return; /* this MPI does not have it */
  int size;
  MPI_Type_size(type, &size);
  if (size == 0) return;
  struct element element = {type, kind, size / (int)size_of(kind)};
  if (kind == EXACT) {
    struct element bytes = {type, EXACT, size};
    exchange_equal(MPI_COMM_WORLD, bytes, bytes, 480 * size);
    exchange_equal(MPI_COMM_WORLD, bytes, bytes, 1200 * size);
  } else {
    exchange(MPI_COMM_WORLD, element, element, equal);
    exchange(MPI_COMM_WORLD, element, element, ragged);
  }
  MPI_Datatype three;
  MPI_Type_contiguous(3, type, &three);
  MPI_Type_commit(&three);
  struct element triple = {three, kind, 3 * element.values};
  if (kind == EXACT) triple.values = 3 * size;
  exchange_equal(MPI_COMM_WORLD, element, triple, kind == EXACT ? 1200 * size : 2400);
  MPI_Type_free(&three);
  check("%s", name);
}

/* A struct of unlike members is not ours, whatever it holds. */
static void check_mixed(void) {
  struct mixed {
    double x;
    float y;
    int label;
  };
  MPI_Datatype type;
  MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){offsetof(struct mixed, x), offsetof(struct mixed, y), offsetof(struct mixed, label)},
                         (MPI_Datatype[]){MPI_DOUBLE, MPI_FLOAT, MPI_INT}, &type);
  MPI_Type_commit(&type);
  struct element element = {type, EXACT, sizeof(struct mixed)};
  exchange_equal(MPI_COMM_WORLD, element, element, 800 * (int)sizeof(struct mixed));
  check("struct of double, float and int");
  MPI_Type_free(&type);

  MPI_Type_create_struct(2, (int[]){1, 2}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_DOUBLE, MPI_FLOAT}, &type);
  MPI_Type_commit(&type);
  element = (struct element){type, EXACT, 16};
  exchange_equal(MPI_COMM_WORLD, element, element, 800 * 16);
  check("struct of double and floats");
  MPI_Type_free(&type);

  MPI_Type_create_struct(2, (int[]){600, 1}, (MPI_Aint[]){0, 2400}, (MPI_Datatype[]){MPI_FLOAT, MPI_INT}, &type);
  MPI_Type_commit(&type);
  element = (struct element){type, EXACT, 2404};
  exchange_equal(MPI_COMM_WORLD, element, element, 4 * 2404);
  check("struct of many floats and one int");
  MPI_Type_free(&type);
}

/* MPI_DOUBLE_INT has a hole at its end, which MPI may or may not carry. */
static void check_pair(void) {
  struct pair {
    double x;
    int i;
  };
  enum { N = 700 };
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  struct pair *send = calloc((size_t)(N * size), sizeof *send), *receive = calloc((size_t)(N * size), sizeof *receive);
  for (int k = 0; k < N * size; k++) send[k] = (struct pair){0.1 * k + rank, k};
  MPI_Alltoall(send, N, MPI_DOUBLE_INT, receive, N, MPI_DOUBLE_INT, MPI_COMM_WORLD);
  for (int k = 0; k < N * size; k++) {
    int sent = rank * N + k % N;
    if (receive[k].x != 0.1 * sent + k / N || receive[k].i != sent) fail("pair %d", k);
  }
  check("MPI_DOUBLE_INT");
  free(send);
  free(receive);
}

/* MPI_BYTE is not looked into, unless CHECK_BYTES (as TRANSPRESS_BYTES) says what it holds. */
static void check_bytes(void) {
  const char *holds = getenv("CHECK_BYTES");
  for (int kind = F32; kind <= F64; kind++) {
    int told = holds && strcmp(holds, kind == F32 ? "f32" : "f64") == 0;
    if (holds && !told) continue;
    int unit = (int)size_of(kind), rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int odd = 0; odd < 2; odd++) {
      /* The second time the length is no multiple of the value's. */
      int values = 1500, bytes = values * unit + odd;
      char *send = untouched((size_t)(bytes * size)), *receive = untouched((size_t)(bytes * size));
      char *want = malloc((size_t)bytes);
      for (int peer = 0; peer < size; peer++) {
        fill(want, kind, values, rank, peer);
        memcpy(send + peer * bytes, want, (size_t)(values * unit));
      }
      long before = coded(MPI_COMM_WORLD);
      MPI_Alltoall(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, MPI_COMM_WORLD);
      expect_coded(MPI_COMM_WORLD, before, told && !odd ? size - 1 : 0);
      for (int peer = 0; peer < size; peer++) {
        char *aligned = malloc((size_t)bytes);
        memcpy(aligned, receive + peer * bytes, (size_t)bytes);
        if (told && !odd) {
          expect(aligned, kind, values, peer, rank);
        } else {
          fill(want, kind, values, peer, rank);
          if (memcmp(aligned, want, (size_t)(values * unit))) fail("bytes from %d changed", peer);
        }
        free(aligned);
      }
      free(send);
      free(receive);
      free(want);
    }
    check("MPI_BYTE holding %s%s", kind == F32 ? "f32" : "f64", told ? ", as told" : "");
  }
}

#define TYPE(type, kind) check_type(type, #type, kind)

void check_elements(void) {
  TYPE(MPI_FLOAT, F32);
  TYPE(MPI_DOUBLE, F64);
  TYPE(MPI_C_COMPLEX, F32);
  TYPE(MPI_C_FLOAT_COMPLEX, F32);
  TYPE(MPI_C_DOUBLE_COMPLEX, F64);
  TYPE(MPI_CXX_FLOAT_COMPLEX, F32);
  TYPE(MPI_CXX_DOUBLE_COMPLEX, F64);
  TYPE(MPI_REAL, F32);
  TYPE(MPI_REAL4, F32);
  TYPE(MPI_REAL8, F64);
  TYPE(MPI_DOUBLE_PRECISION, F64);
  TYPE(MPI_COMPLEX, F32);
  TYPE(MPI_COMPLEX8, F32);
  TYPE(MPI_COMPLEX16, F64);
  TYPE(MPI_DOUBLE_COMPLEX, F64);

  TYPE(MPI_LONG_DOUBLE, EXACT);
  TYPE(MPI_C_LONG_DOUBLE_COMPLEX, EXACT);
  TYPE(MPI_CXX_LONG_DOUBLE_COMPLEX, EXACT);
  TYPE(MPI_REAL16, EXACT);
  TYPE(MPI_COMPLEX32, EXACT);
  TYPE(MPI_CHAR, EXACT);
  TYPE(MPI_SIGNED_CHAR, EXACT);
  TYPE(MPI_UNSIGNED_CHAR, EXACT);
  TYPE(MPI_SHORT, EXACT);
  TYPE(MPI_INT, EXACT);
  TYPE(MPI_UNSIGNED, EXACT);
  TYPE(MPI_LONG, EXACT);
  TYPE(MPI_UNSIGNED_LONG, EXACT);
  TYPE(MPI_LONG_LONG, EXACT);
  TYPE(MPI_WCHAR, EXACT);
  TYPE(MPI_C_BOOL, EXACT);
  TYPE(MPI_INT8_T, EXACT);
  TYPE(MPI_INT32_T, EXACT);
  TYPE(MPI_UINT32_T, EXACT);
  TYPE(MPI_INT64_T, EXACT);
  TYPE(MPI_UINT64_T, EXACT);
  TYPE(MPI_AINT, EXACT);
  TYPE(MPI_OFFSET, EXACT);
  TYPE(MPI_COUNT, EXACT);
  TYPE(MPI_INTEGER, EXACT);
  TYPE(MPI_INTEGER8, EXACT);
  TYPE(MPI_LOGICAL, EXACT);
  TYPE(MPI_CHARACTER, EXACT);
  TYPE(MPI_CXX_BOOL, EXACT);
  TYPE(MPI_2INT, EXACT);
  TYPE(MPI_2INTEGER, EXACT);
  TYPE(MPI_FLOAT_INT, EXACT);
  TYPE(MPI_PACKED, EXACT);
  if (!getenv("CHECK_BYTES")) TYPE(MPI_BYTE, EXACT);

  check_mixed();
  check_pair();
  check_bytes();
}
