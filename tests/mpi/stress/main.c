/* stress SEED CALLS: prints the resident memory of the largest rank after a tenth of the calls and at the end. */
#include "stress.h"

#include <stdio.h>
#include <stdlib.h>

static long resident_kib(void) {
  FILE *status = fopen("/proc/self/status", "r");
  char line[200];
  long kib = 0, largest = 0;
  while (status && fgets(line, sizeof line, status)) sscanf(line, "VmRSS: %ld", &kib);
  if (status) fclose(status);
  MPI_Allreduce(&kib, &largest, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  return largest;
}

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  uint64_t calls = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  struct comm comms[COMMS];
  for (int slot = 0; slot < COMMS; slot++) make_comm(&comms[slot], slot, 0);
  long early = 0;
  for (uint64_t call = 1; call <= calls; call++) {
    int slot = (int)choose(COMMS, call, COMM, 0, 0);
    if (slot > 0 && choose(100, call, CHANGE, 0, 0) == 0) {
      free_comm(&comms[slot], slot);
      make_comm(&comms[slot], slot, call);
    }
    change_terms(&comms[slot], call);
    random_call(&comms[slot], call);
    if (call == (calls + 9) / 10) early = resident_kib();
    if (call % 100 == 0 || call == calls) check("%lu calls", (unsigned long)call);
  }
  long late = resident_kib();
  if (rank == 0) printf("resident-early %ld\nresident-late %ld\n", early, late);
  for (int slot = 0; slot < COMMS; slot++) free_comm(&comms[slot], slot);
  return check_done();
}
