// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/data/feature_columns.hpp"
#include "tessera/train/checkpoint.hpp"

#include "io/array.hpp"
#include "io/file.hpp"
#include "train/settings.hpp"
#include "train/stored_ranges.hpp"

namespace tessera::train {
namespace {

/// What is compared of a tensor: everything but its content.
struct TensorForm {
  std::string type;
  std::vector<std::int64_t> shape;

  friend bool operator==(const TensorForm&, const TensorForm&) = default;
};

class CheckpointCheck {
 public:
  CheckpointCheck(const Checkpoint& checkpoint, const std::string& where)
      : c_(checkpoint), where_(where), settings_(checkpoint.settings, where) {}

  void run() {
    check_task();
    check_input(c_.input, c_.features);
    check_normalisation(c_.normalisation, c_.features);
    const bool reads_edges = nn::reads_edges(c_.model);
    if (reads_edges != (c_.model.edge_features > 0)) {
      reject(fmt::format("{} with {} features of edges", nn::to_string(c_.model.kind),
                         c_.model.edge_features));
    }
    check_input(c_.edge_input, c_.model.edge_features);
    check_normalisation(c_.edge_normalisation, c_.model.edge_features);
    check_tensors(c_.weights, "weights");
    for (const StoredTensor& tensor : c_.weights) weights_[tensor.path] = form_of(tensor);
    check_model();
    check_ranges();
    check_runs();
  }

 private:
  [[noreturn]] void reject(const std::string& problem) const { io::damaged(where_, problem); }

  static TensorForm form_of(const StoredTensor& tensor) {
    return {tensor.array.type, tensor.array.shape};
  }

  void check_task() const {
    const Metric misfit = c_.multi_label ? Metric::accuracy : Metric::micro_f1;
    if (c_.metric == Metric::automatic || c_.metric == misfit) {
      reject(fmt::format("the metric {} does not fit its {} outputs", to_string(c_.metric),
                         c_.outputs));
    }
    check_numbers();
    if (c_.decoder && (c_.graph_task || c_.multi_label || !c_.class_values.empty())) {
      reject("a model of links has no classes");
    }
    if ((c_.variational || c_.kinds.given()) && !c_.decoder) {
      reject("it says of links what a model of classes does not have");
    }
    if (c_.variational && c_.outputs % 2 != 0) {
      reject(fmt::format("{} means and deviations of embeddings", c_.outputs));
    }
    if (!c_.decoder && is_of_lists(c_.metric)) {
      reject(fmt::format("the metric {} does not fit a model of classes", to_string(c_.metric)));
    }
    if (c_.graph_task && c_.multi_label) reject("graphs have no several labels each");
    if (c_.model.readout.has_value() != c_.graph_task) {
      reject("the model's readout does not fit what is classified");
    }
    const auto& names = c_.class_values;
    if (!names.empty() && std::ssize(names) != c_.outputs) {
      reject(fmt::format("{} names of classes for {} outputs", names.size(), c_.outputs));
    }
    const std::int64_t highest = names.empty() ? c_.outputs - 1 : names.back();
    if (!c_.class_names.empty() && c_.class_names.size() <= highest) {
      reject(fmt::format("{} names of classes, of which the highest is {}", c_.class_names.size(),
                         highest));
    }
    const bool rising =
        std::adjacent_find(names.begin(), names.end(), std::greater_equal<>()) == names.end();
    // -1 is the name of a class beside 1 alone.
    const bool is_class_minus = names == std::vector<std::int64_t>{-1, 1};
    if (!rising || (!names.empty() && names.front() < 0 && !is_class_minus)) {
      reject("the names of classes do not rise");
    }
    for (const auto* part : {&c_.split.train, &c_.split.validation, &c_.split.test}) {
      const auto first = std::min_element(part->begin(), part->end());
      if (first != part->end() && *first < 0) reject(fmt::format("the split has item {}", *first));
    }
  }

