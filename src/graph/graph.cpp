// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/graph.hpp"

#include <atomic>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "graph/access.hpp"
#include "graph/edge_sort.hpp"
#include "graph/requirements.hpp"

namespace tessera {

struct Graph::Derived {
  OnceMap values;
  std::atomic<const Csc*> csc = nullptr;  ///< the one of `values`, found without a look-up
};

namespace {

[[noreturn]] void contradict(const std::string& problem) {
  throw Error(ErrorCode::bad_data, problem, "graph", "rebuild it with from_coo or from_edges");
}

void check_size(const char* name, std::int64_t size, std::int64_t expected) {
  if (size != expected) {
    contradict(fmt::format("{} has {} entries, {} are needed", name, size, expected));
  }
}

void check_optional_size(const char* name, std::int64_t size, std::int64_t expected) {
  if (size != 0) check_size(name, size, expected);
}

void check_offsets(const Graph& graph) {
  const auto& offsets = graph.row_offsets();
  if (offsets[0] != 0) contradict(fmt::format("row_offsets start at {}, not at 0", offsets[0]));
  if (offsets.back() != graph.num_edges()) {
    contradict(fmt::format("row_offsets end at {}, but there are {} edges", offsets.back(),
                           graph.num_edges()));
  }
  parallel_for(graph.num_rows(), even_grain(graph.num_rows()), [&](std::int64_t row) {
    if (offsets[row] > offsets[row + 1]) {
      contradict(fmt::format("row_offsets fall from {} to {} at row {}", offsets[row],
                             offsets[row + 1], row));
    }
  });
}

[[noreturn]] void report_bad_row(const Graph& graph, VertexId row) {
  VertexId previous = -1;
  for (const VertexId col : graph.neighbours(row)) {
    if (col < 0 || col >= graph.num_cols()) {
      contradict(fmt::format("row {} has column {}, outside [0, {})", row, col, graph.num_cols()));
    }
    if (col < previous || (col == previous && !graph.has_repeated_edges())) {
      contradict(
          fmt::format("row {} lists column {} after {}: columns must rise", row, col, previous));
    }
    previous = col;
  }
  throw Error(ErrorCode::internal, fmt::format("row {} was called bad but is not", row), "graph");
}

void check_columns(const Graph& graph) {
  parallel_for(graph.num_rows(), even_grain(graph.num_rows()), [&](std::int64_t index) {
    const auto row = static_cast<VertexId>(index);
    const auto columns = graph.neighbours(row);
    if (columns.empty()) return;
    // Rising from a first >= 0 to a last in range: all are in range. No branch in the loop.
    unsigned falls = 0;
    const bool may_stay = graph.has_repeated_edges();
    for (std::size_t k = 1; k < columns.size(); ++k) {
      const bool rises = may_stay ? columns[k] >= columns[k - 1] : columns[k] > columns[k - 1];
      falls |= rises ? 0u : 1u;
    }
    if (falls != 0 || columns.front() < 0 || columns.back() >= graph.num_cols()) {
      report_bad_row(graph, row);
    }
  });
}

void check_edge_ids(const Graph& graph) {
  const auto& ids = graph.edge_ids();
  parallel_for(ids.size(), even_grain(ids.size()), [&](std::int64_t edge) {
    if (ids[edge] < -1 || ids[edge] >= graph.num_edges()) {
      contradict(
          fmt::format("edge_ids[{}] is {}, outside [-1, {})", edge, ids[edge], graph.num_edges()));
    }
  });
}

const SharedArray<EdgeOffset>& offsets_of_no_rows() {
  static const SharedArray<EdgeOffset> offsets(std::vector<EdgeOffset>{0});
  return offsets;
}

}  // namespace

Graph::Graph() : Graph(0, 0, offsets_of_no_rows(), {}) {}

Graph::Graph(VertexId num_rows, VertexId num_cols, SharedArray<EdgeOffset> row_offsets,
             PlacedArray<VertexId> col_indices, PlacedArray<float> values)
    : num_rows_(num_rows),
      num_cols_(num_cols),
      num_edges_(col_indices.size()),
      row_offsets_(std::move(row_offsets)),
      col_indices_(std::move(col_indices)),
      values_(std::move(values)),
      derived_(std::make_shared<Derived>()) {
  if (num_rows < 0 || num_cols < 0) {
    contradict(fmt::format("negative shape {} x {}", num_rows, num_cols));
  }
  check_size("row_offsets", row_offsets_.size(), std::int64_t{num_rows} + 1);
}

float Graph::weight(VertexId row, EdgeOffset edge) const {
  float weight = has_values() ? values()[edge] : 1.0f;
  if (has_row_scale()) weight *= row_scale()[row];
  if (has_col_scale()) weight *= col_scale()[col_indices()[edge]];
  return weight;
}

const Csc& Graph::csc() const {
  detail::require_whole(*this);
  if (const Csc* const known = derived_->csc.load(std::memory_order_acquire)) return *known;
  const auto make = [this]() -> std::shared_ptr<const void> {
    const detail::CsrByColumnSource edges{row_offsets_.span(), col_indices().data()};
    detail::SortedEdges sorted = detail::sort_edges(num_cols_, num_edges(), edges, true);
    return std::make_shared<const Csc>(
        Csc{std::move(sorted.offsets), std::move(sorted.minors), std::move(sorted.positions)});
  };
  const auto csc = std::static_pointer_cast<const Csc>(
      derived_->values.get("columns by source", make, Keeping::for_good));
  derived_->csc.store(csc.get(), std::memory_order_release);
  return *csc;
}

namespace detail {

std::shared_ptr<const void> GraphAccess::derived(const Graph& graph, const std::string& key,
                                                 FunctionRef<std::shared_ptr<const void>()> make,
                                                 Keeping keeping) {
  require_whole(graph);
  return graph.derived_->values.get(key, make, keeping);
}

std::shared_ptr<const void> GraphAccess::known(const Graph& graph, const std::string& key) {
  require_whole(graph);
  return graph.derived_->values.known(key);
}

void GraphAccess::know(const Graph& graph, const std::string& key,
                       std::shared_ptr<const void> value, Keeping keeping) {
  require_whole(graph);
  graph.derived_->values.know(key, std::move(value), keeping);
}

void GraphAccess::release_unused(const Graph& graph) { graph.derived_->values.release_unused(); }

SharedArray<EdgeOffset> GraphAccess::col_offsets(const Graph& graph) {
  const auto make = [&]() -> std::shared_ptr<const void> {
    return std::make_shared<SharedArray<EdgeOffset>>(graph.csc().col_offsets);
  };
  return *std::static_pointer_cast<const SharedArray<EdgeOffset>>(
      derived(graph, col_offsets_key, make));
}

}  // namespace detail

Graph Graph::with_values(PlacedArray<float> values) const {
  detail::require_whole(*this);
  check_optional_size("values", values.size(), num_edges());
  Graph other = *this;
  other.values_ = std::move(values);
  return other;
}

Graph Graph::with_scales(PlacedArray<float> row_scale, PlacedArray<float> col_scale) const {
  detail::require_whole(*this);
  check_optional_size("row_scale", row_scale.size(), num_rows_);
  check_optional_size("col_scale", col_scale.size(), num_cols_);
  Graph other = *this;
  other.row_scale_ = std::move(row_scale);
  other.col_scale_ = std::move(col_scale);
  return other;
}

Graph Graph::with_edge_ids(PlacedArray<EdgeOffset> edge_ids) const {
  Graph other = *this;
  other.edge_ids_ = std::move(edge_ids);
  return other;
}

Graph Graph::with_repeated_edges() const {
  Graph other = *this;
  other.repeated_edges_ = true;
  return other;
}

void Graph::validate() const {
  detail::require_whole(*this);
  check_optional_size("values", values_.size(), num_edges());
  check_optional_size("row_scale", row_scale_.size(), num_rows_);
  check_optional_size("col_scale", col_scale_.size(), num_cols_);
  check_offsets(*this);
  check_columns(*this);
  check_edge_ids(*this);
}

bool operator==(const Graph& a, const Graph& b) {
  return a.num_rows_ == b.num_rows_ && a.num_cols_ == b.num_cols_ &&
         a.row_offsets_ == b.row_offsets_ && a.col_indices() == b.col_indices() &&
         a.values() == b.values() && a.row_scale() == b.row_scale() &&
         a.col_scale() == b.col_scale() && a.edge_ids() == b.edge_ids();
}

std::ostream& operator<<(std::ostream& out, const Graph& graph) {
  if (graph.is_square()) {
    out << fmt::format("graph of {} vertices", graph.num_rows());
  } else {
    out << fmt::format("graph of {} targets x {} sources", graph.num_rows(), graph.num_cols());
  }
  out << fmt::format(", {} edges", graph.num_edges());
  if (!graph.is_weighted()) out << ", unweighted";
  if (graph.has_values()) out << ", values";
  if (graph.has_row_scale()) out << ", row scale";
  if (graph.has_col_scale()) out << ", column scale";
  if (graph.has_edge_ids()) out << ", edge ids";
  return out;
}

}  // namespace tessera
