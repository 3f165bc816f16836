// A block's values and its coefficients: common exponent, lifting, in the registers of one thread.

template <class T> __device__ __forceinline__ T plus(T a, T b);
template <> __device__ __forceinline__ i32 plus(i32 a, i32 b) { return (i32)((u32)a + (u32)b); }
template <> __device__ __forceinline__ i64 plus(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
template <class T> __device__ __forceinline__ T minus(T a, T b);
template <> __device__ __forceinline__ i32 minus(i32 a, i32 b) { return (i32)((u32)a - (u32)b); }
template <> __device__ __forceinline__ i64 minus(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }

template <class I> __device__ __forceinline__ void lift(I &x, I &y, I &z, I &w)
{
    x = plus(x, w) >> 1, w = minus(w, x);
    z = plus(z, y) >> 1, y = minus(y, z);
    x = plus(x, z) >> 1, z = minus(z, x);
    w = plus(w, y) >> 1, y = minus(y, w);
    w = plus(w, y >> 1), y = minus(y, w >> 1);
}

template <class I> __device__ __forceinline__ void unaverage(I &excess, I &mean)
{
    I sum = plus(excess, mean);
    mean = minus(mean, minus(sum, mean));
    excess = sum;
}

template <class I> __device__ __forceinline__ void unlift(I &x, I &y, I &z, I &w)
{
    y = plus(y, w >> 1), w = minus(w, y >> 1);
    unaverage(y, w);
    unaverage(z, x);
    unaverage(y, z);
    unaverage(w, x);
}

template <class I, int D> __device__ __forceinline__ void forward(I *v)
{
#pragma unroll
    for (int axis = 0; axis < D; axis++) {
        const int stride = 1 << (2 * axis);
#pragma unroll
        for (int i = 0; i < 1 << (2 * D); i++)
            if ((i / stride & 3) == 0)
                lift(v[i], v[i + stride], v[i + 2 * stride], v[i + 3 * stride]);
    }
}

template <class I, int D> __device__ __forceinline__ void inverse(I *v)
{
#pragma unroll
    for (int axis = D - 1; axis >= 0; axis--) {
        const int stride = 1 << (2 * axis);
#pragma unroll
        for (int i = 0; i < 1 << (2 * D); i++)
            if ((i / stride & 3) == 0)
                unlift(v[i], v[i + stride], v[i + 2 * stride], v[i + 3 * stride]);
    }
}

// Coding position → index in the block (x fastest); the order is part of the format.
template <int D> __device__ __forceinline__ int order(int position);
template <> __device__ __forceinline__ int order<1>(int position) { return position; }
template <> __device__ __forceinline__ int order<2>(int position)
{
    const u8 ORDER[16] = {0, 1, 4, 5, 2, 8, 6, 9, 3, 12, 10, 7, 13, 11, 14, 15};
    return ORDER[position];
}
template <> __device__ __forceinline__ int order<3>(int position)
{
    const u8 ORDER[64] = {
        0,
        1, 4, 16,
        20, 17, 5, 2, 8, 32,
        21, 6, 18, 24, 9, 33, 36, 3, 12, 48,
        22, 25, 37, 40, 34, 10, 7, 19, 28, 13, 49, 52,
        41, 38, 26, 23, 29, 53, 11, 35, 44, 14, 50, 56,
        42, 27, 39, 45, 30, 54, 57, 60, 51, 15,
        43, 46, 58, 61, 55, 31,
        62, 59, 47,
        63,
    };
    return ORDER[position];
}

// Base -2, in which small magnitudes of both signs have zero high digits.
__device__ __forceinline__ u32 to_negabinary(i32 x) { return ((u32)x + 0xaaaaaaaau) ^ 0xaaaaaaaau; }
__device__ __forceinline__ u64 to_negabinary(i64 x)
{
    return ((u64)x + 0xaaaaaaaaaaaaaaaaull) ^ 0xaaaaaaaaaaaaaaaaull;
}
__device__ __forceinline__ i32 from_negabinary(u32 x) { return (i32)((x ^ 0xaaaaaaaau) - 0xaaaaaaaau); }
__device__ __forceinline__ i64 from_negabinary(u64 x)
{
    return (i64)((x ^ 0xaaaaaaaaaaaaaaaaull) - 0xaaaaaaaaaaaaaaaaull);
}
