/* Errors come back through the communicator's own handler: error_handler program|header. The first makes
 * mistakes of its own; in the second corrupt-tool spoils what arrives. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3000 };
static int handled;

static void handle(MPI_Comm *comm, int *code, ...) {
  (void)comm;
  (void)code;
  handled++;
}

int main(int argc, char **argv) {
  int is_header = argc > 1 && strcmp(argv[1], "header") == 0;
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  int rank, size;
  MPI_Comm comm;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  float *send = malloc(sizeof(float) * N * (size_t)size), *receive = untouched(sizeof(float) * N * (size_t)size);
  for (int peer = 0; peer < size; peer++) fill(send + peer * N, F32, N, rank, peer);

  if (is_header) {
    int error = MPI_Alltoall(send, N, MPI_FLOAT, receive, N, MPI_FLOAT, comm);
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (error == MPI_SUCCESS) fail("success");
    MPI_Error_string(error, text, &length);
    if (rank == 0) printf("error %s\n", text);
    check("a broken header is an error");
  } else {
    MPI_Alltoall(send, N, MPI_FLOAT, receive, N, MPI_FLOAT, comm);
    for (int peer = 0; peer < size; peer++) expect(receive + peer * N, F32, N, peer, rank);
    MPI_Errhandler kept;
    MPI_Comm_get_errhandler(comm, &kept);
    if (kept != MPI_ERRORS_RETURN) fail("another handler");
    check("the handler is kept");

    int *counts = calloc(2 * (size_t)size, sizeof *counts), *displs = counts + size;
    for (int peer = 0; peer < size; peer++) counts[peer] = -1;
    if (MPI_Alltoall(send, -1, MPI_FLOAT, receive, -1, MPI_FLOAT, comm) == MPI_SUCCESS) fail("alltoall succeeds");
    if (MPI_Alltoallv(send, counts, displs, MPI_FLOAT, receive, counts, displs, MPI_FLOAT, comm) == MPI_SUCCESS) fail("alltoallv succeeds");
    check("negative counts");
    if (MPI_Alltoall(send, N, MPI_DATATYPE_NULL, receive, N, MPI_DATATYPE_NULL, comm) == MPI_SUCCESS) fail("alltoall succeeds");
    MPI_Datatype uncommitted;
    MPI_Type_contiguous(3, MPI_FLOAT, &uncommitted);
    if (MPI_Alltoall(send, N / 3, uncommitted, receive, N / 3, uncommitted, comm) == MPI_SUCCESS) fail("an uncommitted type is taken");
    MPI_Type_free(&uncommitted);
    check("types that cannot be sent");

    MPI_Errhandler own;
    MPI_Comm_create_errhandler(handle, &own);
    MPI_Comm_set_errhandler(comm, own);
    MPI_Alltoall(send, -1, MPI_FLOAT, receive, -1, MPI_FLOAT, comm);
    if (handled != 1) fail("it was called %d times", handled);
    MPI_Errhandler_free(&own);
    check("a handler of the program");

    MPI_Alltoall(send, N, MPI_FLOAT, receive, N, MPI_FLOAT, comm);
    for (int peer = 0; peer < size; peer++) expect(receive + peer * N, F32, N, peer, rank);
    check("and on it goes");
    free(counts);
  }
  free(send);
  free(receive);
  MPI_Comm_free(&comm);
  return check_done();
}
