#include "stress.h"

#include <math.h>
#include <string.h>

uint64_t seed;

static uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t hash(uint64_t call, uint64_t what, uint64_t a, uint64_t b) {
  return mixed(mixed(mixed(seed + call * 0x9e3779b97f4a7c15u) + what * 1000003 + a) + b * 0x9e3779b97f4a7c15u);
}

uint64_t choose(uint64_t below, uint64_t call, uint64_t what, uint64_t a, uint64_t b) {
  return hash(call, what, a, b) % below;
}

size_t scalar_size(enum scalar scalar) {
  static const size_t SIZES[] = {4, 8, 4, 8, 1};
  return SIZES[scalar];
}

static double wave(uint64_t of, long index) {
  enum { POINTS = 4096 };
  static double table[POINTS];
  if (table[1] == 0)
    for (int i = 0; i < POINTS; i++) table[i] = sin(2 * M_PI * i / POINTS);
  return 1.5 + 0.5 * table[(of + 13 * (uint64_t)index) % POINTS];
}

static double unit(uint64_t of, long index) { return (double)(mixed(of + (uint64_t)index) >> 11) / (double)(1ull << 53); }

static double value(enum family family, uint64_t of, long index) {
  switch (family) {
    case ZEROS: return 0;
    case NOISE: return 2 * unit(of, index) - 1;
    case WHOLE: return (double)(mixed(of + (uint64_t)index) % 5000);
    case SOME_NAN: return index % 37 == 5 ? NAN : wave(of, index);
    case NOT_FINITE: return index % 3 == 0 ? NAN : index % 3 == 1 ? INFINITY : -INFINITY;
    case FILLS: return index % 28 < 7 ? 1e20 : wave(of, index);
    case HUGE_VALUES: return 1.6e38 * wave(of, index);
    case SPIKES: return index % 501 == 77 ? wave(of, index) : 0;
    default: return wave(of, index);
  }
}

void write_scalar(void *at, enum scalar scalar, enum family family, uint64_t of, long index) {
  size_t size = scalar_size(scalar);
  if (scalar > DOUBLES || family == BITS) {
    uint64_t bits = mixed(of + (uint64_t)index);
    memcpy(at, &bits, size);
  } else if (scalar == DOUBLES) {
    double x = value(family, of, index);
    memcpy(at, &x, size);
  } else {
    float x = (float)value(family, of, index);
    memcpy(at, &x, size);
  }
}
