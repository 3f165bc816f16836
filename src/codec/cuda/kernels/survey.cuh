// What is asked of the values of messages before they are coded.

// Values that a thread block goes through, and its threads.
enum : u32 { CHUNK = 16384 };
enum : u32 { CHUNK_THREADS = 256 };
enum : u32 { FIELD_THREADS = 256 };

// The last message that begins at or before a chunk.
__device__ __forceinline__ u32 find_span(const Span *spans, u32 nspans, u32 chunk)
{
    u32 low = 0, high = nspans;
    while (high - low > 1) {
        u32 middle = low + (high - low) / 2;
        if (spans[middle].first_chunk <= chunk)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// Four or two values that are read at once, on a boundary of 16 bytes.
template <class T> struct Quad;
template <> struct Quad<float> {
    static const u32 COUNT = 4;
    template <class F> static __device__ __forceinline__ void each(const float *at, F &f)
    {
        float4 four = __ldg((const float4 *)at);
        f.see(four.x), f.see(four.y), f.see(four.z), f.see(four.w);
    }
};
template <> struct Quad<double> {
    static const u32 COUNT = 2;
    template <class F> static __device__ __forceinline__ void each(const double *at, F &f)
    {
        double2 two = __ldg((const double2 *)at);
        f.see(two.x), f.see(two.y);
    }
};

// Shows `f` the values of this thread block's chunk of a message. Returns which message that is, or `nspans` where
// the chunk is none's.
template <class T, class F> __device__ __forceinline__ u32 each_value(const Span *spans, u32 nspans, F &f)
{
    u32 index = find_span(spans, nspans, blockIdx.x);
    const Span &span = spans[index];
    u64 start = (u64)(blockIdx.x - span.first_chunk) * CHUNK;
    if (start >= span.count)
        return nspans;
    const T *values = (const T *)span.values + start;
    u32 count = (u32)least(span.count - start, (u64)CHUNK);
    const u32 QUAD = Quad<T>::COUNT;
    u32 head = least((u32)((16 - (u64)values % 16) % 16 / sizeof(T)), count);
    u32 quads = (count - head) / QUAD;
    if (threadIdx.x < head)
        f.see(__ldg(values + threadIdx.x));
#pragma unroll 4
    for (u32 i = threadIdx.x; i < quads; i += CHUNK_THREADS)
        Quad<T>::each(values + head + QUAD * i, f);
    u32 tail = head + QUAD * quads + threadIdx.x;
    if (tail < count)
        f.see(__ldg(values + tail));
    return index;
}

// Orders as the values do, negative zero below zero, and NaN outside the infinities.
__device__ __forceinline__ i32 order_of(float x)
{
    i32 bits = __float_as_int(x);
    return bits ^ (i32)((u32)(bits >> 31) >> 1);
}
__device__ __forceinline__ i64 order_of(double x)
{
    i64 bits = __double_as_longlong(x);
    return bits ^ (i64)((u64)(bits >> 63) >> 1);
}

template <class T> struct Looker {
    typename Format<T>::Int lowest, highest;
    u32 nonzero;
    bool whole;
    __device__ __forceinline__ void see(T x)
    {
        typename Format<T>::Int order = order_of(x);
        lowest = least(lowest, order);
        highest = most(highest, order);
        nonzero += x != 0;
        whole = whole && Format<T>::whole(x) == x;
    }
};

template <class I> __device__ __forceinline__ I warp_least(I x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x = least(x, __shfl_xor_sync(0xffffffff, x, step));
    return x;
}

template <class I> __device__ __forceinline__ I warp_most(I x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x = most(x, __shfl_xor_sync(0xffffffff, x, step));
    return x;
}

template <class T> __device__ __forceinline__ void survey(const Span *spans, u32 nspans, Survey *surveys)
{
    typedef typename Format<T>::Int Int;
    if (nspans == 0)
        return;
    const Int HIGHEST = (Int)((typename Format<T>::Bits)~(typename Format<T>::Bits)0 >> 1);
    Looker<T> looker = {HIGHEST, (Int)(-HIGHEST - 1), 0, true};
    u32 index = each_value<T>(spans, nspans, looker);
    __syncwarp();
    Int lowest = warp_least(looker.lowest), highest = warp_most(looker.highest);
    u64 nonzero = warp_sum((u64)looker.nonzero);
    bool whole = !__any_sync(0xffffffff, !looker.whole);
    if (index == nspans || lane_of_warp() != 0 || lowest > highest)
        return;
    Survey *survey = surveys + index;
    atomicMin(&survey->lowest, (i64)lowest);
    atomicMax(&survey->highest, (i64)highest);
    atomicAdd(&survey->nonzero, nonzero);
    if (!whole)
        atomicAnd(&survey->whole, 0u);
}

template <class T> struct Counter {
    typename Format<T>::Bits first, second;
    u32 counts[2];
    __device__ __forceinline__ void see(T x)
    {
        counts[0] += Format<T>::bits(x) == first;
        counts[1] += Format<T>::bits(x) == second;
    }
};

template <class T>
__device__ __forceinline__ void count(const Span *spans, u32 nspans, const u64 *patterns, u64 *counts)
{
    typedef typename Format<T>::Bits Bits;
    if (nspans == 0)
        return;
    u32 index = find_span(spans, nspans, blockIdx.x);
    Counter<T> counter = {(Bits)patterns[2 * index], (Bits)patterns[2 * index + 1], {0, 0}};
    each_value<T>(spans, nspans, counter);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u64 sum = warp_sum((u64)counter.counts[i]);
        if (lane_of_warp() == 0 && sum > 0)
            atomicAdd(counts + 2 * index + i, sum);
    }
}

template <class T> __device__ __forceinline__ void gather(const GatherJob *jobs, u32 njobs)
{
    if (blockIdx.x >= njobs)
        return;
    const GatherJob &job = jobs[blockIdx.x];
    const T *values = (const T *)job.values;
    T *out = (T *)job.out;
    u32 count = job.items * job.width;
    for (u32 i = threadIdx.x; i < count; i += CHUNK_THREADS) {
        u32 item = i / job.width;
        out[i] = values[item * job.step * job.width + (i - item * job.width)];
    }
}

// The exponent e for which a magnitude is below 2^e and at least 2^(e-1); 0 for zero.
__device__ __forceinline__ int exponent_of(double magnitude)
{
    u64 bits = (u64)__double_as_longlong(magnitude);
    if (bits == 0)
        return 0;
    int biased = (int)(bits >> 52 & 0x7ff);
    return biased ? biased - 1022 : 64 - __clzll((i64)bits) - 1074;
}

// Sums over the values of a field that are looked at.
struct Magnitudes {
    double roots, largest;
    u64 count;
};

// As `scale::exponents` of the CPU: every step-th point of all fields, and all values of the field there.
template <class T> __device__ __forceinline__ Magnitudes look_at(const FieldsJob &job, u32 field)
{
    const u64 SAMPLE = 1024;
    const T *values = (const T *)job.values;
    u64 point = (u64)job.run * job.fields;
    u64 step = (job.count / most(point, (u64)1) * job.run / SAMPLE) | 1;
    Magnitudes seen = {0, 0, 0};
    // Several points at a time where runs are short.
    u32 wide = least(job.run, (u32)FIELD_THREADS);
    u32 together = FIELD_THREADS / wide;
    u32 own = threadIdx.x / wide;
    if (own >= together)
        return seen;
    for (u64 start = own * step * point; start < job.count; start += together * step * point) {
        u64 first = start + (u64)field * job.run;
        u64 end = least(first + job.run, job.count);
        for (u64 i = first + threadIdx.x % wide; i < end; i += wide) {
            double magnitude = fabs((double)__ldg(values + i));
            seen.roots += sqrt(magnitude);
            seen.largest = fmax(seen.largest, magnitude);
            seen.count++;
        }
    }
    return seen;
}

// The last message whose fields begin at or before a field.
__device__ __forceinline__ u32 find_fields(const FieldsJob *jobs, u32 njobs, u32 field)
{
    u32 low = 0, high = njobs;
    while (high - low > 1) {
        u32 middle = low + (high - low) / 2;
        if (jobs[middle].first_field <= field)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// A thread block to a field.
template <class T> __device__ __forceinline__ void exponents(const FieldsJob *jobs, u32 njobs, Magnitudes *of_warps)
{
    // A scaled value must stay below two to this: squares of errors are summed up.
    const int HEADROOM = 60;
    if (njobs == 0)
        return;
    const FieldsJob &job = jobs[find_fields(jobs, njobs, blockIdx.x)];
    u32 field = blockIdx.x - job.first_field;
    if (field >= job.fields)
        return;
    Magnitudes seen = look_at<T>(job, field);
    __syncwarp();
    seen.roots = warp_sum(seen.roots);
    seen.largest = warp_most(seen.largest);
    seen.count = warp_sum(seen.count);
    if (lane_of_warp() == 0)
        of_warps[threadIdx.x / 32] = seen;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (u32 i = 1; i < FIELD_THREADS / 32; i++) {
        seen.roots += of_warps[i].roots;
        seen.largest = most(seen.largest, of_warps[i].largest);
        seen.count += of_warps[i].count;
    }
    double root = seen.roots / (double)most(seen.count, (u64)1);
    int exponent = most(exponent_of(root * root), exponent_of(seen.largest) - HEADROOM);
    ((i16 *)job.exponents)[field] = (i16)exponent;
}
