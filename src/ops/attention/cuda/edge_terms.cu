// SPDX-License-Identifier: Apache-2.0
// The functions of `EdgeTermOps` on a GPU.
#include <algorithm>

#include "cuda/edge_rows.cuh"
#include "cuda/edge_rows.hpp"
#include "cuda/launch.cuh"
#include "cuda/overlap.cuh"
#include "cuda/search.cuh"
#include "ops/attention/cuda/total_sums.hpp"
#include "ops/attention/edge_terms.hpp"
#include "ops/cuda/dropout.cuh"
#include "ops/cuda/operands.cuh"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;
constexpr int share = WeightsCall::share;  ///< numbers that have one draw of dropout

/// Plain numbers of `EdgeTermsCall`, passed to the GPU by value.
struct TermsLaunch {
  std::int64_t num_numbers;
  std::int64_t heads;
  const float* raw;
  cuda::Rows<const float> term;
  float scale, slope;

  explicit TermsLaunch(const EdgeTermsCall& terms)
      : num_numbers(terms.raw.rows * terms.raw.cols),
        heads(terms.heads),
        raw(static_cast<const float*>(terms.raw.data)),
        term(rows_of<float>(terms.term)),
        scale(static_cast<float>(terms.scale)),
        slope(static_cast<float>(terms.slope)) {}

  __device__ std::int64_t edge_of(std::int64_t number) const {
    return heads == 1 ? number : number / heads;
  }
  __device__ float sum_inside(std::int64_t number) const {
    const std::int64_t edge = edge_of(number);
    const float sum = scale * raw[number];
    return term.data == nullptr ? sum
                                : sum + term.data[edge * term.stride + (number - edge * heads)];
  }
};

__global__ __launch_bounds__(block_threads) void add_kernel(const TermsLaunch launch,
                                                            float* scores) {
  cuda::begin_overlapped();
  const std::int64_t number = cuda::thread_number();
  if (number >= launch.num_numbers) return;
  const float sum = launch.sum_inside(number);
  scores[number] = sum > 0 ? sum : launch.slope * sum;
}

__global__ __launch_bounds__(block_threads) void differentiate_kernel(const TermsLaunch launch,
                                                                      float* gradients,
                                                                      float* of_terms,
                                                                      std::int64_t stride) {
  cuda::begin_overlapped();
  const std::int64_t number = cuda::thread_number();
  if (number >= launch.num_numbers) return;
  float gradient = gradients[number];
  if (!(launch.sum_inside(number) > 0)) gradient *= launch.slope;
  if (of_terms != nullptr) {
    const std::int64_t edge = launch.edge_of(number);
    of_terms[edge * stride + (number - edge * launch.heads)] = gradient;
  }
  gradients[number] = launch.scale * gradient;
}

__global__ __launch_bounds__(block_threads) void drop_kernel(float* numbers, std::int64_t count,
                                                             const DropoutConstants dropout) {
  cuda::begin_overlapped();
  const std::int64_t first = cuda::thread_number() * share;
  if (first >= count) return;
  float factors[share];
  dropout_factors<share>(dropout, static_cast<std::uint64_t>(first), factors);
#pragma unroll
  for (int i = 0; i < share; ++i) {
    if (first + i < count) numbers[first + i] *= factors[i];
  }
}

/// Plain numbers of `WeightsCall`, passed to the GPU by value.
struct WeightsLaunch {
  std::int64_t num_rows, heads, width, num_numbers;
  cuda::EdgeRows edge_rows;
  float scale;
  bool drops;
  DropoutConstants dropout;
  cuda::Rows<const float> output, grad_output, log_sum;
  float* row_state;  ///< for every row its log_sum and dO . O, `heads` numbers each
  float* scores;
  float* gradients;    ///< null: weights alone are wanted
  double* scale_sums;  ///< one for each block; null: not wanted

  explicit WeightsLaunch(const WeightsCall& call)
      : num_rows(call.log_sum.rows),
        heads(call.log_sum.cols),
        width(call.output.cols / heads),
        num_numbers(call.scores.rows * heads),
        edge_rows(static_cast<const cuda::DeviceEdgeRows*>(call.edge_rows)->view()),
        scale(static_cast<float>(call.scale)),
        drops(call.dropout.active()),
        dropout(call.dropout.constants()),
        output(rows_of<float>(call.output)),
        grad_output(rows_of<float>(call.grad_output)),
        log_sum(rows_of<float>(call.log_sum)),
        row_state(call.row_state),
        scores(static_cast<float*>(call.scores.data)),
        gradients(static_cast<float*>(call.gradients.data)),
        scale_sums(call.scale_gradient == nullptr ? nullptr : call.scale_sums) {}
};

