// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/dtype.hpp"

#include "tessera/core/error.hpp"

namespace tessera {

const char* to_string(ElementType type) noexcept {
  switch (type) {
    case ElementType::fp64: return "fp64";
    case ElementType::fp32: return "fp32";
    case ElementType::bf16: return "bf16";
    case ElementType::fp16: return "fp16";
    case ElementType::int8: return "int8";
    case ElementType::int32: return "int32";
    case ElementType::bits: return "bits";
  }
  return "unknown";
}

int bits_per_element(ElementType type) noexcept {
  switch (type) {
    case ElementType::fp64: return 64;
    case ElementType::fp32:
    case ElementType::int32: return 32;
    case ElementType::bf16:
    case ElementType::fp16: return 16;
    case ElementType::int8: return 8;
    case ElementType::bits: return 1;
  }
  return 0;
}

std::int64_t bytes_of(ElementType type, std::int64_t count) noexcept {
  if (type == ElementType::bits) return (count + 31) / 32 * 4;
  return count * (bits_per_element(type) / 8);
}

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

ElementType storage_of(Precision precision) noexcept {
  switch (precision) {
    case Precision::fp64: return ElementType::fp64;
    case Precision::fp32:
    case Precision::tf32: return ElementType::fp32;
    case Precision::bf16: return ElementType::bf16;
    case Precision::fp16: return ElementType::fp16;
  }
  return ElementType::fp32;
}

}  // namespace tessera
