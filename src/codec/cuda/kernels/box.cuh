// Boxes, tiles of 32 neighbouring blocks, and blocks: where they are, and how they get into registers and back.
//
// A thread codes a block, so a warp codes a tile. Tiles of a box begin on whole 32-bit words of its stream,
// whatever the bits of a block, so that no two warps write to one word.

enum : u32 { TILE = 32 };
// Rows of shared memory, a column of which belongs to a lane; one more, lest neighbouring rows of a column or
// of a stream meet in one bank.
enum : u32 { PITCH = TILE + 1 };

template <class T, int D> struct Shape {
    static const int SIZE = 1 << (2 * D);
    static const int PLANES = Format<T>::PLANES;
    // Words of a block's bit planes, and of the longest code.
    static const int PLANE_WORDS = PLANES * SIZE / 32;
    // How many words the code of some planes may be longer than they: header, group tests, a word under way.
    static const int AHEAD = (Format<T>::HEADER + SIZE + PLANES + 31 + 31) / 32;
    static const int ROWS = PLANE_WORDS + AHEAD;
    // Words of shared memory that `sample` has for a block: its values and its planes.
    static const int SAMPLE_ROWS = SIZE * (int)(sizeof(T) / 4) + PLANE_WORDS;
    static const int WARPS = sizeof(T) == 8 && D == 3 ? 2 : 4;
    // Thread blocks that a multiprocessor has room for at least; 0 leaves it to the compiler, which here would have
    // more of them and spill.
    static const int RESIDENT = sizeof(T) == 4 || D == 2 ? 0 : D == 3 ? 4 : 8;
};

// One warp's tile.
struct Tile {
    const BoxJob *job;
    u32 index;
    // Blocks of the box, and of the tile; 0 where there is no such tile.
    u32 box_blocks, blocks;
};

__device__ __forceinline__ u32 blocks_along(const BoxJob &job, int axis) { return (job.extents[axis] + 3) / 4; }

__device__ __forceinline__ u32 blocks_of(const BoxJob &job)
{
    return blocks_along(job, 0) * blocks_along(job, 1) * blocks_along(job, 2);
}

// Finds the tile of a warp. Box i begins with tile first_block / 32 + i: at least as far from the next as it has
// tiles. The lanes probe 32 boxes at a time.
__device__ __forceinline__ Tile find_tile(const BoxJob *jobs, u32 njobs, u32 tile)
{
    u32 low = 0, high = njobs;
    while (high - low > 1) {
        u32 step = (high - low + 31) / 32;
        u32 probe = low + lane_of_warp() * step;
        bool begun = probe < high && jobs[probe].first_block / TILE + probe <= tile;
        u32 count = __popc(__ballot_sync(0xffffffff, begun));
        low += (count - 1) * step;
        high = least(high, low + step);
    }
    Tile found;
    found.job = jobs + low;
    found.index = tile - (found.job->first_block / TILE + low);
    found.box_blocks = blocks_of(*found.job);
    u32 first = found.index * TILE;
    found.blocks = first < found.box_blocks ? least(found.box_blocks - first, (u32)TILE) : 0;
    return found;
}

// Where a block is.
template <int D> struct Place {
    // Of its first value, from that of the box, in values.
    i64 offset;
    // Values inside the box along each axis, 1 to 4.
    u32 extents[3];
};

template <int D> __device__ __forceinline__ Place<D> place_of(const BoxJob &job, u32 block)
{
    u32 at[3] = {block, 0, 0};
    if (D > 1) {
        u32 columns = blocks_along(job, 0);
        at[1] = block / columns;
        at[0] = block - at[1] * columns;
    }
    if (D > 2) {
        u32 rows = blocks_along(job, 1);
        at[2] = at[1] / rows;
        at[1] -= at[2] * rows;
    }
    Place<D> place;
    place.offset = 0;
#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        place.extents[axis] = 1;
        if (axis < D) {
            place.offset += (i64)(4 * (u64)at[axis]) * job.strides[axis];
            place.extents[axis] = least(job.extents[axis] - 4 * at[axis], 4u);
        }
    }
    return place;
}

// Which value of a row of `count` stands at index i of a whole row: past the end the last, and at 3 the first.
__device__ __forceinline__ u32 padded(u32 i, u32 count) { return i < count ? i : i == 3 ? 0 : count - 1; }

