// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tessera/quant/affine.hpp"
#include "tessera/quant/bit_tensor.hpp"

namespace tessera::io {

/// A bit tensor, and what its codes stand for where that is known.
struct StoredBits {
  quant::BitTensor tensor;
  std::optional<quant::Affine> affine = {};
};

/// Tessera's container with the sections of a bit tensor (docs/formats.md). A reader trusts
/// nothing: sizes, padding, ranges and classes are checked before anything uses them.
StoredBits read_bit_tensor(const std::string& path);
void write_bit_tensor(const StoredBits& bits, const std::string& path);

}  // namespace tessera::io
