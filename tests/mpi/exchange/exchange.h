/* The parts of this program, each one idea; every part is collective over MPI_COMM_WORLD. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "../check.h"

/* A dense datatype: how many values of which kind one item holds (EXACT: bytes). */
struct element {
  MPI_Datatype type;
  enum kind kind;
  int values;
};

/* Values that rank `from` sends to rank `to` of `size`. */
typedef int counts(int from, int to, int size);

/* One MPI_Alltoallv with gaps between the blocks, in falling order of ranks at the receiver; checks
 * the messages, the gaps and how many messages were coded. */
void exchange(MPI_Comm comm, struct element send, struct element receive, counts *count);
/* One MPI_Alltoall. */
void exchange_equal(MPI_Comm comm, struct element send, struct element receive, int values);

void check_counts(void);
void check_in_place(void);
void check_displacements(void);
void check_signatures(void);
void check_elements(void);
void check_communicators(void);
void check_intercommunicators(void);
void check_profiling(void);

#endif
