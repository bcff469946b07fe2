// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/random.hpp"
#include "tessera/train/triples.hpp"

#include "graph/index_shuffle.hpp"
#include "train/random_use.hpp"

namespace tessera::train {
namespace {

/// So many of the triples, the same in every run of a seed.
Triples some_of(const Triples& all, std::int64_t most, std::uint64_t seed) {
  if (all.size() <= most) return all;
  const IndexShuffle order(static_cast<std::uint64_t>(all.size()), Random(seed, draw_split));
  Triples some;
  for (std::int64_t i = 0; i < most; ++i) {
    const auto k = static_cast<std::size_t>(order(static_cast<std::uint64_t>(i)));
    some.heads.push_back(all.heads[k]);
    some.relations.push_back(all.relations[k]);
    some.tails.push_back(all.tails[k]);
  }
  return some;
}

void require_sense(const KnowledgeGraph& graph, const TripleOptions& options) {
  if (graph.validation.size() == 0) {
    throw Error(ErrorCode::bad_data, "there are no validation triples to choose the epoch by",
                graph.name, "give a folder with train, valid and test");
  }
  if (options.epochs >= 1 && options.evaluate_every >= 1 && options.patience >= 0 &&
      options.validation_most >= 1) {
    return;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} epochs, an evaluation every {} on {} triples, a patience of {}",
                          options.epochs, options.evaluate_every, options.validation_most,
                          options.patience),
              "training on triples", "give positive numbers");
}

}  // namespace

TripleResult fit_triples(const KnowledgeGraph& graph, const TripleOptions& options,
                         const std::function<void(const TripleEpoch&)>& on_epoch) {
  require_sense(graph, options);
  const Stopwatch watch;
  TripleTrainer trainer(graph, options);
  const TripleJudge judge(graph);
  const Triples chosen_by = some_of(graph.validation, options.validation_most, options.seed);
  TripleResult result;
  TripleReport& report = result.report;
  report.model = trainer.model().describe();
  report.parameters = trainer.model().num_parameters();
  if (chosen_by.size() < graph.validation.size()) {
    report.notes.push_back(fmt::format("the epoch is chosen by {} of {} validation triples",
                                       grouped(chosen_by.size()),
                                       grouped(graph.validation.size())));
  }
  double best = -1;
  for (std::int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    const Stopwatch of_epoch;
    TripleEpoch record{.epoch = epoch, .loss = trainer.train_epoch()};
    record.seconds = of_epoch.seconds();
    record.evaluated = epoch % options.evaluate_every == 0 || epoch == options.epochs;
    if (record.evaluated) {
      Matrix<float> entities = trainer.entities(), relations = trainer.relations();
      record.validation = judge.quality(entities, relations, chosen_by, options.progress)
                              .filtered.mean_reciprocal_rank;
      if (record.validation > best) {
        best = record.validation;
        report.best_epoch = epoch;
        result.entities = std::move(entities);
        result.relations = std::move(relations);
      }
    }
    report.curve.push_back(record);
    if (on_epoch) on_epoch(record);
    const bool is_over = options.patience > 0 && epoch - report.best_epoch >= options.patience;
    if (record.evaluated && is_over) break;
  }
  report.validation =
      judge.quality(result.entities, result.relations, graph.validation, options.progress);
  report.test = judge.quality(result.entities, result.relations, graph.test, options.progress);
  report.seconds = watch.seconds();
  return result;
}

}  // namespace tessera::train
