// ZFP of fixed rate for boxes of values in memory of the device, and what is asked of messages beforehand.
//
// Compiled to PTX by NVRTC, and for tests by a C++ compiler with tests/gpu/emulation/cuda.h in front.

#include "common.cuh"
#include "box.cuh"
#include "transform.cuh"
#include "planes.cuh"
#include "encode.cuh"
#include "decode.cuh"
#include "sample.cuh"
#include "survey.cuh"

#define OF_SHAPE(name, T, D)                                                                                          \
    extern "C" __global__ void __launch_bounds__(32 * Shape<T, D>::WARPS, Shape<T, D>::RESIDENT)                      \
        encode_##name##_##D(const BoxJob *jobs, u32 njobs, u32 blocks_total, u32 *refused)                            \
    {                                                                                                                 \
        __shared__ u32 shared[Shape<T, D>::WARPS * Shape<T, D>::ROWS * PITCH];                                        \
        encode<T, D>(jobs, njobs, blocks_total, refused, shared);                                                     \
    }                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(32 * Shape<T, D>::WARPS, Shape<T, D>::RESIDENT)                      \
        decode_##name##_##D(const BoxJob *jobs, u32 njobs, u32 blocks_total)                                          \
    {                                                                                                                 \
        __shared__ u32 shared[Shape<T, D>::WARPS * Shape<T, D>::PLANE_WORDS * PITCH];                                 \
        decode<T, D>(jobs, njobs, blocks_total, shared);                                                              \
    }                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(32)                                                                  \
        sample_##name##_##D(const BoxJob *jobs, u32 njobs, const u32 *every, SampledError *errors)                    \
    {                                                                                                                 \
        __shared__ u32 shared[Shape<T, D>::SAMPLE_ROWS * PITCH];                                                      \
        sample<T, D>(jobs, njobs, every, errors, shared);                                                             \
    }

#define OF_TYPE(name, T)                                                                                              \
    OF_SHAPE(name, T, 1)                                                                                              \
    OF_SHAPE(name, T, 2)                                                                                              \
    OF_SHAPE(name, T, 3)                                                                                              \
    extern "C" __global__ void __launch_bounds__(CHUNK_THREADS)                                                       \
        survey_##name(const Span *spans, u32 nspans, Survey *surveys)                                                 \
    {                                                                                                                 \
        survey<T>(spans, nspans, surveys);                                                                            \
    }                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(CHUNK_THREADS)                                                       \
        count_##name(const Span *spans, u32 nspans, const u64 *patterns, u64 *counts)                                 \
    {                                                                                                                 \
        count<T>(spans, nspans, patterns, counts);                                                                    \
    }                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(CHUNK_THREADS) gather_##name(const GatherJob *jobs, u32 njobs)       \
    {                                                                                                                 \
        gather<T>(jobs, njobs);                                                                                       \
    }                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(FIELD_THREADS) exponents_##name(const FieldsJob *jobs, u32 njobs)    \
    {                                                                                                                 \
        __shared__ Magnitudes of_warps[FIELD_THREADS / 32];                                                           \
        exponents<T>(jobs, njobs, of_warps);                                                                          \
    }

OF_TYPE(f32, float)
OF_TYPE(f64, double)
