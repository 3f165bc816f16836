#include "stress.h"

enum { SIX = 6 };

static MPI_Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}

/* Two rows of three, with a gap of two after the first and one after the second, and one of three at the end. */
static MPI_Datatype with_gaps(MPI_Datatype base, long bytes) {
  MPI_Datatype rows, resized;
  MPI_Type_vector(2, 3, 5, base, &rows);
  MPI_Type_create_resized(rows, 0, 12 * bytes, &resized);
  MPI_Type_free(&rows);
  return committed(resized);
}

struct items make_items(uint64_t call, enum choice form) {
  static const struct {
    enum scalar scalar;
    int scalars;
  } KINDS[] = {{FLOATS, 1}, {FLOATS, 1}, {FLOATS, 1}, {DOUBLES, 1}, {DOUBLES, 1}, {FLOATS, 2}, {DOUBLES, 2},
               {INTS, 1},   {LONGS, 1},  {BYTES, 1}};
  uint64_t kind = choose(10, call, TYPE, 0, 0);
  /* Not in an array: they are no constants in every MPI. */
  MPI_Datatype base = kind < 3 ? MPI_FLOAT : kind < 5 ? MPI_DOUBLE : kind == 5 ? MPI_C_FLOAT_COMPLEX
                      : kind == 6 ? MPI_C_DOUBLE_COMPLEX : kind == 7 ? MPI_INT : kind == 8 ? MPI_INT64_T : MPI_BYTE;
  struct items items = {.type = base, .scalar = KINDS[kind].scalar, .scalars = KINDS[kind].scalars, .per_item = 1};
  long size = (long)scalar_size(items.scalar), bytes = size * items.scalars;
  items.extent = bytes;
  int with_six = choose(3, call, TYPE, 1, 0) == 0, gaps = 0;
  if (with_six) {
    items.extent = SIX * bytes;
    items.scalars *= SIX;
    switch (choose(3, call, form, 0, 0)) {
      case 0: items.per_item = SIX; break;
      case 1:
        MPI_Type_contiguous(SIX, base, &items.type);
        items.type = committed(items.type);
        items.derived = 1;
        break;
      default:
        items.type = with_gaps(base, bytes);
        items.derived = gaps = 1;
        items.extent = 12 * bytes;
    }
  }
  int in_base = (int)(bytes / size);
  for (int i = 0; i < items.scalars; i++) {
    int element = i / in_base;
    items.offsets[i] = bytes * (element + (gaps && element >= 3 ? 2 : 0)) + size * (i % in_base);
  }
  return items;
}

void free_items(struct items *items) {
  if (items->derived) MPI_Type_free(&items->type);
}
