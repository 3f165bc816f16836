/* exchange [PART...]: all parts, or those named. */
#include "exchange.h"

#include <string.h>

static const struct {
  const char *name;
  void (*run)(void);
} parts[] = {
    {"counts", check_counts},
    {"in_place", check_in_place},
    {"displacements", check_displacements},
    {"signatures", check_signatures},
    {"elements", check_elements},
    {"communicators", check_communicators},
    {"intercommunicators", check_intercommunicators},
    {"profiling", check_profiling},
};

int main(int argc, char **argv) {
  check_init(&argc, &argv, MPI_THREAD_SINGLE);
  for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
    int wanted = argc == 1;
    for (int a = 1; a < argc; a++) wanted |= strcmp(argv[a], parts[p].name) == 0;
    if (wanted) parts[p].run();
  }
  return check_done();
}
