/* Rank 1 dies while the others are in an all-to-all with it, or on their way there: dies HOW WHEN HANDLER NAME, with
 * HOW kill, _exit or abort, WHEN before or inside, and HANDLER fatal or return. NAME is for whoever looks for what is
 * left. Nobody may come to the end. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 400000, MOST_CALLS = 100000 };
static const char *how;

static void die(void) {
  if (strcmp(how, "kill") == 0) raise(SIGKILL);
  if (strcmp(how, "_exit") == 0) _exit(7);
  MPI_Abort(MPI_COMM_WORLD, 9);
}

static void *die_soon(void *nothing) {
  usleep(100000);
  die();
  return nothing;
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  how = argv[1];
  int inside = strcmp(argv[2], "inside") == 0;
  check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(argv[3], "return") == 0) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  float *send = malloc(sizeof(float) * N * (size_t)size), *receive = untouched(sizeof(float) * N * (size_t)size);
  for (int peer = 0; peer < size; peer++) fill(send + peer * N, F32, N, rank, peer);
  pthread_t killer;
  for (int call = 0; call < MOST_CALLS; call++) {
    if (rank == 1 && call == 2) {
      if (!inside) die();
      pthread_create(&killer, NULL, die_soon, NULL);
    }
    int error = MPI_Alltoall(send, N, MPI_FLOAT, receive, N, MPI_FLOAT, MPI_COMM_WORLD);
    if (error != MPI_SUCCESS) {
      /* What a program does that wants to end in its own way. */
      MPI_Abort(MPI_COMM_WORLD, 5);
    }
  }
  puts("FAIL: came to the end");
  return check_done();
}
