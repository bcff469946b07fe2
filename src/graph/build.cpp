// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/build.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "tessera/graph/normalise.hpp"
#include "tessera/graph/process.hpp"
#include "tessera/graph/transform.hpp"

#include "graph/device_build.hpp"
#include "graph/edge_sort.hpp"
#include "graph/narrow_indices.hpp"
#include "graph/requirements.hpp"

namespace tessera {
namespace {

constexpr EdgeOffset edges_per_task = 1 << 18;

using Input = detail::EdgeInput;

/// Edges as the caller gave them, with the words the caller knows them by.
struct Given {
  VertexId num_rows;
  VertexId num_cols;
  const Indices& rows;
  const Indices& cols;
  std::span<const float> values;
  const char* row_word;
  const char* col_word;
};

void check_sizes(const Given& in) {
  if (in.num_rows < 0 || in.num_cols < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("negative number of vertices: {} x {}", in.num_rows, in.num_cols),
                "building a graph");
  }
  if (in.rows.size() != in.cols.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} {} indices but {} {} indices", in.rows.size(), in.row_word,
                            in.cols.size(), in.col_word),
                "building a graph", "give one of each per edge");
  }
  if (!in.values.empty() && std::ssize(in.values) != in.rows.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} values for {} edges", in.values.size(), in.rows.size()),
                "building a graph", "give one value per edge, or none");
  }
}

struct Scan {
  bool in_range = true;
  bool strictly_sorted = true;
};

/// Looks at every edge once, without branches: files are usually sorted and always suspect.
Scan scan(const Input& in) {
  const auto look = [&](EdgeOffset begin, EdgeOffset end) {
    const auto rows = static_cast<std::uint32_t>(in.num_rows);
    const auto cols = static_cast<std::uint32_t>(in.num_cols);
    unsigned outside = 0;
    unsigned unsorted = 0;
    for (EdgeOffset k = begin; k < end; ++k) {
      outside |= static_cast<unsigned>(static_cast<std::uint32_t>(in.row(k)) >= rows) |
                 static_cast<unsigned>(static_cast<std::uint32_t>(in.col(k)) >= cols);
    }
    for (EdgeOffset k = std::max<EdgeOffset>(begin, 1); k < end; ++k) {
      unsorted |= static_cast<unsigned>(in.row(k - 1) > in.row(k)) |
                  (static_cast<unsigned>(in.row(k - 1) == in.row(k)) &
                   static_cast<unsigned>(in.col(k - 1) >= in.col(k)));
    }
    return Scan{outside == 0, unsorted == 0};
  };
  return parallel_reduce(in.count(), edges_per_task, Scan{}, look, [](Scan a, Scan b) {
    return Scan{a.in_range && b.in_range, a.strictly_sorted && b.strictly_sorted};
  });
}

template <class T>
Buffer<T> copied(std::span<const T> values) {
  Buffer<T> copy(static_cast<std::int64_t>(values.size()));
  parallel_ranges(copy.size(), edges_per_task, [&](std::int64_t begin, std::int64_t end) {
    std::copy(values.data() + begin, values.data() + end, copy.data() + begin);
  });
  return copy;
}

/// The input is a CSR already but for its offsets.
Graph from_sorted(const Input& in, bool keep_edge_ids) {
  Buffer<EdgeOffset> offsets(std::int64_t{in.num_rows} + 1);
  parallel_ranges(in.count(), edges_per_task, [&](EdgeOffset begin, EdgeOffset end) {
    std::int64_t next_row = begin == 0 ? 0 : std::int64_t{in.row(begin - 1)} + 1;
    for (EdgeOffset k = begin; k < end; ++k) {
      while (next_row <= in.row(k)) offsets[next_row++] = k;
    }
  });
  const std::int64_t last_row = in.count() == 0 ? -1 : in.row(in.count() - 1);
  std::fill(offsets.begin() + last_row + 1, offsets.end(), in.count());
  const Graph graph(in.num_rows, in.num_cols, std::move(offsets), copied(in.cols),
                    copied(in.values));
  if (!keep_edge_ids) return graph;
  Buffer<EdgeOffset> ids(in.count());
  parallel_for(in.count(), edges_per_task, [&](EdgeOffset k) { ids[k] = k; });
  return graph.with_edge_ids(std::move(ids));
}

