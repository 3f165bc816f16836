// The error of a sample of the blocks of boxes that have been encoded: a warp to a box.

__device__ __forceinline__ double warp_sum(double x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}

__device__ __forceinline__ u64 warp_sum(u64 x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}

__device__ __forceinline__ void add(Tally &tally, double value, double back)
{
    tally.difference += (value - back) * (value - back);
    tally.norm += value * value;
    tally.values++;
}

// Adds the tallies of all lanes to that of a message.
__device__ __forceinline__ void hand_in(const Tally &tally, Tally *total)
{
    double difference = warp_sum(tally.difference), norm = warp_sum(tally.norm);
    u64 values = warp_sum(tally.values);
    if (lane_of_warp() == 0 && values > 0) {
        atomicAdd(&total->difference, difference);
        atomicAdd(&total->norm, norm);
        atomicAdd(&total->values, values);
    }
}

// 2 to a power, 0 or infinite where there is no such number; of subnormal numbers, the largest only.
__device__ __forceinline__ double scale_of(int exponent)
{
    return exponent > 1023 ? __longlong_as_double(0x7ff0000000000000ll)
        : exponent < -1023 ? 0.0 : power_of_two<double>(exponent);
}

// Blocks with a NaN or an infinity are left out.
template <class T, int D>
__device__ __forceinline__ void sample_block(const BoxJob &job, u32 block, u32 *column, SampledError &error)
{
    const int SIZE = Shape<T, D>::SIZE;
    u32 *values = column, *decoded = column + SIZE * (sizeof(T) / 4) * PITCH;
    Place<D> place = place_of<D>(job, block);
    load_scaled<T, D>(job, place, values);
    bool finite = true;
#pragma unroll 1
    for (int i = 0; i < SIZE; i++) {
        u32 raw = (u32)(magnitude(get_value<T>(values, i)) >> Format<T>::FRACTION);
        finite = finite && raw <= 2 * Format<T>::BIAS;
    }
    if (!finite)
        return;
    T v[SIZE];
    decode_block<T, D>(job, block, decoded, v);
#pragma unroll
    for (int i = 0; i < SIZE; i++)
        put_value(decoded, i, v[i]);
#pragma unroll 1
    for (int i = 0; i < SIZE; i++) {
        if ((i & 3) >= (int)place.extents[0] || !has_row<D>(place, i))
            continue;
        double value = get_value<T>(values, i), back = get_value<T>(decoded, i);
        add(error.as_coded, value, back);
        if (job.exponents) {
            double scale = scale_of(exponent_at(job, padded_offset<D>(job, place, i)));
            add(error.as_given, value * scale, back * scale);
        }
    }
}

template <class T, int D>
__device__ __forceinline__ void sample(const BoxJob *jobs, u32 njobs, const u32 *every, SampledError *errors, u32 *shared)
{
    if (blockIdx.x >= njobs)
        return;
    const BoxJob &job = jobs[blockIdx.x];
    SampledError error = {{0, 0, 0}, {0, 0, 0}};
    u32 blocks = blocks_of(job), step = most(every[job.message], 1u);
    for (u64 block = (u64)lane_of_warp() * step; block < blocks; block += (u64)TILE * step)
        sample_block<T, D>(job, (u32)block, shared + lane_of_warp(), error);
    __syncwarp();
    hand_in(error.as_coded, &errors[job.message].as_coded);
    hand_in(error.as_given, &errors[job.message].as_given);
}
