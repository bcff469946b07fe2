// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/grouped.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/data/feature_columns.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/train/model_input.hpp"

#include "core/listing.hpp"
#include "io/table_values.hpp"
#include "train/feature_cells.hpp"
#include "train/features.hpp"

namespace tessera::train {
namespace {

/// Where a feature of the model comes from.
struct Source {
  std::int64_t feature = -1;  ///< of the data; -1: it is 0
  /// For a category of a column that holds numbers here: 1 where the number is this one.
  std::optional<float> category = {};
};

/// Columns of one side by name; those whose name occurs twice cannot be told apart.
struct ColumnIndex {
  std::vector<FeatureColumn> columns;
  std::map<std::string_view, const FeatureColumn*> by_name;
  std::set<std::string> repeated;
  std::int64_t num_features;

  ColumnIndex(const Names& names, const SharedArray<std::int32_t>& prefixes)
      : columns(feature_columns(names, prefixes)), num_features(names.size()) {
    for (const FeatureColumn& column : columns) {
      const std::set<std::string_view> different(column.categories.begin(),
                                                 column.categories.end());
      if (!by_name.emplace(column.name, &column).second ||
          different.size() != column.categories.size()) {
        repeated.insert(column.name);
      }
    }
  }
  const FeatureColumn* find(std::string_view name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  }
};

/// Finds for each feature of the model where the data has it.
class Alignment {
 public:
  Alignment(const ColumnIndex& model, const Dataset& dataset)
      : data_(dataset.feature_names, dataset.category_prefixes),
        cells_(dataset),
        name_(dataset.name),
        sources_(static_cast<std::size_t>(model.num_features)) {
    for (std::int64_t j = 0; j < dataset.feature_names.size(); ++j) {
      features_.emplace(dataset.feature_names[j], j);
    }
    for (const FeatureColumn& column : model.columns) {
      if (data_.repeated.contains(column.name)) {
        repeated_.push_back(in_quotes(column.name));
      } else if (column.has_categories()) {
        find_categories(column);
      } else {
        find_numbers(column);
      }
    }
    require_complete();
  }

  const std::vector<Source>& sources() const { return sources_; }
  const FeatureCells& cells() const { return cells_; }

  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const FeatureColumn& column : data_.columns) {
      if (!used_.contains(column.name)) names.push_back(in_quotes(column.name));
    }
    return names;
  }

 private:
  Source& source(std::int64_t feature) { return sources_[static_cast<std::size_t>(feature)]; }

  void find_numbers(const FeatureColumn& column) {
    const FeatureColumn* const found = data_.find(column.name);
    if (found != nullptr && !found->has_categories()) {
      use(*found);
      source(column.first).feature = found->first;
    } else if (found != nullptr) {
      other_kind_.push_back(fmt::format("{} ({})", in_quotes(column.name), texts_of(*found)));
    } else if (!take_feature(column.name, column.first)) {
      missing_.push_back(in_quotes(column.name));
    }
  }

  void find_categories(const FeatureColumn& column) {
    const FeatureColumn* const found = data_.find(column.name);
    if (found != nullptr) {
      use(*found);
      found->has_categories() ? match_categories(column, *found) : match_values(column, *found);
      return;
    }
    // Data that says nothing of columns may still have the features.
    bool complete = true;
    for (std::size_t k = 0; k < column.categories.size(); ++k) {
      complete = take_feature(category_feature(column.name, column.categories[k]),
                              column.first + static_cast<std::int64_t>(k)) &&
                 complete;
    }
    if (!complete) missing_.push_back(in_quotes(column.name));
  }

  /// A category that no vertex of the data has needs no place in the model.
  void match_categories(const FeatureColumn& column, const FeatureColumn& found) {
    std::map<std::string_view, std::int64_t> places;
    for (std::size_t k = 0; k < column.categories.size(); ++k) {
      places.emplace(column.categories[k], column.first + static_cast<std::int64_t>(k));
    }
    std::vector<std::string> strangers;
    for (std::size_t k = 0; k < found.categories.size(); ++k) {
      const std::int64_t feature = found.first + static_cast<std::int64_t>(k);
      const auto place = places.find(found.categories[k]);
      if (place != places.end()) {
        source(place->second).feature = feature;
      } else if (cells_.any(feature)) {
        strangers.push_back(in_quotes(found.categories[k]));
      }
    }
    note_unseen(column.name, strangers);
  }

