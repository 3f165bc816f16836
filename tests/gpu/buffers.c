/* All-to-alls between buffers that live on a device, in host memory, or in both. */
#include "../mpi/check.h"
#include "cuda.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum where { HOST, DEVICE, MANAGED, POOL };
static const char *const name_of[] = {"host", "device", "managed", "pool"};

static int size, rank;

static void must(CUresult result, const char *call) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", call, (int)result);
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define MUST(call) must(call, #call)

/* A buffer that begins in the middle of an allocation. */
struct buffer {
  enum where where;
  char *start;
  CUdeviceptr allocation;
  size_t bytes;
};

enum { BEFORE = 4096 + 64 };

static struct buffer make(enum where where, size_t bytes) {
  struct buffer buffer = {where, NULL, 0, bytes};
  switch (where) {
    case HOST: buffer.allocation = (CUdeviceptr)malloc(BEFORE + bytes); break;
    case DEVICE: MUST(cuMemAlloc(&buffer.allocation, BEFORE + bytes)); break;
    case MANAGED: MUST(cuMemAllocManaged(&buffer.allocation, BEFORE + bytes, CU_MEM_ATTACH_GLOBAL)); break;
    case POOL:
      MUST(cuMemAllocAsync(&buffer.allocation, BEFORE + bytes, CU_STREAM_LEGACY));
      MUST(cuStreamSynchronize(CU_STREAM_LEGACY));
      break;
  }
  buffer.start = (char *)(buffer.allocation + BEFORE);
  return buffer;
}

static void drop(struct buffer buffer) {
  if (buffer.where == HOST)
    free((void *)buffer.allocation);
  else
    MUST(cuMemFree(buffer.allocation));
}

static void put(struct buffer buffer, const void *from) {
  if (buffer.where == HOST)
    memcpy(buffer.start, from, buffer.bytes);
  else
    MUST(cuMemcpyHtoD((CUdeviceptr)buffer.start, from, buffer.bytes));
}

static char *get(struct buffer buffer) {
  char *copy = malloc(buffer.bytes + 1);
  if (buffer.where == HOST)
    memcpy(copy, buffer.start, buffer.bytes);
  else
    MUST(cuMemcpyDtoH(copy, (CUdeviceptr)buffer.start, buffer.bytes));
  return copy;
}

static MPI_Datatype type_of(enum kind kind) { return kind == F32 ? MPI_FLOAT : kind == F64 ? MPI_DOUBLE : MPI_BYTE; }

/* The messages of this rank to all, or of all to this rank. */
static char *messages(enum kind kind, long values, int sent) {
  size_t bytes = values * size_of(kind);
  char *all = malloc(size * bytes + 1);
  for (int peer = 0; peer < size; peer++)
    fill(all + peer * bytes, kind, values, sent ? rank : peer, sent ? peer : rank);
  return all;
}

static void expect_all(struct buffer buffer, enum kind kind, long values) {
  char *got = get(buffer);
  for (int peer = 0; peer < size; peer++) expect(got + peer * values * size_of(kind), kind, values, peer, rank);
  free(got);
}

/* MPI_Alltoall from one kind of memory to another. */
static void equal(enum where from, enum where to, enum kind kind, long values) {
  size_t bytes = size * values * size_of(kind);
  struct buffer send = make(from, bytes), receive = make(to, bytes);
  char *sent = messages(kind, values, 1);
  put(send, sent);
  free(sent);
  char *nothing = untouched(bytes);
  put(receive, nothing);
  long before = coded(MPI_COMM_WORLD);
  MPI_Alltoall(send.start, values, type_of(kind), receive.start, values, type_of(kind), MPI_COMM_WORLD);
  expect_all(receive, kind, values);
  expect_coded(MPI_COMM_WORLD, before, may_be_coded(kind, values, 0, 1) ? size - 1 : 0);
  free(nothing);
  drop(send);
  drop(receive);
  check("%ld of kind %d, %s to %s", values, kind, name_of[from], name_of[to]);
}

static void in_place(enum where where, long values) {
  struct buffer both = make(where, size * values * sizeof(double));
  char *sent = messages(F64, values, 1);
  put(both, sent);
  free(sent);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, both.start, values, MPI_DOUBLE, MPI_COMM_WORLD);
  expect_all(both, F64, values);
  drop(both);
  check("in place, %s", name_of[where]);
}

