// cuZFP (the CUDA part of zfp), to be called with addresses of a device: work goes on the legacy default stream.
#include "encode1.cuh"
#include "encode2.cuh"
#include "encode3.cuh"

#include "decode1.cuh"
#include "decode2.cuh"
#include "decode3.cuh"

template <typename T> static void encode(int dims, const int *n, int bits, T *values, Word *stream) {
  switch (dims) {
    case 1: cuZFP::encode1<T>(n[0], 1, values, stream, bits); break;
    case 2: cuZFP::encode2<T>(make_uint2(n[0], n[1]), make_int2(1, n[0]), values, stream, bits); break;
    case 3:
      cuZFP::encode<T>(make_uint3(n[0], n[1], n[2]), make_int3(1, n[0], n[0] * n[1]), values, stream, bits);
      break;
  }
}

template <typename T> static void decode(int dims, const int *n, int bits, T *values, Word *stream) {
  switch (dims) {
    case 1: cuZFP::decode1<T>(n[0], 1, stream, values, bits); break;
    case 2: {
      uint2 extents = make_uint2(n[0], n[1]);
      int2 strides = make_int2(1, n[0]);
      cuZFP::decode2<T>(extents, strides, stream, values, bits);
      break;
    }
    case 3: {
      uint3 extents = make_uint3(n[0], n[1], n[2]);
      int3 strides = make_int3(1, n[0], n[0] * n[1]);
      cuZFP::decode3<T>(extents, strides, stream, values, bits);
      break;
    }
  }
}

// `bytes` is the size of a value, `n` the extents, `bits` are those of a block. Returns an error of the CUDA runtime,
// those of earlier calls included.
extern "C" int cuzfp_encode(int bytes, int dims, const int *n, int bits, void *values, void *stream) {
  if (bytes == 4)
    encode(dims, n, bits, (float *)values, (Word *)stream);
  else
    encode(dims, n, bits, (double *)values, (Word *)stream);
  return cudaGetLastError();
}

extern "C" int cuzfp_decode(int bytes, int dims, const int *n, int bits, void *values, void *stream) {
  if (bytes == 4)
    decode(dims, n, bits, (float *)values, (Word *)stream);
  else
    decode(dims, n, bits, (double *)values, (Word *)stream);
  return cudaGetLastError();
}