  /// A column of which only the categories that are numbers are left is read as numbers.
  void match_values(const FeatureColumn& column, const FeatureColumn& found) {
    std::map<float, std::int64_t> places;
    for (std::size_t k = 0; k < column.categories.size(); ++k) {
      const auto value = io::parse_value(column.categories[k]);
      const std::int64_t feature = column.first + static_cast<std::int64_t>(k);
      if (value && !places.emplace(*value, feature).second) {
        other_kind_.push_back(in_quotes(column.name) + " (numbers that are several categories)");
        return;
      }
    }
    std::vector<std::string> strangers;
    for (const float value : cells_.different(found.first)) {
      if (!places.contains(value)) strangers.push_back(fmt::format("'{}'", value));
    }
    for (const auto& [value, feature] : places) source(feature) = {found.first, value};
    note_unseen(column.name, strangers);
  }

  void note_unseen(const std::string& column, const std::vector<std::string>& strangers) {
    if (strangers.empty()) return;
    unseen_.push_back(fmt::format("{} of {}", listed(strangers), in_quotes(column)));
  }

  /// A feature of this name, whatever column it belongs to.
  bool take_feature(const std::string& name, std::int64_t feature) {
    const auto found = features_.find(name);
    if (found == features_.end()) return false;
    source(feature).feature = found->second;
    const auto after =
        std::upper_bound(data_.columns.begin(), data_.columns.end(), found->second,
                         [](std::int64_t j, const FeatureColumn& c) { return j < c.first; });
    use(*std::prev(after));
    return true;
  }

  void use(const FeatureColumn& column) { used_.insert(column.name); }

  /// Those of its texts that are no numbers.
  static std::string texts_of(const FeatureColumn& column) {
    std::vector<std::string> texts;
    for (const std::string& category : column.categories) {
      if (!io::parse_value(category)) texts.push_back(in_quotes(category));
    }
    return listed(texts);
  }

  void require_complete() const {
    std::vector<std::string> problems;
    const auto add = [&](const char* what, const std::vector<std::string>& names) {
      if (!names.empty()) problems.push_back(what + listed(names));
    };
    add("the data lacks columns that the model was trained with: ", missing_);
    add("columns occur more than once: ", repeated_);
    add("columns that held numbers in training hold texts: ", other_kind_);
    add("categories that training has not seen: ", unseen_);
    if (problems.empty()) return;
    const std::vector<std::string> others = unused();
    if (!missing_.empty() && !others.empty()) {
      problems.push_back("columns that the model does not know: " + listed(others));
    }
    throw Error(ErrorCode::invalid_argument, fmt::format("{}", fmt::join(problems, "; ")), name_,
                "give the data the columns and categories of training, which 'tessera info' shows "
                "for the checkpoint, or train again with this data");
  }

  ColumnIndex data_;
  FeatureCells cells_;
  std::string name_;
  std::map<std::string_view, std::int64_t> features_;
  std::vector<Source> sources_;
  std::set<std::string> used_;
  std::vector<std::string> missing_, repeated_, other_kind_, unseen_;
};

/// Why names cannot say which feature is which; empty: they can.
std::string why_by_position(const ColumnIndex& model, const Dataset& dataset) {
  if (dataset.num_features() == 0) return {};
  if (!model.repeated.empty()) return "the checkpoint has features of the same name";
  if (model.columns.empty()) {
    return dataset.feature_names.empty() ? "checkpoint and data have no names of features"
                                         : "the checkpoint has no names of features";
  }
  return dataset.feature_names.empty() ? "the data has no names of features" : "";
}

/// In what the graph is of another kind than that of training.
std::vector<std::string> graph_notes(const ModelInput& input, const Graph& graph) {
  if (!input.graph || !graph.is_square()) return {};
  const GraphForm form = form_of(graph);
  std::vector<std::string> notes;
  const auto compare = [&](bool GraphForm::*trait, const char* with, const char* without,
                           const char* fix) {
    if (form.*trait == (*input.graph).*trait) return;
    notes.push_back(fmt::format("the model was trained on a graph {}, but this is one {}{}",
                                (*input.graph).*trait ? with : without,
                                form.*trait ? with : without, fix));
  };
  compare(&GraphForm::directed, "whose edges go one way", "whose edges go both ways",
          form.directed ? " (--symmetrise)" : "");
  compare(&GraphForm::self_loops, "with self loops", "without self loops", " (--self-loops)");
  compare(&GraphForm::weighted, "with weights", "without weights", "");
  return notes;
}

