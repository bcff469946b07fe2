// SPDX-License-Identifier: Apache-2.0
#include "cuda/precision.cuh"
#include "cuda/team_row.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"

namespace tessera::ops {
namespace {

/// Adds a . b, in double, so that squares neither overflow nor vanish.
template <int width>
__device__ void add_dot(double& sum, const float (&a)[width], const float (&b)[width]) {
#pragma unroll
  for (int i = 0; i < width; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
}

/// Calls `run(kept)`: whether a lane has one chunk of the row and keeps it, or reads again.
template <int width, bool aligned, class Run>
__device__ void by_length(const cuda::RowTeam<width, aligned>& team, Run&& run) {
  if (team.cols <= std::int64_t{team.lanes} * width) {
    run(std::integral_constant<int, 1>{});
  } else {
    run(std::integral_constant<int, 0>{});
  }
}

/// Sums of squares whose root, and what it divides, fp32 holds with room to spare: it takes a
/// fraction of the time. Rows without a length, or not finite, are none of them.
__device__ inline bool fits_fp32(double squares) { return squares > 1e-24 && squares < 1e24; }

/// Without what is scaled all is done in double.
template <class T, bool scales>
struct UnitRows {
  cuda::Rows<const T> x;
  cuda::Rows<T> unit, scaled;
  const T* learned;
  double epsilon;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool) const {
    by_length(team, [&](auto kept) {
      const cuda::TeamRow<T, width, aligned, decltype(kept)::value> row(team, x);
      double squares = 0;
      row.each([&](const cuda::Elements<width, aligned>&, const float(&values)[width]) {
        add_dot(squares, values, values);
      });
      squares = team.sum(squares);
      if (scales && fits_fp32(squares)) {
        store(row, sqrtf(static_cast<float>(squares)), static_cast<float>(epsilon));
      } else {
        store(row, sqrt(squares), epsilon);
      }
    });
  }

 private:
  template <class Number, int width, bool aligned, int kept>
  __device__ void store(const cuda::TeamRow<T, width, aligned, kept>& row, Number length,
                        Number shortest) const {
    const float sharpness = scales ? cuda::widen(*learned) : 0.0f;
    const Number factor = 1 / (length < shortest ? shortest : length);
    row.each([&](const cuda::Elements<width, aligned>& place, const float(&values)[width]) {
      float results[width];
#pragma unroll
      for (int i = 0; i < width; ++i) {
        results[i] = static_cast<float>(static_cast<Number>(values[i]) * factor);
      }
      place.store(results, unit);
      if constexpr (scales) {
        // What is scaled is what the other side sees: rounded as it is stored.
#pragma unroll
        for (int i = 0; i < width; ++i) {
          results[i] = sharpness * cuda::widen(cuda::narrow<T>(results[i]));
        }
        place.store(results, scaled);
      }
    });
  }
};

template <class T, bool scales>
struct UnitRowsBackward {
  cuda::Rows<const T> x, grad_unit, grad_scaled;
  cuda::Rows<T> grad_x;
  const T* learned;
  double epsilon;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool) const {
    by_length(team, [&](auto kept) {
      using Place = cuda::Elements<width, aligned>;
      using Row = cuda::TeamRow<T, width, aligned, decltype(kept)::value>;
      const Row values(team, x), of_unit(team, grad_unit);
      const Row of_scaled(team, scales ? grad_scaled : grad_unit);
      double squares = 0, product = 0;
      each_gradient(values, of_unit, of_scaled,
                    [&](const Place&, const float(&v)[width], const float(&gradients)[width]) {
                      add_dot(squares, v, v);
                      add_dot(product, gradients, v);
                    });
      squares = team.sum(squares);
      product = team.sum(product);
      const bool fits = scales && fits_fp32(squares);
      const double length = fits ? sqrtf(static_cast<float>(squares)) : sqrt(squares);
      const bool is_short = length < epsilon;
      const double divisor = is_short ? epsilon : length;
      if (fits && epsilon < 1e12 && fits_fp32(divisor * divisor)) {
        const float factor = 1 / static_cast<float>(divisor);
        const double slope = is_short ? 0 : product * static_cast<double>(factor);
        const auto along = static_cast<float>(slope * static_cast<double>(factor));
        add(values, of_unit, of_scaled, along, factor);
      } else {
        const double factor = 1 / divisor;
        add(values, of_unit, of_scaled, is_short ? 0 : product * factor * factor, factor);
      }
    });
  }

