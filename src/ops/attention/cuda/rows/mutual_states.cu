// SPDX-License-Identifier: Apache-2.0
#include "cuda/precision.cuh"
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
    if (!has_row || team.lane != 0) return;
    const float inverse = inverse_lengths[team.row];
    to[team.row] = {log_sum.data[team.row * log_sum.stride] * log2_of_e, dot, inverse, 1 / inverse};
  }
};

}  // namespace

void compute_mutual_states(ConstOperand output, ConstOperand grad_output, ConstOperand log_sum,
                           const float* inverse_lengths, MutualState* to, Stream stream) {
  cuda::visit_type(output.type, [&](auto element) {
    using T = decltype(element);
    const MutualStates<T> function{rows_of<T>(output), rows_of<T>(grad_output),
                                   rows_of<float>(log_sum), inverse_lengths, to};
    cuda::for_rows<cuda::chunk<T>>(
        cuda::Extent{output.rows, output.cols}.with(function.output).with(function.grad_output), 1,
        function, stream);
  });
}

}  // namespace tessera::ops
