#include "stress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 16, ARENA = 48 << 20 };

/* One side of a call: items, and where they lie, in items of its own. */
struct side {
  struct items items;
  int counts[MOST_RANKS], displs[MOST_RANKS];
  long end;
  unsigned char *buffer;
};

/* Touched once, so that only the library's memory and MPI's grows. */
static unsigned char *arena(int which) {
  static unsigned char *arenas[2];
  if (!arenas[which]) arenas[which] = untouched(ARENA);
  return arenas[which];
}

/* Items in the message from one rank to another: mostly few, now and then a few megabytes. */
static int count_of(uint64_t call, int group, long item_bytes, int from, int to) {
  static const uint64_t MOST[] = {40, 20000, 60000, 600000, 3 << 20};
  uint64_t pair = (uint64_t)from * MOST_RANKS + (uint64_t)to, size = choose(400, call, SIZE_OF_CALL, (uint64_t)group, 0);
  int step = size < 180 ? 0 : size < 370 ? 1 : size < 394 ? 2 : size < 398 ? 3 : 4;
  uint64_t luck = choose(10, call, SIZE_OF_PAIR, pair, 1);
  if (luck < 2) return 0;
  if (luck < 5 && step > 0) step -= (int)choose((uint64_t)step + 1, call, SIZE_OF_PAIR, pair, 2);
  return (int)(choose(MOST[step], call, COUNT, pair, 0) / (uint64_t)item_bytes);
}

static void place(struct side *side, uint64_t call, enum choice form, int ranks, int apart) {
  int first = (int)choose((uint64_t)ranks, call, ORDER, form, 0);
  int backwards = (int)choose(2, call, ORDER, form, 1);
  side->end = 0;
  for (int i = 0; i < ranks; i++) {
    int peer = (first + (backwards ? ranks - i : i)) % ranks;
    if (apart) side->end += (long)choose(3, call, GAP, form, (uint64_t)peer);
    side->displs[peer] = (int)side->end * side->items.per_item;
    side->end += side->counts[peer];
  }
}

static unsigned char *item(const struct side *side, int peer, int index) {
  return side->buffer + (side->displs[peer] / side->items.per_item + index) * side->items.extent;
}

static enum family family_of(uint64_t call, int from, int to) {
  /* A pair keeps its family for a while, so that it comes to hold back. */
  uint64_t spell = call / 40, which = choose(20, spell, FAMILY, (uint64_t)from, (uint64_t)to);
  return which < FAMILIES ? (enum family)which : SMOOTH;
}

static uint64_t values_of(uint64_t call, int group, int from, int to) {
  return hash(call, VALUE, (uint64_t)group, (uint64_t)(from * MOST_RANKS + to));
}

static void write_block(const struct side *side, int peer, enum family family, uint64_t of) {
  const struct items *items = &side->items;
  for (int i = 0; i < side->counts[peer]; i++)
    for (int s = 0; s < items->scalars; s++)
      write_scalar(item(side, peer, i) + items->offsets[s], items->scalar, family, of, (long)i * items->scalars + s);
}

static double number(const void *at, enum scalar scalar) {
  float single;
  double x;
  if (scalar == DOUBLES) {
    memcpy(&x, at, sizeof x);
    return x;
  }
  memcpy(&single, at, sizeof single);
  return single;
}

/* What is known of how a message arrived. */
struct sums {
  double scale, error, norm, worst;
  long different, broken;
};

static void compare(struct sums *sums, const void *got, const void *want, enum scalar scalar, enum family family) {
  int differs = memcmp(got, want, scalar_size(scalar)) != 0;
  sums->different += differs;
  if (scalar > DOUBLES) {
    sums->broken += differs;
    return;
  }
  double x = number(want, scalar), y = number(got, scalar);
  int is_fill = family == FILLS && x > 1e10;
  if (!isfinite(x) || !isfinite(y) || is_fill) {
    int same = isnan(x) ? isnan(y) : isfinite(x) ? fabs(x - y) <= 1e-2 * x : x == y;
    sums->broken += !same;
    return;
  }
  sums->worst = fmax(sums->worst, fabs(x - y));
  sums->error += (x - y) / sums->scale * ((x - y) / sums->scale);
  sums->norm += x / sums->scale * (x / sums->scale);
}

/* Doubles of random bits would overflow. */
static double scale_of(enum scalar scalar, enum family family) {
  return family != BITS ? 1 : scalar == DOUBLES ? 1e300 : 1e30;
}

