// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/ops/loss.hpp"

#include "ops/dense_check.hpp"
#include "ops/loss/chosen_rows.hpp"
#include "ops/row_ranges.hpp"

namespace tessera::ops {
namespace {

constexpr Checker check("cross_entropy");

void check_labels(std::span<const std::int64_t> labels, std::span<const std::int64_t> rows,
                  std::int64_t classes) {
  for (const std::int64_t row : rows) {
    const std::int64_t label = labels[static_cast<std::size_t>(row)];
    if (label == -1) {
      check.fail(fmt::format("row {} is chosen but has no label (-1)", row),
                 "choose labelled rows only");
    }
    if (label < 0 || label >= classes) {
      check.fail(fmt::format("row {} has label {}, logits have {} columns", row, label, classes));
    }
  }
}

/// -log softmax(logits)[label]; leaves the softmax in `probabilities`, which may be the memory of
/// `logits`, or null.
template <class T>
double row_loss(const T* logits, std::int64_t classes, std::int64_t label, T* probabilities) {
  const auto wanted = static_cast<double>(logits[label]);
  T largest = logits[0];
  for (std::int64_t j = 1; j < classes; ++j) largest = std::max(largest, logits[j]);
  double sum = 0;
  for (std::int64_t j = 0; j < classes; ++j) {
    const T power = std::exp(logits[j] - largest);
    sum += static_cast<double>(power);
    if (probabilities != nullptr) probabilities[j] = power;
  }
  if (probabilities != nullptr) {
    const auto factor = static_cast<T>(1 / sum);
    for (std::int64_t j = 0; j < classes; ++j) probabilities[j] *= factor;
  }
  return std::log(sum) + static_cast<double>(largest) - wanted;
}

template <class T>
double run(MatrixView<const T> logits, std::span<const std::int64_t> labels,
           const Buffer<std::int32_t>& times, double count, MatrixView<T> gradient) {
  const bool wants_gradient = gradient.data != nullptr;
  const auto add_rows = [&](std::int64_t begin, std::int64_t end, double* sum) {
    for (std::int64_t i = begin; i < end; ++i) {
      T* const row = wants_gradient ? gradient.row(i) : nullptr;
      if (times[i] == 0) {
        if (wants_gradient) std::fill_n(row, gradient.cols, T{0});
        continue;
      }
      const std::int64_t label = labels[static_cast<std::size_t>(i)];
      *sum += times[i] * row_loss(logits.row(i), logits.cols, label, row);
      if (!wants_gradient) continue;
      row[label] -= T{1};
      const auto share = static_cast<T>(times[i] / count);
      for (std::int64_t j = 0; j < gradient.cols; ++j) row[j] *= share;
    }
  };
  return sum_over_rows(logits.rows, 1, add_rows)[0] / count;
}

}  // namespace

double cross_entropy(ConstOperand logits, std::span<const std::int64_t> labels,
                     std::span<const std::int64_t> rows, Operand grad_logits, Device device,
                     Stream) {
  require_available(device);
  check.floating(logits, "logits");
  check.optional_matrix(grad_logits, "grad_logits", logits.precision, logits.rows, logits.cols);
  check.apart_or_same(grad_logits, "grad_logits", logits, "logits");
  if (static_cast<std::int64_t>(labels.size()) != logits.rows) {
    check.fail(fmt::format("{} labels for logits of {}", labels.size(),
                           shape_text(logits.rows, logits.cols)));
  }
  const Buffer<std::int32_t> times = multiplicities(check, rows, logits.rows);
  check_labels(labels, rows, logits.cols);
  const double count = std::max(1.0, static_cast<double>(rows.size()));
  return visit_floating(logits.precision, [&](auto element) {
    using T = decltype(element);
    return run(logits.as<T>(), labels, times, count, grad_logits.as<T>());
  });
}

}  // namespace tessera::ops
