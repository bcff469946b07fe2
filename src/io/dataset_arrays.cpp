// SPDX-License-Identifier: Apache-2.0
#include "io/dataset_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/build.hpp"

#include "io/file.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t grain = 1 << 14;

struct ArrayKind {
  std::string_view name;
  void (*take)(DatasetParts&, ArrayReader&);
  std::optional<ExtraArray> (*give)(const Dataset&);
};

template <auto Member>
void take_vector(DatasetParts& parts, ArrayReader& array) {
  auto& place = parts.*Member;
  place = read_vector<std::remove_cvref_t<decltype(place[0])>>(array);
}

template <auto Member>
void take_dataset_vector(DatasetParts& parts, ArrayReader& array) {
  auto& place = parts.dataset.*Member;
  place = read_vector<std::remove_cvref_t<decltype(place[0])>>(array);
}

template <auto Member>
std::optional<ExtraArray> give_dataset_vector(const Dataset& dataset) {
  if ((dataset.*Member).empty()) return {};
  return stored(dataset.*Member);
}

/// Several splits are written as masks.
template <auto Member>
std::optional<ExtraArray> give_only_split(const Dataset& dataset) {
  return dataset.splits.empty() ? give_dataset_vector<Member>(dataset) : std::nullopt;
}

template <auto Member>
std::optional<ExtraArray> give_masks(const Dataset& dataset) {
  return mask_of_splits(dataset, Member);
}

void take_mask_called(std::string_view name, DatasetParts& parts, ArrayReader& array) {
  SplitMask mask = read_split_mask(name, array);
  const std::scoped_lock lock(parts.mutex);
  keep_split_mask(parts.split_masks, std::move(mask));
}

void take_mask(DatasetParts& parts, ArrayReader& array) {
  take_mask_called(array.name(), parts, array);
}

template <class T>
std::optional<ExtraArray> unless_empty(const SharedArray<T>& values) {
  if (values.empty()) return {};
  return stored(values);
}

/// The value of every stored feature, also where they are all 1 or have scales.
SharedArray<float> feature_values(const SparseFeatures& features) {
  if (features.has_values() && !features.has_row_scale() && !features.has_col_scale()) {
    return features.values();
  }
  Buffer<float> values(features.num_edges());
  parallel_for(features.num_rows(), grain, [&](std::int64_t row) {
    const auto vertex = static_cast<VertexId>(row);
    for (EdgeOffset e = features.row_offsets()[row]; e < features.row_offsets()[row + 1]; ++e) {
      values[e] = features.weight(vertex, e);
    }
  });
  return values;
}

/// What `part` makes of sparse features, where the data set has them.
template <class Part>
std::optional<ExtraArray> of_sparse(const Dataset& dataset, Part&& part) {
  const auto* const features = std::get_if<SparseFeatures>(&dataset.features);
  if (features == nullptr) return {};
  return stored(part(*features));
}

using NameArrays = DatasetParts::NameArrays;

template <NameArrays DatasetParts::*Place>
void take_name_bytes(DatasetParts& parts, ArrayReader& array) {
  (parts.*Place).bytes = read_exact<std::uint8_t>(array, "must be bytes in one dimension");
}

template <NameArrays DatasetParts::*Place>
void take_name_ends(DatasetParts& parts, ArrayReader& array) {
  (parts.*Place).ends = read_vector<std::int64_t>(array);
}

template <Names Dataset::*Member>
std::optional<ExtraArray> give_name_bytes(const Dataset& dataset) {
  if ((dataset.*Member).empty()) return {};
  return stored((dataset.*Member).bytes());
}

template <Names Dataset::*Member>
std::optional<ExtraArray> give_name_ends(const Dataset& dataset) {
  return unless_empty((dataset.*Member).ends());
}

/// A row of numbers for each item, or one number.
DenseFeatures read_columns(ArrayReader& array) {
  if (array.shape().size() != 1) return read_matrix(array);
  const SharedArray<float> numbers = read_vector<float>(array);
  auto column = std::make_shared<Matrix<float>>(numbers.size(), 1);
  std::copy(numbers.begin(), numbers.end(), column->data());
  return column;
}

void take_edge_features(DatasetParts& parts, ArrayReader& array) {
  parts.dataset.edge_features.matrix = read_columns(array);
}

