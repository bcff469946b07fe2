// SPDX-License-Identifier: Apache-2.0
#include "cuda/precision.cuh"
#include "cuda/row_sums.cuh"
#include "cuda/row_teams.cuh"
#include "ops/attention/cuda/exponentials.cuh"
#include "ops/attention/cuda/rows/mutual.hpp"
#include "ops/cuda/operands.cuh"

namespace tessera::ops {
namespace {

template <class T>
struct MutualStates {
  cuda::Rows<const T> output, grad_output;
  cuda::Rows<const float> log_sum;
  const float* inverse_lengths;
  MutualState* to;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool has_row) const {
    float dot = 0;
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float outputs[width], gradients[width];
      place.load(output, outputs);
      place.load(grad_output, gradients);
#pragma unroll
      for (int i = 0; i < width; ++i) dot = fmaf(outputs[i], gradients[i], dot);
    });
    dot = team.sum(dot);
    if (has_row && team.lane == 0) finish(team.row, dot, 0, beside(team.row));
  }

  // Of rows that a warp takes at once (cuda/row_sums.cuh).
  struct Fetched {
    cuda::Pack<T, cuda::chunk<T>> output, gradient;
  };
  __device__ Fetched fetch(std::int64_t row, int col) const {
    const auto pack = [&](const cuda::Rows<const T>& matrix) {
      const T* const from = matrix.data + row * matrix.stride + col;
      return *reinterpret_cast<const cuda::Pack<T, cuda::chunk<T>>*>(from);
    };
    return {pack(output), pack(grad_output)};
  }
  template <class Number>
  __device__ Number term(const Fetched& fetched) const {
    Number dot = 0;
#pragma unroll
    for (int i = 0; i < cuda::chunk<T>; ++i) {
      dot += static_cast<Number>(cuda::widen(fetched.output.values[i])) *
             static_cast<Number>(cuda::widen(fetched.gradient.values[i]));
    }
    return dot;
  }
  __device__ bool fits(float) const { return true; }

  struct Beside {
    float log_sum, inverse;
  };
  __device__ Beside beside(std::int64_t row) const {
    return {log_sum.data[row * log_sum.stride], inverse_lengths[row]};
  }
  __device__ void finish(std::int64_t row, float dot, double, const Beside& known) const {
    to[row] = {known.log_sum * log2_of_e, dot, known.inverse, 1 / known.inverse};
  }
};

}  // namespace

void compute_mutual_states(ConstOperand output, ConstOperand grad_output, ConstOperand log_sum,
                           const float* inverse_lengths, MutualState* to, Stream stream) {
  cuda::visit_type(output.type, [&](auto element) {
    using T = decltype(element);
    const MutualStates<T> function{rows_of<T>(output), rows_of<T>(grad_output),
                                   rows_of<float>(log_sum), inverse_lengths, to};
    const auto extent =
        cuda::Extent{output.rows, output.cols}.with(function.output).with(function.grad_output);
    if (cuda::run_row_sums<cuda::chunk<T>>(extent, function, stream)) return;
    cuda::for_rows<cuda::chunk<T>>(extent, 1, function, stream);
  });
}

}  // namespace tessera::ops
