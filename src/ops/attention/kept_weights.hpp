// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/memory.hpp"

#include "ops/attention/fused.hpp"

namespace tessera::ops::fused {

/// Which weights the last forward run has kept: drawing them again costs more than to look at them.
template <class T>
class KeptWeights {
  using S = SumOf<T>;

 public:
  /// Lets a forward run write them.
  void record(EdgeOffset edges, Problem<T>& p) {
    const std::int64_t size = checked_area(edges, kept_bytes(p.heads));
    if (bits_.size() != size) bits_ = Buffer<std::uint8_t>(size);
    if (byte_factors_.size() == 0) byte_factors_ = Buffer<S>(256 * 8);
    for (std::int64_t i = 0; i < byte_factors_.size(); ++i) {
      const bool kept = (((i / 8) >> (i % 8)) & 1) != 0;
      byte_factors_[i] = kept ? static_cast<S>(p.dropout.kept_factor) : S{0};
    }
    dropout_ = p.dropout;
    p.kept = bits_.data();
  }

  /// Lets a backward run read them, if they are of its own dropout.
  void recall(Problem<T>& p) {
    const DropoutConstants& wanted = p.dropout;
    const bool same = dropout_.key[0] == wanted.key[0] && dropout_.key[1] == wanted.key[1] &&
                      dropout_.step == wanted.step && dropout_.layer == wanted.layer &&
                      dropout_.threshold == wanted.threshold;
    if (!p.drops || bits_.size() == 0 || !same) return;
    p.kept = bits_.data();
    p.byte_factors = byte_factors_.data();
  }

  std::int64_t bytes() const noexcept { return bits_.size(); }

 private:
  Buffer<std::uint8_t> bits_;
  Buffer<S> byte_factors_;
  DropoutConstants dropout_;
};

}  // namespace tessera::ops::fused
