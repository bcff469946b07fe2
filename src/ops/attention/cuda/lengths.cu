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
    const float squares = sum_of_squares<float>(team);
    const bool fits = squares > 1e-24f && squares < 1e24f;
    float inverse = 1 / sqrtf(squares);
    if (!__all_sync(~0u, fits)) {
      // Squares that would overflow or vanish, and rows without a length. All lanes of the warp add
      // again, since sums need them all.
      const double length = sqrt(sum_of_squares<double>(team));
      if (!fits) inverse = static_cast<float>(1 / (length < shortest_row ? shortest_row : length));
    }
    if (has_row && team.lane == 0) to[team.row] = inverse;
  }

 private:
  template <class Number, int width, bool aligned>
  __device__ Number sum_of_squares(const cuda::RowTeam<width, aligned>& team) const {
    Number squares = 0;
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float values[width];
      place.load(x, values);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        squares += static_cast<Number>(values[i]) * static_cast<Number>(values[i]);
      }
    });
    return team.sum(squares);
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
