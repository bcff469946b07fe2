// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tessera/core/error.hpp"

#include "io/little_endian.hpp"
#include "io/member_name.hpp"
#include "io/zip.hpp"
#include "io/zip_layout.hpp"

namespace tessera::io {
namespace {

std::uint32_t short_or_see64(std::int64_t number) {
  return number >= zip::see64 ? zip::see64 : static_cast<std::uint32_t>(number);
}

/// The ZIP64 field that holds the numbers too large for their own place.
std::string extra_field(std::initializer_list<std::int64_t> numbers) {
  std::string large;
  for (const std::int64_t number : numbers) {
    if (number >= zip::see64) put_little_endian(large, number);
  }
  if (large.empty()) return {};
  std::string field;
  put_little_endian(field, zip::extra64_id, static_cast<std::uint16_t>(large.size()));
  return field + large;
}

bool is_ascii(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](unsigned char byte) { return byte < 0x80; });
}

/// What a local header and a directory entry have in common.
void put_description(std::string& out, const ZipEntry& entry, const std::string& extra) {
  put_little_endian(out, extra.empty() ? zip::version_plain : zip::version64,
                    is_ascii(entry.name) ? std::uint16_t{0} : zip::name_is_utf8,
                    static_cast<std::uint16_t>(entry.method), std::uint16_t{0}, zip::no_date,
                    entry.crc, short_or_see64(entry.packed_size), short_or_see64(entry.size),
                    static_cast<std::uint16_t>(entry.name.size()),
                    static_cast<std::uint16_t>(extra.size()));
}

std::string local_header(const ZipEntry& entry) {
  // Where one size needs ZIP64, the local field must hold both.
  std::string extra;
  ZipEntry shown = entry;
  if (std::max(entry.size, entry.packed_size) >= zip::see64) {
    put_little_endian(extra, zip::extra64_id, std::uint16_t{16}, entry.size, entry.packed_size);
    shown.size = shown.packed_size = zip::see64;
  }
  std::string header;
  put_little_endian(header, zip::local_header_mark);
  put_description(header, shown, extra);
  return header + entry.name + extra;
}

std::string directory_entry(const ZipEntry& entry) {
  const std::string extra = extra_field({entry.size, entry.packed_size, entry.header_offset});
  std::string out;
  put_little_endian(out, zip::directory_entry_mark, zip::version64);
  put_description(out, entry, extra);
  put_little_endian(out, std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0}, std::uint32_t{0},
                    short_or_see64(entry.header_offset));
  return out + entry.name + extra;
}

std::string directory_end64(std::int64_t entries, std::int64_t size, std::int64_t offset) {
  std::string out;
  put_little_endian(out, zip::directory_end64_mark, zip::directory_end64_bytes - 12, zip::version64,
                    zip::version64, std::uint32_t{0}, std::uint32_t{0}, entries, entries, size,
                    offset, zip::locator64_mark, std::uint32_t{0}, offset + size, std::uint32_t{1});
  return out;
}

std::string directory_end(std::int64_t entries, std::int64_t size, std::int64_t offset) {
  const auto count = static_cast<std::uint16_t>(std::min<std::int64_t>(entries, zip::see64_short));
  std::string out;
  if (entries >= zip::see64_short || size >= zip::see64 || offset >= zip::see64) {
    out = directory_end64(entries, size, offset);
  }
  put_little_endian(out, zip::directory_end_mark, std::uint16_t{0}, std::uint16_t{0}, count, count,
                    short_or_see64(size), short_or_see64(offset), std::uint16_t{0});
  return out;
}

}  // namespace

void ZipWriter::add(const std::string& name, std::span<const std::span<const std::byte>> parts) {
  if (name.size() > 0xFFFF) {
    throw Error(ErrorCode::invalid_argument, "the name of an array is longer than 65535 bytes",
                name.substr(0, 32), "use a shorter name");
  }
  require_plain_member(name, "array", ErrorCode::invalid_argument);
  const Deflated packed = deflate(parts);
  ZipEntry entry{name, ZipMethod::deflated, packed.crc, packed.size, packed.raw_size, file_.size(),
                 0};
  file_.write(bytes_of(local_header(entry)));
  for (const Buffer<std::byte>& piece : packed.pieces) file_.write(piece.span());
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  const std::int64_t offset = file_.size();
  for (const ZipEntry& entry : entries_) file_.write(bytes_of(directory_entry(entry)));
  const std::int64_t size = file_.size() - offset;
  file_.write(bytes_of(directory_end(std::ssize(entries_), size, offset)));
}

}  // namespace tessera::io
