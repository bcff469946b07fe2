// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "tessera/core/parallel.hpp"
#include "tessera/ops/loss.hpp"

#include "core/names.hpp"
#include "ops/dense/call_chain.hpp"
#include "ops/dense/row_ranges.hpp"
#include "ops/loss/targets.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

constexpr const char* classes_op = "cross_entropy";
constexpr const char* binary_op = "binary_cross_entropy";
constexpr const char* numbers_op = "number_loss";

constexpr std::array<tessera::Named<NumberLoss>, 3> number_loss_names = {
    {{NumberLoss::squared, "squared"},
     {NumberLoss::absolute, "absolute"},
     {NumberLoss::huber, "huber"}}};

/// Labels, targets and chosen rows are given in memory of this process.
constexpr Checker check_classes(classes_op, Device{});
constexpr Checker check_binary(binary_op, Device{});
constexpr Checker check_numbers(numbers_op, Device{});

/// How often each of `count` rows is among `rows`.
Buffer<std::int32_t> multiplicities(const Checker& check, std::span<const std::int64_t> rows,
                                    std::int64_t count) {
  Buffer<std::int32_t> times(count, 0);
  for (const std::int64_t row : rows) {
    if (row < 0 || row >= count) {
      check.fail(fmt::format("chosen row {} is not among the {} rows of logits", row, count));
    }
    ++times[row];
  }
  return times;
}

void check_options(const Checker& check, const LossOptions& options, std::int64_t weights) {
  check.that(
      options.smoothing >= 0 && options.smoothing < 1,
      fmt::format("the smoothing is {}, expected a number from 0 to below 1", options.smoothing));
  const std::span<const float> given = options.class_weights;
  check.that(given.empty() || std::ssize(given) == weights,
             fmt::format("{} weights for {} classes", given.size(), weights));
  for (const float weight : given) {
    check.that(std::isfinite(weight) && weight >= 0,
               fmt::format("a class weighs {}, expected a number from 0", weight));
  }
}

/// What the rows weigh: how often each was chosen, times the weight of its class.
Buffer<float> weights_of(const Buffer<std::int32_t>& times, std::span<const std::int64_t> labels,
                         std::span<const float> class_weights) {
  Buffer<float> weights(times.size());
  for (std::int64_t i = 0; i < times.size(); ++i) {
    weights[i] = static_cast<float>(times[i]);
    if (class_weights.empty() || times[i] == 0) continue;
    const std::int64_t label = labels[static_cast<std::size_t>(i)];
    weights[i] *= class_weights[static_cast<std::size_t>(label)];
  }
  return weights;
}

double sum_of(const Buffer<float>& weights) {
  return std::accumulate(weights.data(), weights.data() + weights.size(), 0.0);
}

void check_labels(std::span<const std::int64_t> labels, std::span<const std::int64_t> rows,
                  std::int64_t classes) {
  for (const std::int64_t row : rows) {
    const std::int64_t label = labels[static_cast<std::size_t>(row)];
    if (label == -1) {
      check_classes.fail(fmt::format("row {} is chosen but has no label (-1)", row),
                         "choose labelled rows only");
    }
    if (label < 0 || label >= classes) {
      check_classes.fail(
          fmt::format("row {} has label {}, logits have {} columns", row, label, classes));
    }
  }
}

void check_targets(MatrixView<const float> targets, const Buffer<std::int32_t>& times) {
  for_each_row(targets.rows, targets.cols, [&](std::int64_t i) {
    for (std::int64_t j = 0; times[i] != 0 && j < targets.cols; ++j) {
      const float target = targets(i, j);
      if (target != 0 && target != 1) {
        check_binary.fail(fmt::format("targets[{}][{}] is {}, expected 0 or 1", i, j, target));
      }
    }
  });
}

/// How many numbers the chosen rows want, none of which is infinite.
double count_numbers(MatrixView<const float> targets, const Buffer<std::int32_t>& times) {
  double count = 0;
  for (std::int64_t i = 0; i < targets.rows; ++i) {
    for (std::int64_t j = 0; times[i] != 0 && j < targets.cols; ++j) {
      const float target = targets(i, j);
      if (std::isinf(target)) {
        check_numbers.fail(
            fmt::format("targets[{}][{}] is {}, expected a finite number", i, j, target),
            "give not-a-number where none is known");
      }
      count += std::isnan(target) ? 0 : times[i];
    }
  }
  return count;
}

const char* op_of(LossForm form) {
  return form == LossForm::binary ? binary_op : form == LossForm::numbers ? numbers_op : classes_op;
}

Buffer<std::int32_t> narrow_labels(std::span<const std::int64_t> labels) {
  Buffer<std::int32_t> narrow(std::ssize(labels));
  for (std::int64_t i = 0; i < narrow.size(); ++i) {
    const std::int64_t label = labels[static_cast<std::size_t>(i)];
    narrow[i] = label < 0 ? 0 : static_cast<std::int32_t>(label);
  }
  return narrow;
}

/// What both kinds of targets begin with.
std::shared_ptr<LossTargets::State> made_state(std::int64_t rows, std::int64_t cols, double count,
                                               const Place& place) {
  auto state = std::make_shared<LossTargets::State>();
  state->device = place.device;
  state->place = place;
  state->rows = rows;
  state->cols = cols;
  state->count = count > 0 ? count : 1;
  return state;
}

/// As much of every target as of its opposite where it is smoothed whole.
Buffer<float> smoothed(MatrixView<const float> targets, double smoothing) {
  Buffer<float> values = without_gaps(targets);
  for (std::int64_t i = 0; smoothing > 0 && i < values.size(); ++i) {
    values[i] =
        static_cast<float>(static_cast<double>(values[i]) * (1 - smoothing) + smoothing / 2);
  }
  return values;
}

