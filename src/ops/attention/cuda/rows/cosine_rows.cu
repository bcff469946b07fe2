// SPDX-License-Identifier: Apache-2.0
#include "cuda/precision.cuh"
#include "cuda/row_sums.cuh"
#include "cuda/row_teams.cuh"
#include "ops/attention/cuda/rows/cosine.hpp"
#include "ops/attention/shortest_row.hpp"
#include "ops/cuda/exponentials.cuh"
#include "ops/cuda/operands.cuh"

namespace tessera::ops {
namespace {

/// A function of cuda/row_sums.cuh, and for rows that a warp does not take at once, too: sums of
/// the squares of each row of a matrix, or (`count` = 2) of its products with a row of another. A
/// `Function` makes of it
///   always_fits, fits(sum)     whether sums in single precision serve, always or this one
///   beside(row)                what else it reads of a row
///   finish(row, sum, wide sum, what it has read)
template <class T, int count, class Function>
struct RowProducts {
  cuda::Rows<const T> matrices[count];

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool has_row) const {
    const auto& function = static_cast<const Function&>(*this);
    const auto sum_as = [&](auto sum) {
      team.each([&](const cuda::Elements<width, aligned>& place) {
        float values[count][width];
        place.load(matrices[0], values[0]);
        if constexpr (count > 1) place.load(matrices[1], values[1]);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          sum += static_cast<std::decay_t<decltype(sum)>>(values[0][i]) *
                 static_cast<std::decay_t<decltype(sum)>>(values[count - 1][i]);
        }
      });
      return team.sum(sum);
    };
    const float sum = sum_as(0.0f);
    double wide = 0;
    if constexpr (!Function::always_fits) {
      // All lanes of the warp add again, since sums need them all.
      if (!__all_sync(~0u, function.fits(sum))) wide = sum_as(0.0);
    }
    if (has_row && team.lane == 0) {
      function.finish(team.row, sum, wide, function.beside(team.row));
    }
  }

  struct Fetched {
    cuda::Pack<T, cuda::chunk<T>> packs[count];
  };
  __device__ Fetched fetch(std::int64_t row, int col) const {
    Fetched fetched;
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const T* const from = matrices[k].data + row * matrices[k].stride + col;
      fetched.packs[k] = *reinterpret_cast<const cuda::Pack<T, cuda::chunk<T>>*>(from);
    }
    return fetched;
  }
  template <class Number>
  __device__ Number term(const Fetched& fetched) const {
    Number sum = 0;
#pragma unroll
    for (int i = 0; i < cuda::chunk<T>; ++i) {
      sum += static_cast<Number>(cuda::widen(fetched.packs[0].values[i])) *
             static_cast<Number>(cuda::widen(fetched.packs[count - 1].values[i]));
    }
    return sum;
  }

  void compute(std::int64_t rows, std::int64_t cols, Stream stream) const {
    const auto& function = static_cast<const Function&>(*this);
    cuda::Extent extent{rows, cols};
    for (const auto& matrix : matrices) extent.with(matrix);
    if (cuda::run_row_sums<cuda::chunk<T>>(extent, function, stream)) return;
    cuda::for_rows<cuda::chunk<T>>(extent, 1, function, stream);
  }
};

template <class T>
struct InverseLengths : RowProducts<T, 1, InverseLengths<T>> {
  static constexpr bool always_fits = false;
  float* to;

  struct Beside {};
  __device__ Beside beside(std::int64_t) const { return {}; }

  /// Squares that would overflow or vanish, and rows without a length, do not.
  __device__ bool fits(float sum) const { return sum > 1e-24f && sum < 1e24f; }
  __device__ void finish(std::int64_t row, float sum, double wide, Beside) const {
    to[row] = fits(sum) ? 1 / sqrtf(sum) : inverse_of(sqrt(wide));
  }
  __device__ static float inverse_of(double length) {
    return static_cast<float>(1 / (length < shortest_row ? shortest_row : length));
  }
};

/// Of outputs and their gradients.
template <class T>
struct MutualStates : RowProducts<T, 2, MutualStates<T>> {
  static constexpr bool always_fits = true;
  cuda::Rows<const float> log_sum;
  const float* inverse_lengths;
  MutualState* to;

  __device__ bool fits(float) const { return always_fits; }

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

void compute_inverse_lengths(ConstOperand x, float* to, Stream stream) {
  cuda::visit_type(x.type, [&](auto element) {
    using T = decltype(element);
    InverseLengths<T>{{{rows_of<T>(x)}}, to}.compute(x.rows, x.cols, stream);
  });
}

void compute_mutual_states(ConstOperand output, ConstOperand grad_output, ConstOperand log_sum,
                           const float* inverse_lengths, MutualState* to, Stream stream) {
  cuda::visit_type(output.type, [&](auto element) {
    using T = decltype(element);
    MutualStates<T>{{{rows_of<T>(output), rows_of<T>(grad_output)}},
                    rows_of<float>(log_sum),
                    inverse_lengths,
                    to}
        .compute(output.rows, output.cols, stream);
  });
}

}  // namespace tessera::ops
