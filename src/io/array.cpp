// SPDX-License-Identifier: Apache-2.0
#include "io/array.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "tessera/core/dtype.hpp"
#include "tessera/core/parallel.hpp"

#include "io/file.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t grain = 1 << 16;

/// Longer texts are no use to anybody and would let a file claim much with little.
constexpr std::int64_t max_text_bytes = 1 << 20;

[[noreturn]] void unknown_type(std::string_view name, const std::string& where) {
  const bool pickled = name.find('O') != std::string_view::npos;
  throw Error(ErrorCode::unsupported,
              pickled ? "holds Python objects, which only Python can read (and run)"
                      : fmt::format("type '{}' is not known here", name.substr(0, 64)),
              where, "save the array with a plain number type such as int64 or float32");
}

bool is_known_size(char kind, std::int64_t bytes) {
  switch (kind) {
    case 'b': return bytes == 1;
    case 'i':
    case 'u': return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    case 'f': return bytes == 2 || bytes == 4 || bytes == 8;
    case 'c': return bytes == 8 || bytes == 16;
    case 'S':
    case 'U': return bytes >= 0 && bytes <= max_text_bytes;
    default: return false;
  }
}

/// Calls `body` with a value of the C++ type of that name; false if it is not a number type.
template <class Body>
bool visit_number_type(const std::string& type, Body&& body) {
  const auto try_type = [&]<class T>(T) {
    if (type != type_name<T>()) return false;
    body(T{});
    return true;
  };
  // A stored truth value may be any byte, which a C++ bool may not.
  if (type == "|b1") return body(std::uint8_t{}), true;
  if (type == "<f2") return body(Float16{}), true;
  return try_type(std::int8_t{}) || try_type(std::uint8_t{}) || try_type(std::int16_t{}) ||
         try_type(std::uint16_t{}) || try_type(std::int32_t{}) || try_type(std::uint32_t{}) ||
         try_type(std::int64_t{}) || try_type(std::uint64_t{}) || try_type(float{}) ||
         try_type(double{});
}

template <class T>
constexpr bool is_real_type = std::is_floating_point_v<T> || std::is_same_v<T, Float16>;

template <class To, class From>
void convert(const ArrayReader& array, const From* from, To* to) {
  parallel_ranges(array.num_elements(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_integral_v<To>) {
        if (!std::in_range<To>(from[i])) {
          array.reject(fmt::format("value {} at position {} is out of range", from[i], i));
        }
      }
      if constexpr (std::is_same_v<From, double>) {
        // Finite numbers stay finite: those half a step beyond the largest float do not.
        if (std::isfinite(from[i]) && std::abs(from[i]) >= 0x1.ffffffp127) {
          array.reject(
              fmt::format("value {} at position {} does not fit a 32-bit float", from[i], i));
        }
      }
      to[i] = static_cast<To>(from[i]);
    }
  });
}

/// Fills `out` from an array of another number type.
template <class To>
void read_converted(ArrayReader& array, To* out) {
  const bool is_number = visit_number_type(array.type(), [&]<class From>(From) {
    if constexpr (std::is_integral_v<To> && is_real_type<From>) {
      array.reject("holds fractions where integers belong");
    } else {
      const SharedArray<std::byte> bytes = array.bytes();
      convert(array, reinterpret_cast<const From*>(bytes.data()), out);
    }
  });
  if (!is_number) {
    array.reject(fmt::format("type '{}' is not a {} type", array.type(),
                             std::is_integral_v<To> ? "integer" : "real number"));
  }
}

void require_dimensions(const ArrayReader& array, std::size_t dimensions) {
  if (array.shape().size() != dimensions) {
    array.reject(fmt::format("has {} dimensions instead of {}", array.shape().size(), dimensions));
  }
}

}  // namespace

std::string ElementType::native_name() const {
  const std::int64_t number = kind == 'U' ? bytes / swap_unit : bytes;
  const bool has_order = swap_unit > 1;
  return fmt::format("{}{}{}", has_order ? '<' : '|', kind, number);
}

