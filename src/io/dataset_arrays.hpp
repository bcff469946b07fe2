// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/data/dataset.hpp"
#include "tessera/io/open.hpp"

#include "io/array.hpp"
#include "io/split_masks.hpp"

/// A data set as named arrays. Formats differ in how they hold the edges; the names of everything
/// else, and what is read from and written to each, stand in one table behind these functions.
namespace tessera::io {

/// What has been read of a data set so far.
struct DatasetParts {
  /// All but the graph and sparse features, which are put together at the end.
  Dataset dataset;
  SharedArray<float> values, row_scale, col_scale;
  SharedArray<EdgeOffset> edge_ids;
  SharedArray<EdgeOffset> feature_offsets;
  SharedArray<VertexId> feature_indices;
  SharedArray<float> feature_values;
  std::int64_t feature_width = -1;
  std::int64_t file_bytes =
      0;                   ///< of the file, unpacked: features must be paid for as vertices are
  SplitMasks split_masks;  ///< another way to write the split

  /// Names are kept as their bytes and where each ends.
  struct NameArrays {
    SharedArray<std::int64_t> ends;
    SharedArray<std::uint8_t> bytes;
  };
  NameArrays vertex_names, class_names, feature_names, edge_feature_names;
  NameArrays target_names, graph_target_names;

  /// Guards masks and extras: arrays of one file may be read by several threads.
  std::mutex mutex;
};

/// True for the names in the table.
bool is_dataset_array(std::string_view name) noexcept;

/// Reads an array of the table.
void take_dataset_array(DatasetParts& parts, ArrayReader& array);

/// Reads an array that is not in the table: a mask of the split, or what Tessera has no use for.
void take_other(DatasetParts& parts, const std::string& name, ArrayReader& array);

/// Joins the parts and a graph, which has its structure and values, and validates the whole.
Dataset assemble(DatasetParts&& parts, Graph graph, const std::string& path,
                 const ReadOptions& options);

/// The arrays of the table that this data set has. Validates it first.
std::vector<std::pair<std::string, ExtraArray>> arrays_to_write(const Dataset& dataset);

/// The extras, checked: each as long as its type and shape say.
std::vector<std::pair<std::string, ExtraArray>> extras_to_write(const Dataset& dataset);

/// How many vertices any file may claim. Fuzz programs lower it, since they look for faults and not
/// for what large graphs without edges take.
inline std::int64_t vertices_always_fine = 1 << 24;

/// How many vertices a file of so many bytes may claim.
std::int64_t most_vertices(std::int64_t file_bytes) noexcept;

/// Turns a count of `items` read from a file into a number of rows or columns. Row offsets are
/// allocated from it, so what no file of `file_bytes` has reason to claim is `bad_data`.
VertexId checked_count(std::int64_t count, const char* items, std::int64_t file_bytes,
                       const std::string& where);
inline VertexId checked_vertex_count(std::int64_t count, std::int64_t file_bytes,
                                     const std::string& where) {
  return checked_count(count, "vertices", file_bytes, where);
}

/// The row of every entry of compressed rows.
SharedArray<VertexId> row_of_every_entry(const SharedArray<EdgeOffset>& offsets);

[[noreturn]] void rethrow_with_file(const Error& error, const std::string& path);

/// Runs `body` and puts the file's name before any error that does not carry it already.
template <class Body>
auto naming_file(const std::string& path, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    rethrow_with_file(error, path);
  }
}

}  // namespace tessera::io
