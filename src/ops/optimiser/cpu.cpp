// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tessera/core/parallel.hpp"

#include "ops/dense/cpu_dense_ops.hpp"
#include "ops/dense/wide_rows.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

/// The options as factors in the arithmetic of the parameter, worked out once in double.
template <class T>
struct Sgd {
  T gradient_factor, learning_rate, momentum, weight_decay;

  Sgd(const OptimiserOptions& options, double factor)
      : gradient_factor(static_cast<T>(factor)),
        learning_rate(static_cast<T>(options.learning_rate)),
        momentum(static_cast<T>(options.momentum)),
        weight_decay(static_cast<T>(options.weight_decay)) {}

  /// Without momentum there is no velocity.
  void operator()(const T* gradient, T* parameter, T* velocity, T*, std::int64_t count) const {
    if (velocity == nullptr) {
      for (std::int64_t j = 0; j < count; ++j) {
        parameter[j] -=
            learning_rate * (gradient_factor * gradient[j] + weight_decay * parameter[j]);
      }
      return;
    }
    for (std::int64_t j = 0; j < count; ++j) {
      velocity[j] =
          momentum * velocity[j] + (gradient_factor * gradient[j] + weight_decay * parameter[j]);
      parameter[j] -= learning_rate * velocity[j];
    }
  }
};

template <class T>
struct Adam {
  T gradient_factor, decay, gradient_decay, beta1, one_minus_beta1, beta2, one_minus_beta2;
  T step_size, root_correction, epsilon;

  Adam(const OptimiserOptions& options, std::int64_t step, double factor)
      : gradient_factor(static_cast<T>(factor)) {
    const auto steps = static_cast<double>(step);
    const bool decoupled = options.kind == OptimiserKind::adamw;
    decay = static_cast<T>(decoupled ? 1 - options.learning_rate * options.weight_decay : 1);
    gradient_decay = static_cast<T>(decoupled ? 0 : options.weight_decay);
    beta1 = static_cast<T>(options.beta1);
    one_minus_beta1 = static_cast<T>(1 - options.beta1);
    beta2 = static_cast<T>(options.beta2);
    one_minus_beta2 = static_cast<T>(1 - options.beta2);
    step_size = static_cast<T>(options.learning_rate / (1 - std::pow(options.beta1, steps)));
    root_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(options.beta2, steps)));
    epsilon = static_cast<T>(options.epsilon);
  }

  void operator()(const T* gradient, T* parameter, T* first, T* second, std::int64_t count) const {
    for (std::int64_t j = 0; j < count; ++j) {
      const T p = parameter[j] * decay;
      const T g = gradient_factor * gradient[j] + gradient_decay * p;
      const T m = beta1 * first[j] + one_minus_beta1 * g;
      const T v = beta2 * second[j] + one_minus_beta2 * g * g;
      first[j] = m;
      second[j] = v;
      parameter[j] = p - step_size * m / (std::sqrt(v) * root_correction + epsilon);
    }
  }
};

/// A gradient as it is, or transposed.
template <class G>
struct Gradient {
  MatrixView<const G> given;
  bool is_turned = false;
};

/// Calls `step(gradient, parameter, first, second, count)` on runs of consecutive elements; where a
/// state is absent its pointer is null.
template <class G, class T, class Step>
void for_each_run(const Gradient<G>& of, MatrixView<T> parameter, MatrixView<T> first,
                  MatrixView<T> second, Step&& step) {
  const MatrixView<const G> gradient = of.given;
  const auto body = [&](const G* given, T* p, T* m, T* v, std::int64_t count) {
    const ReadRows<G> wide(MatrixView<const G>(given, 1, count), 0, 1);
    step(wide.rows().data, p, m, v, count);
  };
  const auto at = [](auto view, std::int64_t row, std::int64_t col) {
    return view.data == nullptr ? nullptr : view.row(row) + col;
  };
  const auto dense = [](auto view) { return view.data == nullptr || view.stride == view.cols; };
  if (!of.is_turned && dense(gradient) && dense(parameter) && dense(first) && dense(second)) {
    const std::int64_t count = parameter.rows * parameter.cols;
    parallel_ranges(count, 1 << 15, [&](std::int64_t begin, std::int64_t end) {
      body(at(gradient, 0, begin), at(parameter, 0, begin), at(first, 0, begin),
           at(second, 0, begin), end - begin);
    });
    return;
  }
  for_row_ranges(parameter.rows, parameter.cols, [&](std::int64_t begin, std::int64_t end) {
    Buffer<G> row(of.is_turned ? parameter.cols : 0);
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t j = 0; j < row.size(); ++j) row[j] = gradient(j, i);
      body(of.is_turned ? row.data() : at(gradient, i, 0), at(parameter, i, 0), at(first, i, 0),
           at(second, i, 0), parameter.cols);
    }
  });
}

