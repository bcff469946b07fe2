// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/lengths.hpp"

#include "cuda/precision.cuh"
#include "cuda/row_teams.cuh"
#include "ops/attention/shortest_row.hpp"
#include "ops/cuda/operands.cuh"

namespace tessera::ops {
namespace {

template <class T>
struct InverseLengths {
  cuda::Rows<const T> x;
  float* to;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool has_row) const {
    // In double, so that squares neither overflow nor vanish.
    double squares = 0;
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float values[width];
      place.load(x, values);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      }
    });
    squares = team.sum(squares);
    if (!has_row || team.lane != 0) return;
    const double length = sqrt(squares);
    to[team.row] = static_cast<float>(1 / (length < shortest_row ? shortest_row : length));
  }
};

}  // namespace

void compute_inverse_lengths(ConstOperand x, float* to, Stream stream) {
  cuda::visit_type(x.type, [&](auto element) {
    using T = decltype(element);
    const InverseLengths<T> function{rows_of<T>(x), to};
    cuda::for_rows<cuda::chunk<T>>(cuda::Extent{x.rows, x.cols}.with(function.x), 1, function,
                                   stream);
  });
}

}  // namespace tessera::ops
