// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "session.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/graph/stats.hpp"

namespace tessera::app {

/// Counts of what a data set holds beside its graph.
struct DatasetSummary {
  std::string feature_kind = "none";  ///< none, dense or sparse
  std::int64_t feature_nonzeros = 0;
  std::int64_t classes = 0;  ///< different labels in use, or the width of a multi-label matrix
  std::int64_t graph_classes = 0;  ///< of the graphs of a union
  std::int64_t labelled = 0;       ///< vertices with a class, or with at least one label of several
  std::int64_t memory_bytes = 0;   ///< all arrays together
};

DatasetSummary summarise(const Dataset& dataset);

/// What every verb's JSON says of the data it worked on: name, vertices, columns, edges, features.
Json brief_json(const Dataset& dataset);

/// "citation: 2,708 vertices, 10,556 edges"
std::string headline(const Dataset& dataset);

}  // namespace tessera::app
