// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {

/// The gradient of the loss of its input against `Context::targets`; the loss itself goes to
/// `Context::loss`.
class LossGradient final : public Op {
 public:
  /// Outputs: `sums` are those of the gradient's columns, where they are asked for.
  static constexpr std::size_t gradient = 0, sums = 1;

  std::string describe() const override { return "loss"; }
  std::size_t num_outputs() const override { return 2; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  int replaces() const override { return 0; }
  bool joins_chain() const override { return true; }
};

}  // namespace tessera::step
