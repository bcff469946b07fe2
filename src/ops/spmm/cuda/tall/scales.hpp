// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/size_range.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/core/shared_array.hpp"
#include "tessera/core/types.hpp"

/// Column scales as tall windows take them (TallLaunch::scales).
namespace tessera::ops {

/// A power of two that brings scales into the range of fp16; 1 for other precisions.
float scale_factor(const SizeRange& scales, Precision precision);

/// Why a precision cannot hold these scales as a high and a low part, in words; empty if it can.
std::string why_not_scales(const SizeRange& scales, Precision precision);

/// One word for each of `columns`. All arrays lie on the GPU.
Buffer<std::uint32_t> pack_scales(std::span<const VertexId> columns,
                                  const SharedArray<float>& scales, float factor,
                                  Precision precision, const Place& place);

}  // namespace tessera::ops
