// SPDX-License-Identifier: Apache-2.0
#include "train/neighbour_options.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::train {
namespace {

struct Refusal {
  bool given;
  const char* field;
  const char* problem;
  const char* fix;
};

}  // namespace

void require_neighbour_options(const nn::ModelConfig& config, const TrainOptions& options,
                               bool graph_task) {
  const bool takes_max =
      config.kind == nn::ModelKind::sage && config.aggregation == nn::SageAggregation::max;
  const Refusal refusals[] = {
      {graph_task, "batching", "batches of neighbours, but graphs are to be classified",
       "use full or graphs"},
      {config.kind == nn::ModelKind::cheb, "batching",
       "cheb computes all its sums on the same vertices, of which batches of neighbours have fewer "
       "with every sum",
       "use another model, or clusters"},
      {config.kind == nn::ModelKind::agnn, "batching",
       "attention by cosines, as agnn has it, needs the same vertices on both sides, of which "
       "batches "
       "of neighbours have fewer on one",
       "use another model, or clusters"},
      {config.kind == nn::ModelKind::gine, "batching",
       "features of edges, which gine reads, are not drawn with batches of neighbours",
       "use another model, or clusters"},
      {!config.bits.empty(), "bits", "a model of few bits is not trained on batches of neighbours",
       "leave it out, or use full or clusters as batches"},
      {config.precomputed, "precomputed",
       "features that were propagated beforehand leave no neighbours to draw",
       "leave it out, or use full batches"},
      {options.pattern.kind != PatternChoice::Kind::off, "pattern",
       "an order of the vertices does nothing for batches of neighbours, which have their own",
       "leave it out"},
      {options.replace && takes_max, "replace",
       "a maximum over neighbours takes no edge twice, as drawing with replacement gives",
       "draw without replacement, or use another aggregation"}};
  for (const Refusal& refusal : refusals) {
    if (!refusal.given) continue;
    throw Error(ErrorCode::invalid_argument, refusal.problem, refusal.field, refusal.fix);
  }
}

}  // namespace tessera::train