ElementType parse_element_type(std::string_view name, const std::string& where) {
  if (name.size() < 3 || std::string_view("<>=|").find(name[0]) == std::string_view::npos) {
    unknown_type(name, where);
  }
  ElementType type;
  type.kind = name[1];
  const auto [stop, problem] =
      std::from_chars(name.data() + 2, name.data() + name.size(), type.bytes);
  constexpr std::int64_t character_bytes = 4;
  if (problem != std::errc() || stop != name.data() + name.size() || type.bytes < 0 ||
      type.bytes > max_text_bytes) {
    unknown_type(name, where);
  }
  if (type.kind == 'U') type.bytes *= character_bytes;
  if (!is_known_size(type.kind, type.bytes)) unknown_type(name, where);
  switch (type.kind) {
    case 'U': type.swap_unit = character_bytes; break;
    case 'c': type.swap_unit = type.bytes / 2; break;
    case 'S': type.swap_unit = 1; break;
    default: type.swap_unit = type.bytes;
  }
  type.big_endian = name[0] == '>' && type.swap_unit > 1;
  return type;
}

std::int64_t array_bytes(const std::vector<std::int64_t>& shape, const ElementType& type,
                         const std::string& where) {
  std::int64_t bytes = type.bytes;
  // The other extents of an empty array must make sense, too, so zeros are left out at first.
  bool empty = false;
  for (const std::int64_t extent : shape) {
    empty = empty || extent == 0;
    if (extent < 0 || (extent > 0 && __builtin_mul_overflow(bytes, extent, &bytes))) {
      damaged(where, "the shape is negative or overflows 63 bits");
    }
  }
  return empty ? 0 : bytes;
}

ArrayReader::ArrayReader(std::string name, std::string where, std::string type,
                         std::vector<std::int64_t> shape)
    : name_(std::move(name)),
      where_(std::move(where)),
      type_(std::move(type)),
      shape_(std::move(shape)) {
  const ElementType element = parse_element_type(type_, where_);
  num_bytes_ = array_bytes(shape_, element, where_);
  num_elements_ = array_bytes(shape_, {'b', 1, 1, false}, where_);
}

SharedArray<std::byte> ArrayReader::bytes() {
  Buffer<std::byte> buffer(num_bytes_);
  copy_to(buffer.data());
  return buffer;
}

void ArrayReader::reject(const std::string& problem) const {
  throw Error(ErrorCode::bad_data, problem, where_, "docs/formats.md says what belongs here");
}

template <class T>
SharedArray<T> read_flat(ArrayReader& array) {
  if (array.type() == type_name<T>()) return view_of<T>(array);
  Buffer<T> values(array.num_elements());
  read_converted(array, values.data());
  return values;
}

template SharedArray<std::int32_t> read_flat(ArrayReader&);
template SharedArray<std::int64_t> read_flat(ArrayReader&);

template <class T>
SharedArray<T> read_vector(ArrayReader& array) {
  require_dimensions(array, 1);
  return read_flat<T>(array);
}
template SharedArray<std::int32_t> read_vector(ArrayReader&);
template SharedArray<std::int64_t> read_vector(ArrayReader&);
template SharedArray<float> read_vector(ArrayReader&);

std::int64_t read_integer(ArrayReader& array) {
  if (array.num_elements() != 1 || array.shape().size() > 1) {
    array.reject("must be a single number");
  }
  return read_flat<std::int64_t>(array)[0];
}

std::shared_ptr<const Matrix<float>> read_matrix(ArrayReader& array) {
  require_dimensions(array, 2);
  auto matrix = std::make_shared<Matrix<float>>(array.shape()[0], array.shape()[1]);
  if (array.type() == type_name<float>()) {
    array.copy_to(reinterpret_cast<std::byte*>(matrix->data()));
  } else {
    read_converted(array, matrix->data());
  }
  return matrix;
}

ExtraArray read_as_is(ArrayReader& array) { return {array.type(), array.shape(), array.bytes()}; }

ExtraArray stored(std::int64_t value) {
  ExtraArray array = stored(SharedArray<std::int64_t>(std::vector{value}));
  array.shape.clear();
  return array;
}

ExtraArray stored(const std::shared_ptr<const Matrix<float>>& matrix) {
  return {std::string(type_name<float>()),
          {matrix->rows(), matrix->cols()},
          {matrix, reinterpret_cast<const std::byte*>(matrix->data()),
           matrix->size() * static_cast<std::int64_t>(sizeof(float))}};
}

}  // namespace tessera::io
