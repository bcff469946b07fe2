// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/bit_tensor.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/sections.hpp"

namespace tessera::io {
namespace {

constexpr std::string_view words_section = "bit_words";
constexpr std::string_view form_section = "quant_form";
constexpr std::string_view lower_section = "quant_lower";
constexpr std::string_view scale_section = "quant_scale";
constexpr std::string_view classes_section = "quant_classes";

/// An array of exactly this many integers.
template <std::size_t count>
std::array<std::int64_t, count> read_integers(ArrayReader& array) {
  if (array.num_elements() != static_cast<std::int64_t>(count)) {
    array.reject(fmt::format("has {} numbers, not {}", array.num_elements(), count));
  }
  const SharedArray<std::int64_t> numbers = read_vector<std::int64_t>(array);
  std::array<std::int64_t, count> result{};
  for (std::size_t i = 0; i < count; ++i) result[i] = numbers[static_cast<std::int64_t>(i)];
  return result;
}

int checked_small(std::int64_t value, std::int64_t limit, ArrayReader& array, const char* what) {
  if (value < 0 || value > limit) array.reject(fmt::format("{} of {}", what, value));
  return static_cast<int>(value);
}

class BitsReader {
 public:
  void take(const Section& section, ArrayReader& array) {
    if (section.name == bit_tensor_section) {
      const auto shape = read_integers<5>(array);
      bits_.tensor.bits = checked_small(shape[0], quant::max_bits, array, "bits");
      bits_.tensor.rows = shape[1];
      bits_.tensor.depth = shape[2];
      bits_.tensor.padded_rows = shape[3];
      bits_.tensor.words_per_row = shape[4];
      has_shape_ = true;
    } else if (section.name == words_section) {
      bits_.tensor.words = read_exact<std::uint32_t>(array, "is not a list of 32-bit words");
    } else if (section.name == form_section) {
      const auto form = read_integers<4>(array);
      affine_.bits = checked_small(form[0], quant::max_bits, array, "bits");
      affine_.rounding = static_cast<quant::Rounding>(checked_small(form[1], 1, array, "rounding"));
      affine_.granularity =
          static_cast<quant::Granularity>(checked_small(form[2], 2, array, "granularity"));
      affine_.classes.count = checked_small(form[3], 1 << 20, array, "classes");
      has_affine_ = true;
    } else if (section.name == lower_section) {
      affine_.lower = read_list<float>(array);
    } else if (section.name == scale_section) {
      affine_.scale = read_list<float>(array);
    } else if (section.name == classes_section) {
      affine_.classes.of_row = read_list<std::int32_t>(array);
    } else {
      throw Error(ErrorCode::bad_data, "belongs to no bit tensor", array.where(),
                  "read the file as a data set or as a checkpoint");
    }
  }

  StoredBits finish(const std::string& path) {
    if (!has_shape_) {
      throw Error(ErrorCode::bad_data, "holds no bit tensor", path, "name a file that has one");
    }
    try {
      bits_.tensor.validate();
      if (has_affine_) check_affine();
    } catch (const Error& error) {
      damaged(path, error.what());
    }
    if (has_affine_) bits_.affine = std::move(affine_);
    return std::move(bits_);
  }

 private:
  /// Tensors are packed along rows or along columns, so that either size may be meant.
  void check_affine() const {
    affine_.validate();
    const auto fits = [&](std::size_t size) {
      const auto count = static_cast<std::int64_t>(size);
      return count == bits_.tensor.rows || count == bits_.tensor.depth;
    };
    const bool sizes_fit =
        (affine_.granularity != quant::Granularity::columns || fits(affine_.scale.size())) &&
        (affine_.granularity != quant::Granularity::classes || fits(affine_.classes.of_row.size()));
    if (affine_.bits != bits_.tensor.bits || !sizes_fit) {
      throw Error(ErrorCode::bad_data, "ranges of another tensor", std::string(form_section));
    }
  }

  template <class T>
  static std::vector<T> read_list(ArrayReader& array) {
    const SharedArray<T> values = read_vector<T>(array);
    return {values.begin(), values.end()};
  }

  StoredBits bits_;
  quant::Affine affine_;
  bool has_shape_ = false;
  bool has_affine_ = false;
};

}  // namespace

StoredBits read_bit_tensor(const std::string& path) {
  const InputFile file(path);
  BitsReader reader;
  for (const Section& section : read_container_header(file)) {
    SectionReader array(file, section);
    reader.take(section, array);
  }
  return reader.finish(path);
}

void write_bit_tensor(const StoredBits& bits, const std::string& path) {
  bits.tensor.validate();
  const quant::BitTensor& tensor = bits.tensor;
  std::vector<NamedArray> arrays;
  arrays.emplace_back(
      bit_tensor_section,
      stored(SharedArray<std::int64_t>(std::vector<std::int64_t>{
          tensor.bits, tensor.rows, tensor.depth, tensor.padded_rows, tensor.words_per_row})));
  arrays.emplace_back(words_section, stored(tensor.words));
  if (bits.affine) {
    const quant::Affine& affine = *bits.affine;
    affine.validate();
    arrays.emplace_back(form_section,
                        stored(SharedArray<std::int64_t>(std::vector<std::int64_t>{
                            affine.bits, static_cast<std::int64_t>(affine.rounding),
                            static_cast<std::int64_t>(affine.granularity), affine.classes.count})));
    arrays.emplace_back(lower_section, stored(SharedArray<float>(affine.lower)));
    arrays.emplace_back(scale_section, stored(SharedArray<float>(affine.scale)));
    if (affine.granularity == quant::Granularity::classes) {
      arrays.emplace_back(classes_section,
                          stored(SharedArray<std::int32_t>(affine.classes.of_row)));
    }
  }
  write_sections(path, arrays);
}

}  // namespace tessera::io
