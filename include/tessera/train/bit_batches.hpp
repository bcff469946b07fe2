// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/graph/partition.hpp"
#include "tessera/nn/bit_network.hpp"

/// Parts of a graph that a model of few bits takes several of at a time (Cluster-GCN, QGTC).
namespace tessera::train {

/// The edges of a square graph whose ends lie in the same part.
Graph within_parts(const Graph& graph, const Partition& partition);

/// Batches of so many parts each, in memory that a device copies from by itself: for every batch
/// one array with the adjacency of its parts, the features as codes, and the factors of the
/// vertices. The adjacency is blocks of bits, or lists of sources where parts have more than 128
/// vertices and these are smaller. All batches have the same shape, so that one plan serves them
/// all; a part begins at a multiple of 128 vertices.
class BitBatches {
 public:
  /// Edges between parts are left out. `steps` says how features become codes, and what is derived
  /// from the graph. Features are those of all vertices, as the first step reads them;
  /// `feature_scale` is what their rows are multiplied by after they were rounded (empty: 1).
  BitBatches(const Graph& graph, const Partition& partition, std::int64_t parts_per_batch,
             MatrixView<const float> features, const nn::BitSteps& steps, Device device = {},
             std::span<const float> feature_scale = {});

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(members_.size()); }
  std::int64_t vertices() const noexcept { return vertices_; }  ///< of a batch, padding included
  std::int64_t block() const noexcept { return block_; }        ///< of the longest part, the same
  std::int64_t bytes() const noexcept { return bytes_; }        ///< of a batch
  bool has_lists() const noexcept { return list_edges_ > 0; }   ///< in place of blocks of bits
  bool scales_features() const noexcept { return scales_features_; }
  /// What has to be copied to a device.
  const std::byte* data(std::int64_t batch) const { return memory_.data() + batch * bytes_; }
  /// The vertex of the graph in each row of a batch; -1 where there is none.
  std::span<const VertexId> members(std::int64_t batch) const {
    return members_[static_cast<std::size_t>(batch)];
  }
  /// A batch that was copied to this memory, which is aligned to 256 bytes.
  nn::BitVertices view(const std::byte* memory, Device device) const;

 private:
  struct Filling;
  void place_parts(const Partition& partition, std::int64_t parts_per_batch);
  std::int64_t sources_offset() const;
  void choose_lists(const Graph& derived, const nn::BitSteps& steps);
  void fill(std::int64_t batch, const Filling& from);
  std::int64_t number_columns() const;
  void fill_bits(std::int64_t batch, bool with_own, nn::BitAdjacency& adjacency);
  void fill_lists(std::int64_t batch, bool with_own, nn::BitAdjacency& adjacency);

  std::int64_t vertices_ = 0;
  std::int64_t block_ = 0;
  std::int64_t bytes_ = 0;
  bool scales_features_ = false;
  bool has_scales_ = false;
  bool same_scales_ = false;               ///< of rows and of columns, so that they are kept once
  quant::BitTensor adjacency_, features_;  ///< shapes alone
  std::int64_t list_edges_ = 0;            ///< that there is room for; 0: blocks of bits
  std::int64_t feature_offset_ = 0, start_offset_ = 0, number_offset_ = 0;
  std::vector<std::vector<VertexId>> members_;
  std::vector<std::vector<std::int32_t>> starts_;  ///< of the part of every 64 rows
  Buffer<std::byte> memory_;
};

/// Runs a network over all batches: copies of one batch run beside the products of the one before.
class BitBatchRunner {
 public:
  /// Products of a batch leave most of a GPU idle: as many batches run side by side there.
  static constexpr std::int64_t most_lanes = 12;

  BitBatchRunner(const nn::BitSteps& steps, const BitBatches& batches,
                 const nn::BitNetworkOptions& options = {});
  BitBatchRunner(BitBatchRunner&&) noexcept;
  BitBatchRunner& operator=(BitBatchRunner&&) noexcept;
  ~BitBatchRunner();

  /// Returns when all batches are done.
  void run();
  /// The numbers of a batch in the last run, vertices() rows of them, in memory of this process.
  Matrix<float> values(std::int64_t batch) const;
  std::int64_t bytes_copied() const;  ///< to the device, in one run
  ops::Explanation explain() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::train