// index / run % fields, a binary digit of the quotient after the other: to divide 64 bits, the compiler would call a
// function, for which it would have registers put away.
__device__ __forceinline__ u32 field_of_long(u64 index, u32 run, u32 fields)
{
    u64 rest = 0, field = 0;
#pragma unroll 1
    for (int digit = 0; digit < 64; digit++) {
        rest = rest << 1 | index >> 63;
        index <<= 1;
        bool one = rest >= run;
        rest -= one ? run : 0;
        field = field << 1 | one;
        field -= field >= fields ? fields : 0;
    }
    return (u32)field;
}

// The field of the value at `index` of a message.
__device__ __forceinline__ u32 field_of(const BoxJob &job, u64 index)
{
    if (index >> 32)
        return field_of_long(index, job.run, job.fields);
    return (u32)index / job.run % job.fields;
}

__device__ __forceinline__ int exponent_at(const BoxJob &job, i64 offset)
{
    const i16 *exponents = global<const i16>(job.exponents);
    return exponents[field_of(job, job.origin + (u64)offset)];
}

// The exponents of a row of four values from an offset on. Mostly they are of one field, and one.
struct RowExponents {
    int first;
    bool is_one;

    __device__ __forceinline__ void find(const BoxJob &job, i64 offset)
    {
        first = exponent_at(job, offset);
        u64 index = job.origin + (u64)offset;
        i64 stride = job.strides[0];
        is_one = index >> 32 == 0 && stride >= 0 && stride < job.run
            && (u32)index % job.run + 3 * (u64)stride < job.run;
    }
    __device__ __forceinline__ int at(const BoxJob &job, i64 offset) const
    {
        return is_one ? first : exponent_at(job, offset);
    }
};

// Four values of a row that can be moved at once.
template <class T> struct Row;
template <> struct Row<float> {
    float4 four;
    __device__ __forceinline__ void load(const float *at) { four = __ldg((const float4 *)at); }
    __device__ __forceinline__ void store(float *at) const { *(float4 *)at = four; }
    __device__ __forceinline__ void get(float *v) const { v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w; }
    __device__ __forceinline__ void set(const float *v) { four.x = v[0], four.y = v[1], four.z = v[2], four.w = v[3]; }
};
template <> struct Row<double> {
    double2 low, high;
    __device__ __forceinline__ void load(const double *at)
    {
        low = __ldg((const double2 *)at), high = __ldg((const double2 *)at + 1);
    }
    __device__ __forceinline__ void store(double *at) const { ((double2 *)at)[0] = low, ((double2 *)at)[1] = high; }
    __device__ __forceinline__ void get(double *v) const { v[0] = low.x, v[1] = low.y, v[2] = high.x, v[3] = high.y; }
    __device__ __forceinline__ void set(const double *v) { low.x = v[0], low.y = v[1], high.x = v[2], high.y = v[3]; }
};

// Whether whole rows of all blocks of a box can be moved at once.
template <class T, int D> __device__ __forceinline__ bool has_rows(const BoxJob &job)
{
    bool aligned = job.values % 16 == 0 && job.strides[0] == 1;
    if (D > 1)
        aligned = aligned && job.strides[1] % (16 / (int)sizeof(T)) == 0;
    if (D > 2)
        aligned = aligned && job.strides[2] % (16 / (int)sizeof(T)) == 0;
    return aligned;
}

// The bits of value i in a lane's column.
template <class T> __device__ __forceinline__ void put_value(u32 *column, int i, T x)
{
    u64 bits = Format<T>::bits(x);
    if (sizeof(T) == 4) {
        column[i * PITCH] = (u32)bits;
    } else {
        column[2 * i * PITCH] = (u32)bits;
        column[(2 * i + 1) * PITCH] = (u32)(bits >> 32);
    }
}

template <class T> __device__ __forceinline__ T get_value(const u32 *column, int i)
{
    typedef typename Format<T>::Bits Bits;
    if (sizeof(T) == 4)
        return Format<T>::value((Bits)column[i * PITCH]);
    return Format<T>::value((Bits)(column[2 * i * PITCH] | (u64)column[(2 * i + 1) * PITCH] << 32));
}

// The offset of value i (x fastest) of a padded block.
template <int D> __device__ __forceinline__ i64 padded_offset(const BoxJob &job, const Place<D> &place, int i)
{
    i64 offset = place.offset + (i64)padded(i & 3, place.extents[0]) * job.strides[0];
    if (D > 1)
        offset += (i64)padded(i >> 2 & 3, place.extents[1]) * job.strides[1];
    if (D > 2)
        offset += (i64)padded(i >> 4, place.extents[2]) * job.strides[2];
    return offset;
}

