// SPDX-License-Identifier: Apache-2.0
#include "bench/sample.hpp"

#include <algorithm>
#include <utility>

#include "tessera/core/random.hpp"

#include "bench/inputs.hpp"

namespace tessera::bench {
namespace {

EdgeOffset hub_degree(const Graph& graph) {
  constexpr EdgeOffset shortest_hub = 256;
  constexpr EdgeOffset times_the_mean = 16;
  const EdgeOffset rows = std::max<EdgeOffset>(graph.num_rows(), 1);
  return std::max(shortest_hub, times_the_mean * graph.num_edges() / rows);
}

/// The longest rows, with about so many edges, at least one where there is any.
std::vector<VertexId> longest_hubs(const Graph& graph, EdgeOffset wanted_edges) {
  const EdgeOffset least = hub_degree(graph);
  std::vector<VertexId> hubs;
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    if (graph.degree(row) >= least) hubs.push_back(row);
  }
  std::sort(hubs.begin(), hubs.end(), [&](VertexId a, VertexId b) {
    return std::pair(-graph.degree(a), a) < std::pair(-graph.degree(b), b);
  });
  EdgeOffset edges = 0;
  std::size_t kept = 0;
  while (kept < hubs.size() && edges < wanted_edges) edges += graph.degree(hubs[kept++]);
  hubs.resize(kept);
  return hubs;
}

SharedArray<float> pick(const SharedArray<float>& values, const std::vector<VertexId>& chosen) {
  std::vector<float> picked;
  if (!values.empty()) {
    for (const VertexId vertex : chosen) picked.push_back(values[vertex]);
  }
  return picked;
}

std::vector<VertexId> columns_of(const Graph& graph, const std::vector<VertexId>& rows) {
  std::vector<VertexId> cols;
  for (const VertexId row : rows) {
    const auto sources = graph.neighbours(row);
    cols.insert(cols.end(), sources.begin(), sources.end());
  }
  std::sort(cols.begin(), cols.end());
  cols.erase(std::unique(cols.begin(), cols.end()), cols.end());
  return cols;
}

}  // namespace

EdgeOffset longest_row(const Graph& graph) {
  EdgeOffset longest = 0;
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    longest = std::max(longest, graph.degree(row));
  }
  return longest;
}

RowSample take_rows(const Graph& graph, std::vector<VertexId> rows) {
  RowSample sample;
  sample.rows = std::move(rows);
  sample.cols = columns_of(graph, sample.rows);
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> indices;
  std::vector<float> values;
  for (const VertexId row : sample.rows) {
    for (EdgeOffset edge = graph.row_offsets()[row]; edge < graph.row_offsets()[row + 1]; ++edge) {
      const VertexId source = graph.col_indices()[edge];
      const auto place = std::lower_bound(sample.cols.begin(), sample.cols.end(), source);
      indices.push_back(static_cast<VertexId>(place - sample.cols.begin()));
      if (graph.has_values()) values.push_back(graph.values()[edge]);
      sample.edges.push_back(edge);
    }
    offsets.push_back(static_cast<EdgeOffset>(indices.size()));
  }
  sample.graph =
      Graph(static_cast<VertexId>(sample.rows.size()), static_cast<VertexId>(sample.cols.size()),
            std::move(offsets), std::move(indices), std::move(values))
          .with_scales(pick(graph.row_scale(), sample.rows), pick(graph.col_scale(), sample.cols));
  return sample;
}

SampleSize SampleSize::on(Device device, std::int64_t features) {
  if (device.kind == DeviceKind::cpu) return {};
  constexpr std::int64_t products = 1 << 24;
  constexpr EdgeOffset fewest = 1 << 16;
  const EdgeOffset edges = products / std::max<std::int64_t>(features, 1);
  return {1024, std::clamp(edges, fewest, SampleSize{}.edges)};
}

RowSample sample_blocks(const Graph& graph, EdgeOffset wanted_edges) {
  constexpr std::int64_t block = 256;
  const std::int64_t blocks = (graph.num_rows() + block - 1) / block;
  const double share = static_cast<double>(wanted_edges) /
                       static_cast<double>(std::max<EdgeOffset>(graph.num_edges(), 1));
  const auto wanted = static_cast<std::int64_t>(share * static_cast<double>(blocks));
  std::vector<VertexId> rows;
  for (const std::int64_t first : spread_rows(blocks, std::max<std::int64_t>(wanted, 1))) {
    const std::int64_t end = std::min<std::int64_t>((first + 1) * block, graph.num_rows());
    for (std::int64_t row = first * block; row < end; ++row) {
      rows.push_back(static_cast<VertexId>(row));
    }
  }
  return take_rows(graph, std::move(rows));
}

RowSample sample_rows(const Graph& graph, std::uint64_t seed, const SampleSize& size) {
  std::vector<VertexId> rows;
  const std::int64_t count = graph.num_rows();
  if (count <= size.rows && graph.num_edges() <= size.edges) {
    for (VertexId row = 0; row < graph.num_rows(); ++row) rows.push_back(row);
    return take_rows(graph, std::move(rows));
  }
  const EdgeOffset mean = std::max<EdgeOffset>(graph.num_edges() / count, 1);
  const std::int64_t wanted =
      std::min({count, size.rows, std::max(size.fewest_rows, size.edges / mean)});
  const Random random(seed);
  for (std::int64_t part = 0; part < wanted; ++part) {
    const std::int64_t begin = part * count / wanted;
    const std::int64_t end = (part + 1) * count / wanted;
    const auto offset =
        random.below(static_cast<std::uint64_t>(part), static_cast<std::uint64_t>(end - begin));
    rows.push_back(static_cast<VertexId>(begin + static_cast<std::int64_t>(offset)));
  }
  const std::vector<VertexId> hubs = longest_hubs(graph, size.edges);
  rows.insert(rows.end(), hubs.begin(), hubs.end());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return take_rows(graph, std::move(rows));
}

}  // namespace tessera::bench