constexpr int row_state_team = 8;  ///< lanes of a row and head

__global__ __launch_bounds__(block_threads) void row_state_kernel(const WeightsLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t number = cuda::thread_number() / row_state_team;
  const int lane = static_cast<int>(threadIdx.x) % row_state_team;
  const std::int64_t row = number / launch.heads;
  const std::int64_t head = number % launch.heads;
  const bool exists = row < launch.num_rows;
  float sum = 0;
  for (std::int64_t f = head * launch.width + lane; exists && f < (head + 1) * launch.width;
       f += row_state_team) {
    sum = fmaf(launch.output.data[row * launch.output.stride + f],
               launch.grad_output.data[row * launch.grad_output.stride + f], sum);
  }
#pragma unroll
  for (int distance = row_state_team / 2; distance >= 1; distance /= 2) {
    sum += __shfl_xor_sync(~0u, sum, distance);
  }
  if (!exists || lane != 0) return;
  float* const state = launch.row_state + row * 2 * launch.heads + head;
  state[0] = launch.log_sum.data[row * launch.log_sum.stride + head];
  state[launch.heads] = sum;
}

__device__ float4& share_at(float* numbers, std::int64_t first) {
  return *reinterpret_cast<float4*>(numbers + first);
}

/// The sum of all threads' numbers, for the first of them.
__device__ double sum_of_block(double mine) {
  __shared__ double partial[block_threads];
  partial[threadIdx.x] = mine;
  for (unsigned half = block_threads / 2; half >= 1; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  return partial[0];
}

template <bool with_gradients>
__global__ __launch_bounds__(block_threads) void weights_kernel(const WeightsLaunch launch) {
  cuda::begin_overlapped();
  double scale_sum = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * block_threads * share;
  for (std::int64_t first = cuda::thread_number() * share; first < launch.num_numbers;
       first += step) {
    float4 of_scores = share_at(launch.scores, first), of_gradients = {};
    float(&scores)[share] = reinterpret_cast<float(&)[share]>(of_scores);
    float(&gradients)[share] = reinterpret_cast<float(&)[share]>(of_gradients);
    if constexpr (with_gradients) of_gradients = share_at(launch.gradients, first);
    float factors[share] = {1, 1, 1, 1};
    if (launch.drops) {
      dropout_factors<share>(launch.dropout, static_cast<std::uint64_t>(first), factors);
    }
#pragma unroll
    for (int i = 0; i < share; ++i) {
      const std::int64_t edge = launch.heads == 1 ? first + i : (first + i) / launch.heads;
      const VertexId row = cuda::row_of_edge(launch.edge_rows, edge);
      const float* const state =
          launch.row_state + row * 2 * launch.heads + (first + i - edge * launch.heads);
      const float weight = expf(launch.scale * scores[i] - state[0]);
      if constexpr (with_gradients) {
        const float gradient = weight * (factors[i] * gradients[i] - state[launch.heads]);
        if (launch.scale_sums != nullptr && first + i < launch.num_numbers) {
          scale_sum += static_cast<double>(gradient) * static_cast<double>(scores[i]);
        }
        gradients[i] = launch.scale * gradient;
      }
      scores[i] = factors[i] * weight;
    }
    share_at(launch.scores, first) = of_scores;
    if constexpr (with_gradients) share_at(launch.gradients, first) = of_gradients;
  }
  if (launch.scale_sums == nullptr) return;
  const double sum = sum_of_block(scale_sum);
  if (threadIdx.x == 0) launch.scale_sums[blockIdx.x] = sum;
}

// The form gatv2.

constexpr int lanes = 32;
constexpr int warps = block_threads / lanes;

/// Plain numbers of `EdgeTermsCall` in this form, passed to the GPU by value.
struct VectorLaunch {
  std::int64_t num_edges;
  std::int64_t heads;
  std::int64_t width;  ///< features of a head
  const float* raw;
  cuda::Rows<const float> term;
  const float* vector;
  float slope;

  explicit VectorLaunch(const EdgeTermsCall& terms)
      : num_edges(terms.raw.rows),
        heads(terms.heads),
        width(terms.raw.cols / terms.heads),
        raw(static_cast<const float*>(terms.raw.data)),
        term(rows_of<float>(terms.term)),
        vector(static_cast<const float*>(terms.vector.data)),
        slope(static_cast<float>(terms.slope)) {}

  __device__ std::int64_t features() const { return heads * width; }
  __device__ float sum_inside(std::int64_t edge, std::int64_t f) const {
    const float sum = raw[edge * features() + f];
    return term.data == nullptr ? sum : sum + term.data[edge * term.stride + f];
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
  const float* of_scores;     ///< num_edges x heads, side by side
  float* of_raw;              ///< where the raw sums are
  cuda::Rows<float> of_term;  ///< null: not wanted
  double* sums;               ///< of the gradient of the vector, a row for each block
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
        if (to.of_term.data != nullptr) to.of_term.data[edge * to.of_term.stride + f] = inside;
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

dim3 grid_for(std::int64_t threads) { return dim3(cuda::num_blocks(threads, block_threads)); }

void differentiate_weights(const WeightsCall& call, Stream stream) {
  const WeightsLaunch launch(call);
  const std::int64_t threads = launch.num_rows * launch.heads * row_state_team;
  cuda::launch_overlapped(row_state_kernel, grid_for(threads), block_threads, stream, launch);
  const std::int64_t num_blocks =
      std::min(std::int64_t{cuda::num_blocks(launch.num_numbers, block_threads * share)},
               WeightsCall::most_scale_sums);
  cuda::launch_overlapped(
      launch.gradients != nullptr ? weights_kernel<true> : weights_kernel<false>,
      dim3(static_cast<unsigned>(num_blocks)), block_threads, stream, launch);
  if (call.scale_gradient == nullptr) return;
  store_scale(launch.scale_sums, num_blocks, call.scale_gradient, stream);
}

void drop_numbers(const Operand& numbers, const DropoutConstants& dropout, Stream stream) {
  const std::int64_t count = numbers.rows * numbers.cols;
  cuda::launch_overlapped(drop_kernel, grid_for((count + share - 1) / share), block_threads, stream,
                          static_cast<float*>(numbers.data), count, dropout);
}

void score(const EdgeTermsCall& terms, const Operand& scores, Stream stream) {
  const dim3 grid = grid_for(scores.rows * scores.cols);
  auto* const to = static_cast<float*>(scores.data);
  if (terms.is_gatv2) {
    cuda::launch_overlapped(score_kernel, grid, block_threads, stream, VectorLaunch(terms), to);
  } else {
    cuda::launch_overlapped(add_kernel, grid, block_threads, stream, TermsLaunch(terms), to);
  }
}

void differentiate_by_vector(const EdgeTermsCall& terms, const ConstOperand& of_scores,
                             const EdgeTermsGradients& gradients, Stream stream) {
  const std::int64_t pieces = EdgeTermsCall::num_pieces(terms.raw.rows);
  const std::int64_t features = terms.raw.cols;
  const GradientLaunch to{static_cast<const float*>(of_scores.data),
                          static_cast<float*>(gradients.raw.data), rows_of<float>(gradients.term),
                          gradients.sums};
  cuda::launch_overlapped(gradient_kernel, dim3(static_cast<unsigned>(pieces)), block_threads,
                          stream, VectorLaunch(terms), to);
  if (gradients.vector.absent()) return;
  cuda::launch_overlapped(add_pieces, grid_for(features), block_threads, stream, gradients.sums,
                          pieces, features, static_cast<float*>(gradients.vector.data));
}

/// Gradients of scores become those of raw scores in their place, but in the form gatv2.
void differentiate(const EdgeTermsCall& terms, const ConstOperand& of_scores,
                   const EdgeTermsGradients& gradients, Stream stream) {
  if (terms.is_gatv2) return differentiate_by_vector(terms, of_scores, gradients, stream);
  cuda::launch_overlapped(differentiate_kernel, grid_for(terms.raw.rows * terms.raw.cols),
                          block_threads, stream, TermsLaunch(terms),
                          static_cast<float*>(gradients.raw.data),
                          static_cast<float*>(gradients.term.data), gradients.term.stride);
}

std::shared_ptr<const void> edge_rows(const Graph& graph, const Place& place) {
  return cuda::device_edge_rows(graph, place);
}

}  // namespace

const EdgeTermOps& cuda_edge_term_ops() {
  static constexpr EdgeTermOps ops{score, differentiate, drop_numbers, edge_rows,
                                   differentiate_weights};
  return ops;
}

}  // namespace tessera::ops
