// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/relational.hpp"

#include "core/listing.hpp"
#include "train/features.hpp"
#include "train/relational_input.hpp"
#include "train/run_position.hpp"
#include "train/standardise.hpp"

namespace tessera::train {
namespace {

void require_sense(const RelationalData& data, std::int32_t kind, const TrainOptions& options) {
  const auto refuse = [](bool given, const char* what, const char* where, const char* fix) {
    if (given) throw Error(ErrorCode::invalid_argument, what, where, fix);
  };
  const Dataset& vertices = data.kinds[static_cast<std::size_t>(kind)];
  refuse(!vertices.targets.empty(), "numbers are not learned in a graph with kinds of vertices",
         "label", "name a column of classes");
  refuse(options.batching != Batching::full, "a graph with kinds of vertices is learned as a whole",
         "batching", "use full");
  refuse(options.process_every_step || options.rows_at_a_time > 0 ||
             options.pattern.kind != PatternChoice::Kind::off,
         "a graph with kinds of vertices is learned as it is, in whole passes", "training",
         "leave out process_every_step, rows_at_a_time and the pattern");
}

/// What training did to the features of a kind, by the rule for data of one kind.
Normalisation normalisation_of(const Dataset& vertices, Normalise asked) {
  const bool has_names = !vertices.feature_names.empty();
  if (asked == Normalise::standard || (asked == Normalise::automatic && has_names)) {
    return standard_normalisation(vertices.features);
  }
  const bool by_rows = asked == Normalise::rows ||
                       (asked == Normalise::automatic && !any_negative(vertices.features));
  return by_rows ? Normalisation{Normalise::rows, {}, {}} : Normalisation{};
}

std::vector<KnownKind> known_kinds(const RelationalData& data, Normalise normalise,
                                   std::vector<std::string>& notes) {
  std::vector<KnownKind> kinds;
  std::vector<std::string> embedded, standard;
  for (std::size_t k = 0; k < data.kinds.size(); ++k) {
    const Dataset& vertices = data.kinds[k];
    const VertexKind& kind = data.graph.kinds()[k];
    KnownKind known{.name = kind.name};
    if (vertices.num_features() > 0 && kind.count > 0) {
      require_finite(vertices.features);
      known.features = vertices.num_features();
      known.input = input_of(vertices);
      known.normalisation = normalisation_of(vertices, normalise);
      if (known.normalisation.kind == Normalise::standard) standard.push_back(in_quotes(kind.name));
    } else {
      known.embedded = kind.count;
      known.vertices = vertices.vertex_names;
      if (kind.count > 0) embedded.push_back(in_quotes(kind.name));
    }
    kinds.push_back(std::move(known));
  }
  if (!standard.empty()) {
    notes.push_back(
        fmt::format("features of {}: columns brought to mean 0 and deviation 1 (--normalise)",
                    listed(standard)));
  }
  if (!embedded.empty()) {
    notes.push_back(
        fmt::format("no features of {}: each vertex learns an embedding", listed(embedded)));
  }
  return kinds;
}

/// Kinds that nothing can be learned of from others.
void note_ends(const RelationalGraph& graph, std::int32_t labelled,
               std::vector<std::string>& notes) {
  const bool is_reached =
      std::any_of(graph.relations().begin(), graph.relations().end(),
                  [&](const Relation& relation) { return relation.target == labelled; });
  if (is_reached) return;
  notes.push_back(fmt::format(
      "no relation leads to {}, so that it learns nothing of others; --symmetrise gives each "
      "relation an inverse",
      in_quotes(graph.kinds()[static_cast<std::size_t>(labelled)].name)));
}

/// The kind that is learned as a problem of its own, with the graphs and the features of all.
Problem problem_of(const RelationalData& data, std::int32_t labelled,
                   const std::vector<KnownKind>& kinds, const RelationalOptions& options) {
  TrainOptions alone = options.training;
  alone.normalise = Normalise::off;
  alone.task = Task::node;
  Problem problem = prepare(data.kinds[static_cast<std::size_t>(labelled)], alone);
  std::erase_if(problem.notes, [](const std::string& note) {
    return note.starts_with("no features in the data");
  });
  problem.name = data.name;
  problem.features = stacked_features(kinds, data.kinds);
  problem.layer_graphs =
      nn::model_graphs(options.model, data.graph, kinds_with_features(kinds), labelled);
  return problem;
}

BestEpoch best_of(const TrainReport& report, const TrainOptions& options) {
  BestEpoch best;
  for (std::size_t run = 0; run < report.runs.size(); ++run) {
    const RunReport& one = report.runs[run];
    if (one.best_epoch == 0) continue;
    if (best.run >= 0 && !better(one.best, best.evaluation, options.stop_by, report.metric)) {
      continue;
    }
    best = {static_cast<std::int64_t>(run), one.best_epoch, one.best};
  }
  return best;
}

}  // namespace

RelationalOptions relational_options() {
  RelationalOptions options;
  options.training.epochs = 100;
  options.training.optimiser.weight_decay = 5e-4;
  return options;
}

std::string describe(const nn::RelationalModelOptions& options) {
  return fmt::format("{}, {} {} of {}", nn::to_string(options.kind), options.layers,
                     options.layers == 1 ? "layer" : "layers", options.hidden);
}

TrainReport fit_relational(const RelationalData& data, const RelationalOptions& options,
                           RelationalCheckpoint* kept) {
  data.validate();
  const std::int32_t labelled = labelled_kind(data);
  require_sense(data, labelled, options.training);
  std::vector<std::string> notes;
  const std::vector<KnownKind> kinds = known_kinds(data, options.training.normalise, notes);
  note_ends(data.graph, labelled, notes);
  Problem problem = problem_of(data, labelled, kinds, options);
  problem.notes.insert(problem.notes.end(), notes.begin(), notes.end());
  const nn::RelationalShape shape = shape_of(kinds, data.graph.relations().size(), problem.outputs);
  TrainOptions training = options.training;
  training.normalise = Normalise::off;
  training.task = Task::node;
  if (kept != nullptr) training.checkpoint.kept = std::make_shared<Checkpoint>();
  const ModelMaker maker = [&](const nn::DataShape&, const step::Placement& placement) {
    return std::make_unique<nn::RelationalModel>(options.model, shape, placement);
  };
  TrainReport report = fit(problem, maker, training);
  if (kept == nullptr) return report;
  *kept = {.model = options.model,
           .kinds = kinds,
           .relations = data.graph.relations(),
           .labelled = labelled,
           .outputs = problem.outputs,
           .multi_label = problem.multi_label(),
           .metric = problem.metric,
           .class_values = problem.class_values,
           .class_names = problem.class_names,
           .split = training.checkpoint.kept->split,
           .fingerprint = fingerprint_of(data.graph),
           .best = best_of(report, training),
           .weights = std::move(training.checkpoint.kept->weights)};
  return report;
}

}  // namespace tessera::train
