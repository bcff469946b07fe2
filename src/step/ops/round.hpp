// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {

/// y = x as codes of few bits would give it back.
class Round final : public Op {
 public:
  Round(Rounder& rounder, const Rounding& rounding) : rounder_(rounder), rounding_(rounding) {}

  std::string describe() const override;
  void shape(Shapes& shapes) const override { shapes.set(0, shapes.in(0)); }
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override { adjoint.give(0, adjoint.gradient()); }
  int replaces() const override { return 0; }

  const Rounder& rounder() const noexcept { return rounder_; }

 private:
  Rounder& rounder_;
  Rounding rounding_;
};

}  // namespace tessera::step
