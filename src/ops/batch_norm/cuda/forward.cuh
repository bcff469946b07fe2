// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "cuda/sums.cuh"
#include "ops/dense/cuda/activation_formula.cuh"

/// The two passes of batch norm over a matrix.
namespace tessera::ops {

/// Column statistics and what follows from them. The mean is that of x; the running mean has the
/// bias that comes before added to it.
template <class T>
struct Statistics {
  const float* gamma;  ///< each of these may be null
  const float* beta;
  const T* bias;
  float* running_mean;
  float* running_variance;
  float* saved_mean;
  float* saved_inverse_deviation;
  double epsilon, momentum;
  std::int64_t rows;
  cuda::ColumnNumbers* columns;

  /// What of a column does not depend on the batch; read before anything is written.
  struct Column {
    double gamma, beta, added, running_mean, running_variance;
    double shift;  ///< of the sums of distances
  };
  __device__ Column column(std::int64_t col) const {
    const auto value = [&](const auto* values, double otherwise) {
      return values == nullptr ? otherwise : static_cast<double>(cuda::widen(values[col]));
    };
    return {value(gamma, 1),
            value(beta, 0),
            value(bias, 0),
            value(running_mean, 0),
            value(running_variance, 0),
            0};
  }

  __device__ double inverse_deviation(double variance) const { return rsqrt(variance + epsilon); }

  /// For the pass that follows: y = (x - a) * b + c. The mean is rounded to fp32; what it lost goes
  /// into c.
  __device__ cuda::ColumnNumbers numbers(const Column& known, double mean, double variance) const {
    const auto rounded = static_cast<float>(mean);
    const auto factor = static_cast<float>(known.gamma * inverse_deviation(variance));
    // An infinite mean loses nothing that could be told.
    const double lost = isfinite(mean) ? mean - static_cast<double>(rounded) : 0;
    const double shift = known.beta - lost * static_cast<double>(factor);
    return {rounded, factor, static_cast<float>(shift), 0};
  }

  /// The same by the running statistics.
  __device__ cuda::ColumnNumbers running_numbers(std::int64_t col) const {
    const Column known = column(col);
    return numbers(known, known.running_mean - known.added, known.running_variance);
  }

  __device__ void update(std::int64_t col, const Column& known, double mean,
                         double variance) const {
    const auto count = static_cast<double>(rows);
    const auto move = [&](float* running, double value, double target) {
      if (running != nullptr)
        running[col] = static_cast<float>(value + momentum * (target - value));
    };
    if (rows > 0) move(running_mean, known.running_mean, mean + known.added);
    if (rows > 1) move(running_variance, known.running_variance, variance * count / (count - 1));
    if (saved_mean != nullptr) saved_mean[col] = static_cast<float>(mean);
    if (saved_inverse_deviation != nullptr) {
      saved_inverse_deviation[col] = static_cast<float>(inverse_deviation(variance));
    }
  }
};

/// One pass for mean and variance: sums of distances from the first row and of their squares. In
/// double, and with a shift that lies among the values, the difference of the two keeps its digits.
template <class T>
struct BatchMoments {
  cuda::Rows<const T> x;
  Statistics<T> statistics;

  static constexpr int num_sums = 2;
  static constexpr int rows_ahead = sizeof(T) == 2 ? 4 : 2;
  using Term = double;

  template <int width>
  struct Shifts {
    double values[width];
  };
  template <int width>
  using Fetched = cuda::Pack<T, width>;

  template <int width, bool aligned>
  __device__ Shifts<width> columns(const cuda::Elements<width, aligned>& place) const {
    Shifts<width> shifts;
#pragma unroll
    for (int i = 0; i < width; ++i) shifts.values[i] = shift(place.col + i);
    return shifts;
  }

  template <int width, bool aligned>
  __device__ Fetched<width> fetch(const cuda::Elements<width, aligned>& place,
                                  const Shifts<width>&) const {
    return cuda::fetch_pack(place, x);
  }

  template <int width, bool aligned>
  __device__ void row(const cuda::Elements<width, aligned>&, const Shifts<width>& shifts,
                      const Fetched<width>& fetched, double (&terms)[2][width]) const {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const double distance =
          static_cast<double>(cuda::widen(fetched.values[i])) - shifts.values[i];
      terms[0][i] = distance;
      terms[1][i] = distance * distance;
    }
  }

  using Known = typename Statistics<T>::Column;
  __device__ Known known(std::int64_t col) const {
    Known known = statistics.column(col);
    known.shift = shift(col);
    return known;
  }

  __device__ cuda::ColumnNumbers numbers(const Known& known, const double (&totals)[2]) const {
    const Moments of = moments(known, totals);
    return statistics.numbers(known, of.mean, of.variance);
  }

  __device__ void finish(std::int64_t col, const Known& known, const double (&totals)[2]) const {
    const Moments of = moments(known, totals);
    statistics.update(col, known, of.mean, of.variance);
  }

  /// Leaves the numbers for a launch that follows.
  __device__ void finish(std::int64_t col, const double (&totals)[2]) const {
    const Known of_column = known(col);
    finish(col, of_column, totals);
    statistics.columns[col] = numbers(of_column, totals);
  }

 private:
  struct Moments {
    double mean, variance;
  };
  __device__ Moments moments(const Known& known, const double (&totals)[2]) const {
    const auto count = static_cast<double>(statistics.rows > 0 ? statistics.rows : 1);
    const double distance = totals[0] / count;
    const double square = totals[1] / count - distance * distance;
    // Rounding may take a variance of 0 below it; a not-a-number stays.
    return {statistics.rows > 0 ? known.shift + distance : 0, square < 0 ? 0 : square};
  }

  __device__ double shift(std::int64_t col) const {
    const float first = statistics.rows > 0 ? cuda::widen(x.data[col]) : 0.0f;
    return isfinite(first) ? static_cast<double>(first) : 0;
  }
};

template <class T>
struct Normalise {
  cuda::Rows<const T> x;
  cuda::Rows<T> y;
  const cuda::ColumnNumbers* numbers;
  DeviceFormula formula;

  static constexpr int num_sums = 0;
  static constexpr int rows_ahead = sizeof(T) == 2 ? 4 : 2;
  using Term = float;

  template <int width>
  using Numbers = cuda::KeptNumbers<width>;
  template <int width>
  using Fetched = cuda::Pack<T, width>;

  template <int width, bool aligned>
  __device__ Numbers<width> columns(const cuda::Elements<width, aligned>& place) const {
    return columns(place, numbers + place.col);
  }

  template <int width, bool aligned>
  __device__ Numbers<width> columns(const cuda::Elements<width, aligned>&,
                                    const cuda::ColumnNumbers* given) const {
    return cuda::keep_numbers<width>(given);
  }

  template <int width, bool aligned>
  __device__ Fetched<width> fetch(const cuda::Elements<width, aligned>& place,
                                  const Numbers<width>&) const {
    return cuda::fetch_pack(place, x);
  }

  template <int width, bool aligned>
  __device__ void row(const cuda::Elements<width, aligned>& place, const Numbers<width>& kept,
                      const Fetched<width>& fetched, float (&)[1][width]) const {
    float values[width];
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const cuda::ColumnNumbers& column = kept.of[i];
      values[i] = (cuda::widen(fetched.values[i]) - column.a) * column.b + column.c;
    }
    formula.activate([&](auto&& change) {
#pragma unroll
      for (int i = 0; i < width; ++i) change(values[i]);
    });
    formula.drop(place.element(), values);
    place.store(values, y);
  }
};

}  // namespace tessera::ops
