// Streams → values.

// The bits of one block, at a position that counts from the word that the block begins in.
struct Reader {
    const u32 *words;
    // The block's last word, and which word `ahead` is. What follows the last is that again, and not looked at.
    u32 last, index;
    u32 position, end;
    // The word at the position, and the two after it.
    u32 here, next, ahead;

    __device__ __forceinline__ void open(const u32 *stream, u64 start, u32 bits)
    {
        words = stream + start / 32;
        position = (u32)(start % 32);
        end = position + bits;
        last = (end - 1) / 32;
        index = least(2u, last);
        here = __ldg(words), next = __ldg(words + least(1u, last)), ahead = __ldg(words + index);
    }
    __device__ __forceinline__ u32 left() const { return end - position; }
    __device__ __forceinline__ u32 peek() const { return __funnelshift_r(here, next, position); }
    // Goes on by at most 32 bits.
    __device__ __forceinline__ void skip(u32 bits)
    {
        u32 before = position;
        position += bits;
        if ((before ^ position) >= 32)
            turn();
    }
    // Takes 32 bits.
    __device__ __forceinline__ u32 take_word()
    {
        u32 word = peek();
        position += 32;
        turn();
        return word;
    }
    __device__ __forceinline__ void turn()
    {
        here = next, next = ahead;
        index = least(index + 1, last);
        ahead = __ldg(words + index);
    }
};

// The lowest bits of a word, at most 31 or at most 32.
__device__ __forceinline__ u32 below(u32 word, u32 count) { return word & ~(0xffffffffu << count); }
__device__ __forceinline__ u32 low_bits(u32 word, u32 count) { return count < 32 ? below(word, count) : word; }

// What follows the known bits of a plane, or a part of that.
struct Tail {
    // Coefficients, and how many.
    u32 bits, count;
    // 1 where the plane ends there.
    u32 ends;
};

// Reads the next part of a tail, of at most 31 bits of code.
//
// A 1 that says "more" looks like a coefficient. But within a run of ones they take turns, a coefficient first, and
// a zero after a run of odd length is no coefficient, but ends the plane. Two additions find both for all runs at
// once. `is_one`: whether the bit before was a coefficient that is one, so that now it is said whether there is more.
__device__ __forceinline__ Tail read_tail(Reader &reader, u32 room, u32 &is_one)
{
    const u32 EVEN = 0x55555555;
    u32 window = reader.peek();
    // With the bit before.
    u32 code = window << 1 | is_one;
    // Adding the first bit of a run of ones to it clears it and carries out of its end.
    u32 starts = code & ~(code << 1);
    u32 after_runs = code + starts;
    // In a run: whether a bit is as far from the first as a coefficient is. After it: whether its length is odd.
    u32 in_turn = (code + (starts & EVEN)) ^ EVEN;
    u32 more = (code & ~in_turn) >> 1;
    u32 ends = after_runs & in_turn;
    // Without an end, 31.
    u32 until_end = __clz((i32)__brev(ends)) - 1;
    u32 there = least(reader.left(), 31u);
    u32 length = least(until_end, there);

    Tail tail;
    is_one = (code & in_turn) >> length & 1;
    tail.bits = below(window, length);
    more = below(more, length);
    tail.count = length - __popc(more);
    tail.ends = until_end < there;
    u32 used = length + tail.ends;
    // Take the 1s out that say "more", as long as there are coefficients.
    u32 all = low_bits(0xffffffffu, room), taken = 0;
    while (more) {
        u32 rest = more - 1;
        u32 before = rest & ~more;
        if (before >= all)
            break;
        tail.bits = (tail.bits & before) | (tail.bits >> 1 & ~before);
        more = (more & rest) >> 1;
        taken++;
    }
    // The last coefficient of the block is not said; the code ends before it.
    if (tail.count >= room) {
        used = room - 1 + taken;
        tail.bits = below(tail.bits, room - 1) | 1u << (room - 1);
        tail.count = room;
        tail.ends = 1;
    }
    reader.skip(used);
    return tail;
}

// A bit plane.
template <int SIZE> struct Plane {
    u32 bits;
    __device__ __forceinline__ u32 low() const { return bits; }
    __device__ __forceinline__ u32 high() const { return 0; }
    // Puts the bits that are coefficients that were significant before; those of the plane must be zero.
    __device__ __forceinline__ void read_known(Reader &reader, u32 known)
    {
        bits = below(reader.peek(), known);
        reader.skip(known);
    }
    __device__ __forceinline__ void put(u32 tail, u32 at) { bits |= tail << at; }
};

