// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/bit_batches.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/transfer_memory.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/build.hpp"

#include "train/bit_features.hpp"

namespace tessera::train {
namespace {

/// Parts begin at multiples of this, as rows of codes are packed.
constexpr std::int64_t part_boundary = quant::depth_padding;
/// Rows that have one start.
constexpr std::int64_t rows_of_start = 64;
constexpr std::int64_t byte_boundary = 256;
/// Smaller parts run through all layers in one kernel, over bits.
constexpr std::int64_t most_chained_block = 128;
constexpr std::int64_t most_listed_block = 1 << 16;

std::int64_t rounded_up(std::int64_t count, std::int64_t to) { return (count + to - 1) / to * to; }

const nn::BitStep& summing_step(const nn::BitSteps& steps) {
  const auto found = std::find_if(steps.steps().begin(), steps.steps().end(),
                                  [](const nn::BitStep& step) { return step.aggregates; });
  if (found != steps.steps().end()) return *found;
  throw Error(ErrorCode::invalid_argument, "a model that sums over no graph", "BitBatches",
              "use a model with a graph");
}

[[noreturn]] void throw_counts_twice() {
  throw Error(ErrorCode::unsupported, "a vertex that counts twice in the adjacency of a batch",
              "BitBatches", "leave self loops out");
}

}  // namespace

Graph within_parts(const Graph& graph, const Partition& partition) {
  partition.validate(graph.num_rows());
  const auto part = [&](VertexId v) { return partition.assignment[static_cast<std::size_t>(v)]; };
  std::vector<VertexId> rows, cols;
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (const VertexId col : graph.neighbours(row)) {
      if (part(row) != part(col)) continue;
      rows.push_back(row);
      cols.push_back(col);
    }
  }
  return from_coo(graph.num_rows(), graph.num_cols(), rows, cols);
}

/// What all batches are filled from.
struct BitBatches::Filling {
  const Graph& graph;  ///< the edges within parts
  MatrixView<const float> features;
  const nn::BitSteps& steps;
  std::span<const float> feature_scale;
  std::vector<VertexId> row_of;  ///< of each vertex, in its batch
};

BitBatches::BitBatches(const Graph& graph, const Partition& partition, std::int64_t parts_per_batch,
                       MatrixView<const float> features, const nn::BitSteps& steps, Device device,
                       std::span<const float> feature_scale)
    : scales_features_(!feature_scale.empty()) {
  if (parts_per_batch < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} parts per batch", parts_per_batch),
                "BitBatches", "give at least 1");
  }
  if (graph.has_values()) {
    throw Error(ErrorCode::unsupported, "edges with weights of their own in batches of bits",
                "BitBatches", "use a graph without weights");
  }
  const nn::BitStep& first = steps.steps().front();
  if (features.rows != graph.num_rows() || features.cols != first.in) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("features are {} x {}, expected {} x {}", features.rows, features.cols,
                            graph.num_rows(), first.in),
                "BitBatches", "give a row per vertex");
  }
  if (scales_features_ && std::ssize(feature_scale) != graph.num_rows()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} scales of features of {} vertices", feature_scale.size(), graph.num_rows()),
        "BitBatches", "give one per vertex");
  }
  partition.validate(graph.num_rows());
  place_parts(partition, parts_per_batch);
  const Graph inside = within_parts(graph, partition);
  const Graph derived = summing_step(steps).adjacency(inside);
  has_scales_ = derived.has_row_scale();
  same_scales_ = has_scales_ && derived.has_col_scale() &&
                 std::equal(derived.row_scale().begin(), derived.row_scale().end(),
                            derived.col_scale().begin(), derived.col_scale().end());
  choose_lists(derived, steps);
  adjacency_ = quant::bit_tensor_shape(1, has_lists() ? 0 : vertices_, block_);
  features_ = first.aggregates && !has_lists()
                  ? quant::bit_tensor_shape(first.input.bits, first.in, vertices_)
                  : quant::bit_tensor_shape(first.input.bits, vertices_, first.in);
  // Rows are filled up where they are multiplied, not on the bus.
  if (!first.aggregates) features_.words_per_row = (first.in + 31) / 32;
  feature_offset_ = has_lists() ? sources_offset() + rounded_up(list_edges_ * 2, byte_boundary)
                                : rounded_up(adjacency_.num_words() * 4, byte_boundary);
  start_offset_ = feature_offset_ + rounded_up(features_.num_words() * 4, byte_boundary);
  number_offset_ =
      start_offset_ +
      rounded_up(rounded_up(vertices_, rows_of_start) / rows_of_start * 4, byte_boundary);
  bytes_ = number_offset_ + rounded_up(vertices_ * 4, byte_boundary) * number_columns();
  memory_ = Buffer<std::byte>(checked_area(bytes_, size()), transfer_memory(device));
  std::memset(memory_.data(), 0, static_cast<std::size_t>(memory_.size()));
  Filling from{inside, features, steps, feature_scale, {}};
  from.row_of.resize(static_cast<std::size_t>(graph.num_rows()));
  for (const auto& members : members_) {
    for (std::size_t row = 0; row < members.size(); ++row) {
      if (members[row] < 0) continue;
      from.row_of[static_cast<std::size_t>(members[row])] = static_cast<VertexId>(row);
    }
  }
  parallel_tasks(size(), [&](std::int64_t batch) { fill(batch, from); });
}

