// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/io/open.hpp"

namespace tessera::io {

/// A folder of the Open Graph Benchmark as it is downloaded: `raw/edge.csv.gz`, `num-node-list`,
/// `node-feat`, `node-label`, and the parts of the split below `split/`. One graph, vertices
/// classified.
Dataset read_ogb(const std::string& folder, const ReadOptions& options = {});

/// True for a folder that holds such edges.
bool is_ogb_folder(const std::string& folder);

}  // namespace tessera::io
