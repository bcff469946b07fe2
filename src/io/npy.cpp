// SPDX-License-Identifier: Apache-2.0
#include "io/npy.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/parallel.hpp"

#include "io/little_endian.hpp"

namespace tessera::io {
namespace {

constexpr std::string_view suffix = ".npy";
constexpr std::string_view magic = "\x93NUMPY";
/// NumPy refuses longer headers of files it does not trust.
constexpr std::uint32_t max_header_bytes = 10000;

std::string read_text(ZipEntryReader& source, std::size_t length) {
  std::string text(length, '\0');
  source.read(std::as_writable_bytes(std::span(text)));
  return text;
}

template <class Length>
std::uint32_t read_length(ZipEntryReader& source) {
  return get_little_endian<Length>(bytes_of(read_text(source, sizeof(Length))), 0);
}

NpyHeader read_header(ZipEntryReader& source) {
  const std::string start = read_text(source, magic.size() + 2);
  if (!start.starts_with(magic)) {
    throw Error(ErrorCode::bad_data, "is not a NumPy array", source.where(),
                "make the file with numpy.savez_compressed");
  }
  const auto version = static_cast<unsigned char>(start[magic.size()]);
  if (version < 1 || version > 3) {
    throw Error(ErrorCode::unsupported, fmt::format("version {} of the .npy format", version),
                source.where(), "save it with another version of NumPy");
  }
  const std::uint32_t length =
      version == 1 ? read_length<std::uint16_t>(source) : read_length<std::uint32_t>(source);
  if (length > max_header_bytes) {
    damaged(source.where(), fmt::format("a header of {} bytes", length));
  }
  return parse_npy_dictionary(read_text(source, length), source.where());
}

std::string name_without_suffix(const ZipEntry& entry, const std::string& where) {
  if (!entry.name.ends_with(suffix)) {
    throw Error(ErrorCode::bad_data, "is not a NumPy array", where,
                "a .npz file holds .npy members only");
  }
  return entry.name.substr(0, entry.name.size() - suffix.size());
}

void swap_bytes(std::byte* bytes, std::int64_t count, std::int64_t unit) {
  parallel_for(count / unit, 1 << 16,
               [&](std::int64_t i) { std::reverse(bytes + i * unit, bytes + (i + 1) * unit); });
}

/// Column-major `from` to row-major `to`.
void transpose(const std::byte* from, std::byte* to, std::int64_t rows, std::int64_t cols,
               std::int64_t element) {
  parallel_for(rows, 64, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      std::memcpy(to + (i * cols + j) * element, from + (j * rows + i) * element,
                  static_cast<std::size_t>(element));
    }
  });
}

}  // namespace

struct NpyReader::Opened {
  std::string name;
  std::unique_ptr<ZipEntryReader> source;
  NpyHeader header;
  ElementType type;

  Opened(const InputFile& file, const ZipEntry& entry)
      : source(std::make_unique<ZipEntryReader>(file, entry)) {
    name = name_without_suffix(entry, source->where());
    header = read_header(*source);
    type = parse_element_type(header.type, source->where());
  }
};

NpyReader::NpyReader(const InputFile& file, const ZipEntry& entry)
    : NpyReader(Opened(file, entry)) {}

NpyReader::NpyReader(Opened&& opened)
    : ArrayReader(opened.name, opened.source->where(), opened.type.native_name(),
                  opened.header.shape),
      source_(std::move(opened.source)),
      stored_type_(opened.type),
      fortran_order_(opened.header.fortran_order && shape().size() > 1) {
  if (num_bytes() != source_->remaining()) {
    damaged(where(), fmt::format("the header asks for {} bytes, but {} follow", num_bytes(),
                                 source_->remaining()));
  }
  if (fortran_order_ && shape().size() > 2) {
    throw Error(ErrorCode::unsupported, "column-major order with more than two dimensions", where(),
                "save it after numpy.ascontiguousarray");
  }
}

void NpyReader::copy_to(std::byte* out) {
  const auto read_elements = [&](std::byte* to) {
    source_->read({to, static_cast<std::size_t>(num_bytes())});
    if (stored_type_.big_endian) swap_bytes(to, num_bytes(), stored_type_.swap_unit);
  };
  if (!fortran_order_) return read_elements(out);
  Buffer<std::byte> columns(num_bytes());
  read_elements(columns.data());
  if (num_bytes() > 0) {
    transpose(columns.data(), out, shape()[0], shape()[1], stored_type_.bytes);
  }
}

}  // namespace tessera::io
