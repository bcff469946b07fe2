// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/graph/borrow.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/ops/spmm.hpp"

/// Graphs whose arrays lie on a GPU already, and what tests of planning ask of it.
namespace tessera::test {

inline constexpr Device gpu{DeviceKind::cuda, 0};

/// A graph's arrays on the GPU, as a sampler leaves them there.
class Laid {
 public:
  explicit Laid(const Graph& graph)
      : num_rows_(graph.num_rows()),
        num_cols_(graph.num_cols()),
        offsets_(on_gpu(
            std::vector<std::int32_t>(graph.row_offsets().begin(), graph.row_offsets().end()))),
        columns_(
            on_gpu(std::vector<VertexId>(graph.col_indices().begin(), graph.col_indices().end()))),
        values_(on_gpu(std::vector<float>(graph.values().begin(), graph.values().end()))) {}

  /// A new graph over them, which no plan was made for.
  Graph graph(Stream stream = {}, MemoryResource* memory = nullptr) const {
    BorrowOptions options;
    options.device = gpu;
    options.row_order = RowOrder::promised;
    options.stream = stream;
    options.memory = memory;
    return borrow_csr(num_rows_, num_cols_, {offsets_.span(), columns_.span(), values_.span()},
                      options);
  }

 private:
  template <class T>
  static Buffer<T> on_gpu(const std::vector<T>& values) {
    Buffer<T> there(static_cast<std::int64_t>(values.size()), default_memory(gpu));
    copy_bytes(there.data(), values.data(), values.size() * sizeof(T), gpu);
    synchronise(gpu);
    return there;
  }

  VertexId num_rows_, num_cols_;
  Buffer<std::int32_t> offsets_;
  Buffer<VertexId> columns_;
  Buffer<float> values_;
};

/// A mini-batch: far more edges than vertices.
inline Graph batch() {
  return with_self_loops(
      generate::build(generate::ErdosRenyi{.vertices = 2000, .edges = 40000, .seed = 3}));
}

inline Graph weighted(const Graph& graph) {
  std::vector<float> values(static_cast<std::size_t>(graph.num_edges()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.25f + static_cast<float>(i % 13) / 4;
  }
  return graph.with_values(SharedArray<float>(std::move(values)));
}

inline ops::SpmmOptions spmm_options(std::int64_t features = 64,
                                     Precision precision = Precision::fp32) {
  ops::SpmmOptions options;
  options.device = gpu;
  options.features = features;
  options.precision = precision;
  options.backward = true;
  return options;
}

}  // namespace tessera::test
