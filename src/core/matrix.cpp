// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/matrix.hpp"

#include <ostream>

namespace tessera {

void describe_matrix(std::ostream& out, ElementType type, std::int64_t rows, std::int64_t cols,
                     std::int64_t stride, Device device) {
  out << to_string(type) << " " << rows << " x " << cols;
  if (stride != cols) out << ", stride " << stride;
  out << ", on " << to_string(device);
}

}  // namespace tessera
