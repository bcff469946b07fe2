// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/error.hpp"

#include "io/deflate.hpp"

/// A build of the sparse ops alone has no zlib, and reads no packed files.
namespace tessera::io {

bool looks_gzipped(std::span<const std::byte>) noexcept { return false; }

Buffer<std::byte> gunzip(std::span<const std::byte>, const std::string& where) {
  throw Error(ErrorCode::backend_unavailable, "built without zlib", where,
              "build the whole library (TESSERA_SPARSE_ONLY=OFF)");
}

}  // namespace tessera::io
