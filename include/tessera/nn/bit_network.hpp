// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/graph/graph.hpp"
#include "tessera/nn/bit_steps.hpp"
#include "tessera/ops/bits.hpp"
#include "tessera/ops/plan.hpp"

namespace tessera::nn {

/// What a network needs to know of the graph that it sums over: the pattern, and for every row what
/// its sums are multiplied by (empty: 1), what its codes are multiplied by before others sum them
/// (empty: 1), and what its sources together weigh.
struct BitAdjacency {
  Graph pattern;
  std::vector<float> row_scale, col_scale, row_weights;
};

/// Of what a derivation made of a graph. Edges with values of their own are an `unsupported` error.
BitAdjacency bit_adjacency(const Graph& derived);

/// The vertices of one run, on the network's device.
struct BitVertices {
  /// vertices x features, packed along the features; along the vertices where the first step sums
  /// over a dense adjacency. In no more words than they fill where an adjacency comes with the run
  /// and the first step is a product.
  quant::BitTensorView<const std::uint32_t> features = {};
  MatrixView<const float> feature_scale = {};  ///< vertices x 1, of plain features; absent: 1
  quant::BitTensorView<const std::uint32_t> adjacency = {};  ///< blocks on the diagonal, as ...
  MatrixView<const std::int32_t> block_starts = {};          ///< ... in `ops::BitInputs`
  MatrixView<const std::int32_t> list_offsets = {};          ///< lists in place of the adjacency,
  MatrixView<const std::uint16_t> list_sources = {};         ///< as there
  MatrixView<const float> row_scale = {};                    ///< as in `BitAdjacency`, each
  MatrixView<const float> col_scale = {};                    ///< vertices x 1
  MatrixView<const float> row_weights = {};
};

struct BitNetworkOptions {
  ops::PlanOptions plans = {};   ///< kernel and backward pass play no part
  bool scales_features = false;  ///< whether runs bring a feature scale
  bool keeps_last_input = false;
  /// Of a network over blocks: they come as lists of sources, not as bits. Codes of up to 8 bits
  /// are summed over these, and the list of a vertex has itself where its codes count.
  bool lists = false;
};

/// A chain of products of codes, planned for one number of vertices. Between two of them there is
/// nothing but codes; the last one gives numbers.
class BitNetwork {
 public:
  /// Sums run over the edges of this graph.
  BitNetwork(const BitSteps& steps, const Graph& pattern, const BitNetworkOptions& options = {});
  /// Sums run over blocks of bits that come with every run, rows of `block` columns each: the
  /// adjacency of a batch. Every vertex lies in its block, which begins at a multiple of 128. Where
  /// the codes of a vertex itself count once besides its sources'
  /// (`BitStep::own` is 1), the diagonal has them; any other number of times is an `unsupported`
  /// error.
  BitNetwork(const BitSteps& steps, std::int64_t vertices, std::int64_t block,
             const BitNetworkOptions& options = {});
  BitNetwork(BitNetwork&&) noexcept;
  BitNetwork& operator=(BitNetwork&&) noexcept;
  ~BitNetwork();

  /// `values` is vertices x the last step's width, on the device.
  void run(const BitVertices& vertices, MatrixView<float> values, Stream stream = {});

  std::int64_t output_width() const;
  /// The codes that went into the last layer in the last run, where they are kept.
  quant::BitTensorView<const std::uint32_t> last_input() const;
  /// What weights and activations take on the device, in bytes.
  std::int64_t weight_bytes() const;
  std::int64_t activation_bytes() const;
  /// The same activations in fp32.
  std::int64_t full_activation_bytes() const;
  /// Which kernels run: a child for each product.
  ops::Explanation explain() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::nn