  void check_numbers() const {
    // Before the first weights are kept nothing is known of what outputs mean.
    const bool of_numbers = is_of_numbers(c_.metric);
    if (of_numbers != c_.numbers.has_value() && (!of_numbers || !c_.weights.empty())) {
      reject(fmt::format("the metric {} does not fit what it predicts", to_string(c_.metric)));
    }
    if (!c_.numbers) return;
    const NumberOutputs& n = *c_.numbers;
    if (n.count() != c_.outputs || std::ssize(n.deviations) != c_.outputs ||
        (!n.names.empty() && n.names.size() != c_.outputs)) {
      reject(fmt::format("{} names, {} means and {} deviations for {} outputs", n.names.size(),
                         n.means.size(), n.deviations.size(), c_.outputs));
    }
    const auto finite = [](double value) { return std::isfinite(value); };
    const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
    if (!std::all_of(n.means.begin(), n.means.end(), finite) ||
        !std::all_of(n.deviations.begin(), n.deviations.end(), positive)) {
      reject("a mean or deviation of a target is out of range");
    }
    if (c_.decoder || c_.multi_label || !c_.class_values.empty() || !c_.class_names.empty() ||
        !c_.model.bits.empty()) {
      reject("a model of numbers has no classes, links or few bits");
    }
  }

  void check_input(const ModelInput& input, std::int64_t features) const {
    const std::int64_t names = input.feature_names.size();
    const bool all_or_none = names == 0 ? input.category_prefixes.empty() : names == features;
    if (!all_or_none || std::ssize(input.means) != names) {
      reject(fmt::format("{} names and {} means for {} features", names, input.means.size(),
                         features));
    }
    if (!std::all_of(input.means.begin(), input.means.end(),
                     [](float mean) { return std::isfinite(mean); })) {
      reject("a mean of a feature is not finite");
    }
    try {
      validate_feature_columns(input.feature_names, input.category_prefixes);
    } catch (const Error& error) {
      reject(error.what());
    }
  }

  void check_normalisation(const Normalisation& n, std::int64_t features) const {
    const std::int64_t expected = n.kind == Normalise::standard ? features : 0;
    if (std::ssize(n.means) != expected || std::ssize(n.factors) != expected) {
      reject(fmt::format("{} means and {} factors for {} features", n.means.size(),
                         n.factors.size(), expected));
    }
    const auto finite = [](double value) { return std::isfinite(value); };
    const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
    if (!std::all_of(n.means.begin(), n.means.end(), finite) ||
        !std::all_of(n.factors.begin(), n.factors.end(), positive)) {
      reject("a mean or factor of a feature is out of range");
    }
  }

  void check_tensors(const std::vector<StoredTensor>& tensors, const char* name) const {
    for (const StoredTensor& tensor : tensors) {
      const ExtraArray& array = tensor.array;
      const bool real = array.type == "<f4" || array.type == "<f8";
      if (!real || array.shape.size() != 2 ||
          io::array_bytes(array.shape, io::parse_element_type(array.type, where_), where_) !=
              array.bytes.size()) {
        reject(fmt::format("'{}' of the {} is no tensor", tensor.path, name));
      }
    }
  }

  /// The model must be about as large as its tensors: so much is allocated before each of them is
  /// compared with what the model has. Widths that it does not use, as that between layers where
  /// there is one, may be anything.
  void check_model() const {
    try {
      nn::validate(c_.model);
    } catch (const Error& error) {
      reject(error.what());
    }
    if (c_.weights.empty()) return;
    std::int64_t elements = 0;
    for (const StoredTensor& tensor : c_.weights) {
      elements += tensor.array.shape[0] * tensor.array.shape[1];
    }
    const auto tensors = std::ssize(c_.weights);
    nn::DataShape shape;
    shape.features = c_.features;
    shape.outputs = c_.outputs;
    const bool is_lightgcn = c_.model.kind == nn::ModelKind::lightgcn;
    const bool fits = (is_lightgcn || c_.model.layers <= tensors) && c_.features <= elements &&
                      c_.outputs <= elements && c_.model.edge_features <= elements &&
                      (c_.model.kind != nn::ModelKind::cheb || c_.model.hops <= tensors) &&
                      nn::predicted_parameters(c_.model, shape) <= 2 * (elements + tensors);
    if (!fits) {
      reject(fmt::format("{} tensors of {} numbers are not those of a model with {}", tensors,
                         elements, nn::describe(c_.model)));
    }
  }