/* Messages that lie in each other's gaps: value i of all peers, then value i + 1. What is between is left alone. */
static void with_gaps(enum where from, enum where to, long values) {
  int row = size + 1;
  size_t bytes = values * row * sizeof(float);
  MPI_Datatype column, one;
  MPI_Type_vector(values, 1, row, MPI_FLOAT, &column);
  MPI_Type_create_resized(column, 0, sizeof(float), &one);
  MPI_Type_commit(&one);
  struct buffer send = make(from, bytes), receive = make(to, bytes);
  float *rows = untouched(bytes);
  put(receive, rows);
  float *message = malloc(values * sizeof(float));
  for (int peer = 0; peer < size; peer++) {
    fill(message, F32, values, rank, peer);
    for (long i = 0; i < values; i++) rows[i * row + peer] = message[i];
  }
  put(send, rows);
  MPI_Alltoall(send.start, 1, one, receive.start, 1, one, MPI_COMM_WORLD);
  float *got = (float *)get(receive);
  for (int peer = 0; peer < size; peer++) {
    for (long i = 0; i < values; i++) message[i] = got[i * row + peer];
    expect(message, F32, values, peer, rank);
  }
  for (long i = 0; i < values; i++)
    if (!is_untouched(got + i * row + size, sizeof(float))) fail("the gap behind value %ld was written", i);
  MPI_Type_free(&one);
  MPI_Type_free(&column);
  free(got);
  free(rows);
  free(message);
  drop(send);
  drop(receive);
  check("gaps, %s to %s", name_of[from], name_of[to]);
}

/* Counts that differ from pair to pair, with room between the blocks. */
static void uneven(enum where from, enum where to) {
  int counts_to[size], counts_from[size], at_to[size], at_from[size], end_to = 0, end_from = 0;
  for (int peer = 0; peer < size; peer++) {
    counts_to[peer] = 3000 + 1000 * ((rank + 2 * peer) % 3), counts_from[peer] = 3000 + 1000 * ((peer + 2 * rank) % 3);
    at_to[peer] = end_to + peer, at_from[peer] = end_from + 2 * peer;
    end_to = at_to[peer] + counts_to[peer], end_from = at_from[peer] + counts_from[peer];
  }
  struct buffer send = make(from, end_to * sizeof(float)), receive = make(to, end_from * sizeof(float));
  float *sent = untouched(send.bytes), *nothing = untouched(receive.bytes);
  for (int peer = 0; peer < size; peer++) fill(sent + at_to[peer], F32, counts_to[peer], rank, peer);
  put(send, sent);
  put(receive, nothing);
  MPI_Alltoallv(send.start, counts_to, at_to, MPI_FLOAT, receive.start, counts_from, at_from, MPI_FLOAT,
                MPI_COMM_WORLD);
  float *got = (float *)get(receive);
  for (int peer = 0; peer < size; peer++) expect(got + at_from[peer], F32, counts_from[peer], peer, rank);
  free(got);
  free(sent);
  free(nothing);
  drop(send);
  drop(receive);
  check("uneven counts, %s to %s", name_of[from], name_of[to]);
}

/* MPI_Alltoall on another communicator, from device to device. */
static void on_another(MPI_Comm comm, long values) {
  size_t bytes = size * values * sizeof(float);
  struct buffer send = make(DEVICE, bytes), receive = make(DEVICE, bytes);
  char *sent = messages(F32, values, 1), *nothing = untouched(bytes);
  put(send, sent);
  put(receive, nothing);
  MPI_Alltoall(send.start, values, MPI_FLOAT, receive.start, values, MPI_FLOAT, comm);
  expect_all(receive, F32, values);
  free(sent);
  free(nothing);
  drop(send);
  drop(receive);
}

/* Calls that need more and more memory, while what was enough for one communicator goes on to others. */
static void several_communicators(void) {
  enum { COMMS = 6 };
  MPI_Comm comms[COMMS];
  for (int i = 0; i < COMMS; i++) MPI_Comm_dup(MPI_COMM_WORLD, comms + i);
  on_another(comms[0], 100000);
  on_another(comms[0], 150000);
  for (int i = 1; i < COMMS; i++) on_another(comms[i], 8000);
  for (int i = 1; i < COMMS; i++) on_another(comms[i], 60000);
  for (int i = 0; i < COMMS; i++) MPI_Comm_free(comms + i);
  check("several communicators");
}

/* A type of all floats of a message, at its address. */
static MPI_Datatype absolute(struct buffer buffer, int values) {
  MPI_Aint address;
  MPI_Datatype there, one;
  MPI_Get_address(buffer.start, &address);
  MPI_Type_create_hindexed(1, &values, &address, MPI_FLOAT, &there);
  MPI_Type_create_resized(there, 0, values * sizeof(float), &one);
  MPI_Type_commit(&one);
  MPI_Type_free(&there);
  return one;
}

/* MPI_BOTTOM: the addresses are in the datatypes. */
static void from_the_bottom(enum where from, enum where to, int values) {
  size_t bytes = size * values * sizeof(float);
  struct buffer send = make(from, bytes), receive = make(to, bytes);
  char *sent = messages(F32, values, 1), *nothing = untouched(bytes);
  put(send, sent);
  put(receive, nothing);
  MPI_Datatype source = absolute(send, values), target = absolute(receive, values);
  MPI_Alltoall(MPI_BOTTOM, 1, source, MPI_BOTTOM, 1, target, MPI_COMM_WORLD);
  expect_all(receive, F32, values);
  MPI_Type_free(&source);
  MPI_Type_free(&target);
  free(sent);
  free(nothing);
  drop(send);
  drop(receive);
  check("MPI_BOTTOM, %s to %s", name_of[from], name_of[to]);
}

