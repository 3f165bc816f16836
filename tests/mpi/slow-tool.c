/* A slow network to preload after the library: an Alltoallv takes 200 ns for each byte that a rank sends to others,
 * and so does a message from one to another. */
#include <dlfcn.h>
#include <mpi.h>
#include <string.h>
#include <time.h>

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

static void take_time(double bytes) {
  double nanoseconds = 200 * bytes;
  struct timespec time = {(time_t)(nanoseconds / 1e9), (long)nanoseconds % 1000000000};
  nanosleep(&time, NULL);
}

int PMPI_Alltoallv(const void *sendbuf, const int *sendcounts, const int *sdispls, MPI_Datatype sendtype, void *recvbuf,
                   const int *recvcounts, const int *rdispls, MPI_Datatype recvtype, MPI_Comm comm) {
  int (*call)(const void *, const int *, const int *, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, MPI_Comm);
  void *found = next("PMPI_Alltoallv");
  memcpy(&call, &found, sizeof call);
  int rank, size, item;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  double bytes = 0;
  if (sendbuf != MPI_IN_PLACE && PMPI_Type_size(sendtype, &item) == MPI_SUCCESS)
    for (int peer = 0; peer < size; peer++) bytes += peer == rank ? 0 : (double)sendcounts[peer] * item;
  take_time(bytes);
  return call(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

int MPI_Alltoallv(const void *sendbuf, const int *sendcounts, const int *sdispls, MPI_Datatype sendtype, void *recvbuf,
                  const int *recvcounts, const int *rdispls, MPI_Datatype recvtype, MPI_Comm comm) {
  return PMPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
}

int PMPI_Isend(const void *buf, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request) {
  int (*call)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
  void *found = next("PMPI_Isend");
  memcpy(&call, &found, sizeof call);
  int item;
  if (PMPI_Type_size(type, &item) == MPI_SUCCESS) take_time((double)count * item);
  return call(buf, count, type, peer, tag, comm, request);
}
