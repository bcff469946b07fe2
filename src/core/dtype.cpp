// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/dtype.hpp"

#include "tessera/core/error.hpp"

namespace tessera {

const char* to_string(Precision precision) noexcept {
  switch (precision) {
    case Precision::fp64: return "fp64";
    case Precision::fp32: return "fp32";
    case Precision::tf32: return "tf32";
    case Precision::bf16: return "bf16";
    case Precision::fp16: return "fp16";
  }
  return "unknown";
}

Precision parse_precision(const std::string& text) {
  for (const Precision precision :
       {Precision::fp64, Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
    if (text == to_string(precision)) return precision;
  }
  throw Error(ErrorCode::invalid_argument, "unknown precision '" + text + "'", "",
              "use fp64, fp32, tf32, bf16 or fp16");
}

std::size_t bytes_per_element(Precision precision) noexcept {
  switch (precision) {
    case Precision::fp64: return 8;
    case Precision::fp32:
    case Precision::tf32: return 4;
    case Precision::bf16:
    case Precision::fp16: return 2;
  }
  return 0;
}

}  // namespace tessera
