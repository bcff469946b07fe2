// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/lengths.hpp"

#include "cuda/precision.cuh"
#include "cuda/row_sums.cuh"
#include "cuda/row_teams.cuh"
#include "ops/attention/shortest_row.hpp"
#include "ops/cuda/operands.cuh"

namespace tessera::ops {
namespace {

__device__ bool holds_squares(float sum) { return sum > 1e-24f && sum < 1e24f; }

__device__ float inverse_of(double length) {
  return static_cast<float>(1 / (length < shortest_row ? shortest_row : length));
}

template <class T>
struct InverseLengths {
  cuda::Rows<const T> x;
  float* to;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool has_row) const {
    const float squares = sum_of_squares<float>(team);
    const bool fits = holds_squares(squares);
    float inverse = 1 / sqrtf(squares);
    if (!__all_sync(~0u, fits)) {
      // Squares that would overflow or vanish, and rows without a length. All lanes of the warp add
      // again, since sums need them all.
      const double length = sqrt(sum_of_squares<double>(team));
      if (!fits) inverse = inverse_of(length);
    }
    if (has_row && team.lane == 0) to[team.row] = inverse;
  }

  // Of rows that a warp takes at once (cuda/row_sums.cuh).
  using Fetched = cuda::Pack<T, cuda::chunk<T>>;
  __device__ Fetched fetch(std::int64_t row, int col) const {
    return *reinterpret_cast<const Fetched*>(x.data + row * x.stride + col);
  }
  template <class Number>
  __device__ Number term(const Fetched& fetched) const {
    Number squares = 0;
#pragma unroll
    for (const T& number : fetched.values) {
      const auto value = static_cast<Number>(cuda::widen(number));
      squares += value * value;
    }
    return squares;
  }

  struct Beside {};
  __device__ Beside beside(std::int64_t) const { return {}; }

  __device__ bool fits(float sum) const { return holds_squares(sum); }
  __device__ void finish(std::int64_t row, float sum, double wide, Beside) const {
    to[row] = holds_squares(sum) ? 1 / sqrtf(sum) : inverse_of(sqrt(wide));
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
    const auto extent = cuda::Extent{x.rows, x.cols}.with(function.x);
    if (cuda::run_row_sums<cuda::chunk<T>>(extent, function, stream)) return;
    cuda::for_rows<cuda::chunk<T>>(extent, 1, function, stream);
  });
}

}  // namespace tessera::ops
