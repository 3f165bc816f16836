/* transpress.h: tell libtranspress.so what it cannot see from outside.
 *
 * A program that includes this file compiles, links and runs with or without the library: each call
 * looks the library up at run time, and returns TRANSPRESS_ABSENT where it is not preloaded. Nothing
 * has to be linked (C libraries before glibc 2.34: add -ldl).
 *
 * Every call returns one of the TRANSPRESS_ codes below and never an MPI error; a call that does not
 * return TRANSPRESS_OK changes nothing, and the program goes on with plain MPI.
 */
#ifndef TRANSPRESS_H
#define TRANSPRESS_H

#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TRANSPRESS_OK = 0,
  TRANSPRESS_ABSENT = 1,         /* the library is not preloaded under this program */
  TRANSPRESS_DISABLED = 2,       /* TRANSPRESS_CODEC or TRANSPRESS_MODE is off, or a variable is wrong */
  TRANSPRESS_BAD_ARGUMENT = 3,   /* value out of range, layout that cannot be read, intercommunicator */
  TRANSPRESS_NOT_REGISTERED = 4, /* the communicator carries no registration */
  TRANSPRESS_DISAGREE = 5,       /* the ranks of the communicator gave different values */
  TRANSPRESS_NOT_AVAILABLE = 6,  /* the codec that TRANSPRESS_CODEC names cannot */
  TRANSPRESS_FAILED = 7          /* MPI failed, or was not initialised, or is finalised */
};

/* What this rank did on one communicator since it was registered. */
typedef struct transpress_stats_t {
  uint64_t calls;               /* Alltoall(v) calls that went through the codec */
  uint64_t messages_compressed; /* messages sent compressed */
  uint64_t messages_raw;        /* messages sent as they were: small, on node, or backing off */
  uint64_t messages_escaped;    /* messages that could not be coded and followed raw */
  uint64_t bytes_before;        /* bytes sent to other ranks, as the program gave them */
  uint64_t bytes_after;         /* bytes sent to other ranks, on the wire */
  double seconds_encode;
  double seconds_wire;
  double seconds_decode;
  double worst_error; /* relative L2 error of the worst sampled message, |x - x'| / |x| */
  double mean_error;  /* mean of the same over the sampled messages */
} transpress_stats_t;

/* Internal: one lookup of a library symbol; null when the library is not there. The null handle is
 * RTLD_DEFAULT, which <dlfcn.h> names only under _GNU_SOURCE. */
static inline void *transpress_lookup_(const char *name) { return dlsym((void *)0, name); }

#define TRANSPRESS_FORWARD_(name, types, arguments)          \
  int(*call) types;                                           \
  void *found = transpress_lookup_(name);                     \
  memcpy(&call, &found, sizeof call);                         \
  return found ? call arguments : TRANSPRESS_ABSENT

/* Collective over comm. From here on its MPI_Alltoall(v) are compressed. Every rank must run with the
 * same settings; where they differ the communicator stays unregistered, rank 0 says which variable
 * differs, and every rank gets TRANSPRESS_DISAGREE. The registration ends with MPI_Comm_free. */
static inline int transpress_register(MPI_Comm comm) {
  TRANSPRESS_FORWARD_("transpress_register", (MPI_Comm), (comm));
}

/* Collective over comm. Its all-to-alls are plain MPI again. */
static inline int transpress_unregister(MPI_Comm comm) {
  TRANSPRESS_FORWARD_("transpress_unregister", (MPI_Comm), (comm));
}

/* Collective over comm. Bits per value on the wire, 1 to 64; replaces TRANSPRESS_RATE. */
static inline int transpress_set_rate(MPI_Comm comm, double bits_per_value) {
  TRANSPRESS_FORWARD_("transpress_set_rate", (MPI_Comm, double), (comm, bits_per_value));
}

/* Collective over comm. Largest absolute error of a value, above 0; replaces the rate, until a rate is set again.
 * Codec zfp alone has one: TRANSPRESS_NOT_AVAILABLE with the others. */
static inline int transpress_set_tolerance(MPI_Comm comm, double absolute) {
  TRANSPRESS_FORWARD_("transpress_set_tolerance", (MPI_Comm, double), (comm, absolute));
}

/* Collective over comm. What messages of MPI_BYTE hold: "f32", "f64", "any" (codec lossless alone), or "off" (the default: bytes are
 * not touched). A message whose length is no multiple of the element goes raw. */
static inline int transpress_set_bytes(MPI_Comm comm, const char *element) {
  TRANSPRESS_FORWARD_("transpress_set_bytes", (MPI_Comm, const char *), (comm, element));
}

/* Local. The extents of one message, x (fastest) first, all axes smooth; 1 to 3 axes. One extent may be
 * -1: the count decides. May be called again for further shapes; the first that fits a message is used. */
static inline int transpress_add_shape(MPI_Comm comm, int ndims, const int extents[]) {
  TRANSPRESS_FORWARD_("transpress_add_shape", (MPI_Comm, int, const int *), (comm, ndims, extents));
}

/* Local. The same with component axes (c: real/imaginary or vector parts side by side, coded apart) and
 * field axes (f: quantities of unlike magnitude side by side, scaled apart): "2c,100f,*". */
static inline int transpress_add_layout(MPI_Comm comm, const char *layout) {
  TRANSPRESS_FORWARD_("transpress_add_layout", (MPI_Comm, const char *), (comm, layout));
}

/* Local. What this rank did on comm so far. */
static inline int transpress_stats(MPI_Comm comm, transpress_stats_t *out) {
  TRANSPRESS_FORWARD_("transpress_stats", (MPI_Comm, transpress_stats_t *), (comm, out));
}

#ifdef __cplusplus
}
#endif
#endif
