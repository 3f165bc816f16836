/* device_buffers: all-to-alls of buffers that live on a device, or one of them on the host. */
#include "../mpi/check.h"
#include "cuda.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 5000, GAP = 3 };

static int rank, size;
static long values;    /* of a whole buffer, gaps included */

static void ok(CUresult code) {
  if (code == CUDA_SUCCESS) return;
  fprintf(stderr, "CUDA error %d\n", code);
  abort();
}

enum place { HOST, PINNED, DEVICE, MIDDLE, POOL, MANAGED, PLACES };
static const char *const names[] = {"host", "pinned", "device", "middle", "pool", "managed"};

/* A buffer of so many bytes, and what is to be freed. */
static float *allocate(enum place place, size_t bytes, void **whole) {
  CUdeviceptr address = 0;
  size_t skipped = place == MIDDLE ? 4096 : 0;
  switch (place) {
    case HOST: *whole = malloc(bytes); return *whole;
    case PINNED: ok(cuMemHostAlloc(whole, bytes, 0)); return *whole;
    case DEVICE:
    case MIDDLE: ok(cuMemAlloc(&address, bytes + skipped)); break;
    case POOL: ok(cuMemAllocAsync(&address, bytes, CU_STREAM_LEGACY)); break;
    default: ok(cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL));
  }
  *whole = (void *)address;
  return (float *)(address + skipped);
}

static void release(enum place place, void *whole) {
  switch (place) {
    case HOST: free(whole); break;
    case PINNED: ok(cuMemFreeHost(whole)); break;
    default: ok(cuMemFree((CUdeviceptr)whole));
  }
}

static void copy(void *to, const void *from) {
  ok(cuMemcpy((CUdeviceptr)to, (CUdeviceptr)from, values * sizeof(float)));
}

static void exchange(enum place from, enum place to) {
  void *send_whole, *receive_whole;
  size_t bytes = values * sizeof(float);
  float *send = allocate(from, bytes, &send_whole), *receive = allocate(to, bytes, &receive_whole);
  float *image = untouched(bytes);
  int counts[size], displacements[size];
  copy(receive, image);
  for (int peer = 0; peer < size; peer++) {
    counts[peer] = VALUES;
    displacements[peer] = peer * (VALUES + GAP);
    fill(image + displacements[peer], F32, VALUES, rank, peer);
  }
  copy(send, image);

  MPI_Alltoallv(send, counts, displacements, MPI_FLOAT, receive, counts, displacements, MPI_FLOAT, MPI_COMM_WORLD);

  copy(image, receive);
  for (int peer = 0; peer < size; peer++) {
    expect(image + displacements[peer], F32, VALUES, peer, rank);
    if (!is_untouched(image + displacements[peer] + VALUES, GAP * sizeof(float))) fail("gap behind rank %d", peer);
  }
  free(image);
  release(from, send_whole);
  release(to, receive_whole);
  check("%s to %s", names[from], names[to]);
}

int main(int argc, char **argv) {
  CUcontext context, now;
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  values = (long)size * (VALUES + GAP);
  ok(cuInit(0));
  ok(cuDevicePrimaryCtxRetain(&context, 0));
  ok(cuCtxSetCurrent(context));

  for (enum place from = 0; from < PLACES; from++)
    for (enum place to = 0; to < PLACES; to++) exchange(from, to);
  /* Each rank on its own: what one has on a device, another has on the host. */
  exchange(rank % 2 ? HOST : DEVICE, rank % 3 ? MANAGED : HOST);

  ok(cuCtxGetCurrent(&now));
  if (now != context || fake_cuda_contexts() != 1) fail("another context");
  check("context");
  return check_done();
}
