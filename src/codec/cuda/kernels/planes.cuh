// Coefficients and bit planes.
//
// The bit planes of a block are one bit string, the most significant plane first, the coefficients of a plane in
// coding order. A thread makes it in its registers and leaves it in its column of shared memory, word by word.

__device__ __forceinline__ u32 delta_swap(u32 x, int distance, u32 mask)
{
    u32 t = (x ^ x >> distance) & mask;
    return x ^ t ^ t << distance;
}

// Bits of `a` where those of `mask` are set, else bits of `b`. Of an expression, the compiler would make two operations.
__device__ __forceinline__ u32 choose(u32 mask, u32 a, u32 b)
{
#ifdef __CUDA_ARCH__
    u32 chosen;
    asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(chosen) : "r"(mask), "r"(a), "r"(b));
    return chosen;
#else
    return (mask & a) | (~mask & b);
#endif
}

// Bit j of row i changes places with bit i of row j, in every field of N bits.
template <int N> __device__ __forceinline__ void transpose(u32 *rows)
{
#pragma unroll
    for (int step = N / 2; step > 0; step /= 2) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (i & step)
                continue;
            u32 a = rows[i], b = rows[i + step];
            if (step == 16) {
                rows[i] = __byte_perm(a, b, 0x5410), rows[i + step] = __byte_perm(a, b, 0x7632);
            } else if (step == 8) {
                rows[i] = __byte_perm(a, b, 0x6240), rows[i + step] = __byte_perm(a, b, 0x7351);
            } else {
                u32 low = step == 4 ? 0x0f0f0f0f : step == 2 ? 0x33333333 : 0x55555555;
                rows[i] = choose(low, a, b << step);
                rows[i + step] = choose(low, a >> step, b);
            }
        }
    }
}

// 32 binary digits of the coefficients, in coding order, changed into their 32 bit planes, as SIZE words in the
// order of the string; and back. Each is its own inverse but for the order.
template <int D> struct Digits;

template <> struct Digits<3> {
    static __device__ __forceinline__ void split(u32 *d)
    {
        u32 *low = d, *high = d + 32;
        transpose<32>(low);
        transpose<32>(high);
        u32 words[64];
#pragma unroll
        for (int k = 0; k < 32; k++)
            words[2 * k] = low[31 - k], words[2 * k + 1] = high[31 - k];
#pragma unroll
        for (int i = 0; i < 64; i++)
            d[i] = words[i];
    }
    static __device__ __forceinline__ void join(u32 *d)
    {
        u32 low[32], high[32];
#pragma unroll
        for (int k = 0; k < 32; k++)
            low[31 - k] = d[2 * k], high[31 - k] = d[2 * k + 1];
        transpose<32>(low);
        transpose<32>(high);
#pragma unroll
        for (int i = 0; i < 32; i++)
            d[i] = low[i], d[i + 32] = high[i];
    }
};

template <> struct Digits<2> {
    // Row r now holds the planes of digits r and 16 + r; a word of the string, those of two neighbouring digits.
    static __device__ __forceinline__ void split(u32 *d)
    {
        transpose<16>(d);
        u32 words[16];
#pragma unroll
        for (int w = 0; w < 8; w++) {
            u32 a = d[15 - 2 * w], b = d[14 - 2 * w];
            words[w] = __byte_perm(a, b, 0x7632);
            words[w + 8] = __byte_perm(a, b, 0x5410);
        }
#pragma unroll
        for (int i = 0; i < 16; i++)
            d[i] = words[i];
    }
    static __device__ __forceinline__ void join(u32 *d)
    {
        u32 rows[16];
#pragma unroll
        for (int w = 0; w < 8; w++) {
            rows[15 - 2 * w] = __byte_perm(d[w + 8], d[w], 0x5410);
            rows[14 - 2 * w] = __byte_perm(d[w + 8], d[w], 0x7632);
        }
        transpose<16>(rows);
#pragma unroll
        for (int i = 0; i < 16; i++)
            d[i] = rows[i];
    }
};

