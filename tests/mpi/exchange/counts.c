/* How many values go where: equal, ragged, none, few, many, around the smallest compressed size. */
#include "exchange.h"

#include <stdlib.h>

static int ragged(int from, int to, int size) { return (from * 3 + to * 5) % (size + 2) * 700 + from + to; }
static int some_none(int from, int to, int size) { return (from + to) % 2 ? 0 : 2000 + from + size; }
static int none(int from, int to, int size) { return 0 * (from + to + size); }
static int few(int from, int to, int size) { return 1 + (from + to) % size; }
static int one_sender(int from, int to, int size) { return from == size - 1 ? 3000 + to : 0; }
static int one_receiver(int from, int to, int size) { return to == size - 1 ? 3000 + from : 0; }
static int not_to_self(int from, int to, int size) { return from == to ? 0 : 1500 + 0 * size; }
/* Just under, at and just over 4096 bytes of float and of double. */
static int threshold_f32(int from, int to, int size) { return 1023 + (from + 2 * to) % 3 + 0 * size; }
static int threshold_f64(int from, int to, int size) { return 511 + (from + 2 * to) % 3 + 0 * size; }
static int many(int from, int to, int size) { return from == 0 && to == size - 1 ? 300001 : 1100 + from; }

void check_counts(void) {
  static const struct {
    const char *name;
    counts *count;
  } table[] = {
      {"ragged", ragged},           {"some none", some_none},         {"none", none},
      {"few", few},                 {"one sender", one_sender},       {"one receiver", one_receiver},
      {"not to self", not_to_self}, {"threshold f32", threshold_f32}, {"threshold f64", threshold_f64},
      {"many", many},
  };
  const struct element elements[] = {{MPI_FLOAT, F32, 1}, {MPI_DOUBLE, F64, 1}};
  for (int e = 0; e < 2; e++) {
    const char *type = e ? "MPI_DOUBLE" : "MPI_FLOAT";
    for (size_t t = 0; t < sizeof table / sizeof table[0]; t++) {
      exchange(MPI_COMM_WORLD, elements[e], elements[e], table[t].count);
      check("alltoallv %s, %s", table[t].name, type);
    }
    const int values[] = {0, 1, 511, 512, 1023, 1024, 5003};
    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
      exchange_equal(MPI_COMM_WORLD, elements[e], elements[e], values[v]);
      check("alltoall of %d, %s", values[v], type);
    }
  }

  /* With nothing to send or receive, what the buffers and types are is nobody's business but MPI's: the
   * answers (some MPIs refuse) are compared with the plain run's, line by line. */
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int *zeros = calloc((size_t)size, sizeof *zeros);
  float somewhere[2];
  MPI_Errhandler handler;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int answers[4], classes[4];
  answers[0] = MPI_Alltoallv(NULL, zeros, zeros, MPI_FLOAT, somewhere, zeros, zeros, MPI_FLOAT, MPI_COMM_WORLD);
  answers[1] = MPI_Alltoallv(somewhere, zeros, zeros, MPI_DOUBLE, NULL, zeros, zeros, MPI_DOUBLE, MPI_COMM_WORLD);
  answers[2] = MPI_Alltoallv(NULL, zeros, zeros, MPI_DATATYPE_NULL, NULL, zeros, zeros, MPI_DATATYPE_NULL, MPI_COMM_WORLD);
  answers[3] = MPI_Alltoall(NULL, 0, MPI_DATATYPE_NULL, NULL, 0, MPI_DATATYPE_NULL, MPI_COMM_WORLD);
  for (int a = 0; a < 4; a++) MPI_Error_class(answers[a], &classes[a]);
  check("nothing from and to NULL buffers and types: error classes %d %d %d %d", classes[0], classes[1], classes[2], classes[3]);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Errhandler_free(&handler);
  free(zeros);
}
