// The CUDA that kernels/zfp.cu is written in, for a host: one thread block after the other, its threads as fibers.
//
// A fiber runs until it meets a collective of its warp or a barrier of its block, or ends. A collective comes to pass
// once every lane that its mask names has met it, with the same mask; if that can't be, this says so and aborts.
// Fibers take turns in an order that `emulate_order` sets, so that whoever reads what another lane has yet to write,
// without a barrier in between, reads the wrong thing in one order or the other. Shared memory is overwritten before
// each thread block, lest anyone rely on what was there.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
// A section of its own, so that it can be found.
#define __shared__ static __attribute__((section("shared_memory")))

struct uint3 {
    unsigned x, y, z;
};

extern thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) float4 {
    float x, y, z, w;
};

struct alignas(16) double2 {
    double x, y;
};

namespace emulation {

enum class Meeting { None, Block, Warp, Ballot, Shuffle };

// Waits until all lanes of `mask` are there, each with a value; then lane i of the warp brought `brought(i)`.
void meet(Meeting kind, unsigned mask, uint64_t value);
uint64_t brought(unsigned lane);

template <class To, class From> To cast(From from)
{
    static_assert(sizeof(To) == sizeof(From), "of one size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

template <class T> T shuffle(unsigned mask, T value, unsigned lane)
{
    uint64_t bits = 0;
    static_assert(sizeof value <= sizeof bits, "at most 64 bits");
    memcpy(&bits, &value, sizeof value);
    meet(Meeting::Shuffle, mask, bits);
    bits = brought(lane % 32);
    memcpy(&value, &bits, sizeof value);
    return value;
}

} // namespace emulation

inline void __syncthreads() { emulation::meet(emulation::Meeting::Block, 0, 0); }
inline void __syncwarp(unsigned mask = 0xffffffff) { emulation::meet(emulation::Meeting::Warp, mask, 0); }

inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    emulation::meet(emulation::Meeting::Ballot, mask, predicate != 0);
    unsigned votes = 0;
    for (unsigned lane = 0; lane < 32; lane++)
        if (mask >> lane & 1)
            votes |= (unsigned)emulation::brought(lane) << lane;
    return votes;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }

template <class T> T __shfl_xor_sync(unsigned mask, T value, int lanes)
{
    return emulation::shuffle(mask, value, threadIdx.x % 32 ^ (unsigned)lanes);
}

// Fibers do not run at the same time.
template <class T> T atomicAdd(T *at, T value)
{
    T old = *at;
    *at = old + value;
    return old;
}
template <class T> T atomicOr(T *at, T value)
{
    T old = *at;
    *at = old | value;
    return old;
}
template <class T> T atomicAnd(T *at, T value)
{
    T old = *at;
    *at = old & value;
    return old;
}
template <class T> T atomicMin(T *at, T value)
{
    T old = *at;
    *at = value < old ? value : old;
    return old;
}
template <class T> T atomicMax(T *at, T value)
{
    T old = *at;
    *at = value > old ? value : old;
    return old;
}

inline unsigned __float_as_uint(float x) { return emulation::cast<unsigned>(x); }
inline int __float_as_int(float x) { return emulation::cast<int>(x); }
inline float __uint_as_float(unsigned x) { return emulation::cast<float>(x); }
inline long long __double_as_longlong(double x) { return emulation::cast<long long>(x); }
inline double __longlong_as_double(long long x) { return emulation::cast<double>(x); }

inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }

inline unsigned __brev(unsigned x)
{
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++)
        reversed |= (x >> i & 1) << (31 - i);
    return reversed;
}

inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    unsigned long long both = x | (unsigned long long)y << 32;
    unsigned picked = 0;
    for (int i = 0; i < 4; i++)
        picked |= (unsigned)(both >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
    return picked;
}

// Shifts by the low five bits of `shift`.
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)((low | (unsigned long long)high << 32) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)((low | (unsigned long long)high << 32) >> (shift & 31));
}

template <class T> T __ldg(const T *at) { return *at; }
