/* Named checks, and messages whose every value is known at both ends.
 *
 * The harness says in the environment what to expect of messages that the library may code:
 *   CHECK_F32, CHECK_F64   largest relative L2 error of a message (default 0: bit-exact)
 *   CHECK_COMPRESSED=1     such messages must have been coded, and no other message may be
 */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stddef.h>

/* What a message holds. */
enum kind { F32, F64, EXACT };

/* The library's default for TRANSPRESS_MIN_BYTES. */
enum { MIN_BYTES = 4096 };

/* MPI_Init, or MPI_Init_thread for a level above MPI_THREAD_SINGLE, and the expectations. Returns the
 * level that MPI provides. */
int check_init(int *argc, char ***argv, int level);
/* Notes what is wrong in the check under way on this rank; the first note is kept. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends a check. Collective over MPI_COMM_WORLD; rank 0 prints "ok NAME" or "FAIL NAME why". */
void check(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints "done"; returns the exit status of the program. */
int check_done(void);

/* Bytes of one value of a kind. */
size_t size_of(enum kind kind);
/* Writes the message that rank from sends to rank to: smooth values, or arbitrary bytes. */
void fill(void *message, enum kind kind, long values, int from, int to);
/* Is what arrived the message of rank from to rank to? Bit-exact unless it may have been coded. */
void expect(const void *message, enum kind kind, long values, int from, int to);
/* May the library code a message? The same answer at both ends. */
int may_be_coded(enum kind kind, long values, int from, int to);
/* Relative L2 error of x against y. */
double relative_error(const void *x, const void *y, enum kind kind, long values);
/* Do values that may have been coded differ from what was sent by no more than is expected? */
void expect_close(const void *got, const void *want, enum kind kind, long values, const char *what);

/* An MPI_Alltoall on MPI_COMM_WORLD with so many floats for each rank, and a look at what arrived. */
void exchange_floats(int values);

/* Messages that this rank has sent compressed on comm so far. */
long coded(MPI_Comm comm);
/* Under CHECK_COMPRESSED: since `before`, exactly this many more. */
void expect_coded(MPI_Comm comm, long before, long messages);

/* Memory that nobody has written, and whether it still is so. */
enum { UNTOUCHED = 0xA5 };
void *untouched(size_t bytes);
int is_untouched(const void *memory, size_t bytes);

#endif
