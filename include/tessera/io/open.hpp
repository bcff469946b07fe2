// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tessera/core/progress.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/io/tables.hpp"

namespace tessera::io {

struct ReadOptions {
  Duplicates duplicates = Duplicates::reject;
  /// Container only: map the file instead of reading it. The file must not change meanwhile.
  bool map = false;
  Progress progress = {};
  Nonfinite nonfinite = Nonfinite::reject;  ///< weights and scales; features must be finite
  std::string format = {};                  ///< a name of `format_names`; empty: by the content
  EdgeListOptions edges = {};
  NodeTableOptions nodes = {};
};

/// Opens a data set by name, the same everywhere:
///
///     path/to/file.npz | .mtx | .tsr | .csv | …    a file; its first bytes decide the format
///     embedded:karate                              a data set inside the library
///     generate:rmat?scale=17&edges=2000000&seed=1  a random graph
///     twin:reddit                                  a generated graph of a known size
Dataset open(const std::string& source, const ReadOptions& options = {});

/// The formats that can be read, by the names that `ReadOptions::format` takes.
std::vector<std::string> format_names();

/// Throws `invalid_argument` unless `save` knows the ending of this path: for those who want to
/// hear of it before the work rather than after.
void require_known_ending(const std::string& path);

/// Writes by the file's ending: .npz, .mtx, .mtx.gz or .tsr. The file appears whole or not at all.
/// A format that cannot hold everything (Matrix Market: the graph alone) is an error unless
/// `graph_only` says that is meant; then every format gets the graph alone.
void save(const Dataset& dataset, const std::string& path, bool graph_only = false,
          const Progress& progress = {});

}  // namespace tessera::io
