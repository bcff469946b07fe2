// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/io/open.hpp"

namespace tessera::io {

/// GraphML, plain or gzipped: one graph without nested ones. Attributes of vertices become features
/// and labels as columns of a table do, the attribute `weight` of edges their weight.
Dataset read_graphml(const std::string& path, const ReadOptions& options = {});

}  // namespace tessera::io
