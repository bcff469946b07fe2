// SPDX-License-Identifier: Apache-2.0
#include "io/useless_options.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::io {
namespace {

/// The option by which reading edges is not what it is without options; null: there is none.
const char* given_for_edges(const EdgeListOptions& given) {
  const EdgeListOptions usual;
  if (given.separator != usual.separator) return "--separator";
  if (given.header != usual.header) return "--header";
  if (given.base != usual.base) return "--base";
  if (given.ids != usual.ids) return "--ids";
  if (given.source != usual.source) return "--source";
  if (given.target != usual.target) return "--target";
  if (given.weight != usual.weight) return "--weight";
  return given.features != usual.features ? "--edge-features" : nullptr;
}

}  // namespace

void reject_table_options(const ReadOptions& options, const std::string& source,
                          const std::string& kind) {
  if (!options.nodes.path.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a table of vertices belongs to an edge list, but this is {}", kind),
                source, "leave out --nodes, or give the edges as text");
  }
  if (const char* const option = given_for_edges(options.edges)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("is for tables, but '{}' is {}", source, kind), option, "leave it out");
  }
}

void reject_numbering(const EdgeListOptions& options) {
  const EdgeListOptions usual;
  const bool counts = options.base != usual.base;
  if (!counts && options.ids == usual.ids) return;
  throw Error(ErrorCode::invalid_argument, "does nothing with a table of vertices",
              counts ? "--base" : "--ids",
              "leave it out: ids are looked up in the table as they are written");
}

}  // namespace tessera::io
