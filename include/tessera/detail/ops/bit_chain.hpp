// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/ops/bits.hpp"

/// Products that follow each other over the same vertices, in one kernel or in one for each sum:
/// codes between products stay on the chip.
namespace tessera::ops {

struct BitChainStep {
  bool aggregates = false;  ///< over the blocks of an adjacency; otherwise a product with weights
  std::int64_t in = 0;
  std::int64_t out = 0;
  int bits = 8;              ///< of the codes that go in
  quant::BitTensor weights;  ///< out x in
  /// In this process: what belongs to columns. Row terms of a product are those of
  /// `BitOptions::terms_of_a`.
  BitEpilogue columns;
  int terms = 0;
  BitActivation activation = BitActivation::none;
  std::optional<quant::Affine> requantise;  ///< absent: the last step, which gives values
  bool scales_result = false;               ///< by the column scale of the vertices
};

struct BitChainProblem {
  std::vector<BitChainStep> steps;
  std::int64_t vertices = 0;
  std::int64_t block = 0;  ///< columns of a block on the diagonal
  bool lists = false;      ///< its edges come as lists of sources, not as bits
  PlanOptions options;
};

/// The vertices of a run, on the device. Columns are vertices x 1.
struct BitChainInputs {
  /// vertices x in, in no more words than they fill; in x vertices where the first step sums.
  quant::BitTensorView<const std::uint32_t> features;
  quant::BitTensorView<const std::uint32_t> adjacency;
  /// In place of the adjacency, as in `BitInputs`; features lie in rows then.
  MatrixView<const std::int32_t> block_starts = {};
  MatrixView<const std::int32_t> list_offsets = {};
  MatrixView<const std::uint16_t> list_sources = {};
  const float* row_scale = nullptr;    ///< of sums; null: 1
  const float* col_scale = nullptr;    ///< of results that are summed next; null: 1
  const float* row_weights = nullptr;  ///< row terms of sums
};

class BitChain {
 public:
  virtual ~BitChain() = default;
  virtual void run(const BitChainInputs& inputs, MatrixView<float> values, Stream stream) const = 0;
  virtual std::string name() const = 0;
  virtual std::int64_t weight_bytes() const = 0;  ///< on the device, ranges included
  /// Of codes between products that do not stay on the chip.
  virtual std::int64_t activation_bytes() const = 0;
};

/// Null where no kernel takes the problem: then its products run one by one.
std::unique_ptr<const BitChain> make_bit_chain(const BitChainProblem& problem);

}  // namespace tessera::ops
