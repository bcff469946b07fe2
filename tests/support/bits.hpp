// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/memory.hpp"
#include "tessera/quant/bit_tensor.hpp"

/// Codes for tests of bit products, here and on other devices.
namespace tessera::testing {

inline Matrix<std::uint16_t> drawn_codes(std::int64_t rows, std::int64_t cols, int bits,
                                         std::uint32_t seed) {
  Matrix<std::uint16_t> codes(rows, cols);
  for (std::uint16_t& code : codes.span()) {
    seed = seed * 1664525u + 1013904223u;
    code = static_cast<std::uint16_t>((seed >> 12) & ((1u << bits) - 1));
  }
  return codes;
}

inline MatrixView<const std::uint16_t> codes_view(const Matrix<std::uint16_t>& codes) {
  return {codes.data(), codes.rows(), codes.cols()};
}

inline quant::BitTensor drawn_bits(std::int64_t rows, std::int64_t depth, int bits,
                                   std::uint32_t seed) {
  return quant::pack_rows(codes_view(drawn_codes(rows, depth, bits, seed)), bits);
}

/// An array on a device.
template <class T>
class OnDeviceArray {
 public:
  OnDeviceArray(const T* values, std::int64_t count, Device device)
      : memory_(count, Place(device)) {
    copy_bytes(memory_.data(), values, bytes(), device);
  }
  T* data() { return memory_.data(); }
  void fetch(T* to) const {
    copy_bytes(to, memory_.data(), bytes(), memory_.device());
    synchronise(memory_.device());
  }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(memory_.size()) * sizeof(T); }
  Buffer<T> memory_;
};

/// A bit tensor on a device, to be read or written.
class PlacedBits {
 public:
  PlacedBits(const quant::BitTensor& tensor, Device device)
      : shape_(tensor), device_(device), words_(tensor.words.data(), tensor.words.size(), device) {}
  /// Bits of this shape, with every word poisoned.
  PlacedBits(int bits, std::int64_t rows, std::int64_t depth, Device device)
      : PlacedBits(poisoned(quant::bit_tensor_shape(bits, rows, depth)), device) {}

  quant::BitTensorView<std::uint32_t> view() { return shape_.over(words_.data(), device_); }
  quant::BitTensor fetch() const {
    quant::BitTensor tensor = shape_;
    Buffer<std::uint32_t> words(shape_.words.size());
    words_.fetch(words.data());
    tensor.words = std::move(words);
    return tensor;
  }

 private:
  static quant::BitTensor poisoned(quant::BitTensor shape) {
    Buffer<std::uint32_t> words(shape.num_words(), 0xA5A5A5A5u);
    shape.words = std::move(words);
    return shape;
  }

  quant::BitTensor shape_;
  Device device_;
  OnDeviceArray<std::uint32_t> words_;
};

}  // namespace tessera::testing
