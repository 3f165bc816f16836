// Values → streams.
//
// A plane first repeats, as they are, the bits of the n coefficients that an earlier plane made significant. The
// rest is runs of zeros: a 1 (some coefficient is still to come), the coefficients up to and with the next
// one-bit, and so on; a 0 ends the plane. So the code of a plane is the plane itself up to its last one-bit, with
// a 1 put in before coefficient n and after every one-bit behind it but the last. A coefficient becomes
// significant once, so that the loop over those one-bits runs at most SIZE times for a block, whatever the rate.

// Where the next bit of a code goes.
struct Pen {
    // The word that it goes to, and its bits so far.
    u32 *at;
    u32 pending;
    // Bits so far, of the whole code.
    u32 position;

    // Appends `count` bits, at most 32; those of `code` above them must be zero.
    __device__ __forceinline__ void put(u32 code, u32 count)
    {
        u32 before = position;
        pending |= __funnelshift_l(0, code, before);
        position += count;
        if ((before ^ position) >= 32)
            turn(__funnelshift_l(code, 0, before));
    }
    __device__ __forceinline__ void turn(u32 carry)
    {
        *at = pending;
        at += PITCH;
        pending = carry;
    }
};

// Puts a 1 before each bit of `code` that is set in `places`.
__device__ __forceinline__ u32 insert_ones(u32 code, u32 places)
{
    while (places) {
        u32 from = 0xffffffffu << (31 - __clz((i32)places));
        places &= ~from;
        code += (code & from) - from;
    }
    return code;
}

// Codes plane k, before which n of its coefficients, not all, were significant; returns how many are now.
//
// In blocks of one or two axes, the code of a plane is at most 31 bits.
template <int SIZE> __device__ __forceinline__ u32 code_plane(const u32 *planes, u32 k, u32 n, Pen &pen)
{
    u32 bit = k * SIZE;
    u32 plane = planes[bit / 32 * PITCH] >> (bit % 32) & ((1u << SIZE) - 1);
    u32 fresh = plane >> n << n;
    if (fresh == 0) {
        pen.put(plane, n + 1);
        return n;
    }
    u32 top = 31 - __clz((i32)fresh);
    u32 length = top + __popc(fresh) + 2;
    // Nobody else is left to be the last one-bit, so neither it nor the end is said.
    if (top == SIZE - 1) {
        plane ^= 1u << top;
        length -= 2;
    }
    pen.put(insert_ones(plane, (fresh ^ 1u << top) << 1 | 1u << n), length);
    return top + 1;
}

// In blocks of three axes, most codes are at most 32 bits behind the known bits; of those that are longer, 16
// coefficients are coded first, until the rest is.
template <> __device__ __forceinline__ u32 code_plane<64>(const u32 *planes, u32 k, u32 n, Pen &pen)
{
    u32 low = planes[2 * k * PITCH], high = planes[(2 * k + 1) * PITCH];
    pen.put(n < 32 ? low & ~(0xffffffffu << n) : low, least(n, 32u));
    if (n > 32)
        pen.put(high & ~(0xffffffffu << (n - 32)), n - 32);
    u64 tail = (low | (u64)high << 32) >> n;
    u64 places = 0;
    u32 length = 1;
    if (tail != 0) {
        u32 top = 63 - __clzll((i64)tail);
        u64 last = 1ull << top;
        places = (tail ^ last) << 1 | 1;
        length = top + __popcll(tail) + 2;
        n += top + 1;
        if (n == 64) {
            tail ^= last;
            length -= 2;
        }
    }
    while (length > 32) {
        u32 here = (u32)places & 0xffff;
        u32 count = 16 + __popc(here);
        pen.put(insert_ones((u32)tail & 0xffff, here), count);
        length -= count;
        tail >>= 16;
        places >>= 16;
    }
    pen.put(insert_ones((u32)tail, (u32)places), length);
    return n;
}

// Codes bits `at` to `end` of the planes' string as they are, as long as they begin before bit `budget` of the code.
__device__ __forceinline__ void copy_planes(const u32 *planes, u32 at, u32 end, u32 budget, Pen &pen)
{
    const u32 *word = planes + at / 32 * PITCH;
    if (at < end && at % 32 != 0) {
        u32 bits = least(32 - at % 32, end - at);
        pen.put(*word >> (at % 32) & ((1u << bits) - 1), bits);
        word += PITCH;
        at += bits;
    }
#pragma unroll 1
    for (; at + 32 <= end && pen.position < budget; at += 32) {
        u32 code = *word;
        u32 before = pen.position;
        pen.pending |= __funnelshift_l(0, code, before);
        pen.position += 32;
        pen.turn(__funnelshift_l(code, 0, before));
        word += PITCH;
    }
    if (at < end && pen.position < budget)
        pen.put(*word & ((1u << (end - at)) - 1), end - at);
}

// Codes the first `count` planes, but none that begins at or past bit `budget` of the block.
template <class T, int D> __device__ __forceinline__ void code_planes(u32 *column, u32 header, u32 count, u32 budget)
{
    typedef Shape<T, D> S;
    const u32 SIZE = S::SIZE;
    const u32 *planes = column + S::AHEAD * PITCH;
    Pen pen = {column, header, Format<T>::HEADER};
    u32 k = 0, n = 0;
#pragma unroll 1
    for (; k < count && n < SIZE && pen.position < budget; k++)
        n = code_plane<(int)SIZE>(planes, k, n, pen);
    // Once all coefficients are significant, a plane is its own code.
    copy_planes(planes, k * SIZE, n == SIZE ? count * SIZE : 0, budget, pen);
    *pen.at = pen.pending;
    u32 *end = column + least((u32)S::ROWS, (budget + 31) / 32) * PITCH;
#pragma unroll 1
    for (u32 *row = pen.at + PITCH; row < end; row += PITCH)
        *row = 0;
}