template <> struct Plane<64> {
    u64 bits;
    __device__ __forceinline__ u32 low() const { return (u32)bits; }
    __device__ __forceinline__ u32 high() const { return (u32)(bits >> 32); }
    __device__ __forceinline__ void read_known(Reader &reader, u32 known)
    {
        u32 first = least(known, 32u);
        bits = low_bits(reader.peek(), first);
        reader.skip(first);
        if (known > 32) {
            bits |= (u64)below(reader.peek(), known - 32) << 32;
            reader.skip(known - 32);
        }
    }
    __device__ __forceinline__ void put(u32 tail, u32 at) { bits |= (u64)tail << at; }
};

// Reads a plane before which n of its coefficients, not all, were significant.
template <int SIZE> __device__ __forceinline__ Plane<SIZE> read_plane(Reader &reader, u32 &n)
{
    Plane<SIZE> plane;
    plane.read_known(reader, least(n, reader.left()));
    u32 is_one = 1, ends = 0;
    while (!ends && reader.left() > 0) {
        Tail tail = read_tail(reader, SIZE - n, is_one);
        plane.put(tail.bits, n);
        n += tail.count;
        ends = tail.ends;
    }
    // A cut in the middle of a run makes a one-bit of the coefficient that it stopped at.
    u32 cut = 1 & ~(ends | is_one);
    plane.put(cut, n % SIZE);
    n += cut;
    return plane;
}

// The code of a lane's block → its bit planes, in its column. Returns how many words those are; zeros follow.
template <class T, int D> __device__ __forceinline__ u32 read_planes(Reader &reader, u32 count, u32 *column)
{
    const u32 SIZE = Shape<T, D>::SIZE;
    u32 k = 0, n = 0, word = 0;
#pragma unroll 1
    for (; k < count && n < SIZE && reader.left() > 0; k++) {
        Plane<(int)SIZE> plane = read_plane<(int)SIZE>(reader, n);
        if (SIZE == 64) {
            column[2 * k * PITCH] = plane.low();
            column[(2 * k + 1) * PITCH] = plane.high();
            continue;
        }
        u32 at = k * SIZE;
        word |= plane.low() << (at % 32);
        column[at / 32 * PITCH] = word;
        if ((at + SIZE) % 32 == 0)
            word = 0;
    }
    // Once all coefficients are significant, a plane is its own code.
    u32 at = k * SIZE, end = count * SIZE;
#pragma unroll 1
    while (at < end && reader.left() > 0) {
        if (at % 32 == 0 && at + 32 <= end && reader.left() >= 32) {
            column[at / 32 * PITCH] = reader.take_word();
            at += 32;
            continue;
        }
        u32 bits = least(least(32 - at % 32, end - at), reader.left());
        word |= low_bits(reader.peek(), bits) << (at % 32);
        column[at / 32 * PITCH] = word;
        reader.skip(bits);
        at += bits;
        if (at % 32 == 0)
            word = 0;
    }
    return (at + 31) / 32;
}

// The values that are coded in a lane's block.
template <class T, int D>
__device__ __forceinline__ void decode_block(const BoxJob &job, u32 block, u32 *column, T *v)
{
    typedef Format<T> F;
    typedef typename F::Int Int;
    const int SIZE = Shape<T, D>::SIZE;
    Reader reader;
    reader.open(global<const u32>(job.stream), (u64)block * job.block_bits, job.block_bits);
    u32 header = below(reader.peek(), F::HEADER);
    reader.skip(F::HEADER);
    int biased = (int)(header >> 1);
    u32 words = 0;
    if (header & 1) {
        int planes = least(biased + 2 * D + 2 - F::BIAS + 1074, (int)F::PLANES);
        words = read_planes<T, D>(reader, most(planes, 0), column);
    }
    Int q[SIZE];
    join<T, D>(column, words, q);
    inverse<Int, D>(q);
    T factor = power_of_two<T>(biased - F::BIAS - (F::PLANES - 2));
#pragma unroll
    for (int i = 0; i < SIZE; i++)
        v[i] = (T)q[i] * factor;
}

template <class T, int D>
__device__ __forceinline__ void decode(const BoxJob *jobs, u32 njobs, u32 blocks_total, u32 *shared)
{
    typedef Shape<T, D> S;
    u32 warp = threadIdx.x / 32;
    u32 index = blockIdx.x * S::WARPS + warp;
    if (njobs == 0 || index >= blocks_total / TILE + njobs)
        return;
    Tile tile = find_tile(jobs, njobs, index);
    if (lane_of_warp() >= tile.blocks)
        return;
    u32 block = tile.index * TILE + lane_of_warp();
    u32 *column = shared + warp * S::PLANE_WORDS * PITCH + lane_of_warp();
    T v[S::SIZE];
    decode_block<T, D>(*tile.job, block, column, v);
    Place<D> place = place_of<D>(*tile.job, block);
    store_block<T, D>(*tile.job, place, column, v);
}