// The padded block with its values scaled, by way of the lane's column.
template <class T, int D>
__device__ __forceinline__ void load_scaled(const BoxJob &job, const Place<D> &place, u32 *column)
{
    const T *first = global<const T>(job.values);
#pragma unroll 1
    for (int row = 0; row < Shape<T, D>::SIZE; row += 4) {
        i64 start = padded_offset<D>(job, place, row);
        RowExponents exponents = {0, true};
        if (job.exponents)
            exponents.find(job, start);
#pragma unroll 1
        for (int x = 0; x < 4; x++) {
            i64 offset = start + (i64)padded(x, place.extents[0]) * job.strides[0];
            put_value(column, row + x, times_power_of_two(__ldg(first + offset), -exponents.at(job, offset)));
        }
    }
}

// The padded block of a lane, its values scaled.
template <class T, int D>
__device__ __forceinline__ void load_block(const BoxJob &job, const Place<D> &place, u32 *column, T *v)
{
    const int SIZE = Shape<T, D>::SIZE;
    if (job.exponents) {
        load_scaled<T, D>(job, place, column);
#pragma unroll
        for (int i = 0; i < SIZE; i++)
            v[i] = get_value<T>(column, i);
        return;
    }
    const T *first = global<const T>(job.values) + place.offset;
    i64 y_offset[4], z_offset[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        y_offset[i] = D > 1 ? (i64)padded(i, place.extents[1]) * job.strides[1] : 0;
        z_offset[i] = D > 2 ? (i64)padded(i, place.extents[2]) * job.strides[2] : 0;
    }
    if (has_rows<T, D>(job) && place.extents[0] == 4) {
#pragma unroll
        for (int row = 0; row < SIZE / 4; row++) {
            const T *start = first + (z_offset[row / 4] + y_offset[row % 4]);
            Row<T> four;
            four.load(start);
            four.get(v + 4 * row);
        }
        return;
    }
    i64 x_offset[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        x_offset[i] = (i64)padded(i, place.extents[0]) * job.strides[0];
#pragma unroll
    for (int row = 0; row < SIZE / 4; row++) {
        const T *start = first + (z_offset[row / 4] + y_offset[row % 4]);
#pragma unroll
        for (int x = 0; x < 4; x++)
            v[4 * row + x] = __ldg(start + x_offset[x]);
    }
}

// Whether value i (x fastest) of a block lies inside the box, along y and z.
template <int D> __device__ __forceinline__ bool has_row(const Place<D> &place, int i)
{
    return (i >> 2 & 3) < (int)place.extents[1] && (i >> 4) < (int)place.extents[2];
}

// Writes the part of the block in a lane's column that lies inside the box, its values scaled back.
template <class T, int D>
__device__ __forceinline__ void store_scaled(const BoxJob &job, const Place<D> &place, const u32 *column)
{
    const int LIMIT = Format<T>::SCALE_LIMIT;
    T *first = global<T>(job.values);
#pragma unroll 1
    for (int row = 0; row < Shape<T, D>::SIZE; row += 4) {
        if (!has_row<D>(place, row))
            continue;
        i64 offset = padded_offset<D>(job, place, row);
        RowExponents exponents;
        exponents.find(job, offset);
#pragma unroll 1
        for (int x = 0; x < (int)place.extents[0]; x++) {
            int exponent = most(least(exponents.at(job, offset), LIMIT), -LIMIT);
            first[offset] = times_power_of_two(get_value<T>(column, row + x), exponent);
            offset += job.strides[0];
        }
    }
}

// Writes the part of a lane's block that lies inside the box, its values scaled back.
template <class T, int D>
__device__ __forceinline__ void store_block(const BoxJob &job, const Place<D> &place, u32 *column, const T *v)
{
    const int SIZE = Shape<T, D>::SIZE;
    T *first = global<T>(job.values);
    if (job.exponents) {
#pragma unroll
        for (int i = 0; i < SIZE; i++)
            put_value(column, i, v[i]);
        store_scaled<T, D>(job, place, column);
        return;
    }
    first += place.offset;
    bool in_rows = has_rows<T, D>(job) && place.extents[0] == 4;
#pragma unroll
    for (int row = 0; row < SIZE / 4; row++) {
        if (!has_row<D>(place, 4 * row))
            continue;
        T *start = first;
        if (D > 1)
            start += (row % 4) * job.strides[1];
        if (D > 2)
            start += (row / 4) * job.strides[2];
        if (in_rows) {
            Row<T> four;
            four.set(v + 4 * row);
            four.store(start);
        } else {
#pragma unroll
            for (int x = 0; x < 4; x++)
                if (x < (int)place.extents[0])
                    start[x * job.strides[0]] = v[4 * row + x];
        }
    }
}
