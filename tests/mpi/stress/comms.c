#include "stress.h"

#include "transpress.h"

#include <stdlib.h>
#include <string.h>

/* TRANSPRESS_ variables are the same on every rank. */
static const char *variable(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value ? value : otherwise;
}

/* The relative error that a rate may cause: as far as the guard lets it, which looks at a part of a message. Without
 * one there is no promise, but zeros in place of the values are no better than nothing. */
static double of_rate(void) {
  double guard = atof(variable("TRANSPRESS_GUARD", "1e-2"));
  return guard > 0 ? 1.25 * guard : 1;
}

static void set(struct comm *comm, enum terms terms, double bound) {
  comm->terms = terms;
  comm->bound = bound;
}

/* What the environment says of a communicator. */
static void terms_of_environment(struct comm *comm) {
  const char *codec = variable("TRANSPRESS_CODEC", "zfp"), *tolerance = variable("TRANSPRESS_TOLERANCE", "");
  transpress_stats_t stats;
  if (transpress_stats(comm->comm, &stats) != TRANSPRESS_OK || !strcmp(codec, "lossless"))
    set(comm, EXACTLY, 0);
  else if (strcmp(codec, "zfp"))
    set(comm, CAST, 5e-3);
  else if (tolerance[0])
    set(comm, WITHIN_TOLERANCE, atof(tolerance));
  else
    set(comm, AT_A_RATE, of_rate());
}

void make_comm(struct comm *comm, int slot, uint64_t call) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  comm->group = 0;
  if (slot == 0) {
    comm->comm = MPI_COMM_WORLD;
  } else if (slot < 3) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm->comm);
  } else {
    /* Neighbours, or every other one and backwards. */
    comm->group = slot == 3 ? 2 * rank < size : rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, comm->group, slot == 3 ? rank : -rank, &comm->comm);
  }
  if (slot == 1) MPI_Comm_set_name(comm->comm, "rows");
  if (slot == 2) {
    /* The one that stays plain. */
    transpress_register(comm->comm);
    transpress_unregister(comm->comm);
  } else if (choose(2, call, TERMS, (uint64_t)slot, 0)) {
    transpress_register(comm->comm);
  } else {
    /* It is met in its first call; until then it has no statistics to be told by. */
    char nothing = 0;
    MPI_Alltoall(&nothing, 0, MPI_CHAR, &nothing, 0, MPI_CHAR, comm->comm);
  }
  terms_of_environment(comm);
}

void free_comm(struct comm *comm, int slot) {
  if (slot > 0) MPI_Comm_free(&comm->comm);
}

void change_terms(struct comm *comm, uint64_t call) {
  static const double RATES[] = {12, 16, 20.5, 32}, TOLERANCES[] = {1e-1, 1e-3, 1e-6};
  static const char *LAYOUTS[] = {"2c,*", "4,4,*", "10f,*", "*,6", "64,32,*"};
  if (comm->terms == EXACTLY) return;
  switch (choose(60, call, CHANGE, 1, (uint64_t)comm->group)) {
    case 0: {
      double rate = RATES[choose(4, call, CHANGE, 2, 0)];
      if (transpress_set_rate(comm->comm, rate) == TRANSPRESS_OK && comm->terms != CAST)
        set(comm, AT_A_RATE, of_rate());
      break;
    }
    case 1: {
      double tolerance = TOLERANCES[choose(3, call, CHANGE, 3, 0)];
      if (transpress_set_tolerance(comm->comm, tolerance) == TRANSPRESS_OK) set(comm, WITHIN_TOLERANCE, tolerance);
      break;
    }
    /* Not too often: each is kept. */
    case 2:
      if (call % 8 == 0) transpress_add_layout(comm->comm, LAYOUTS[choose(5, call, CHANGE, 4, 0)]);
      break;
  }
}