/// One number on the device, read after the loss has been computed.
double loss_value(ConstOperand logits, const LossTargets& targets, Operand grad_logits,
                  Stream stream, const DenseWorkspace* workspace) {
  const Device device = targets.state().device;
  Buffer<double> value(1, targets.state().place);
  loss(logits, targets, grad_logits, value.data(), stream, workspace);
  double result = 0;
  copy_bytes(&result, value.data(), sizeof(result), device, stream);
  synchronise(device, stream);
  return result;
}

}  // namespace

const char* to_string(NumberLoss kind) noexcept { return name_of(number_loss_names, kind); }
NumberLoss parse_number_loss(const std::string& text) {
  return parse_name(number_loss_names, "loss", text);
}

Buffer<float> without_gaps(MatrixView<const float> matrix) {
  Buffer<float> dense(checked_area(matrix.rows, matrix.cols));
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    std::copy_n(matrix.row(i), matrix.cols, dense.data() + i * matrix.cols);
  }
  return dense;
}

LossTargets LossTargets::classes(std::span<const std::int64_t> labels,
                                 std::span<const std::int64_t> rows, std::int64_t num_classes,
                                 const Place& place, const LossOptions& options) {
  require_available(place.device);
  const auto times = multiplicities(check_classes, rows, std::ssize(labels));
  check_labels(labels, rows, num_classes);
  check_options(check_classes, options, num_classes);
  Buffer<float> weights = weights_of(times, labels, options.class_weights);
  auto state = made_state(std::ssize(labels), num_classes, sum_of(weights), place);
  state->smoothing = options.smoothing;
  state->weights = placed(std::move(weights), place);
  state->labels = placed(narrow_labels(labels), place);
  return LossTargets(std::move(state));
}

LossTargets LossTargets::binary(MatrixView<const float> targets, std::span<const std::int64_t> rows,
                                const Place& place, const LossOptions& options) {
  require_available(place.device);
  check_options(check_binary, options, 0);
  check_binary.readable(targets, "targets");
  const double count = static_cast<double>(rows.size()) * static_cast<double>(targets.cols);
  auto state = made_state(targets.rows, targets.cols, count, place);
  state->form = LossForm::binary;
  state->smoothing = options.smoothing;
  const auto times = multiplicities(check_binary, rows, targets.rows);
  check_targets(targets, times);
  state->weights = placed(weights_of(times, {}, {}), place);
  state->targets = placed(smoothed(targets, options.smoothing), place);
  return LossTargets(std::move(state));
}

LossTargets LossTargets::numbers(MatrixView<const float> targets,
                                 std::span<const std::int64_t> rows, NumberLoss kind,
                                 const Place& place, double huber_delta) {
  require_available(place.device);
  check_numbers.readable(targets, "targets");
  check_numbers.that(std::isfinite(huber_delta) && huber_delta > 0,
                     fmt::format("huber_delta is {}, expected a number above 0", huber_delta));
  const auto times = multiplicities(check_numbers, rows, targets.rows);
  auto state = made_state(targets.rows, targets.cols, count_numbers(targets, times), place);
  state->form = LossForm::numbers;
  state->number_loss = kind;
  state->huber_delta = huber_delta;
  state->weights = placed(weights_of(times, {}, {}), place);
  state->targets = placed(without_gaps(targets), place);
  return LossTargets(std::move(state));
}

void loss(ConstOperand logits, const LossTargets& targets, Operand grad_logits, double* value,
          Stream stream, const DenseWorkspace* workspace, Operand grad_sums, CallChain* chain) {
  const LossTargets::State& state = targets.state();
  const Checker check(op_of(state.form), state.device);
  check.floating(logits, "logits");
  check.matrix(logits, "logits", {logits.type, state.rows, state.cols});
  check.optional_matrix(grad_logits, "grad_logits", {logits.type, logits.rows, logits.cols});
  check.apart_or_same(grad_logits, "grad_logits", logits, "logits");
  check.that(value != nullptr, "there is no memory for the value");
  check.optional_matrix(grad_sums, "grad_sums", {logits.type, 1, logits.cols});
  check.apart(grad_sums, "grad_sums", grad_logits, "grad_logits");
  check.that(grad_sums.absent() || !grad_logits.absent(), "there is no gradient to sum");
  run_or_join(chain, state.device, LossCall{logits, &state, grad_logits, value, grad_sums}, stream,
              workspace);
}

double cross_entropy(ConstOperand logits, std::span<const std::int64_t> labels,
                     std::span<const std::int64_t> rows, Operand grad_logits, Device device,
                     Stream stream, const DenseWorkspace* workspace) {
  Checker(classes_op, device).floating(logits, "logits");
  if (std::ssize(labels) != logits.rows) {
    check_classes.fail(fmt::format("{} labels for logits of {}", labels.size(),
                                   shape_text(logits.rows, logits.cols)));
  }
  return loss_value(logits,
                    LossTargets::classes(labels, rows, logits.cols, {device, nullptr, stream}),
                    grad_logits, stream, workspace);
}

double binary_cross_entropy(ConstOperand logits, MatrixView<const float> targets,
                            std::span<const std::int64_t> rows, Operand grad_logits, Device device,
                            Stream stream, const DenseWorkspace* workspace) {
  Checker(binary_op, device).floating(logits, "logits");
  check_binary.matrix(targets, "targets", {ElementType::fp32, logits.rows, logits.cols});
  check_binary.apart(grad_logits, "grad_logits", targets, "targets");
  return loss_value(logits, LossTargets::binary(targets, rows, {device, nullptr, stream}),
                    grad_logits, stream, workspace);
}

}  // namespace tessera::ops
