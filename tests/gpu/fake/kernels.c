/* Kernels for tests of the driver layer: what emulates one, called as by the stand-in for CUDA. */
#include <string.h>

/* double_words(u64 address, u32 count) */
static void double_words(unsigned grid, unsigned threads, void **args) {
  unsigned long long address;
  unsigned count;
  memcpy(&address, args[0], sizeof address);
  memcpy(&count, args[1], sizeof count);
  unsigned *words = (unsigned *)address;
  for (unsigned i = 0; i < grid * threads && i < count; i++) words[i] *= 2;
}

int emulate(const char *kernel, unsigned grid, unsigned threads, void **args) {
  if (strcmp(kernel, "double_words") == 0) {
    double_words(grid, threads, args);
    return 0;
  }
  return 1; /* as a kernel that goes astray */
}