/// Runs `visit(row, group, begin, end)` for every set of equal edges: `group` is where their one
/// edge goes when row `row` starts at `merged_offsets[row]`.
template <class Visit>
void for_each_group(const detail::SortedEdges& sorted, const Buffer<EdgeOffset>& merged_offsets,
                    Visit&& visit) {
  const std::int64_t rows = merged_offsets.size() - 1;
  parallel_for(rows, even_grain(rows), [&](std::int64_t row) {
    EdgeOffset group = merged_offsets[row];
    for (EdgeOffset begin = sorted.offsets[row]; begin < sorted.offsets[row + 1]; ++group) {
      EdgeOffset end = begin + 1;
      while (end < sorted.offsets[row + 1] && sorted.minors[end] == sorted.minors[begin]) ++end;
      visit(group, begin, end);
      begin = end;
    }
  });
}

/// Where each row starts once equal edges are merged.
Buffer<EdgeOffset> merged_row_offsets(const detail::SortedEdges& sorted) {
  Buffer<EdgeOffset> offsets(sorted.offsets.size());
  const std::int64_t rows = offsets.size() - 1;
  parallel_for(rows, even_grain(rows), [&](std::int64_t row) {
    EdgeOffset distinct = 0;
    for (EdgeOffset k = sorted.offsets[row]; k < sorted.offsets[row + 1]; ++k) {
      distinct += k == sorted.offsets[row] || sorted.minors[k] != sorted.minors[k - 1] ? 1 : 0;
    }
    offsets[row] = distinct;
  });
  offsets[rows] = 0;
  exclusive_scan(offsets.span());
  return offsets;
}

[[noreturn]] void reject_duplicate(const Input& in, const detail::SortedEdges& sorted) {
  for (VertexId row = 0; row < in.num_rows; ++row) {
    for (EdgeOffset k = sorted.offsets[row] + 1; k < sorted.offsets[row + 1]; ++k) {
      if (sorted.minors[k] == sorted.minors[k - 1]) {
        detail::report_duplicate(in, row, sorted.minors[k]);
      }
    }
  }
  throw Error(ErrorCode::internal, "no edge occurs twice", "building a graph");
}

/// The value of one set of equal edges, of which the first is the earliest in the input.
float group_value(const Input& in, const detail::SortedEdges& sorted, Duplicates duplicates,
                  EdgeOffset begin, EdgeOffset end) {
  if (in.values.empty()) return static_cast<float>(end - begin);
  if (duplicates != Duplicates::sum) return in.value(sorted.positions[begin]);
  double sum = 0;
  for (EdgeOffset k = begin; k < end; ++k) sum += in.value(sorted.positions[k]);
  return static_cast<float>(sum);
}

/// Every edge stays, repeated ones too.
Graph from_all(const Input& in, detail::SortedEdges sorted, const BuildOptions& options) {
  Buffer<float> values(static_cast<EdgeOffset>(in.values.size()));
  Buffer<EdgeOffset> ids(options.keep_edge_ids ? in.count() : 0);
  const auto row_repeats = [&](std::int64_t row) {
    const auto* const begin = sorted.minors.data() + sorted.offsets[row];
    const auto* const end = sorted.minors.data() + sorted.offsets[row + 1];
    return std::adjacent_find(begin, end) != end;
  };
  const bool repeated = parallel_reduce(
      in.num_rows, even_grain(in.num_rows), false,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          if (row_repeats(row)) return true;
        }
        return false;
      },
      [](bool a, bool b) { return a || b; });
  parallel_for(sorted.positions.size(), edges_per_task, [&](EdgeOffset k) {
    if (!values.empty()) values[k] = in.value(sorted.positions[k]);
    if (!ids.empty()) ids[sorted.positions[k]] = k;
  });
  Graph graph(in.num_rows, in.num_cols, std::move(sorted.offsets), std::move(sorted.minors),
              std::move(values));
  if (repeated) graph = graph.with_repeated_edges();
  return ids.empty() ? graph : graph.with_edge_ids(std::move(ids));
}

