// What every kernel is told, laid out as in ../kernels.rs, and the two value types.

typedef unsigned char u8;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

struct BoxJob {
    u64 values;
    u64 stream;
    u64 exponents;
    u64 origin;
    i64 strides[3];
    u32 extents[3];
    u32 run;
    u32 fields;
    u32 block_bits;
    u32 first_block;
    u32 message;
};
static_assert(sizeof(BoxJob) == 88, "as in kernels.rs");

struct Tally {
    double difference;
    double norm;
    u64 values;
};
static_assert(sizeof(Tally) == 24, "as in kernels.rs");

struct SampledError {
    Tally as_coded;
    Tally as_given;
};
static_assert(sizeof(SampledError) == 48, "as in kernels.rs");

struct Span {
    u64 values;
    u64 count;
    u32 first_chunk;
    u32 unused;
};
static_assert(sizeof(Span) == 24, "as in kernels.rs");

struct Survey {
    i64 lowest;
    i64 highest;
    u64 nonzero;
    u32 whole;
    u32 unused;
};
static_assert(sizeof(Survey) == 32, "as in kernels.rs");

struct GatherJob {
    u64 values;
    u64 out;
    u64 step;
    u32 items;
    u32 width;
};
static_assert(sizeof(GatherJob) == 32, "as in kernels.rs");

struct FieldsJob {
    u64 values;
    u64 count;
    u64 exponents;
    u32 run;
    u32 fields;
    u32 first_field;
    u32 unused;
};
static_assert(sizeof(FieldsJob) == 40, "as in kernels.rs");

// What is at an address of the device's memory.
template <class A> __device__ __forceinline__ A *global(u64 address)
{
    return (A *)address;
}

template <class A> __device__ __forceinline__ A least(A a, A b) { return a < b ? a : b; }
template <class A> __device__ __forceinline__ A most(A a, A b) { return a > b ? a : b; }

template <class T> struct Format;

template <> struct Format<float> {
    typedef i32 Int;
    typedef u32 Bits;
    static const int HEADER = 9;
    static const int FRACTION = 23;
    static const int BIAS = 127;
    static const int PLANES = 32;
    // Exponents that no sender writes are held to this, as `scale::undo` does.
    static const int SCALE_LIMIT = 160;
    static __device__ __forceinline__ u32 bits(float x) { return __float_as_uint(x); }
    static __device__ __forceinline__ float value(u32 bits) { return __uint_as_float(bits); }
    static __device__ __forceinline__ float whole(float x) { return truncf(x); }
};

template <> struct Format<double> {
    typedef i64 Int;
    typedef u64 Bits;
    static const int HEADER = 12;
    static const int FRACTION = 52;
    static const int BIAS = 1023;
    static const int PLANES = 64;
    static const int SCALE_LIMIT = 1100;
    static __device__ __forceinline__ u64 bits(double x) { return (u64)__double_as_longlong(x); }
    static __device__ __forceinline__ double value(u64 bits) { return __longlong_as_double((i64)bits); }
    static __device__ __forceinline__ double whole(double x) { return trunc(x); }
};

template <class T> __device__ __forceinline__ typename Format<T>::Bits magnitude(T x)
{
    typedef typename Format<T>::Bits Bits;
    return Format<T>::bits(x) & ((Bits)~(Bits)0 >> 1);
}

// 2 to the power `exponent`, which must be that of a normal number.
template <class T> __device__ __forceinline__ T normal_power(int exponent)
{
    typedef Format<T> F;
    return F::value((typename F::Bits)(exponent + F::BIAS) << F::FRACTION);
}

// The same, also of subnormal numbers, and 0 below those.
template <class T> __device__ __forceinline__ T power_of_two(int exponent)
{
    typedef Format<T> F;
    typedef typename F::Bits Bits;
    int biased = exponent + F::BIAS;
    if (biased > 0)
        return F::value((Bits)biased << F::FRACTION);
    int down = 1 - biased;
    return F::value(down > F::FRACTION ? (Bits)0 : ((Bits)1 << F::FRACTION) >> down);
}

// The value times 2 to the power `exponent`, in two steps, as `Float::times_power_of_two` does.
template <class T> __device__ __forceinline__ T times_power_of_two(T x, int exponent)
{
    int half = exponent / 2;
    return x * normal_power<T>(half) * normal_power<T>(exponent - half);
}

__device__ __forceinline__ u32 lane_of_warp() { return threadIdx.x % 32; }
