// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/core/error.hpp"
#include "tessera/core/matrix.hpp"
#include "tessera/core/shared_array.hpp"
#include "tessera/data/dataset.hpp"

namespace tessera::io {

/// NumPy's kind letter and the bytes of one element. `swap_unit` is what byte order applies to:
/// half a complex number, one character of a text.
struct ElementType {
  char kind = 0;
  std::int64_t bytes = 0;
  std::int64_t swap_unit = 1;
  bool big_endian = false;

  /// The name with the byte order of this machine: ">i4" gives "<i4".
  std::string native_name() const;
};

/// Reads a NumPy type name such as "<i4", "|b1" or ">f8"; `unsupported` for anything but truth
/// values, integers, floats up to 64 bits, complex numbers of two such floats, and texts.
ElementType parse_element_type(std::string_view name, const std::string& where);

/// Bytes of an array of this shape; `bad_data` for a negative extent or an overflow.
std::int64_t array_bytes(const std::vector<std::int64_t>& shape, const ElementType& type,
                         const std::string& where);

/// NumPy's name of a C++ type.
template <class T>
constexpr std::string_view type_name() {
  if constexpr (std::is_same_v<T, std::int8_t>) return "|i1";
  if constexpr (std::is_same_v<T, std::uint8_t>) return "|u1";
  if constexpr (std::is_same_v<T, std::int16_t>) return "<i2";
  if constexpr (std::is_same_v<T, std::uint16_t>) return "<u2";
  if constexpr (std::is_same_v<T, std::int32_t>) return "<i4";
  if constexpr (std::is_same_v<T, std::uint32_t>) return "<u4";
  if constexpr (std::is_same_v<T, std::int64_t>) return "<i8";
  if constexpr (std::is_same_v<T, std::uint64_t>) return "<u8";
  if constexpr (std::is_same_v<T, float>) return "<f4";
  if constexpr (std::is_same_v<T, double>) return "<f8";
}

/// One array in a file, before it is read. Its bytes come in this machine's order, row-major.
class ArrayReader {
 public:
  ArrayReader(std::string name, std::string where, std::string type,
              std::vector<std::int64_t> shape);
  virtual ~ArrayReader() = default;

  const std::string& name() const noexcept { return name_; }
  const std::string& where() const noexcept { return where_; }
  const std::string& type() const noexcept { return type_; }
  const std::vector<std::int64_t>& shape() const noexcept { return shape_; }
  std::int64_t num_elements() const noexcept { return num_elements_; }
  std::int64_t num_bytes() const noexcept { return num_bytes_; }
  char kind() const noexcept { return type_[1]; }

  /// All bytes, aligned for any type. A mapped file hands out its own memory.
  virtual SharedArray<std::byte> bytes();
  /// Copies all bytes to `out`, which has room for them.
  virtual void copy_to(std::byte* out) = 0;

  [[noreturn]] void reject(const std::string& problem) const;

 private:
  std::string name_;
  std::string where_;
  std::string type_;
  std::vector<std::int64_t> shape_;
  std::int64_t num_elements_ = 0;
  std::int64_t num_bytes_ = 0;
};

/// The array as a vector of T: VertexId, int64, or float. Any integer type is taken for integers if
/// all values fit, and any real one for floats; the rest is `bad_data`.
template <class T>
SharedArray<T> read_vector(ArrayReader& array);

/// The same of any shape, row-major.
template <class T>
SharedArray<T> read_flat(ArrayReader& array);

/// The bytes of an array whose type in the file is T.
template <class T>
SharedArray<T> view_of(ArrayReader& array) {
  const auto owner = std::make_shared<const SharedArray<std::byte>>(array.bytes());
  return {owner, reinterpret_cast<const T*>(owner->data()), array.num_elements()};
}

/// A vector whose type in the file must be T.
template <class T>
SharedArray<T> read_exact(ArrayReader& array, const char* problem) {
  if (array.type() != type_name<T>() || array.shape().size() != 1) array.reject(problem);
  return view_of<T>(array);
}

/// A single integer: no dimensions, or one element.
std::int64_t read_integer(ArrayReader& array);

/// A two-dimensional array as floats.
std::shared_ptr<const Matrix<float>> read_matrix(ArrayReader& array);

/// The array as it is.
ExtraArray read_as_is(ArrayReader& array);

/// An array to be written, and its name in the file.
using NamedArray = std::pair<std::string, ExtraArray>;

/// For writing: the same memory seen as bytes, kept alive.
template <class T>
ExtraArray stored(const SharedArray<T>& values) {
  const auto owner = std::make_shared<const SharedArray<T>>(values);
  return {std::string(type_name<T>()),
          {values.size()},
          {owner, reinterpret_cast<const std::byte*>(values.data()),
           values.size() * static_cast<std::int64_t>(sizeof(T))}};
}
ExtraArray stored(std::int64_t value);
ExtraArray stored(const std::shared_ptr<const Matrix<float>>& matrix);

}  // namespace tessera::io
