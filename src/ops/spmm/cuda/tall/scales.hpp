// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tessera/core/dtype.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/types.hpp"

/// Column scales as tall windows take them (TallLaunch::scales).
namespace tessera::ops {

/// A power of two that brings scales into the range of fp16; 1 for other precisions.
float scale_factor(std::span<const float> scales, Precision precision);

/// Why a precision cannot hold these scales as a high and a low part, in words; empty if it can.
std::string why_not_scales(std::span<const float> scales, Precision precision);

/// One word for each of `columns`, on the GPU.
Buffer<std::uint32_t> pack_scales(const Buffer<VertexId>& columns, std::span<const float> scales,
                                  Precision precision, const Place& place);

}  // namespace tessera::ops