  void check_ranges() const {
    if (c_.model.bits.empty() && (!c_.ranges.empty() || c_.lost)) {
      reject("ranges or a loss of a model with all bits");
    }
    if (c_.lost && !(std::abs(*c_.lost) <= 1)) reject(fmt::format("a loss of {}", *c_.lost));
    for (const StoredTensor& ranges : c_.ranges) {
      const auto& [type, shape, bytes] = ranges.array;
      const bool fits = type == "<f4" && shape.size() == 2 && shape[0] > 0 && shape[1] == 2 &&
                        bytes.size() / (2 * std::int64_t{sizeof(float)}) == shape[0];
      if (!fits || (ranges.path == "features" && shape[0] != 1)) {
        reject(fmt::format("'{}' are no ranges", ranges.path));
      }
      for (const float reach : numbers_in(ranges)) {
        if (std::isfinite(reach) && reach >= 0) continue;
        reject(fmt::format("'{}' have a bound of {}", ranges.path, reach));
      }
    }
  }

  void check_runs() const {
    const std::int64_t epochs = settings_.integer("training.epochs");
    const std::int64_t evaluate_every = settings_.integer("training.evaluate_every");
    if (evaluate_every < 1) reject("no epoch was to be evaluated");
    // No epoch has more steps than there are items to train on, or parts to cut the graph into.
    const std::int64_t steps_per_epoch =
        std::max({settings_.integer("data.vertices"), settings_.integer("data.training_items"),
                  std::int64_t{1}});
    if (std::ssize(c_.runs) > settings_.integer("training.runs")) {
      reject("more runs than it was made for");
    }
    if (c_.weights.empty() != c_.runs.empty()) reject("the best weights belong to no run");
    for (const RunState& run : c_.runs) {
      const std::int64_t length = std::ssize(run.curve);
      if (length < 1 || length > epochs || run.step < 0 || run.step / steps_per_epoch > length) {
        reject(fmt::format("a run of {} epochs and {} steps", length, run.step));
      }
      for (const EpochRecord& record : run.curve) {
        if (record.evaluated == (record.epoch % evaluate_every == 0)) continue;
        reject(
            fmt::format("epoch {} was {}evaluated", record.epoch, record.evaluated ? "" : "not "));
      }
      check_tensors(run.model, "model");
      check_tensors(run.moments, "moments");
      if (run.model.size() != c_.weights.size()) reject("a run has not the tensors of its model");
      for (const StoredTensor& tensor : run.model) check_same(tensor.path, tensor);
      check_moments(run);
    }
  }

  void check_same(const std::string& path, const StoredTensor& tensor) const {
    const auto found = weights_.find(path);
    if (found == weights_.end() || found->second != form_of(tensor)) {
      reject(fmt::format("'{}' has no equal among the best weights", tensor.path));
    }
  }

  /// Both moments, or the first alone, of the same tensors in every run, and means of all tensors
  /// or none.
  void check_moments(const RunState& run) const {
    std::set<std::string> first, second, means;
    for (const StoredTensor& tensor : run.moments) {
      const std::size_t dot = tensor.path.find('.');
      const std::string kind = tensor.path.substr(0, dot);
      if (kind != "first" && kind != "second" && kind != "average") {
        reject(fmt::format("'{}' is no moment", tensor.path));
      }
      const std::string path = tensor.path.substr(dot + 1);
      check_same(path, tensor);
      (kind == "first" ? first : kind == "second" ? second : means).insert(path);
    }
    const bool has_some_means = !means.empty() && means.size() != run.model.size();
    if ((!second.empty() && first != second) || has_some_means ||
        run.moments.size() != c_.runs[0].moments.size()) {
      reject("the optimiser's moments are not complete");
    }
  }

  const Checkpoint& c_;
  const std::string& where_;
  SettingsReader settings_;
  std::map<std::string, TensorForm> weights_;
};

}  // namespace

void validate(const Checkpoint& checkpoint, const std::string& where) {
  CheckpointCheck(checkpoint, where).run();
}

}  // namespace tessera::train
