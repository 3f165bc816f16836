/* A tool to preload after the library: notes what it calls MPI for in the log of the stand-in for CUDA, with what
   kind of memory the buffers are. */
#include "cuda.h"
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static const char *kind(const void *buffer) { return fake_cuda_kind((CUdeviceptr)buffer); }

static void note_message(const char *call, const void *buffer, int count, MPI_Datatype type, int peer) {
  int size;
  char line[160];
  PMPI_Type_size(type, &size);
  snprintf(line, sizeof line, "%s buffer=%p kind=%s bytes=%ld peer=%d", call, buffer, kind(buffer),
           (long)count * size, peer);
  fake_cuda_note(line);
}

static void note_exchange(const char *call, const void *send, const void *receive) {
  char line[160];
  snprintf(line, sizeof line, "%s send=%s receive=%s", call, kind(send), kind(receive));
  fake_cuda_note(line);
}

#define NEXT(name) (*(void **)&next = next ? *(void **)&next : dlsym(RTLD_NEXT, "PMPI_" #name), next)

int PMPI_Alltoall(const void *s, int sn, MPI_Datatype st, void *r, int rn, MPI_Datatype rt, MPI_Comm c) {
  static int (*next)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
  note_exchange("PMPI_Alltoall", s, r);
  return NEXT(Alltoall)(s, sn, st, r, rn, rt, c);
}

int PMPI_Alltoallv(const void *s, const int *sn, const int *sd, MPI_Datatype st, void *r, const int *rn,
                   const int *rd, MPI_Datatype rt, MPI_Comm c) {
  static int (*next)(const void *, const int *, const int *, MPI_Datatype, void *, const int *, const int *,
                     MPI_Datatype, MPI_Comm);
  note_exchange("PMPI_Alltoallv", s, r);
  return NEXT(Alltoallv)(s, sn, sd, st, r, rn, rd, rt, c);
}

int PMPI_Isend(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *q) {
  static int (*next)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
  note_message("PMPI_Isend", b, n, t, to);
  return NEXT(Isend)(b, n, t, to, tag, c, q);
}

int PMPI_Irecv(void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *q) {
  static int (*next)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
  note_message("PMPI_Irecv", b, n, t, from);
  return NEXT(Irecv)(b, n, t, from, tag, c, q);
}

int PMPI_Wait(MPI_Request *q, MPI_Status *s) {
  static int (*next)(MPI_Request *, MPI_Status *);
  fake_cuda_note("PMPI_Wait");
  return NEXT(Wait)(q, s);
}

int PMPI_Pack(const void *b, int n, MPI_Datatype t, void *o, int on, int *at, MPI_Comm c) {
  static int (*next)(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm);
  note_exchange("PMPI_Pack", b, o);
  return NEXT(Pack)(b, n, t, o, on, at, c);
}

int PMPI_Unpack(const void *b, int bn, int *at, void *o, int n, MPI_Datatype t, MPI_Comm c) {
  static int (*next)(const void *, int, int *, void *, int, MPI_Datatype, MPI_Comm);
  note_exchange("PMPI_Unpack", b, o);
  return NEXT(Unpack)(b, bn, at, o, n, t, c);
}