/// Names and places are those of the model, and no number was missing.
bool is_aligned(const ModelInput& input, const Dataset& dataset) {
  return !input.feature_names.empty() && dataset.feature_names == input.feature_names &&
         dataset.category_prefixes == input.category_prefixes && dataset.filled_cells.empty();
}

SparseFeatures moved_columns(const SparseFeatures& features, const std::vector<Source>& sources) {
  std::vector<std::vector<VertexId>> places(static_cast<std::size_t>(features.num_cols()));
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (sources[k].feature < 0) continue;
    places[static_cast<std::size_t>(sources[k].feature)].push_back(static_cast<VertexId>(k));
  }
  std::vector<VertexId> rows, columns;
  std::vector<float> values;
  for (VertexId row = 0; row < features.num_rows(); ++row) {
    for (EdgeOffset e = features.row_offsets()[row]; e < features.row_offsets()[row + 1]; ++e) {
      for (const VertexId place : places[static_cast<std::size_t>(features.col_indices()[e])]) {
        rows.push_back(row);
        columns.push_back(place);
        values.push_back(features.weight(row, e));
      }
    }
  }
  return from_coo(features.num_rows(), static_cast<VertexId>(sources.size()), rows, columns,
                  values);
}

float taken(const Source& source, const FeatureCells::Row& row, float mean) {
  if (source.feature < 0) return 0;
  const auto j = static_cast<std::size_t>(source.feature);
  if (source.category)
    return row.missing[j] == 0 && row.values[j] == *source.category ? 1.0f : 0.0f;
  return row.missing[j] == 0 ? row.values[j] : mean;
}

DenseFeatures moved_cells(const Alignment& alignment, const std::vector<float>& means) {
  const std::vector<Source>& sources = alignment.sources();
  auto moved = std::make_shared<Matrix<float>>(alignment.cells().rows(), std::ssize(sources));
  parallel_ranges(moved->rows(), 1 << 8, [&](std::int64_t begin, std::int64_t end) {
    FeatureCells::Row row;
    for (std::int64_t vertex = begin; vertex < end; ++vertex) {
      alignment.cells().read(vertex, row);
      for (std::size_t k = 0; k < sources.size(); ++k) {
        moved->row(vertex)[k] = taken(sources[k], row, means[k]);
      }
    }
  });
  return moved;
}

void note_filled(const ModelInput& input, const Dataset& dataset, const Alignment& alignment,
                 std::vector<std::string>& notes) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const std::int64_t cell : dataset.filled_cells) ++counts[cell % dataset.num_features()];
  std::vector<std::string> filled;
  for (std::size_t k = 0; k < alignment.sources().size(); ++k) {
    const Source& source = alignment.sources()[k];
    const auto count = counts.find(source.feature);
    if (count == counts.end() || source.category) continue;
    filled.push_back(fmt::format("{} ({} with {})",
                                 in_quotes(input.feature_names[static_cast<std::int64_t>(k)]),
                                 grouped(count->second), input.means[k]));
  }
  if (filled.empty()) return;
  notes.push_back("missing numbers get the means of training instead: " + listed(filled));
}

}  // namespace

AlignedData aligned(const ModelInput& input, const Dataset& dataset) {
  AlignedData result{dataset, graph_notes(input, dataset.graph)};
  if (is_aligned(input, dataset)) return result;
  const ColumnIndex model(input.feature_names, input.category_prefixes);
  if (const std::string why = why_by_position(model, dataset); !why.empty()) {
    result.notes.push_back(why + ": features are taken by their position");
    return result;
  }
  if (model.columns.empty()) return result;
  require_finite(dataset.features);
  const Alignment alignment(model, dataset);
  const std::vector<Source>& sources = alignment.sources();
  const std::vector<std::string> unused = alignment.unused();
  if (!unused.empty()) {
    result.notes.push_back("columns that the model does not know are left out: " + listed(unused));
  }
  note_filled(input, dataset, alignment, result.notes);
  const bool by_value = std::any_of(sources.begin(), sources.end(), [](const Source& source) {
    return source.category.has_value();
  });
  const SparseFeatures* const sparse = alignment.cells().sparse();
  if (sparse != nullptr && !by_value) {
    result.dataset.features = moved_columns(*sparse, sources);
  } else {
    result.dataset.features = moved_cells(alignment, input.means);
  }
  result.dataset.feature_names = input.feature_names;
  result.dataset.category_prefixes = input.category_prefixes;
  result.dataset.filled_cells = {};
  return result;
}

}  // namespace tessera::train