// A lane's block → its code, in its column.
template <class T, int D>
__device__ __forceinline__ void encode_block(const BoxJob &job, const Place<D> &place, u32 *column, u32 *refused)
{
    typedef Format<T> F;
    typedef typename F::Bits Bits;
    typedef typename F::Int Int;
    const int SIZE = Shape<T, D>::SIZE;
    T v[SIZE];
    load_block<T, D>(job, place, column, v);
    Bits largest = 0;
#pragma unroll
    for (int i = 0; i < SIZE; i++)
        largest = most(largest, magnitude(v[i]));
    u32 raw = (u32)(largest >> F::FRACTION);
    if (raw == 2 * F::BIAS + 1)
        atomicOr(refused + job.message, 1u);
    u32 biased = raw + (largest != 0);
    if (largest == 0 || raw == 2 * F::BIAS + 1) {
        code_planes<T, D>(column, 0, 0, job.block_bits);
        return;
    }
    // The factor takes values two bits short of the largest integers. That of a block of tiny values is too large
    // for the type, so it comes in two steps.
    int exponent = F::PLANES - 2 - ((int)biased - F::BIAS);
    int first = least(exponent, F::BIAS);
    if (first < exponent) {
        T factor = normal_power<T>(exponent - first);
#pragma unroll
        for (int i = 0; i < SIZE; i++)
            v[i] *= factor;
    }
    T factor = normal_power<T>(first);
    Int q[SIZE];
#pragma unroll
    for (int i = 0; i < SIZE; i++)
        q[i] = (Int)(v[i] * factor);
    forward<Int, D>(q);
    split<T, D>(q, column + Shape<T, D>::AHEAD * PITCH);
    int planes = least((int)biased + 2 * D + 2 - F::BIAS + 1074, (int)F::PLANES);
    code_planes<T, D>(column, biased << 1 | 1, planes, job.block_bits);
}

// Up to 32 bits of the code in a column, from bit `from` on.
template <class T, int D> __device__ __forceinline__ u32 code_bits(const u32 *column, u32 from, u32 count)
{
    const u32 ROWS = Shape<T, D>::ROWS;
    u32 row = from / 32;
    u32 low = row < ROWS ? column[row * PITCH] : 0;
    u32 high = row + 1 < ROWS ? column[(row + 1) * PITCH] : 0;
    u32 bits = __funnelshift_r(low, high, from);
    return count < 32 ? bits & ((1u << count) - 1) : bits;
}

// Word j of a tile's part of the stream: the end of one block, perhaps whole ones, the beginning of another.
template <class T, int D>
__device__ __forceinline__ u32 stream_word(const u32 *columns, u32 blocks, u32 block_bits, u32 j)
{
    u32 block = 32 * j / block_bits;
    u32 from = 32 * j - block * block_bits;
    u32 word = 0, fill = 0;
    while (fill < 32 && block < blocks) {
        u32 count = least(block_bits - from, 32 - fill);
        word |= code_bits<T, D>(columns + block, from, count) << fill;
        fill += count;
        from = 0;
        block++;
    }
    return word;
}

// Writes a tile's part of the stream; with the last tile of a box, up to a whole 64-bit word.
template <class T, int D> __device__ __forceinline__ void store_tile(const Tile &tile, const u32 *columns)
{
    const BoxJob &job = *tile.job;
    u32 bits = job.block_bits;
    u32 *stream = global<u32>(job.stream) + (u64)tile.index * bits;
    u32 words = bits;
    if (tile.index * TILE + tile.blocks == tile.box_blocks) {
        u64 all = ((u64)tile.box_blocks * bits + 63) / 64 * 2;
        words = (u32)(all - (u64)tile.index * bits);
    }
    u32 of_block = bits / 32;
    if (bits % 32 != 0 || of_block > Shape<T, D>::ROWS || tile.blocks != TILE || words != bits) {
        for (u32 j = lane_of_warp(); j < words; j += 32)
            stream[j] = stream_word<T, D>(columns, tile.blocks, bits, j);
        return;
    }
    // Whole words to each block. A lane goes from one of its words to the next by whole blocks and some rows.
    u32 block = lane_of_warp() / of_block, row = lane_of_warp() % of_block;
    u32 blocks_on = 32 / of_block, rows_on = 32 % of_block;
    u32 at = row * PITCH + block;
    u32 on = rows_on * PITCH + blocks_on, back = of_block * PITCH - 1;
#pragma unroll 4
    for (u32 j = lane_of_warp(); j < words; j += 32) {
        stream[j] = columns[at];
        at += on;
        row += rows_on;
        if (row >= of_block) {
            row -= of_block;
            at -= back;
        }
    }
}

template <class T, int D>
__device__ __forceinline__ void encode(const BoxJob *jobs, u32 njobs, u32 blocks_total, u32 *refused, u32 *shared)
{
    typedef Shape<T, D> S;
    u32 warp = threadIdx.x / 32;
    u32 index = blockIdx.x * S::WARPS + warp;
    if (njobs == 0 || index >= blocks_total / TILE + njobs)
        return;
    u32 *columns = shared + warp * S::ROWS * PITCH;
    Tile tile = find_tile(jobs, njobs, index);
    if (lane_of_warp() < tile.blocks) {
        Place<D> place = place_of<D>(*tile.job, tile.index * TILE + lane_of_warp());
        encode_block<T, D>(*tile.job, place, columns + lane_of_warp(), refused);
    }
    __syncwarp();
    if (tile.blocks > 0)
        store_tile<T, D>(tile, columns);
}
