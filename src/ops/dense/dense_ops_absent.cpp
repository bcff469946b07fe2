// SPDX-License-Identifier: Apache-2.0
#include "ops/dense/dense_ops.hpp"

#include "tessera/core/error.hpp"

/// A build of the sparse ops alone has no dense ones on the CPU. Of the sparse ones, attention by
/// cosines asks for them where no kernel takes them as they are.
namespace tessera::ops {

const DenseOps& dense_ops(Device) {
  throw Error(ErrorCode::backend_unavailable, "built without dense operations", "device",
              "build the whole library (TESSERA_SPARSE_ONLY=OFF)");
}

}  // namespace tessera::ops
