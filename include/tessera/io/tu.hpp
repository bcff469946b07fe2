// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/io/open.hpp"

namespace tessera::io {

/// A folder of the TU collection (TUDataset) as it is unpacked: `NAME_A.txt`,
/// `NAME_graph_indicator.txt`, and where they are there `NAME_graph_labels.txt`, labels and
/// attributes of vertices, and those of edges and graphs. A union of graphs. docs/formats.md has
/// the rules.
Dataset read_tu(const std::string& folder, const ReadOptions& options = {});

/// True for a folder that holds such files, or has them in `raw/`.
bool is_tu_folder(const std::string& folder);

}  // namespace tessera::io
