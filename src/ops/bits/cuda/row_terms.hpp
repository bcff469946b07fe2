// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/bits/cuda/launch.hpp"

namespace tessera::ops {

/// A column of numbers, `stride` apart.
struct RowNumbers {
  const float* data = nullptr;
  std::int64_t stride = 0;
};

struct RowTerms {
  float* data = nullptr;
  std::int64_t stride = 0;
  bool has_scale = false;  ///< as a second column
};

/// Row terms of A's codes: see `BitOptions::terms_of_a`.
void cuda_row_terms(const BitRows& codes, const RowNumbers& row_scale, const RowTerms& terms,
                    Stream stream);

}  // namespace tessera::ops
