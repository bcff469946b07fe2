// SPDX-License-Identifier: Apache-2.0
#include "picture/png_file.hpp"

#include <zlib.h>

#include <new>
#include <vector>

namespace tessera::app::picture {
namespace {

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>((number >> shift) & 0xff);
  return bytes;
}

/// Length, type, content and the checksum of type and content.
std::string chunk(const std::string& type, const std::string& content) {
  const std::string checked = type + content;
  const auto checksum =
      crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
  return big_endian(static_cast<std::uint32_t>(content.size())) + checked +
         big_endian(static_cast<std::uint32_t>(checksum));
}

/// Every row starts with the number of its filter, which is 0: none.
std::string packed_rows(std::size_t row_bytes, int height, std::span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t> rows;
  rows.reserve((row_bytes + 1) * static_cast<std::size_t>(height));
  for (std::size_t row = 0; row < static_cast<std::size_t>(height); ++row) {
    const auto content = bytes.subspan(row * row_bytes, row_bytes);
    rows.push_back(0);
    rows.insert(rows.end(), content.begin(), content.end());
  }
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  std::string packed(size, '\0');
  if (compress(reinterpret_cast<Bytef*>(packed.data()), &size, rows.data(),
               static_cast<uLong>(rows.size())) != Z_OK) {
    throw std::bad_alloc();
  }
  packed.resize(size);
  return packed;
}

}  // namespace

std::string png_file(int width, int height, std::span<const std::uint8_t> bytes,
                     std::span<const Colour> palette) {
  const bool has_palette = !palette.empty();
  const std::size_t row_bytes = static_cast<std::size_t>(width) * (has_palette ? 1 : 3);
  std::string header = big_endian(static_cast<std::uint32_t>(width)) +
                       big_endian(static_cast<std::uint32_t>(height));
  // 8 bits per sample; the kind of colours; compression, filters and interlacing as usual.
  header += {8, static_cast<char>(has_palette ? 3 : 2), 0, 0, 0};
  std::string file(png_signature, sizeof(png_signature) - 1);
  file += chunk("IHDR", header);
  std::string program = "Software";
  program += '\0';
  program += maker;
  file += chunk("tEXt", program);
  if (has_palette) {
    std::string colours;
    for (const Colour& colour : palette) {
      for (const std::uint8_t part : {colour.red, colour.green, colour.blue}) {
        colours += static_cast<char>(part);
      }
    }
    file += chunk("PLTE", colours);
  }
  return file + chunk("IDAT", packed_rows(row_bytes, height, bytes)) + chunk("IEND", "");
}

}  // namespace tessera::app::picture
