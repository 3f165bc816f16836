/* A tool to preload after the library: makes any MPI one that takes buffers on a device. Addresses there are
   replaced by those at which the stand-in for CUDA lets them be reached. */
#include "cuda.h"
#include <dlfcn.h>
#include <mpi.h>

int MPIX_Query_cuda_support(void) { return 1; }

int MPIX_GPU_query_support(int kind, int *supported) {
  *supported = kind == 0;
  return MPI_SUCCESS;
}

static void *reachable(const void *buffer) {
  void *backing = fake_cuda_reach((CUdeviceptr)buffer);
  return backing ? backing : (void *)buffer;
}

/* Exports both names of a call; each goes on to the next one with the same name. */
#define WRAP(name, types, reached)                                \
  int MPI_##name types {                                          \
    static int(*next) types;                                      \
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "MPI_" #name);  \
    return next reached;                                          \
  }                                                               \
  int PMPI_##name types {                                         \
    static int(*next) types;                                      \
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "PMPI_" #name); \
    return next reached;                                          \
  }

WRAP(Alltoall, (const void *s, int sn, MPI_Datatype st, void *r, int rn, MPI_Datatype rt, MPI_Comm c),
     (reachable(s), sn, st, reachable(r), rn, rt, c))
WRAP(Alltoallv,
     (const void *s, const int *sn, const int *sd, MPI_Datatype st, void *r, const int *rn, const int *rd,
      MPI_Datatype rt, MPI_Comm c),
     (reachable(s), sn, sd, st, reachable(r), rn, rd, rt, c))
WRAP(Send, (const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c), (reachable(b), n, t, to, tag, c))
WRAP(Recv, (void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *s),
     (reachable(b), n, t, from, tag, c, s))
WRAP(Isend, (const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *q),
     (reachable(b), n, t, to, tag, c, q))
WRAP(Irecv, (void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *q),
     (reachable(b), n, t, from, tag, c, q))
WRAP(Pack, (const void *b, int n, MPI_Datatype t, void *o, int on, int *at, MPI_Comm c),
     (reachable(b), n, t, reachable(o), on, at, c))
WRAP(Unpack, (const void *b, int bn, int *at, void *o, int n, MPI_Datatype t, MPI_Comm c),
     (reachable(b), bn, at, reachable(o), n, t, c))
