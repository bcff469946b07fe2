// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/data/dataset.hpp"
#include "tessera/nn/config.hpp"
#include "tessera/reorder/permutation.hpp"
#include "tessera/train/model_input.hpp"
#include "tessera/train/options.hpp"

namespace tessera::train {

/// A data set made ready for a model: checked, with features, with a split. "Items" are what is
/// classified, or has numbers: vertices, or the graphs of a union; where links are predicted, the
/// edges.
struct Problem {
  std::string name;
  bool graph_task = false;
  Graph graph;
  Features features;
  SharedArray<std::int32_t> graph_ids;  ///< graph task
  std::int64_t num_items = 0;
  /// Class of each item, -1 unknown; empty for multi-label. Of numbers 0 where there is one.
  std::vector<std::int64_t> labels;
  MultiLabels targets;       ///< multi-label, else null
  std::int64_t outputs = 0;  ///< width of the logits
  /// What class k is called in the data set; empty: k.
  std::vector<std::int64_t> class_values;
  Names class_names;  ///< as the data set has them, by class value
  ModelInput input;   ///< what the features were as they came; the graph's form is left out
  Split split;
  /// Of data with several splits: run r uses number r of these, in turns. Empty: all use `split`.
  std::vector<Split> splits;
  Metric metric = Metric::accuracy;
  Normalisation normalisation;  ///< that `features` went through
  /// How far they reached above and below 0 before they were rounded; empty: they were not.
  std::vector<float> feature_reach;
  /// Whether the model does to entries of sparse features what it does to no zeros: it drops or
  /// rounds them.
  bool counts_entries = true;
  /// What a resumed training must find again of the data as it came, part by part.
  std::vector<Setting> fingerprint;
  /// In which full batches take the vertices (`TrainOptions::pattern`); empty: as they are.
  /// Everything else here has the numbers of the data.
  Permutation order;
  /// What products with the graph are expected to be like, for such orders.
  std::int64_t product_width = 16;
  std::int64_t products_per_epoch = 6;
  std::vector<std::string> notes;  ///< what was decided for the user, in words
  /// What each edge is for where links are predicted, in the order of the graph's columns;
  /// `outputs` is the width of embeddings then. Empty: classes are.
  std::vector<links::LinkPart> link_parts = {};
  /// Of links between two kinds of vertices: how many are of the first; 0: there is one kind.
  VertexId num_sources = 0;
  /// Numbers of each item, in the units of the data. Empty: classes are.
  Targets numbers = {};

  /// Of each edge of `graph`, for a model that may read them; null: there are none, or it reads
  /// none.
  DenseFeatures edge_features = {};
  Normalisation edge_normalisation = {};  ///< that these went through
  ModelInput edge_input = {};             ///< what they were as they came

  /// What steps are given in place of `graph` where the layers of a model take a list of graphs
  /// (`Context::graphs`), in full batches; features are the model's own affair then. Empty:
  /// nothing.
  std::vector<Graph> layer_graphs = {};

  bool link_task() const { return !link_parts.empty(); }
  bool number_task() const { return !numbers.empty(); }
  bool multi_label() const { return targets != nullptr; }
  std::int64_t num_features() const;
  nn::DataShape shape() const;
};

/// A model with the width of the features of edges that a problem has.
nn::ModelConfig fitted(const nn::ModelConfig& config, const Problem& problem);

/// What is learned where nobody said: never `automatic`.
Task chosen_task(const Dataset& dataset, Task task);

/// True if graphs are to be classified, or numbers of graphs predicted.
bool is_graph_task(const Dataset& dataset, Task task);

/// Every request that cannot work is an error here, before anything is trained: no labels, one
/// class only, an empty part of the split, an unlabelled item in it, features that are not finite;
/// of numbers a target that is missing of all items to train on, or the same for all of them.
/// A split may be without a test part; then nothing is tested.
///
/// Data without features gets some: one per vertex for vertices; for graphs, vertex labels or else
/// degrees. A model with `precomputed` gets its features propagated.
Problem prepare(const Dataset& dataset, const nn::ModelConfig& config, const TrainOptions& options);
/// The same for a model of one's own, of which nothing is known.
Problem prepare(const Dataset& dataset, const TrainOptions& options);

/// The features alone, for predictions, and those of edges as they come: no labels and no split are
/// needed. `normalisation` is what training did. Where they are rounded, it is within
/// `feature_reach`; empty: their own.
Problem prepare_features(const Dataset& dataset, const nn::ModelConfig& config, bool graph_task,
                         const Normalisation& normalisation, const TrainOptions& options = {},
                         const std::vector<float>& feature_reach = {});

}  // namespace tessera::train
