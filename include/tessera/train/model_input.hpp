// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/data/dataset.hpp"

namespace tessera::train {

/// What of a graph changes what a model makes of it.
struct GraphForm {
  bool directed = false;    ///< some edge lacks its reverse
  bool self_loops = false;  ///< some vertex has an edge to itself
  bool weighted = false;

  friend bool operator==(const GraphForm&, const GraphForm&) = default;
};

GraphForm form_of(const Graph& graph);

/// What a model was trained on, so that other data can be brought into the same form.
struct ModelInput {
  /// As `Dataset` has them; without names features go by their position.
  Names feature_names;
  SharedArray<std::int32_t> category_prefixes = {};
  /// The mean of each feature with a name, over those that were not missing: what a missing number
  /// becomes.
  std::vector<float> means = {};
  std::optional<GraphForm> graph = {};  ///< absent: not known

  friend bool operator==(const ModelInput&, const ModelInput&) = default;
};

/// Of the features of a data set. The form of the graph is left out: finding it takes time.
ModelInput input_of(const Dataset& dataset);

/// A data set as a model expects it, and what was done to it, in words.
struct AlignedData {
  Dataset dataset;
  std::vector<std::string> notes;
};

/// Finds the model's features in the data by the names of their columns, in whatever order, leaves
/// out columns that the model does not know, and gives missing numbers the means of training. A
/// category that no vertex has is 0 everywhere. Throws one `invalid_argument` that names all
/// columns that are missing or of another kind, and all categories that training has not seen.
///
/// Where the model or the data has no names, features stay in their places, and a note says so.
AlignedData aligned(const ModelInput& input, const Dataset& dataset);

}  // namespace tessera::train
