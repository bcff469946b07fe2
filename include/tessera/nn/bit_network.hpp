// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/graph/graph.hpp"
#include "tessera/nn/names.hpp"
#include "tessera/ops/bits.hpp"
#include "tessera/ops/plan.hpp"
#include "tessera/quant/affine.hpp"
#include "tessera/quant/bit_tensor.hpp"

namespace tessera::nn {

/// A product of codes: with weights, or with the pattern of a graph; then what its epilogue does.
struct BitStep {
  std::string layer;  ///< that it is a part of
  bool aggregates = false;
  std::int64_t in = 0;
  std::int64_t out = 0;
  /// Of the codes that go in: one range, or one for each column. Those that a graph sums hold its
  /// column scale.
  quant::Affine input;
  quant::BitTensor weights;  ///< out x in
  quant::Affine weight_ranges;
  Derivation adjacency = nullptr;
  float own = 0;  ///< as `ops::BitOptions::own`
  std::vector<float> bias, norm_scale, norm_shift;
  ops::BitActivation activation = ops::BitActivation::none;
};

/// A model of few bits as a chain of products, each of which gives codes to the next one; the last
/// gives numbers. It is made of a model on the CPU in fp32, after a forward pass that computed with
/// rounded numbers: ranges are those that the pass found, and stay.
class BitSteps {
 public:
  /// What layers append. `input` rounded what goes in; null: the features, as they came.
  void multiply(std::string layer, const Parameter& weight, const Rounder& weight_rounder,
                const Rounder* input);
  void aggregate(std::string layer, std::int64_t width, Derivation adjacency, float own,
                 const Rounder& input);
  void add(const Tensor& bias);
  void normalise(std::vector<float> scale, std::vector<float> shift);
  /// Throws `unsupported` for what is neither relu nor nothing.
  void activate(ops::Activation activation);
  /// The last layer of a stack comes next.
  void begin_last_layer() { last_layer_ = num_steps(); }
  /// Layer `first` of a stack and those behind it are computed in floating point.
  void end_before(std::int64_t first) {
    first_float_layer_ = first;
    last_layer_ = -1;
  }

  const std::vector<BitStep>& steps() const noexcept { return steps_; }
  std::int64_t num_steps() const noexcept { return static_cast<std::int64_t>(steps_.size()); }
  /// Whether the first product takes features as they came, rounded in one range of their own and
  /// then scaled by rows; otherwise they are rounded as the first step says.
  bool takes_plain_features() const noexcept { return takes_plain_features_; }
  void set_feature_range(quant::Affine range);
  /// The first so many steps; the last of them gives numbers.
  BitSteps first(std::int64_t count) const;
  /// The step that begins the last layer of the stack; -1: none does.
  std::int64_t last_layer() const noexcept { return last_layer_; }
  /// -1: there is none.
  std::int64_t first_float_layer() const noexcept { return first_float_layer_; }

 private:
  BitStep& last();

  std::vector<BitStep> steps_;
  bool takes_plain_features_ = false;
  std::int64_t last_layer_ = -1;
  std::int64_t first_float_layer_ = -1;
};

/// The codes that `ops::round_to_codes` rounds to, from the ranges that it gave, two numbers each.
quant::Affine affine_of(std::span<const float> ranges, int bits);

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