/// Blocks of bits take as long to copy and to sum over however few of them are set.
void BitBatches::choose_lists(const Graph& derived, const nn::BitSteps& steps) {
  if (block_ <= most_chained_block || block_ > most_listed_block) return;
  const auto& all = steps.steps();
  if (std::any_of(all.begin(), all.end(),
                  [](const nn::BitStep& step) { return step.aggregates && step.input.bits > 8; })) {
    return;
  }
  const std::int64_t of_itself = summing_step(steps).own != 0 ? 1 : 0;
  std::int64_t most = 1;
  for (const auto& members : members_) {
    std::int64_t edges = 0;
    for (const VertexId vertex : members) {
      if (vertex >= 0) edges += derived.degree(vertex) + of_itself;
    }
    most = std::max(most, edges);
  }
  if (most > std::numeric_limits<std::int32_t>::max()) return;  // offsets of lists are 32 bits wide
  const std::int64_t listed = (vertices_ + 1) * 4 + most * 2;
  if (listed < vertices_ * block_ / 8) list_edges_ = most;
}

std::int64_t BitBatches::sources_offset() const {
  return rounded_up((vertices_ + 1) * 4, byte_boundary);
}

void BitBatches::place_parts(const Partition& partition, std::int64_t parts_per_batch) {
  const auto parts = tessera::members(partition);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (static_cast<std::int64_t>(i) % parts_per_batch == 0) {
      members_.emplace_back();
      starts_.emplace_back();
    }
    std::vector<VertexId>& members = members_.back();
    const auto start = std::ssize(members);
    const std::int64_t length = rounded_up(std::ssize(parts[i]), part_boundary);
    members.insert(members.end(), parts[i].begin(), parts[i].end());
    members.resize(static_cast<std::size_t>(start + length), VertexId{-1});
    starts_.back().resize(static_cast<std::size_t>((start + length) / rows_of_start),
                          static_cast<std::int32_t>(start));
    vertices_ = std::max(vertices_, start + length);
    block_ = std::max(block_, length);
  }
  for (std::size_t batch = 0; batch < members_.size(); ++batch) {
    members_[batch].resize(static_cast<std::size_t>(vertices_), VertexId{-1});
    for (auto row = std::ssize(starts_[batch]) * rows_of_start; row < vertices_;
         row += rows_of_start) {
      starts_[batch].push_back(static_cast<std::int32_t>(row / part_boundary * part_boundary));
    }
  }
}

void BitBatches::fill(std::int64_t batch, const Filling& from) {
  std::byte* const memory = memory_.data() + batch * bytes_;
  const auto& members = members_[static_cast<std::size_t>(batch)];
  const auto& starts = starts_[static_cast<std::size_t>(batch)];
  std::memcpy(memory + start_offset_, starts.data(), starts.size() * sizeof(std::int32_t));

  std::vector<VertexId> rows, cols;
  Matrix<float> features(vertices_, from.features.cols, 0.0f);
  for (std::int64_t row = 0; row < vertices_; ++row) {
    const VertexId vertex = members[static_cast<std::size_t>(row)];
    if (vertex < 0) continue;
    std::copy_n(from.features.row(vertex), features.cols(), features.row(row));
    for (const VertexId source : from.graph.neighbours(vertex)) {
      rows.push_back(static_cast<VertexId>(row));
      cols.push_back(from.row_of[static_cast<std::size_t>(source)]);
    }
  }
  const nn::BitStep& summing = summing_step(from.steps);
  const auto size = static_cast<VertexId>(vertices_);
  nn::BitAdjacency adjacency =
      nn::bit_adjacency(summing.adjacency(from_coo(size, size, rows, cols)));

  if (has_lists()) {
    fill_lists(batch, summing.own != 0, adjacency);
  } else {
    fill_bits(batch, summing.own != 0, adjacency);
  }

  const nn::BitStep& first = from.steps.steps().front();
  BitFeatures codes(vertices_, first.input, first.in);
  codes.take_scaled(features, first.aggregates ? std::span<const float>(adjacency.col_scale)
                                               : std::span<const float>());
  auto* const words = reinterpret_cast<std::uint32_t*>(memory + feature_offset_);
  if (first.aggregates && !has_lists()) {
    quant::pack_columns(quant::unpack(codes.codes()), features_.over(words));
  } else {
    const auto filled = codes.codes();
    for (std::int64_t line = 0; line < filled.bits * filled.padded_rows; ++line) {
      std::copy_n(filled.words + line * filled.words_per_row, features_.words_per_row,
                  words + line * features_.words_per_row);
    }
  }

  std::byte* numbers = memory + number_offset_;
  const auto put = [&](const std::vector<float>& values) {
    std::memcpy(numbers, values.data(), values.size() * sizeof(float));
    numbers += rounded_up(vertices_ * 4, byte_boundary);
  };
  put(adjacency.row_weights);
  if (has_scales_) put(adjacency.row_scale);
  if (has_scales_ && !same_scales_) put(adjacency.col_scale);
  if (!scales_features_) return;
  std::vector<float> scales(members.size(), 0.0f);
  for (std::size_t row = 0; row < members.size(); ++row) {
    if (members[row] >= 0) scales[row] = from.feature_scale[static_cast<std::size_t>(members[row])];
  }
  put(scales);
}

