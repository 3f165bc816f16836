/* Hands out the constants that src/mpi/abi.rs has a table of, as the mpi.h that this is compiled with defines
 * them. Handles go by value, as they are passed; those of Open MPI are addresses in this process. */
#include <mpi.h>
#include <stdint.h>

typedef void each_t(void *context, const char *name, uint64_t value);

#define ADDRESS(name) each(context, #name, (uintptr_t)(name))
#define INT(name) each(context, #name, (uint64_t)(name))
#define HANDLE(name)                                                                 \
  each(context, #name, sizeof(name) == 4 ? (uint32_t)(uintptr_t)(name) : (uintptr_t)(name))

void constants(each_t *each, void *context) {
  each(context, "handle bytes", sizeof(MPI_Comm));
  ADDRESS(MPI_IN_PLACE);
  ADDRESS(MPI_STATUS_IGNORE);
  HANDLE(MPI_COMM_WORLD);
  HANDLE(MPI_COMM_NULL);
  HANDLE(MPI_INFO_NULL);
  HANDLE(MPI_DATATYPE_NULL);
  HANDLE(MPI_BYTE);
  HANDLE(MPI_INT);
  HANDLE(MPI_MAX);
  HANDLE(MPI_BOR);
  HANDLE(MPI_ERRORS_RETURN);
  INT(MPI_SUCCESS);
  INT(MPI_COMM_TYPE_SHARED);
  INT(MPI_ERR_OTHER);
  INT(MPI_COMBINER_NAMED);
  INT(MPI_COMBINER_DUP);
  INT(MPI_COMBINER_CONTIGUOUS);
  INT(MPI_COMBINER_VECTOR);
  INT(MPI_COMBINER_HVECTOR);
  INT(MPI_COMBINER_SUBARRAY);
  INT(MPI_COMBINER_F90_REAL);
  INT(MPI_COMBINER_F90_COMPLEX);
  INT(MPI_COMBINER_F90_INTEGER);
  INT(MPI_COMBINER_RESIZED);
}
