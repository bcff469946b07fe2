// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/ops/top_rows.hpp"

namespace tessera::ops {

void offer_to_top_on_gpu(const ConstOperand& scores, std::int64_t first_col,
                         const LeftOut& left_out, MatrixView<TopKey> keys,
                         std::int32_t* not_a_number, Device device, Stream stream);
void list_top_on_gpu(const TopKey* keys, std::int64_t size, VertexId* cols, float* scores,
                     Device device, Stream stream);

}  // namespace tessera::ops
