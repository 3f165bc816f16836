/* What each call of transpress.h answers. The argument says under what: absent, off or there. */
#include "check.h"

#include "transpress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void want(const char *call, int got, int code) {
  if (got != code) fail("%s returned %d, not %d", call, got, code);
}
#define WANT(call, code) want(#call, call, code)

static void all_answer(MPI_Comm comm, int code) {
  transpress_stats_t stats;
  WANT(transpress_register(comm), code);
  WANT(transpress_unregister(comm), code);
  WANT(transpress_set_rate(comm, 8), code);
  WANT(transpress_set_bytes(comm, "f32"), code);
  WANT(transpress_add_shape(comm, 1, (int[]){-1}), code);
  WANT(transpress_add_layout(comm, "*"), code);
  WANT(transpress_stats(comm, &stats), code);
}

enum { N = 4000 };

/* One exchange; returns the bytes that this rank's messages took on the wire. */
static long exchange(MPI_Comm comm, int is_coded) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  float *send = malloc(sizeof(float) * N * (size_t)size), *receive = untouched(sizeof(float) * N * (size_t)size), want[N];
  for (int peer = 0; peer < size; peer++) fill(send + peer * N, F32, N, rank, peer);
  transpress_stats_t before, after;
  memset(&before, 0, sizeof before);
  memset(&after, 0, sizeof after);
  transpress_stats(comm, &before);
  MPI_Alltoall(send, N, MPI_FLOAT, receive, N, MPI_FLOAT, comm);
  transpress_stats(comm, &after);
  for (int peer = 0; peer < size; peer++) {
    fill(want, F32, N, peer, rank);
    double error = relative_error(receive + peer * N, want, F32, N);
    if (!(error < 0.05) || (!is_coded && error > 0)) fail("error %g", error);
  }
  free(send);
  free(receive);
  if ((after.calls - before.calls == 1) != is_coded) fail("%s through the codec", is_coded ? "not" : "went");
  return (long)(after.bytes_after - before.bytes_after);
}

static void there(void) {
  int rank, size;
  transpress_stats_t stats;
  MPI_Comm comm, dup, inter, half;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);

  exchange(comm, 0);
  WANT(transpress_stats(comm, &stats), TRANSPRESS_NOT_REGISTERED);
  WANT(transpress_set_rate(comm, 8), TRANSPRESS_NOT_REGISTERED);
  WANT(transpress_set_bytes(comm, "f32"), TRANSPRESS_NOT_REGISTERED);
  WANT(transpress_add_shape(comm, 1, (int[]){-1}), TRANSPRESS_NOT_REGISTERED);
  WANT(transpress_add_layout(comm, "*"), TRANSPRESS_NOT_REGISTERED);
  check("before it is registered");

  WANT(transpress_register(comm), TRANSPRESS_OK);
  WANT(transpress_register(comm), TRANSPRESS_OK);
  long at_16 = exchange(comm, 1);
  WANT(transpress_set_rate(comm, 8), TRANSPRESS_OK);
  long at_8 = exchange(comm, 1);
  if (!(at_8 > 0 && at_8 < 0.6 * (double)at_16)) fail("%ld bytes at rate 8, %ld at 16", at_8, at_16);
  WANT(transpress_stats(comm, &stats), TRANSPRESS_OK);
  if (stats.calls != 2 || stats.messages_compressed != 2u * (unsigned)(size - 1)) fail("%d calls", (int)stats.calls);
  if (stats.bytes_before != 2u * 4 * N * (unsigned)(size - 1)) fail("%d bytes before", (int)stats.bytes_before);
  if ((long)stats.bytes_after != at_8 + at_16) fail("%d bytes after", (int)stats.bytes_after);
  check("registered, at two rates");

  WANT(transpress_set_rate(comm, 0.5), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_set_rate(comm, 65), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_set_rate(comm, -1), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_set_rate(comm, 0.0 / (rank - rank + 0.0)), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_set_rate(comm, 8 + (rank == 0)), TRANSPRESS_DISAGREE);
  WANT(transpress_set_tolerance(comm, 0), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_set_tolerance(comm, -1e-3), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_set_tolerance(comm, 1e-3 * (1 + rank)), TRANSPRESS_DISAGREE);
  WANT(transpress_set_bytes(comm, "f16"), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_set_bytes(comm, NULL), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_set_bytes(comm, "f32"), TRANSPRESS_OK);
  WANT(transpress_add_shape(comm, 0, (int[]){1}), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_add_shape(comm, 4, (int[]){1, 2, 3, 4}), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_add_shape(comm, 2, (int[]){-1, -1}), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_add_shape(comm, 2, (int[]){0, 4}), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_add_shape(comm, -3, NULL), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_add_shape(comm, 2, NULL), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_add_layout(comm, "2c,x"), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_add_layout(comm, NULL), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_stats(comm, NULL), TRANSPRESS_BAD_ARGUMENT);
  WANT(transpress_register(MPI_COMM_NULL), TRANSPRESS_BAD_ARGUMENT);
  if (exchange(comm, 1) != at_8) fail("a refused call changed something");
  check("bad arguments");

  MPI_Comm_dup(comm, &dup);
  WANT(transpress_stats(dup, &stats), TRANSPRESS_NOT_REGISTERED);
  exchange(dup, 0);
  MPI_Comm_free(&dup);
  exchange(comm, 1);
  check("a dup is a communicator of its own");

  WANT(transpress_unregister(comm), TRANSPRESS_OK);
  exchange(comm, 0);
  WANT(transpress_stats(comm, &stats), TRANSPRESS_NOT_REGISTERED);
  WANT(transpress_unregister(comm), TRANSPRESS_NOT_REGISTERED);
  WANT(transpress_register(comm), TRANSPRESS_OK);
  if (exchange(comm, 1) != at_16) fail("the rate outlived its registration");
  check("unregistered and registered again");

  /* The registration goes with the communicator, not with the value of its handle. */
  int used_again = 0;
  for (int i = 0; i < 20; i++) {
    MPI_Comm old = comm;
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    used_again += comm == old;
    WANT(transpress_stats(comm, &stats), TRANSPRESS_NOT_REGISTERED);
    exchange(comm, 0);
    WANT(transpress_register(comm), TRANSPRESS_OK);
    exchange(comm, 1);
  }
  if (!used_again) fail("no handle value was used again");
  MPI_Comm_free(&comm);
  check("registrations die with their communicators");

  if (size > 1) {
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 3, &inter);
    WANT(transpress_register(inter), TRANSPRESS_BAD_ARGUMENT);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    check("intercommunicators");
  }
}

int main(int argc, char **argv) {
  const char *under = argc > 1 ? argv[1] : "there";
  int is_absent = strcmp(under, "absent") == 0, is_off = strcmp(under, "off") == 0;
  int early = transpress_register(MPI_COMM_WORLD);
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  want("transpress_register before MPI_Init", early, is_absent ? TRANSPRESS_ABSENT : TRANSPRESS_FAILED);
  check("before MPI_Init");
  if (is_absent || is_off) {
    WANT(transpress_register(MPI_COMM_WORLD), is_absent ? TRANSPRESS_ABSENT : TRANSPRESS_DISABLED);
    if (is_absent) all_answer(MPI_COMM_WORLD, TRANSPRESS_ABSENT);
    check("%s", under);
  } else {
    there();
  }
  int status = check_done();
  int late = transpress_register(MPI_COMM_WORLD);
  return status || late != (is_absent ? TRANSPRESS_ABSENT : TRANSPRESS_FAILED);
}
