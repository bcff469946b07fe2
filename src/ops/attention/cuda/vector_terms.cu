// SPDX-License-Identifier: Apache-2.0
// Terms of edges in the form gatv2, on a GPU.
#include "ops/attention/cuda/edge_terms.hpp"

#include "cuda/launch.cuh"
#include "cuda/overlap.cuh"
#include "cuda/search.cuh"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;
constexpr int lanes = 32;
constexpr int warps = block_threads / lanes;

/// Plain numbers of `VectorTermsCall`, passed to the GPU by value.
struct VectorLaunch {
  std::int64_t num_edges;
  std::int64_t heads;
  std::int64_t width;  ///< features of a head
  const float* raw;
  const float* term;
  std::int64_t term_stride;
  const float* vector;
  float slope;

  explicit VectorLaunch(const VectorTermsCall& terms)
      : num_edges(terms.raw.rows),
        heads(terms.heads),
        width(terms.raw.cols / terms.heads),
        raw(static_cast<const float*>(terms.raw.data)),
        term(static_cast<const float*>(terms.term.data)),
        term_stride(terms.term.stride),
        vector(static_cast<const float*>(terms.vector.data)),
        slope(static_cast<float>(terms.slope)) {}

  __device__ std::int64_t features() const { return heads * width; }
  __device__ float sum_inside(std::int64_t edge, std::int64_t f) const {
    return raw[edge * features() + f] + term[edge * term_stride + f];
  }
  __device__ float leaky_relu(float x) const { return x > 0 ? x : slope * x; }
};

/// A thread has an edge and a head.
__global__ __launch_bounds__(block_threads) void score_kernel(const VectorLaunch launch,
                                                              float* scores) {
  cuda::begin_overlapped();
  const std::int64_t number = cuda::thread_number();
  if (number >= launch.num_edges * launch.heads) return;
  const std::int64_t edge = number / launch.heads;
  const std::int64_t begin = (number - edge * launch.heads) * launch.width;
  float sum = 0;
  for (std::int64_t f = begin; f < begin + launch.width; ++f) {
    sum += launch.vector[f] * launch.leaky_relu(launch.sum_inside(edge, f));
  }
  scores[number] = sum;
}

struct GradientLaunch {
  const float* of_scores;  ///< num_edges x heads, side by side
  float* of_raw;           ///< where the raw sums are
  float* of_term;          ///< null: not wanted
  std::int64_t term_stride;
  double* sums;  ///< of the gradient of the vector, a row for each block
};

/// A block has a piece of the edges, its lanes have features, and its warps take edges in turns.
__global__ __launch_bounds__(block_threads) void gradient_kernel(const VectorLaunch launch,
                                                                 const GradientLaunch to) {
  cuda::begin_overlapped();
  __shared__ float partial[warps][lanes];
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  const std::int64_t features = launch.features();
  const std::int64_t begin = launch.num_edges * blockIdx.x / gridDim.x;
  const std::int64_t end = launch.num_edges * (blockIdx.x + 1) / gridDim.x;
  for (std::int64_t first = 0; first < features; first += lanes) {
    const std::int64_t f = first + lane;
    float own = 0;
    if (f < features) {
      const std::int64_t head = f / launch.width;
      const float factor = launch.vector[f];
      for (std::int64_t edge = begin + warp; edge < end; edge += warps) {
        const float grad = to.of_scores[edge * launch.heads + head];
        const float sum = launch.sum_inside(edge, f);
        const float inside = grad * factor * (sum > 0 ? 1.0f : launch.slope);
        own += grad * launch.leaky_relu(sum);
        to.of_raw[edge * features + f] = inside;
        if (to.of_term != nullptr) to.of_term[edge * to.term_stride + f] = inside;
      }
    }
    partial[warp][lane] = own;
    __syncthreads();
    if (warp == 0 && f < features) {
      double sum = 0;
      for (int i = 0; i < warps; ++i) sum += static_cast<double>(partial[i][lane]);
      to.sums[blockIdx.x * features + f] = sum;
    }
    __syncthreads();
  }
}

/// A thread has a feature.
__global__ __launch_bounds__(block_threads) void add_pieces(const double* sums, std::int64_t pieces,
                                                            std::int64_t features, float* to) {
  cuda::begin_overlapped();
  const std::int64_t f = cuda::thread_number();
  if (f >= features) return;
  double sum = 0;
  for (std::int64_t piece = 0; piece < pieces; ++piece) sum += sums[piece * features + f];
  to[f] = static_cast<float>(sum);
}

}  // namespace

void score_by_vector(const VectorTermsCall& terms, const Operand& scores, Stream stream) {
  cuda::launch_overlapped(
      score_kernel, dim3(cuda::num_blocks(scores.rows * scores.cols, block_threads)), block_threads,
      stream, VectorLaunch(terms), static_cast<float*>(scores.data));
}

void differentiate_by_vector(const VectorTermsCall& terms, const ConstOperand& of_scores,
                             const VectorTermsGradients& gradients, Stream stream) {
  const std::int64_t pieces = VectorTermsCall::num_pieces(terms.raw.rows);
  const std::int64_t features = terms.raw.cols;
  const GradientLaunch to{
      static_cast<const float*>(of_scores.data), static_cast<float*>(gradients.raw.data),
      static_cast<float*>(gradients.term.data), gradients.term.stride, gradients.sums};
  cuda::launch_overlapped(gradient_kernel, dim3(static_cast<unsigned>(pieces)), block_threads,
                          stream, VectorLaunch(terms), to);
  if (gradients.vector.absent()) return;
  cuda::launch_overlapped(add_pieces, dim3(cuda::num_blocks(features, block_threads)),
                          block_threads, stream, gradients.sums, pieces, features,
                          static_cast<float*>(gradients.vector.data));
}

}  // namespace tessera::ops