Graph from_unsorted(const Input& in, const BuildOptions& options) {
  report(options.progress, "sorting edges", 0, in.count());
  const bool with_positions = !in.values.empty() || options.keep_edge_ids;
  detail::SortedEdges sorted = detail::sort_edges(
      in.num_rows, in.count(), detail::CooSource{in.rows, in.cols}, with_positions);
  report(options.progress, "sorting edges", in.count(), in.count());

  if (options.duplicates == Duplicates::keep) return from_all(in, std::move(sorted), options);
  Buffer<EdgeOffset> offsets = merged_row_offsets(sorted);
  const EdgeOffset merged = offsets[in.num_rows];
  const bool has_duplicates = merged < in.count();
  if (has_duplicates && options.duplicates == Duplicates::reject) reject_duplicate(in, sorted);

  const bool summed = has_duplicates && options.duplicates == Duplicates::sum;
  const bool has_values = !in.values.empty() || summed;
  Buffer<VertexId> cols(has_duplicates ? merged : 0);
  Buffer<float> values(has_values ? merged : 0);
  Buffer<EdgeOffset> ids(options.keep_edge_ids ? in.count() : 0);
  if (has_duplicates || with_positions) {
    report(options.progress, "placing edges", 0, merged);
    for_each_group(sorted, offsets, [&](EdgeOffset group, EdgeOffset begin, EdgeOffset end) {
      if (has_duplicates) cols[group] = sorted.minors[begin];
      if (has_values) values[group] = group_value(in, sorted, options.duplicates, begin, end);
      if (ids.empty()) return;
      for (EdgeOffset k = begin; k < end; ++k) {
        ids[sorted.positions[k]] = k == begin || summed ? group : -1;
      }
    });
    report(options.progress, "placing edges", merged, merged);
  }
  Graph graph(in.num_rows, in.num_cols, std::move(offsets),
              has_duplicates ? std::move(cols) : std::move(sorted.minors), std::move(values));
  return ids.empty() ? graph : graph.with_edge_ids(std::move(ids));
}

/// A rule, and the weight of the loops that it adds.
struct Ruling {
  EdgeRule rule = EdgeRule::plain;
  float loop_weight = 1;

  bool adds_loops() const { return rule != EdgeRule::plain && loop_weight != 0; }
  /// Whether edges of weight 1 need values, since loops have another.
  bool wants_values() const { return adds_loops() && loop_weight != 1; }
};

/// What a rule asks for beside the edges.
detail::EdgeWork work_of(const Ruling& ruling) {
  return {ruling.adds_loops(), ruling.rule == EdgeRule::gcn,
          ruling.rule != EdgeRule::looped || ruling.wants_values(), ruling.loop_weight};
}

/// The specification of every rule.
Graph ruled(const Graph& graph, const Ruling& ruling) {
  switch (ruling.rule) {
    case EdgeRule::plain: break;
    case EdgeRule::looped: {
      const Graph valued = ruling.wants_values() ? graph : graph.with_values({});
      return ruling.adds_loops() ? with_self_loops(valued, ruling.loop_weight) : valued;
    }
    case EdgeRule::gcn: return gcn_normalised(graph, ruling.adds_loops(), ruling.loop_weight);
  }
  return graph;
}

Graph build(const Given& given, const BuildOptions& options, const Ruling& rule = {}) {
  check_sizes(given);
  const SharedArray<VertexId> rows =
      detail::narrowed(given.rows, given.num_rows, given.row_word, options.place());
  const SharedArray<VertexId> cols =
      detail::narrowed(given.cols, given.num_cols, given.col_word, options.place());
  const Input in{given.num_rows, given.num_cols, rows,          cols,
                 given.values,   given.row_word, given.col_word};
  if (options.device.kind != DeviceKind::cpu) {
    return detail::build_on_device(in, options, work_of(rule));
  }
  report(options.progress, "checking edges", 0, in.count());
  const Scan found = scan(in);
  if (!found.in_range) detail::require_in_range(in);
  const bool finite = options.nonfinite == Nonfinite::reject;
  if (finite) detail::require_finite(in.values, "values", "building a graph", detail::finite_fix);
  report(options.progress, "checking edges", in.count(), in.count());
  if (found.strictly_sorted) return ruled(from_sorted(in, options.keep_edge_ids), rule);
  Graph graph = from_unsorted(in, options);
  // Sums of finite values may be too large.
  if (finite && options.duplicates == Duplicates::sum) {
    detail::require_finite(graph.values().span(), "values", "building a graph",
                           detail::smaller_fix);
  }
  return ruled(graph, rule);
}

}  // namespace