template <Targets Dataset::*Member>
void take_targets(DatasetParts& parts, ArrayReader& array) {
  (parts.dataset.*Member).matrix = read_columns(array);
}

template <Targets Dataset::*Member>
std::optional<ExtraArray> give_targets(const Dataset& dataset) {
  if ((dataset.*Member).empty()) return {};
  return stored((dataset.*Member).matrix);
}

template <Targets Dataset::*Member>
std::optional<ExtraArray> give_target_name_bytes(const Dataset& dataset) {
  if ((dataset.*Member).names.empty()) return {};
  return stored((dataset.*Member).names.bytes());
}

template <Targets Dataset::*Member>
std::optional<ExtraArray> give_target_name_ends(const Dataset& dataset) {
  return unless_empty((dataset.*Member).names.ends());
}

bool is_one_column(const ArrayReader& array) {
  return array.shape().size() == 2 && array.shape()[1] == 1;
}

bool are_class_numbers(const Matrix<float>& column) {
  constexpr float largest_exact = 1 << 24;
  return std::all_of(column.data(), column.data() + column.size(), [](float value) {
    return value == std::floor(value) && value >= -1 && value < largest_exact;
  });
}

SharedArray<std::int64_t> class_numbers(const Matrix<float>& column) {
  Buffer<std::int64_t> classes(column.rows());
  std::transform(column.data(), column.data() + column.size(), classes.begin(),
                 [](float value) { return static_cast<std::int64_t>(value); });
  return classes;
}

/// Whole numbers in a vector, or in one column, are classes; others are numbers to predict.
void take_classes(ArrayReader& array, FunctionRef<void(SharedArray<std::int64_t>)> give,
                  Targets& targets) {
  if (array.kind() != 'f') {
    return give(is_one_column(array) ? read_flat<std::int64_t>(array)
                                     : read_vector<std::int64_t>(array));
  }
  DenseFeatures numbers = read_columns(array);
  if (numbers->cols() == 1 && are_class_numbers(*numbers)) return give(class_numbers(*numbers));
  targets.matrix = std::move(numbers);
}

/// Whether every number says yes or no.
bool are_answers(const Matrix<float>& matrix) {
  return std::all_of(matrix.data(), matrix.data() + matrix.size(),
                     [](float value) { return value == 0 || value == 1; });
}

void take_labels(DatasetParts& parts, ArrayReader& array) {
  Dataset& dataset = parts.dataset;
  if (array.shape().size() == 2 && !is_one_column(array)) {
    DenseFeatures matrix = read_matrix(array);
    if (array.kind() != 'f' || are_answers(*matrix)) {
      dataset.labels = std::move(matrix);
    } else {
      dataset.targets.matrix = std::move(matrix);
    }
    return;
  }
  take_classes(
      array, [&](SharedArray<std::int64_t> classes) { dataset.labels = std::move(classes); },
      dataset.targets);
}

void take_graph_labels(DatasetParts& parts, ArrayReader& array) {
  Dataset& dataset = parts.dataset;
  take_classes(
      array, [&](SharedArray<std::int64_t> classes) { dataset.graph_labels = std::move(classes); },
      dataset.graph_targets);
}

std::optional<ExtraArray> give_labels(const Dataset& dataset) {
  if (const auto* classes = std::get_if<ClassLabels>(&dataset.labels)) return stored(*classes);
  if (const auto* multi = std::get_if<MultiLabels>(&dataset.labels)) return stored(*multi);
  return {};
}