template <> struct Digits<1> {
    // Eight planes to a word: bit i of byte j goes to bit 4 i + j. With bytes 1 and 2 changed, the five bits of a
    // place need change places three times.
    static __device__ __forceinline__ void split(u32 *d)
    {
        u32 r[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            r[j] = __brev(d[j]);
        transpose_bytes(r, d);
#pragma unroll
        for (int w = 0; w < 4; w++) {
            u32 x = __byte_perm(d[w], 0, 0x3120);
            x = delta_swap(x, 12, 0x0000f0f0);
            x = delta_swap(x, 6, 0x00cc00cc);
            d[w] = delta_swap(x, 3, 0x0a0a0a0a);
        }
    }
    static __device__ __forceinline__ void join(u32 *d)
    {
        u32 r[4];
#pragma unroll
        for (int w = 0; w < 4; w++) {
            u32 x = delta_swap(d[w], 3, 0x0a0a0a0a);
            x = delta_swap(x, 6, 0x00cc00cc);
            x = delta_swap(x, 12, 0x0000f0f0);
            r[w] = __byte_perm(x, 0, 0x3120);
        }
        transpose_bytes(r, d);
#pragma unroll
        for (int j = 0; j < 4; j++)
            d[j] = __brev(d[j]);
    }
    // Byte j of word i changes places with byte i of word j.
    static __device__ __forceinline__ void transpose_bytes(const u32 *from, u32 *to)
    {
        u32 a = __byte_perm(from[0], from[1], 0x5140), b = __byte_perm(from[0], from[1], 0x7362);
        u32 c = __byte_perm(from[2], from[3], 0x5140), d = __byte_perm(from[2], from[3], 0x7362);
        to[0] = __byte_perm(a, c, 0x5410);
        to[1] = __byte_perm(a, c, 0x7632);
        to[2] = __byte_perm(b, d, 0x5410);
        to[3] = __byte_perm(b, d, 0x7632);
    }
};

// Coefficients → bit planes, from `column` on.
template <class T, int D> __device__ __forceinline__ void split(const typename Format<T>::Int *v, u32 *column)
{
    const int SIZE = Shape<T, D>::SIZE;
#pragma unroll
    for (int part = 0; part < Format<T>::PLANES / 32; part++) {
        u32 digits[SIZE];
#pragma unroll
        for (int i = 0; i < SIZE; i++)
            digits[i] = (u32)(to_negabinary(v[order<D>(i)]) >> (Format<T>::PLANES - 32 - 32 * part));
        Digits<D>::split(digits);
#pragma unroll
        for (int i = 0; i < SIZE; i++)
            column[(part * SIZE + i) * PITCH] = digits[i];
    }
}

// Bit planes → coefficients. Of the string only the first `words` words are there; zeros follow.
template <class T, int D> __device__ __forceinline__ void join(u32 *column, u32 words, typename Format<T>::Int *v)
{
    const int SIZE = Shape<T, D>::SIZE;
    const u32 PART = SIZE;
#pragma unroll 1
    for (; words % PART != 0 || words == 0; words++)
        column[words * PITCH] = 0;
    typedef typename Format<T>::Bits Bits;
#pragma unroll
    for (int part = 0; part < Format<T>::PLANES / 32; part++) {
        // A rate may never reach the lower digits.
        if (part > 0 && words <= part * PART)
            break;
        u32 digits[SIZE];
#pragma unroll
        for (int i = 0; i < SIZE; i++)
            digits[i] = column[(part * SIZE + i) * PITCH];
        Digits<D>::join(digits);
#pragma unroll
        for (int i = 0; i < SIZE; i++) {
            Bits shifted = (Bits)digits[i] << (Format<T>::PLANES - 32 - 32 * part);
            Bits so_far = part ? (Bits)v[order<D>(i)] : (Bits)0;
            v[order<D>(i)] = (typename Format<T>::Int)(so_far | shifted);
        }
    }
#pragma unroll
    for (int i = 0; i < SIZE; i++)
        v[i] = from_negabinary((Bits)v[i]);
}
