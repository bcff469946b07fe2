// SPDX-License-Identifier: Apache-2.0
#include "train/predict_batches.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/core/error.hpp"
#include "tessera/train/bit_batches.hpp"
#include "tessera/train/predictor.hpp"

#include "train/name_items.hpp"

namespace tessera::train {
namespace {

[[noreturn]] void refuse(const char* problem, const char* fix) {
  throw Error(ErrorCode::unsupported, problem, "batches", fix);
}

void require_batches_make_sense(const Checkpoint& checkpoint, const Dataset& dataset,
                                const PredictOptions& options) {
  if (checkpoint.graph_task) {
    refuse("batches of parts for a model that classifies graphs", "predict without parts");
  }
  if (options.bits.empty() && checkpoint.model.bits.empty()) {
    refuse("batches of parts with all bits", "give bits, or predict without parts");
  }
  if (!options.integers) {
    refuse("batches of parts in rounded numbers", "leave out --rounded, or predict without parts");
  }
  if (options.embeddings) {
    refuse("embeddings of batches of parts", "predict without parts to get them");
  }
  if (std::holds_alternative<std::monostate>(dataset.features)) {
    refuse("batches of vertices without features", "predict without parts");
  }
  if (dataset.graph.has_values()) {
    refuse("edges with weights of their own in batches of bits", "use a graph without weights");
  }
  options.partition->validate(dataset.graph.num_rows());
}

DenseFeatures dense_features(const Features& features) {
  if (const auto* const dense = std::get_if<DenseFeatures>(&features)) return *dense;
  const auto& sparse = std::get<SparseFeatures>(features);
  auto dense = std::make_shared<Matrix<float>>(sparse.num_rows(), sparse.num_cols(), 0.0f);
  for (VertexId row = 0; row < sparse.num_rows(); ++row) {
    for (EdgeOffset i = sparse.row_offsets()[row]; i < sparse.row_offsets()[row + 1]; ++i) {
      (*dense)(row, sparse.col_indices()[i]) = sparse.weight(row, i);
    }
  }
  return dense;
}

/// Where ranges are found: on the CPU, over the graph that is left.
Predictor whole_predictor(const Checkpoint& checkpoint, const Dataset& dataset,
                          PredictOptions options) {
  Dataset cut = dataset;
  cut.graph = within_parts(dataset.graph, *options.partition);
  cut.features = dense_features(dataset.features);
  options.partition = nullptr;
  options.placement = {};
  options.plans.device = {};
  options.plans.memory = nullptr;
  options.plans.stream = {};
  return Predictor(checkpoint, cut, options);
}

void gather(const BitBatches& batches, const BitBatchRunner& runner, Matrix<float>& logits) {
  for (std::int64_t batch = 0; batch < batches.size(); ++batch) {
    const Matrix<float> values = runner.values(batch);
    const auto members = batches.members(batch);
    for (std::size_t row = 0; row < members.size(); ++row) {
      if (members[row] < 0) continue;
      std::copy_n(values.row(static_cast<std::int64_t>(row)), logits.cols(),
                  logits.row(members[row]));
    }
  }
}

}  // namespace

Prediction predict_in_batches(const Checkpoint& checkpoint, const Dataset& dataset,
                              const PredictOptions& options) {
  require_batches_make_sense(checkpoint, dataset, options);
  Predictor whole = whole_predictor(checkpoint, dataset, options);
  const Predictor::BatchInput input = whole.batch_input();
  const BitBatches batches(dataset.graph, *options.partition, options.parts_per_batch,
                           input.features, *input.steps, options.placement.device(),
                           input.feature_scale);
  nn::BitNetworkOptions how;
  how.plans = options.plans;
  how.plans.device = options.placement.device();
  how.plans.memory = options.placement.memory;
  BitBatchRunner runner(*input.steps, batches, how);
  runner.run();

  Prediction prediction;
  prediction.logits = Matrix<float>(whole.num_items(), whole.num_outputs());
  gather(batches, runner, prediction.logits);
  name_items(checkpoint, dataset, prediction);
  prediction.computed = runner.explain();
  prediction.notes = whole.notes();
  prediction.ranges = whole.ranges();
  prediction.batches = batches.size();
  prediction.bytes_copied = runner.bytes_copied();
  return prediction;
}

}  // namespace tessera::train
