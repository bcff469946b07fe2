// SPDX-License-Identifier: Apache-2.0
#include "train/number_targets.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/data/classes.hpp"

#include "core/listing.hpp"
#include "io/table_values.hpp"

namespace tessera::train {
namespace {

constexpr std::int64_t grain = 1 << 12;
constexpr float missing = std::numeric_limits<float>::quiet_NaN();

[[noreturn]] void reject(const std::string& problem, const std::string& where,
                         const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

/// The number that a class is, or is called.
float number_of_class(std::int64_t label, const Names& names, const std::string& where) {
  if (label >= names.size()) return static_cast<float>(label);
  const std::string name(names[label]);
  const std::optional<float> number = io::parse_value(name);
  if (number && std::isfinite(*number)) return *number;
  reject(fmt::format("class {} is no number", in_quotes(name)), where,
         "name columns of numbers with --label, or learn classes with --task node or graph");
}

Targets from_classes(std::span<const std::int64_t> labels, const Names& names,
                     const std::string& where) {
  const std::vector<std::int64_t> values = class_values(labels);
  auto matrix = std::make_shared<Matrix<float>>(std::ssize(labels), 1);
  for (std::int64_t i = 0; i < matrix->rows(); ++i) {
    const std::int64_t label = labels[static_cast<std::size_t>(i)];
    matrix->data()[i] =
        class_of(label, values) < 0 ? missing : number_of_class(label, names, where);
  }
  return {std::move(matrix), {}};
}

/// The known numbers of a column.
std::vector<double> known_values(const Problem& problem, std::span<const std::int64_t> items,
                                 std::int64_t column) {
  std::vector<double> values;
  for (const std::int64_t item : items) {
    const float value = (*problem.numbers.matrix)(item, column);
    if (!std::isnan(value)) values.push_back(static_cast<double>(value));
  }
  return values;
}

void require_different(const std::vector<double>& values, const std::string& name,
                       const std::string& where) {
  if (values.empty()) {
    reject(fmt::format("no item to train on has a {}", in_quotes(name)), where,
           "give numbers for items of the training part, or leave the column out of --label");
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (*least == *most) {
    reject(fmt::format("{} is {} for all items to train on: there is nothing to learn",
                       in_quotes(name), *least),
           where, "give targets that differ, or leave the column out of --label");
  }
}

/// The same numbers as outputs are compared with.
Matrix<float> as_outputs(const NumberOutputs& outputs, const Matrix<float>& numbers) {
  Matrix<float> result(numbers.rows(), numbers.cols());
  parallel_for(numbers.rows(), grain, [&](std::int64_t i) {
    for (std::int64_t k = 0; k < numbers.cols(); ++k) {
      result(i, k) = static_cast<float>(outputs.output(k, static_cast<double>(numbers(i, k))));
    }
  });
  return result;
}

}  // namespace

Targets numbers_of(const Dataset& dataset, bool graph_task) {
  const Targets& given = graph_task ? dataset.graph_targets : dataset.targets;
  if (!given.empty()) return given;
  if (graph_task) {
    if (dataset.graph_labels.empty()) return {};
    return from_classes(dataset.graph_labels.span(), dataset.graph_class_names(), dataset.name);
  }
  if (const auto* classes = std::get_if<ClassLabels>(&dataset.labels)) {
    return from_classes(classes->span(), dataset.class_names, dataset.name);
  }
  if (const auto* several = std::get_if<MultiLabels>(&dataset.labels)) {
    return {*several, dataset.class_names};
  }
  return {};
}

void take_numbers(const Dataset& dataset, Problem& problem) {
  problem.numbers = numbers_of(dataset, problem.graph_task);
  if (problem.numbers.empty()) {
    reject("the data set has no numbers to predict", dataset.name,
           "name their columns with --label, or give targets in the file (docs/numbers.md)");
  }
  problem.graph_ids = problem.graph_task ? dataset.graph_ids : SharedArray<std::int32_t>();
  problem.num_items = problem.numbers.matrix->rows();
  problem.outputs = problem.numbers.count();
  std::int64_t known = 0;
  for (std::int64_t item = 0; item < problem.num_items; ++item) {
    const bool has_any = problem.numbers.has_any(item);
    problem.labels.push_back(has_any ? 0 : -1);
    known += has_any ? 1 : 0;
  }
  if (known == 0) {
    reject("all numbers to predict are missing", dataset.name,
           "give a number for some items at least");
  }
  std::vector<std::string> names;
  for (std::int64_t k = 0; k < problem.outputs; ++k) {
    names.push_back(in_quotes(target_name(problem.numbers.names, problem.outputs, k)));
  }
  problem.notes.push_back(fmt::format("predicted as numbers: {}, known of {} of {} {}",
                                      listed(names), grouped(known), grouped(problem.num_items),
                                      problem.graph_task ? "graphs" : "vertices"));
}

void leave_out_unknown(Problem& problem) {
  std::int64_t left_out = 0;
  const auto leave_out = [&](std::vector<std::int64_t>& part) {
    left_out += static_cast<std::int64_t>(std::erase_if(part, [&](std::int64_t item) {
      return problem.labels[static_cast<std::size_t>(item)] < 0;
    }));
  };
  const auto clean = [&](Split& split) {
    for (auto* part : {&split.train, &split.validation, &split.test}) leave_out(*part);
  };
  clean(problem.split);
  const std::int64_t of_first = left_out;
  for (Split& split : problem.splits) clean(split);
  if (of_first > 0) {
    problem.notes.push_back(
        fmt::format("{} of the split without a number to predict are left out", grouped(of_first)));
  }
}

NumberOutputs number_outputs(const Problem& problem, const Split& split,
                             const NumberOptions& options) {
  NumberOutputs outputs;
  outputs.names = problem.numbers.names;
  for (std::int64_t k = 0; k < problem.outputs; ++k) {
    const std::vector<double> values = known_values(problem, split.train, k);
    require_different(values, target_name(problem.numbers.names, problem.outputs, k), problem.name);
    const auto count = static_cast<double>(values.size());
    double mean = 0, squares = 0;
    for (const double value : values) mean += value / count;
    for (const double value : values) squares += (value - mean) * (value - mean) / count;
    outputs.means.push_back(options.standardise ? mean : 0);
    outputs.deviations.push_back(options.standardise ? std::sqrt(squares) : 1);
  }
  return outputs;
}

ops::LossTargets NumberLearning::loss_targets(const Matrix<float>& numbers,
                                              std::span<const std::int64_t> rows,
                                              const Place& place) const {
  return ops::LossTargets::numbers(as_outputs(outputs, numbers), rows, options.loss, place,
                                   options.huber_delta);
}

ops::EvaluationTargets NumberLearning::evaluation_targets(const Matrix<float>& numbers,
                                                          const ops::EvaluatedRows& rows,
                                                          const Place& place) const {
  return ops::EvaluationTargets::numbers(as_outputs(outputs, numbers), rows, options.loss, place,
                                         options.huber_delta);
}

void give_units(const NumberOutputs& outputs, MatrixView<float> values) {
  parallel_for(values.rows, grain, [&](std::int64_t i) {
    for (std::int64_t k = 0; k < values.cols; ++k) {
      values(i, k) = static_cast<float>(outputs.value(k, static_cast<double>(values(i, k))));
    }
  });
}

}  // namespace tessera::train