 private:
  /// The gradient of a place of unit rows, from both of their uses.
  template <int width, bool aligned, int kept, class Visit>
  __device__ void each_gradient(const cuda::TeamRow<T, width, aligned, kept>& values,
                                const cuda::TeamRow<T, width, aligned, kept>& of_unit,
                                const cuda::TeamRow<T, width, aligned, kept>& of_scaled,
                                Visit&& visit) const {
    const float sharpness = scales ? cuda::widen(*learned) : 0.0f;
    using Place = cuda::Elements<width, aligned>;
    values.each_with(of_unit, of_scaled,
                     [&](const Place& place, const float(&v)[width], const float(&first)[width],
                         const float(&second)[width]) {
                       float gradients[width];
#pragma unroll
                       for (int i = 0; i < width; ++i) {
                         gradients[i] = scales ? first[i] + sharpness * second[i] : first[i];
                       }
                       visit(place, v, gradients);
                     });
  }

  /// `along` is the part of the gradient along the row: it cannot change a row of fixed length.
  template <class Number, int width, bool aligned, int kept>
  __device__ void add(const cuda::TeamRow<T, width, aligned, kept>& values,
                      const cuda::TeamRow<T, width, aligned, kept>& of_unit,
                      const cuda::TeamRow<T, width, aligned, kept>& of_scaled, Number along,
                      Number factor) const {
    using Place = cuda::Elements<width, aligned>;
    each_gradient(values, of_unit, of_scaled,
                  [&](const Place& place, const float(&v)[width], const float(&gradients)[width]) {
                    float sums[width];
                    if constexpr (scales) {
                      place.load(cuda::Rows<const T>{grad_x.data, grad_x.stride}, sums);
                    }
#pragma unroll
                    for (int i = 0; i < width; ++i) {
                      const Number across =
                          static_cast<Number>(gradients[i]) - along * static_cast<Number>(v[i]);
                      const auto through = static_cast<float>(across * factor);
                      sums[i] = scales ? sums[i] + through : through;
                    }
                    place.store(sums, grad_x);
                  });
  }
};

template <class T, bool scales>
void launch(const UnitRowsCall& call, Stream stream) {
  const UnitRows<T, scales> function{rows_of<T>(call.x), rows_of<T>(call.unit),
                                     rows_of<T>(call.scaled), values_of<T>(call.factor),
                                     call.epsilon};
  const auto extent = cuda::Extent{call.x.rows, call.x.cols}
                          .with(function.x)
                          .with(function.unit)
                          .with(function.scaled);
  cuda::for_rows<cuda::chunk<T>>(extent, 1, function, stream);
}

template <class T, bool scales>
void launch(const UnitRowsGradCall& call, Stream stream) {
  const UnitRowsBackward<T, scales> function{
      rows_of<T>(call.x),      rows_of<T>(call.grad_unit), rows_of<T>(call.grad_scaled),
      rows_of<T>(call.grad_x), values_of<T>(call.factor),  call.epsilon};
  const auto extent = cuda::Extent{call.x.rows, call.x.cols}
                          .with(function.x)
                          .with(function.grad_unit)
                          .with(function.grad_scaled)
                          .with(function.grad_x);
  cuda::for_rows<cuda::chunk<T>>(extent, 1, function, stream);
}

template <class Call>
void launch_for(const Call& call, Stream stream) {
  cuda::visit_type(call.x.type, [&]<class T>(T) {
    call.factor.absent() ? launch<T, false>(call, stream) : launch<T, true>(call, stream);
  });
}

}  // namespace

void CudaDenseRun::run(const UnitRowsCall& call) const { launch_for(call, stream); }
void CudaDenseRun::run(const UnitRowsGradCall& call) const { launch_for(call, stream); }

}  // namespace tessera::ops