template <class G, class T>
void run(const OptimiserOptions& options, std::int64_t step, double factor,
         const Gradient<G>& gradient, MatrixView<T> parameter, MatrixView<T> first,
         MatrixView<T> second) {
  if (options.kind != OptimiserKind::sgd) {
    for_each_run(gradient, parameter, first, second, Adam<T>(options, step, factor));
  } else {
    if (options.momentum == 0) first = {};
    for_each_run(gradient, parameter, first, {}, Sgd<T>(options, factor));
  }
}

/// With the step and the rate that the clock shows.
OptimiserCall at_present(const OptimiserCall& call) {
  OptimiserCall present = call;
  if (call.clock == nullptr) return present;
  present.step = call.clock->step + 1;
  present.options.learning_rate *= call.clock->rate_factor;
  return present;
}

}  // namespace

void run_on_cpu(const OptimiserCall& given) {
  const OptimiserCall call = at_present(given);
  const double factor = call.gradient_factor == nullptr ? 1 : *call.gradient_factor;
  for (const OptimiserTarget& target : call.targets) {
    OptimiserOptions options = call.options;
    options.weight_decay *= target.decay;
    visit_stored(target.gradient.type, [&]<class G>() {
      using T = Wide<G>;
      const Gradient<G> gradient{target.gradient.as<G>(), target.gradient_is_turned};
      run(options, call.step, factor, gradient, target.parameter.as<T>(), target.first.as<T>(),
          target.second.as<T>());
    });
    if (!target.rounded.absent()) run_on_cpu(CopyCall{target.parameter, target.rounded});
    if (!target.turned.absent()) {
      run_on_cpu(TransposeCall{target.rounded.absent() ? target.parameter : target.rounded,
                               target.turned});
    }
  }
  if (call.advancing != nullptr) run_on_cpu(AdvanceCall{call.advancing});
}

void run_on_cpu(const ClipCall& call) {
  double squares = 0;
  for (const OptimiserTarget& target : call.targets) {
    squares += visit_stored(target.gradient.type, [&]<class G>() {
      const MatrixView<const G> gradient = target.gradient.as<G>();
      return sum_each_row(gradient.rows, 1, [&](std::int64_t i, double* sum) {
        for (std::int64_t j = 0; j < gradient.cols; ++j) {
          const auto value = static_cast<double>(gradient(i, j));
          *sum += value * value;
        }
      })[0];
    });
  }
  const double norm = std::sqrt(squares);
  *call.factor = norm > call.most ? call.most / norm : 1;
}

void run_on_cpu(const AverageCall& call) {
  const auto steps = static_cast<double>(call.clock->step);
  const double share =
      call.decay < 1 ? (1 - call.decay) / -std::expm1(steps * std::log(call.decay)) : 1 / steps;
  visit_stored(call.x.type, [&]<class T>() {
    const MatrixView<const T> values = call.x.as<T>();
    const MatrixView<T> mean = call.y.as<T>();
    for_each_row(values.rows, values.cols, [&](std::int64_t i) {
      for (std::int64_t j = 0; j < values.cols; ++j) {
        const auto before = static_cast<double>(mean(i, j));
        mean(i, j) = rounded_to<T>(before + share * (static_cast<double>(values(i, j)) - before));
      }
    });
  });
}

void run_on_cpu(const AdvanceCall& call) { ++call.clock->step; }

}  // namespace tessera::ops