namespace detail {

void report_out_of_range(const EdgeInput& in, EdgeOffset position, VertexId row, VertexId col) {
  const bool row_is_bad = row < 0 || row >= in.num_rows;
  report_out_of_range(row_is_bad ? in.row_word : in.col_word, row_is_bad ? row : col,
                      row_is_bad ? in.num_rows : in.num_cols, position);
}

void require_in_range(const EdgeInput& in) {
  for (EdgeOffset k = 0; k < in.count(); ++k) {
    const bool row_is_bad = in.row(k) < 0 || in.row(k) >= in.num_rows;
    const bool col_is_bad = in.col(k) < 0 || in.col(k) >= in.num_cols;
    if (row_is_bad || col_is_bad) report_out_of_range(in, k, in.row(k), in.col(k));
  }
}

void report_nonfinite(EdgeOffset position, float value, const char* fix) {
  throw Error(ErrorCode::bad_data, fmt::format("values[{}] is {}", position, value),
              "building a graph", fix);
}

void report_duplicate(const EdgeInput& in, VertexId row, VertexId col) {
  throw Error(ErrorCode::bad_data,
              fmt::format("the edge with {} {} and {} {} occurs more than once", in.row_word, row,
                          in.col_word, col),
              "building a graph", "merge duplicates with 'sum' or 'first' (--duplicates)");
}

}  // namespace detail

Graph from_edges(VertexId num_vertices, const Indices& sources, const Indices& targets,
                 std::span<const float> weights, const BuildOptions& options) {
  return build({num_vertices, num_vertices, targets, sources, weights, "target", "source"},
               options);
}

Graph process_edges(VertexId num_vertices, const Indices& sources, const Indices& targets,
                    std::span<const float> weights, const ProcessOptions& options) {
  const Ruling ruling = {options.rule, options.loop_weight};
  if (!std::isfinite(options.loop_weight)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("loop_weight is {}", options.loop_weight),
                "processing edges", "give a finite number");
  }
  std::vector<float> ones;
  const bool has_weights = !weights.empty() && options.rule != EdgeRule::looped;
  if (ruling.wants_values() && !has_weights) {
    ones.assign(static_cast<std::size_t>(sources.size()), 1.0f);
    weights = ones;
  }
  BuildOptions merging = options;
  // This rule knows no weights of edges: one that is given twice counts once.
  const bool counts_once = options.rule == EdgeRule::looped && ruling.wants_values();
  if (counts_once && options.duplicates == Duplicates::sum) {
    merging.duplicates = Duplicates::first;
  }
  const Graph graph = build(
      {num_vertices, num_vertices, targets, sources, weights, "target", "source"}, merging, ruling);
  if (!options.both_sides) return graph;
  if (graph.device().kind == DeviceKind::cpu) {
    graph.csc();
  } else {
    detail::know_columns_on_device(graph);
  }
  return graph;
}

const char* to_string(EdgeRule rule) noexcept {
  switch (rule) {
    case EdgeRule::plain: return "plain";
    case EdgeRule::looped: return "looped";
    case EdgeRule::gcn: return "gcn";
  }
  return "unknown";
}

EdgeRule parse_edge_rule(const std::string& text) {
  for (const EdgeRule rule : {EdgeRule::plain, EdgeRule::looped, EdgeRule::gcn}) {
    if (text == to_string(rule)) return rule;
  }
  throw Error(ErrorCode::invalid_argument, "unknown rule '" + text + "' for edges", "",
              "use plain, looped or gcn");
}

Graph from_coo(VertexId num_rows, VertexId num_cols, const Indices& rows, const Indices& cols,
               std::span<const float> values, const BuildOptions& options) {
  return build({num_rows, num_cols, rows, cols, values, "row", "column"}, options);
}

}  // namespace tessera