const ArrayKind kinds[] = {
    {"value", take_vector<&DatasetParts::values>,
     [](const Dataset& d) { return unless_empty(d.graph.values()); }},
    {"row_scale", take_vector<&DatasetParts::row_scale>,
     [](const Dataset& d) { return unless_empty(d.graph.row_scale()); }},
    {"col_scale", take_vector<&DatasetParts::col_scale>,
     [](const Dataset& d) { return unless_empty(d.graph.col_scale()); }},
    {"edge_id", take_vector<&DatasetParts::edge_ids>,
     [](const Dataset& d) { return unless_empty(d.graph.edge_ids()); }},
    {"x", [](DatasetParts& p, ArrayReader& a) { p.dataset.features = read_matrix(a); },
     [](const Dataset& d) -> std::optional<ExtraArray> {
       const auto* dense = std::get_if<DenseFeatures>(&d.features);
       if (dense == nullptr) return {};
       return stored(*dense);
     }},
    {"x_indptr", take_vector<&DatasetParts::feature_offsets>,
     [](const Dataset& d) { return of_sparse(d, [](const Graph& f) { return f.row_offsets(); }); }},
    {"x_indices", take_vector<&DatasetParts::feature_indices>,
     [](const Dataset& d) { return of_sparse(d, [](const Graph& f) { return f.col_indices(); }); }},
    {"x_data", take_vector<&DatasetParts::feature_values>,
     [](const Dataset& d) { return of_sparse(d, feature_values); }},
    {"x_dim", [](DatasetParts& p, ArrayReader& a) { p.feature_width = read_integer(a); },
     [](const Dataset& d) {
       return of_sparse(d, [](const Graph& f) { return std::int64_t{f.num_cols()}; });
     }},
    {"y", take_labels, give_labels},
    {"train_idx", take_dataset_vector<&Dataset::train>, give_only_split<&Dataset::train>},
    {"val_idx", take_dataset_vector<&Dataset::validation>, give_only_split<&Dataset::validation>},
    {"test_idx", take_dataset_vector<&Dataset::test>, give_only_split<&Dataset::test>},
    {"train_mask", take_mask, give_masks<&VertexSplit::train>},
    {"val_mask", take_mask, give_masks<&VertexSplit::validation>},
    {"test_mask", take_mask, give_masks<&VertexSplit::test>},
    {"graph_id", take_dataset_vector<&Dataset::graph_ids>,
     give_dataset_vector<&Dataset::graph_ids>},
    {"graph_label", take_graph_labels, give_dataset_vector<&Dataset::graph_labels>},
    {"targets", take_targets<&Dataset::targets>, give_targets<&Dataset::targets>},
    {"target_name", take_name_bytes<&DatasetParts::target_names>,
     give_target_name_bytes<&Dataset::targets>},
    {"target_name_end", take_name_ends<&DatasetParts::target_names>,
     give_target_name_ends<&Dataset::targets>},
    {"graph_targets", take_targets<&Dataset::graph_targets>, give_targets<&Dataset::graph_targets>},
    {"graph_target_name", take_name_bytes<&DatasetParts::graph_target_names>,
     give_target_name_bytes<&Dataset::graph_targets>},
    {"graph_target_name_end", take_name_ends<&DatasetParts::graph_target_names>,
     give_target_name_ends<&Dataset::graph_targets>},
    {"vertex_name", take_name_bytes<&DatasetParts::vertex_names>,
     give_name_bytes<&Dataset::vertex_names>},
    {"vertex_name_end", take_name_ends<&DatasetParts::vertex_names>,
     give_name_ends<&Dataset::vertex_names>},
    {"class_name", take_name_bytes<&DatasetParts::class_names>,
     give_name_bytes<&Dataset::class_names>},
    {"class_name_end", take_name_ends<&DatasetParts::class_names>,
     give_name_ends<&Dataset::class_names>},
    {"feature_name", take_name_bytes<&DatasetParts::feature_names>,
     give_name_bytes<&Dataset::feature_names>},
    {"feature_name_end", take_name_ends<&DatasetParts::feature_names>,
     give_name_ends<&Dataset::feature_names>},
    {"category_prefix", take_dataset_vector<&Dataset::category_prefixes>,
     give_dataset_vector<&Dataset::category_prefixes>},
    {"edge_attr", take_edge_features,
     [](const Dataset& d) -> std::optional<ExtraArray> {
       if (d.edge_features.matrix == nullptr) return {};
       return stored(d.edge_features.matrix);
     }},
    {"edge_attr_name", take_name_bytes<&DatasetParts::edge_feature_names>,
     [](const Dataset& d) -> std::optional<ExtraArray> {
       if (d.edge_features.names.empty()) return {};
       return stored(d.edge_features.names.bytes());
     }},
    {"edge_attr_name_end", take_name_ends<&DatasetParts::edge_feature_names>,
     [](const Dataset& d) { return unless_empty(d.edge_features.names.ends()); }},
    {"edge_attr_category_prefix",
     [](DatasetParts& p, ArrayReader& a) {
       p.dataset.edge_features.category_prefixes = read_vector<std::int32_t>(a);
     },
     [](const Dataset& d) { return unless_empty(d.edge_features.category_prefixes); }},
    {"filled_cell", take_dataset_vector<&Dataset::filled_cells>,
     give_dataset_vector<&Dataset::filled_cells>},
};

