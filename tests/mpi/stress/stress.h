/* Random all-to-alls from a seed. Every choice is a hash of the seed, the call and what it concerns, so that all
 * ranks make the same one, and the receiver knows each value that the sender sends.
 *
 * What arrives is compared with what was sent: bit by bit, or as closely as the communicator's terms say.
 */
#ifndef STRESS_H
#define STRESS_H

#include "../check.h"

#include <stdint.h>

/* A random number for a choice: `what` tells choices of one call apart. */
uint64_t hash(uint64_t call, uint64_t what, uint64_t a, uint64_t b);
/* From 0 to below `below`. */
uint64_t choose(uint64_t below, uint64_t call, uint64_t what, uint64_t a, uint64_t b);
extern uint64_t seed;

/* What `what` stands for. */
enum choice { COUNT = 1, SIZE_OF_CALL, SIZE_OF_PAIR, TYPE, FORM_SENT, FORM_RECEIVED, FUNCTION, IN_PLACE, FAMILY, GAP,
              COMM, CHANGE, TERMS, ORDER, VALUE };

/* Scalars of a datatype. */
enum scalar { FLOATS, DOUBLES, INTS, LONGS, BYTES };
size_t scalar_size(enum scalar scalar);

/* What the values of a message are like. */
enum family { SMOOTH, ZEROS, NOISE, WHOLE, SOME_NAN, NOT_FINITE, FILLS, HUGE_VALUES, BITS, SPIKES, FAMILIES };
/* Writes scalar `index` of a message of some family, whose hash is `of`. */
void write_scalar(void *at, enum scalar scalar, enum family family, uint64_t of, long index);

/* How a communicator's messages may differ from what was sent. */
enum terms { EXACTLY, WITHIN_TOLERANCE, AT_A_RATE, CAST };
struct comm {
  MPI_Comm comm;
  enum terms terms;
  double bound; /* absolute for a tolerance; else relative, of a message's L2 norm */
  int group;    /* tells the halves of a split apart */
};
enum { COMMS = 5 };
/* Makes communicator `slot` anew. Collective over MPI_COMM_WORLD. */
void make_comm(struct comm *comm, int slot, uint64_t call);
void free_comm(struct comm *comm, int slot);
/* Changes its terms, now and then. */
void change_terms(struct comm *comm, uint64_t call);

/* Items of one type, which hold `scalars` scalars each, with or without gaps. */
struct items {
  MPI_Datatype type;
  enum scalar scalar;
  int scalars, per_item; /* items of `type` that make up one item of the call */
  long extent;           /* of an item of the call, in bytes */
  int derived;
  long offsets[12]; /* bytes from an item's start to each scalar */
};
struct items make_items(uint64_t call, enum choice form);
void free_items(struct items *items);

/* One call on one communicator, checked. */
void random_call(struct comm *comm, uint64_t call);

#endif
