// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/relational.hpp"

#include <filesystem>
#include <system_error>

#include "tessera/core/error.hpp"

#include "io/dataset_arrays.hpp"
#include "io/kind_tables.hpp"
#include "io/ogb_kinds.hpp"

namespace tessera::io {

namespace fs = std::filesystem;

bool holds_relational(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return false;
  return holds_ogb_kinds(path) || holds_kind_tables(path);
}

RelationalData read_relational(const std::string& path, const ReadOptions& options) {
  if (!holds_relational(path)) {
    throw Error(ErrorCode::bad_data, "is no folder of a graph with kinds of vertices", path,
                "give a folder with tables nodes_KIND.csv and edges_SOURCE_RELATION_TARGET.csv");
  }
  const bool is_ogb = holds_ogb_kinds(path);
  const NodeTableOptions& nodes = options.nodes;
  if (is_ogb && (!nodes.label.empty() || !nodes.drop.empty())) {
    throw Error(ErrorCode::invalid_argument, "OGB's folders have no columns of that name",
                nodes.label.empty() ? "--drop" : "--label", "leave it out");
  }
  RelationalData data = is_ogb ? read_ogb_kinds(path, options) : read_kind_tables(path, options);
  const fs::path whole = fs::absolute(path).lexically_normal();
  data.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  naming_file(path, [&] { data.validate(); });
  return data;
}

}  // namespace tessera::io