const ArrayKind* find_kind(std::string_view name) noexcept {
  const auto* const found = std::find_if(std::begin(kinds), std::end(kinds),
                                         [&](const ArrayKind& kind) { return kind.name == name; });
  return found == std::end(kinds) ? nullptr : found;
}

void require_offsets(const SharedArray<EdgeOffset>& offsets, std::int64_t entries) {
  const bool rising =
      !offsets.empty() && offsets[0] == 0 && offsets.back() == entries &&
      parallel_reduce(
          offsets.size() - 1, grain, true,
          [&](std::int64_t begin, std::int64_t end) {
            return std::is_sorted(offsets.begin() + begin, offsets.begin() + end + 1);
          },
          [](bool a, bool b) { return a && b; });
  if (!rising) {
    damaged("x_indptr", fmt::format("does not rise from 0 to {}, the number of features", entries));
  }
}

bool rows_are_sorted(const SharedArray<EdgeOffset>& offsets, const SharedArray<VertexId>& indices) {
  return parallel_reduce(
      offsets.size() - 1, grain, true,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const VertexId* const last = indices.begin() + offsets[row + 1];
          const VertexId* const first = indices.begin() + offsets[row];
          if (std::adjacent_find(first, last, std::greater_equal<>()) != last) return false;
        }
        return true;
      },
      [](bool a, bool b) { return a && b; });
}

/// SciPy does not keep the columns of a row in order; a Graph does.
Graph sorted_features(VertexId rows, VertexId width, const DatasetParts& parts,
                      const ReadOptions& options) {
  return from_coo(rows, width, row_of_every_entry(parts.feature_offsets), parts.feature_indices,
                  parts.feature_values, {options.duplicates, false, {}});
}

bool has_sparse_features(const DatasetParts& parts) {
  return parts.feature_width >= 0 || !parts.feature_offsets.empty() ||
         !parts.feature_indices.empty() || !parts.feature_values.empty();
}

SparseFeatures assemble_features(const DatasetParts& parts, VertexId vertices,
                                 const ReadOptions& options) {
  if (parts.feature_width < 0 || parts.feature_offsets.empty() ||
      parts.feature_values.size() != parts.feature_indices.size()) {
    throw Error(ErrorCode::bad_data,
                "sparse features need x_indptr, x_dim, and as many x_indices as x_data", "x_indptr",
                "docs/formats.md says what belongs here");
  }
  if (!std::holds_alternative<std::monostate>(parts.dataset.features)) {
    throw Error(ErrorCode::bad_data, "features are given twice, dense and sparse", "x, x_indptr",
                "keep one of the two");
  }
  const VertexId width = checked_count(parts.feature_width, "features", parts.file_bytes, "x_dim");
  if (parts.feature_offsets.size() != std::int64_t{vertices} + 1) {
    throw Error(
        ErrorCode::bad_data,
        fmt::format("has {} entries for {} vertices", parts.feature_offsets.size(), vertices),
        "x_indptr", "it must have one more than there are vertices");
  }
  require_offsets(parts.feature_offsets, parts.feature_indices.size());
  if (!rows_are_sorted(parts.feature_offsets, parts.feature_indices)) {
    return sorted_features(vertices, width, parts, options);
  }
  return {vertices, width, parts.feature_offsets, parts.feature_indices, parts.feature_values};
}

}  // namespace

bool is_dataset_array(std::string_view name) noexcept { return find_kind(name) != nullptr; }

void take_dataset_array(DatasetParts& parts, ArrayReader& array) {
  find_kind(array.name())->take(parts, array);
}

