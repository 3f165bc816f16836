// Streams → values.

// The bits of one block; zeros after the last word that it has a part in.
struct Reader {
    // The word after those in the window, and how many of the block's words are still to come.
    const u32 *next;
    u32 left;
    u32 window[3];
    u32 offset;

    __device__ __forceinline__ void open(const u32 *stream, u64 position, u32 bits)
    {
        next = stream + position / 32;
        offset = (u32)(position % 32);
        left = (offset + bits + 31) / 32;
        window[0] = fetch(), window[1] = fetch(), window[2] = fetch();
    }
    __device__ __forceinline__ u32 fetch()
    {
        if (left == 0)
            return 0;
        left--;
        return *next++;
    }
    __device__ __forceinline__ u32 low() const { return __funnelshift_r(window[0], window[1], offset); }
    __device__ __forceinline__ u32 high() const { return __funnelshift_r(window[1], window[2], offset); }
    // Goes on by up to 64 bits.
    __device__ __forceinline__ void skip(u32 bits)
    {
        offset += bits;
        while (offset >= 32) {
            window[0] = window[1], window[1] = window[2], window[2] = fetch();
            offset -= 32;
        }
    }
};

__device__ __forceinline__ u32 low_bits(u32 word, u32 count)
{
    return count < 32 ? word & ((1u << count) - 1) : word;
}

// A bit plane of up to 64 coefficients.
struct Plane {
    u32 low, high;
    __device__ __forceinline__ void set(u32 i)
    {
        u32 bit = __funnelshift_l(0, 1, i);
        if (i < 32)
            low |= bit;
        else
            high |= bit;
    }
};

// Reads a plane before which n coefficients were significant, from at most `left` bits, and changes both.
template <int SIZE> __device__ __forceinline__ Plane read_plane(Reader &reader, u32 &n, u32 &left)
{
    Plane plane = {0, 0};
    u32 known = least(n, left);
    plane.low = low_bits(reader.low(), known);
    if (SIZE == 64 && known > 32)
        plane.high = low_bits(reader.high(), known - 32);
    reader.skip(known);
    left -= known;
    while (left > 0 && n < SIZE) {
        left--;
        u32 low = reader.low(), high = reader.high();
        if ((low & 1) == 0) {
            reader.skip(1);
            break;
        }
        // A run of zeros ends with a one-bit, or one short of the last coefficient, or where the block ends; a cut
        // in the middle of a run makes a one-bit of the coefficient that it stopped at.
        low = __funnelshift_r(low, high, 1);
        u32 zeros = low ? (u32)__ffs((i32)low) - 1 : high >> 1 ? 32 + (u32)__ffs((i32)(high >> 1)) - 1 : 64;
        u32 most_zeros = least(SIZE - 1 - n, left);
        u32 used = least(zeros + 1, most_zeros);
        n += least(zeros, most_zeros);
        plane.set(n);
        n++;
        left -= used;
        reader.skip(1 + used);
    }
    return plane;
}

// The code of a lane's block → its bit planes, in its column. Returns how many words those are; zeros follow.
template <class T, int D>
__device__ __forceinline__ u32 read_planes(Reader &reader, u32 left, u32 count, u32 *column)
{
    const u32 SIZE = Shape<T, D>::SIZE;
    u32 k = 0, n = 0, word = 0, words = 0;
#pragma unroll 1
    for (; k < count && left > 0; k++) {
        Plane plane = read_plane<(int)SIZE>(reader, n, left);
        if (SIZE == 64) {
            column[2 * k * PITCH] = plane.low;
            column[(2 * k + 1) * PITCH] = plane.high;
        } else {
            word |= plane.low << (k * SIZE % 32);
            if ((k + 1) * SIZE % 32 == 0) {
                column[words++ * PITCH] = word;
                word = 0;
            }
        }
    }
    if (SIZE == 64)
        return 2 * k;
    if (k * SIZE % 32 != 0)
        column[words++ * PITCH] = word;
    return words;
}

// The values that are coded in a lane's block.
template <class T, int D>
__device__ __forceinline__ void decode_block(const BoxJob &job, u32 block, u32 *column, T *v)
{
    typedef Format<T> F;
    typedef typename F::Int Int;
    const int SIZE = Shape<T, D>::SIZE;
    Reader reader;
    reader.open((const u32 *)job.stream, (u64)block * job.block_bits, job.block_bits);
    u32 header = reader.low() & ((1u << F::HEADER) - 1);
    reader.skip(F::HEADER);
    int biased = (int)(header >> 1);
    u32 words = 0;
    if (header & 1) {
        int planes = least(biased + 2 * D + 2 - F::BIAS + 1074, (int)F::PLANES);
        words = read_planes<T, D>(reader, job.block_bits - F::HEADER, most(planes, 0), column);
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