/* Values that kernels leave to others: NaN in a few places, which are put into a mask, and in too many kinds. */
static void not_finite(long values) {
  size_t bytes = size * values * sizeof(float);
  float *sent = (float *)messages(F32, values, 1), *wanted = (float *)messages(F32, values, 0);
  for (int kinds = 1; kinds <= 6; kinds += 5) {
    for (long i = 0; i < size * values; i++)
      if (i % 7 == 0) {
        unsigned nan = 0x7fc00000u + (unsigned)(i / 7 % kinds);
        memcpy(sent + i, &nan, 4);
      }
    struct buffer send = make(DEVICE, bytes), receive = make(DEVICE, bytes);
    put(send, sent);
    MPI_Alltoall(send.start, values, MPI_FLOAT, receive.start, values, MPI_FLOAT, MPI_COMM_WORLD);
    float *got = (float *)get(receive);
    for (int peer = 0; peer < size; peer++)
      for (long i = 0; i < values; i++) {
        /* Where the NaNs are in the message of a peer: its own numbering. */
        long at = (long)rank * values + i, here = peer * values + i;
        unsigned bits, nan = 0x7fc00000u + (unsigned)(at / 7 % kinds);
        memcpy(&bits, got + here, 4);
        if (at % 7 == 0 && bits != nan) fail("a NaN came as %#x", bits);
        if (at % 7 != 0 && !(got[here] - wanted[here] < 1e-2f && wanted[here] - got[here] < 1e-2f))
          fail("value %ld from %d is %g, not %g", i, peer, got[here], wanted[here]);
      }
    free(got);
    drop(send);
    drop(receive);
    check("%d kinds of NaN", kinds);
  }
  free(sent);
  free(wanted);
}

/* Values that are still being copied when MPI is called, on a stream that it waits for as a copy would. */
static void not_waited_for(CUstream stream, const char *name, long values) {
  size_t bytes = size * values * sizeof(float);
  struct buffer send = make(DEVICE, bytes), receive = make(DEVICE, bytes), source = make(DEVICE, bytes);
  char *sent = messages(F32, values, 1), *nothing = untouched(bytes);
  put(source, sent);
  put(send, nothing);
  MUST(cuMemcpyDtoDAsync((CUdeviceptr)send.start, (CUdeviceptr)source.start, bytes, stream));
  MPI_Alltoall(send.start, values, MPI_FLOAT, receive.start, values, MPI_FLOAT, MPI_COMM_WORLD);
  expect_all(receive, F32, values);
  free(sent);
  free(nothing);
  drop(send);
  drop(receive);
  drop(source);
  check("not waited for: %s", name);
}

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CUdevice device;
  CUcontext context, current;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));

  if (argc > 1 && !strcmp(argv[1], "communicators")) {
    several_communicators();
    return check_done();
  }
  for (enum where from = HOST; from <= POOL; from++)
    for (enum where to = HOST; to <= POOL; to++) equal(from, to, F32, 5000);
  equal(DEVICE, DEVICE, F64, 4321);
  equal(DEVICE, DEVICE, EXACT, 9999);
  equal(HOST, DEVICE, EXACT, 17);
  equal(DEVICE, HOST, F32, 1);
  equal(DEVICE, DEVICE, F32, 150000);
  enum where own = rank % 2 ? HOST : DEVICE, other = rank % 2 ? DEVICE : HOST;
  equal(own, own, F32, 2000);
  equal(own, other, F64, 2000);
  in_place(DEVICE, 3000);
  in_place(MANAGED, 3000);
  uneven(DEVICE, DEVICE);
  uneven(HOST, DEVICE);
  with_gaps(DEVICE, DEVICE, 3000);
  with_gaps(DEVICE, HOST, 3000);
  with_gaps(HOST, DEVICE, 100);
  /* Without the library, addresses within datatypes reach the MPI as they are. */
  if (getenv("TRANSPRESS_COMMS")) from_the_bottom(DEVICE, DEVICE, 3000);
  from_the_bottom(HOST, HOST, 3000);
  not_finite(3000);
  CUstream blocking;
  MUST(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  not_waited_for(CU_STREAM_LEGACY, "the default stream", 3000);
  not_waited_for(blocking, "a blocking stream", 3000);
  MUST(cuStreamDestroy(blocking));

  MUST(cuCtxGetCurrent(&current));
  if (current != context) fail("another context is current");
  check("the context is as it was");
  return check_done();
}
