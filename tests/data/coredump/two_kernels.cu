// nvcc -cubin -arch=sm_90 two_kernels.cu   (13.0; the .cubin beside this file)
namespace ours {
template <typename T> struct Pair { T one, two; };
}
__device__ __noinline__ float added(float a, float b) { return __fsqrt_rn(a) + b; }
template <typename T> __global__ void reduce(ours::Pair<T> pair, T* out) {
  out[threadIdx.x] = added(pair.one, pair.two);
}
template __global__ void reduce<float>(ours::Pair<float>, float*);
__global__ void fill(float* out) { out[threadIdx.x] = 1.0f; }