/// Of numbers for each vertex: its weights, the scales of the adjacency, that of the features.
std::int64_t BitBatches::number_columns() const {
  const std::int64_t of_adjacency = !has_scales_ ? 1 : same_scales_ ? 2 : 3;
  return of_adjacency + (scales_features_ ? 1 : 0);
}

void BitBatches::fill_bits(std::int64_t batch, bool with_own, nn::BitAdjacency& adjacency) {
  const auto& starts = starts_[static_cast<std::size_t>(batch)];
  auto* const words = reinterpret_cast<std::uint32_t*>(memory_.data() + batch * bytes_);
  const auto bits = adjacency_.over(words);
  for (VertexId row = 0; row < static_cast<VertexId>(vertices_); ++row) {
    const std::int32_t start = starts[static_cast<std::size_t>(row / rows_of_start)];
    const auto set = [&](VertexId source) {
      std::uint32_t& word = bits.row(0, row)[(source - start) / 32];
      const std::uint32_t bit = 1u << ((source - start) % 32);
      const bool is_new = (word & bit) == 0;
      word |= bit;
      return is_new;
    };
    for (const VertexId source : adjacency.pattern.neighbours(row)) set(source);
    if (!with_own) continue;
    if (!set(row)) throw_counts_twice();
    adjacency.row_weights[static_cast<std::size_t>(row)] += 1;
  }
}

/// Rows without a vertex have no sources.
void BitBatches::fill_lists(std::int64_t batch, bool with_own, nn::BitAdjacency& adjacency) {
  const auto& members = members_[static_cast<std::size_t>(batch)];
  const auto& starts = starts_[static_cast<std::size_t>(batch)];
  std::byte* const memory = memory_.data() + batch * bytes_;
  auto* const offsets = reinterpret_cast<std::int32_t*>(memory);
  auto* const sources = reinterpret_cast<std::uint16_t*>(memory + sources_offset());
  std::int32_t count = 0;
  for (VertexId row = 0; row < static_cast<VertexId>(vertices_); ++row) {
    offsets[row] = count;
    if (members[static_cast<std::size_t>(row)] < 0) continue;
    const std::int32_t start = starts[static_cast<std::size_t>(row / rows_of_start)];
    for (const VertexId source : adjacency.pattern.neighbours(row)) {
      if (with_own && source == row) throw_counts_twice();
      sources[count++] = static_cast<std::uint16_t>(source - start);
    }
    if (!with_own) continue;
    sources[count++] = static_cast<std::uint16_t>(row - start);
    adjacency.row_weights[static_cast<std::size_t>(row)] += 1;
  }
  offsets[vertices_] = count;
}

nn::BitVertices BitBatches::view(const std::byte* memory, Device device) const {
  const auto words = [&](std::int64_t offset) {
    return reinterpret_cast<const std::uint32_t*>(memory + offset);
  };
  const auto numbers = [&](std::int64_t index) {
    const std::int64_t offset = number_offset_ + index * rounded_up(vertices_ * 4, byte_boundary);
    return MatrixView<const float>(reinterpret_cast<const float*>(memory + offset), vertices_, 1,
                                   device);
  };
  nn::BitVertices vertices;
  if (has_lists()) {
    vertices.list_offsets = {reinterpret_cast<const std::int32_t*>(memory), vertices_ + 1, 1,
                             device};
    vertices.list_sources = {reinterpret_cast<const std::uint16_t*>(memory + sources_offset()), 1,
                             list_edges_, device};
  } else {
    vertices.adjacency = adjacency_.over(words(0), device);
  }
  vertices.features = features_.over(words(feature_offset_), device);
  vertices.block_starts = {reinterpret_cast<const std::int32_t*>(memory + start_offset_),
                           rounded_up(vertices_, rows_of_start) / rows_of_start, 1, device};
  vertices.row_weights = numbers(0);
  if (has_scales_) {
    vertices.row_scale = numbers(1);
    vertices.col_scale = numbers(same_scales_ ? 1 : 2);
  }
  if (scales_features_) vertices.feature_scale = numbers(number_columns() - 1);
  return vertices;
}

}  // namespace tessera::train
