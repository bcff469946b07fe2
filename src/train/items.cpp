// SPDX-License-Identifier: Apache-2.0
#include "train/items.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/data/classes.hpp"

#include "core/listing.hpp"
#include "train/number_targets.hpp"

namespace tessera::train {
namespace {

[[noreturn]] void reject(const std::string& problem, const std::string& where,
                         const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

std::size_t index_of(std::int64_t item) { return static_cast<std::size_t>(item); }

/// Labels as classes from 0 on, without the numbers that no item has.
void take_classes(std::span<const std::int64_t> labels, Problem& problem) {
  problem.class_values = class_values(labels);
  problem.outputs = std::ssize(problem.class_values);
  for (const std::int64_t label : labels) {
    problem.labels.push_back(class_of(label, problem.class_values));
  }
}

/// True where class k is called k.
bool are_plain(const std::vector<std::int64_t>& values) {
  return values.empty() || (values.front() == 0 && values.back() == std::ssize(values) - 1);
}

void note_classes(Problem& problem) {
  if (are_plain(problem.class_values)) return;
  const std::vector<std::int64_t>& values = problem.class_values;
  constexpr std::size_t most = 8;
  problem.notes.push_back(
      fmt::format("the {} class numbers in use ({}{}) are one output each", values.size(),
                  fmt::join(std::span(values).first(std::min(most, values.size())), ", "),
                  values.size() > most ? fmt::format(", ... {}", values.back()) : std::string()));
}

void take_vertex_labels(const Dataset& dataset, Problem& problem) {
  problem.num_items = dataset.graph.num_rows();
  if (dataset.is_multi_label()) {
    problem.outputs = dataset.num_classes();
    problem.targets = std::get<MultiLabels>(dataset.labels);
    if (problem.outputs == 0) {
      reject("the label matrix has no columns", dataset.name, "use data with labels");
    }
    problem.class_names = dataset.class_names;
    return;
  }
  if (const auto* const labels = std::get_if<ClassLabels>(&dataset.labels)) {
    take_classes(labels->span(), problem);
  }
  if (problem.outputs == 0 && !dataset.targets.empty()) {
    reject("the labels are numbers, not classes", dataset.name,
           "predict them with --task numbers, or name a column of classes with --label");
  }
  if (problem.outputs == 0) {
    const bool has_column = !std::holds_alternative<std::monostate>(dataset.labels);
    reject(has_column ? "no vertex has a label" : "the data set has no labels", dataset.name,
           "use data with labels to train on");
  }
  note_classes(problem);
  if (are_plain(problem.class_values)) problem.class_values.clear();
  problem.class_names = dataset.class_names;
}

void take_graph_labels(const Dataset& dataset, Problem& problem) {
  if (dataset.graph_ids.empty() || dataset.graph_labels.empty()) {
    reject(dataset.graph_targets.empty() ? "the data set has no labels for graphs"
                                         : "the graphs have numbers to predict, but no classes",
           dataset.name,
           dataset.graph_targets.empty()
               ? "use a union of graphs with labels, or classify vertices (--task node)"
               : "predict them with --task numbers");
  }
  problem.num_items = dataset.num_graphs();
  problem.graph_ids = dataset.graph_ids;
  take_classes(dataset.graph_labels.span(), problem);
  note_classes(problem);
  problem.class_names = dataset.graph_class_names();
}

void require_two_classes(const Problem& problem) {
  if (problem.multi_label()) return;
  std::int64_t first = -1;
  for (const std::int64_t label : problem.labels) {
    if (label < 0) continue;
    if (first >= 0 && label != first) return;
    first = label;
  }
  if (first < 0) {
    reject("no item has a label", problem.name, "use data with labels of at least two classes");
  }
  const std::int64_t label =
      problem.class_values.empty() ? first : problem.class_values[index_of(first)];
  reject(fmt::format("all labels are {}", label < problem.class_names.size()
                                              ? in_quotes(problem.class_names[label])
                                              : fmt::to_string(label)),
         problem.name, "use data with at least two classes");
}

/// So many numbers are ages, counts or the like, if every other item has one of its own.
void require_classes(const Problem& problem) {
  constexpr std::int64_t always_fine = 20;
  if (problem.multi_label() || !problem.class_names.empty()) return;
  const auto known = std::count_if(problem.labels.begin(), problem.labels.end(),
                                   [](std::int64_t label) { return label >= 0; });
  if (problem.outputs <= always_fine || 2 * problem.outputs <= known) return;
  reject(fmt::format("the labels of {} items are {} different whole numbers, which are hardly "
                     "classes",
                     known, problem.outputs),
         problem.name,
         fmt::format("predict them as numbers with --task numbers, or take each for a class with "
                     "--task {}",
                     problem.graph_task ? "graph" : "node"));
}

std::vector<std::int64_t> items_to_split(const Problem& problem) {
  std::vector<std::int64_t> items;
  for (std::int64_t item = 0; item < problem.num_items; ++item) {
    if (problem.multi_label() || problem.labels[index_of(item)] >= 0) items.push_back(item);
  }
  return items;
}

void require_labelled(const Problem& problem, const char* name,
                      const std::vector<std::int64_t>& part) {
  if (problem.multi_label()) return;
  for (const std::int64_t item : part) {
    if (problem.labels[index_of(item)] < 0) {
      reject(fmt::format("{} {} of the {} part has no label",
                         problem.graph_task ? "graph" : "vertex", item, name),
             problem.name, "take it out of the split, or label it");
    }
  }
}

void require_usable(const Problem& problem, const Split& split) {
  const std::pair<const char*, const std::vector<std::int64_t>*> parts[] = {
      {"training", &split.train}, {"validation", &split.validation}, {"test", &split.test}};
  for (const auto& [name, part] : parts) {
    if (part->empty() && part != &split.test) {
      reject(fmt::format("the {} part of the split is empty", name), problem.name,
             "give it vertices, or remove the split to have one drawn");
    }
    require_labelled(problem, name, *part);
  }
}

Split copied(const SharedArray<std::int64_t>& train, const SharedArray<std::int64_t>& validation,
             const SharedArray<std::int64_t>& test) {
  return {{train.begin(), train.end()},
          {validation.begin(), validation.end()},
          {test.begin(), test.end()}};
}

/// The splits of the data, of which there is one at least.
void take_splits(const Dataset& dataset, const TrainOptions& options, Problem& problem) {
  const std::int64_t count = std::max<std::int64_t>(1, std::ssize(dataset.splits));
  if (options.split_index && (*options.split_index < 0 || *options.split_index >= count)) {
    reject(fmt::format("split {} of data with {}", *options.split_index, count), "split_index",
           count == 1 ? "leave it out" : fmt::format("use 0 to {}", count - 1));
  }
  problem.split = copied(dataset.train, dataset.validation, dataset.test);
  if (count == 1) return;
  if (options.split_index) {
    const VertexSplit& chosen = dataset.splits[index_of(*options.split_index)];
    problem.split = copied(chosen.train, chosen.validation, chosen.test);
    problem.notes.push_back(fmt::format("split {} of {} in the data (0 to {})",
                                        *options.split_index, count, count - 1));
    return;
  }
  for (const VertexSplit& split : dataset.splits) {
    problem.splits.push_back(copied(split.train, split.validation, split.test));
  }
  problem.notes.push_back(
      options.runs == 1 ? fmt::format("split 0 of {} in the data: --split-index K chooses another, "
                                      "--split-index all trains on each of them",
                                      count)
                        : fmt::format("{} of {} splits in the data, one a run",
                                      std::min(options.runs, count), count));
}

}  // namespace

void take_labels(const Dataset& dataset, Task asked, Problem& problem) {
  problem.graph_task ? take_graph_labels(dataset, problem) : take_vertex_labels(dataset, problem);
  if (asked == Task::automatic) require_classes(problem);
  require_two_classes(problem);
}

void make_split(const Dataset& dataset, const TrainOptions& options, Problem& problem) {
  const bool has_split =
      !dataset.train.empty() || !dataset.validation.empty() || !dataset.test.empty();
  const bool uses_split = options.folds == 0 && has_split && !problem.graph_task;
  if (options.split_index && !uses_split) {
    reject("a split is chosen, but none of the data is used", "split_index", "leave it out");
  }
  if (options.folds > 0) {
    if (problem.multi_label()) reject("folds of several labels per item", "folds", "use a split");
    problem.split = fold_split(problem.labels, options.folds, 0, options.seed);
    problem.notes.push_back(fmt::format("{}-fold cross-validation, one fold a run", options.folds));
  } else if (uses_split) {
    take_splits(dataset, options, problem);
  } else {
    problem.split = random_split(items_to_split(problem), options.split, options.seed);
    problem.notes.push_back(fmt::format("no split in the data: {}, {}, {} drawn with seed {}",
                                        options.split.train, options.split.validation,
                                        options.split.test, options.seed));
  }
  if (problem.number_task()) leave_out_unknown(problem);
  require_usable(problem, problem.split);
  for (const Split& split : problem.splits) require_usable(problem, split);
  const bool tested = !problem.split.test.empty();
  for (const Split& split : problem.splits) {
    if (split.test.empty() == tested) {
      reject("some splits have a test part and others have none", problem.name,
             "choose a split, or give all of them a test part");
    }
  }
  if (!tested) problem.notes.emplace_back("the split has no test part: nothing is tested");
}

}  // namespace tessera::train