void take_other(DatasetParts& parts, const std::string& name, ArrayReader& array) {
  if (is_split_mask(name)) return take_mask_called(name, parts, array);
  ExtraArray extra = read_as_is(array);
  const std::scoped_lock lock(parts.mutex);
  parts.dataset.extras.emplace(name, std::move(extra));
}

Dataset assemble(DatasetParts&& parts, Graph graph, const std::string& path,
                 const ReadOptions& options) {
  return naming_file(path, [&] {
    Dataset dataset = std::move(parts.dataset);
    dataset.graph = std::move(graph);
    if (!parts.row_scale.empty() || !parts.col_scale.empty()) {
      dataset.graph = dataset.graph.with_scales(parts.row_scale, parts.col_scale);
    }
    if (!parts.edge_ids.empty()) dataset.graph = dataset.graph.with_edge_ids(parts.edge_ids);
    if (has_sparse_features(parts)) {
      dataset.features = assemble_features(parts, dataset.graph.num_rows(), options);
    }
    apply_split_masks(parts.split_masks, dataset);
    const auto names = [](const NameArrays& arrays) { return Names(arrays.ends, arrays.bytes); };
    dataset.vertex_names = names(parts.vertex_names);
    dataset.class_names = names(parts.class_names);
    dataset.feature_names = names(parts.feature_names);
    dataset.edge_features.names = names(parts.edge_feature_names);
    dataset.targets.names = names(parts.target_names);
    dataset.graph_targets.names = names(parts.graph_target_names);
    report(options.progress, "checking");
    dataset.validate(options.nonfinite);
    return dataset;
  });
}

std::vector<std::pair<std::string, ExtraArray>> arrays_to_write(const Dataset& dataset) {
  dataset.validate(Nonfinite::allow);
  std::vector<std::pair<std::string, ExtraArray>> arrays;
  for (const ArrayKind& kind : kinds) {
    if (auto array = kind.give(dataset)) arrays.emplace_back(kind.name, std::move(*array));
  }
  return arrays;
}

std::vector<std::pair<std::string, ExtraArray>> extras_to_write(const Dataset& dataset) {
  for (const auto& [name, extra] : dataset.extras) {
    const std::string where = "extra array '" + name + "'";
    if (is_split_mask(name)) {
      throw Error(ErrorCode::invalid_argument, "has the name of a mask of the split", where,
                  "put the splits into Dataset::splits, or rename it");
    }
    const ElementType type = parse_element_type(extra.type, where);
    if (array_bytes(extra.shape, type, where) != extra.bytes.size() ||
        type.native_name() != extra.type) {
      throw Error(ErrorCode::invalid_argument, "type, shape and bytes do not fit together", where,
                  "give as many bytes as type and shape ask for, in this machine's order");
    }
  }
  return {dataset.extras.begin(), dataset.extras.end()};
}

SharedArray<VertexId> row_of_every_entry(const SharedArray<EdgeOffset>& offsets) {
  Buffer<VertexId> rows(offsets.back());
  parallel_for(offsets.size() - 1, 1 << 12, [&](std::int64_t row) {
    std::fill(rows.begin() + offsets[row], rows.begin() + offsets[row + 1],
              static_cast<VertexId>(row));
  });
  return rows;
}

std::int64_t most_vertices(std::int64_t file_bytes) noexcept {
  constexpr std::int64_t most_bytes = 1 << 24;
  constexpr std::int64_t per_byte = 1024;
  return std::min<std::int64_t>(
      std::numeric_limits<VertexId>::max(),
      std::max(vertices_always_fine, std::min(file_bytes, most_bytes) * per_byte));
}

VertexId checked_count(std::int64_t count, const char* items, std::int64_t file_bytes,
                       const std::string& where) {
  const std::int64_t limit = most_vertices(file_bytes);
  if (count < 0 || count > limit) {
    damaged(where,
            fmt::format("{} {}, but a file of this size may claim 0 to {}", count, items, limit));
  }
  return static_cast<VertexId>(count);
}

void rethrow_with_file(const Error& error, const std::string& path) {
  if (error.where().starts_with(path)) throw error;
  std::string line = error.what();
  if (!error.fix().empty() && line.ends_with("; " + error.fix())) {
    line.resize(line.size() - error.fix().size() - 2);
  }
  throw Error(error.code(), line, path, error.fix());
}

}  // namespace tessera::io