static void expect_block(const struct side *side, int peer, enum family family, uint64_t of, const struct comm *comm,
                         int exact, uint64_t call) {
  const struct items *items = &side->items;
  struct sums sums = {.scale = scale_of(items->scalar, family)};
  unsigned char want[8];
  for (int i = 0; i < side->counts[peer]; i++)
    for (int s = 0; s < items->scalars; s++) {
      write_scalar(want, items->scalar, family, of, (long)i * items->scalars + s);
      compare(&sums, item(side, peer, i) + items->offsets[s], want, items->scalar, family);
    }
  double relative = sums.norm > 0 ? sqrt(sums.error / sums.norm) : sqrt(sums.error);
  int is_right = sums.broken == 0 && (sums.different == 0 || !exact);
  if (is_right && sums.different > 0)
    is_right = comm->terms == WITHIN_TOLERANCE ? sums.worst <= comm->bound : relative <= comm->bound;
  if (!is_right)
    fail("call %lu from %d: %d items of %d scalars %d, family %d, terms %d %g: %ld differ, %ld broken, relative %g, "
         "absolute %g", (unsigned long)call, peer, side->counts[peer], items->scalars, items->scalar, family, comm->terms,
         comm->bound, sums.different, sums.broken, relative, sums.worst);
}

/* Puts back what lay there before, and looks whether anything else was written. */
static void expect_gaps_untouched(const struct side *side, int ranks, uint64_t call) {
  for (int peer = 0; peer < ranks; peer++)
    for (int i = 0; i < side->counts[peer]; i++)
      for (int s = 0; s < side->items.scalars; s++)
        memset(item(side, peer, i) + side->items.offsets[s], UNTOUCHED, scalar_size(side->items.scalar));
  if (!is_untouched(side->buffer, (size_t)(side->end + 3) * (size_t)side->items.extent))
    fail("call %lu wrote to a gap", (unsigned long)call);
}

static void in_items_of_type(const struct side *side, int ranks, int counts[]) {
  for (int peer = 0; peer < ranks; peer++) counts[peer] = side->counts[peer] * side->items.per_item;
}

void random_call(struct comm *comm, uint64_t call) {
  int rank, ranks, group = comm->group;
  MPI_Comm_rank(comm->comm, &rank);
  MPI_Comm_size(comm->comm, &ranks);
  struct side send = {.items = make_items(call, FORM_SENT), .buffer = arena(0)};
  struct side receive = {.items = make_items(call, FORM_RECEIVED), .buffer = arena(1)};
  long item_bytes = (long)scalar_size(send.items.scalar) * send.items.scalars;
  int equal = choose(4, call, FUNCTION, 0, 0) == 0, in_place = choose(5, call, IN_PLACE, 0, 0) == 0;
  for (int peer = 0; peer < ranks; peer++) {
    int low = rank < peer ? rank : peer, high = rank + peer - low;
    int out = in_place ? count_of(call, group, item_bytes, low, high) : count_of(call, group, item_bytes, rank, peer);
    int in = in_place ? out : count_of(call, group, item_bytes, peer, rank);
    send.counts[peer] = equal ? count_of(call, group, item_bytes, 0, 1) : out;
    receive.counts[peer] = equal ? send.counts[peer] : in;
  }
  place(&send, call, FORM_SENT, ranks, !equal);
  place(&receive, call, FORM_RECEIVED, ranks, !equal);
  for (int peer = 0; equal && peer < ranks; peer++) {
    send.displs[peer] = peer * send.counts[peer] * send.items.per_item;
    receive.displs[peer] = peer * receive.counts[peer] * receive.items.per_item;
  }
  if ((send.end + 3) * send.items.extent > ARENA || (receive.end + 3) * receive.items.extent > ARENA) {
    fail("call %lu is too large", (unsigned long)call);
    return;
  }
  for (int peer = 0; peer < ranks; peer++)
    write_block(in_place ? &receive : &send, peer, family_of(call, rank, peer), values_of(call, group, rank, peer));
  int scounts[MOST_RANKS], rcounts[MOST_RANKS];
  in_items_of_type(&send, ranks, scounts);
  in_items_of_type(&receive, ranks, rcounts);
  const void *from = in_place ? MPI_IN_PLACE : send.buffer;
  if (equal)
    MPI_Alltoall(from, scounts[0], send.items.type, receive.buffer, rcounts[0], receive.items.type, comm->comm);
  else
    MPI_Alltoallv(from, scounts, send.displs, send.items.type, receive.buffer, rcounts, receive.displs,
                  receive.items.type, comm->comm);
  for (int peer = 0; peer < ranks; peer++) {
    int exact = comm->terms == EXACTLY || peer == rank;
    expect_block(&receive, peer, family_of(call, peer, rank), values_of(call, group, peer, rank), comm, exact, call);
  }
  expect_gaps_untouched(&receive, ranks, call);
  free_items(&send.items);
  free_items(&receive.items);
}
