// SPDX-License-Identifier: Apache-2.0
#include "io/sections.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "io/checksum.hpp"

namespace tessera::io {
namespace {

void pad_to(AtomicFile& file, std::int64_t offset) {
  file.write(bytes_of(std::string(static_cast<std::size_t>(offset - file.size()), '\0')));
}

}  // namespace

SectionReader::SectionReader(const InputFile& file, const Section& section,
                             SharedArray<std::byte> mapped)
    : ArrayReader(section.name, file.path() + ": section '" + section.name + "'", section.type,
                  section.shape),
      file_(file),
      section_(section),
      mapped_(std::move(mapped)) {}

SharedArray<std::byte> SectionReader::bytes() {
  if (mapped_.empty()) return ArrayReader::bytes();
  const auto owner = std::make_shared<const SharedArray<std::byte>>(mapped_);
  const SharedArray<std::byte> bytes(owner, mapped_.data() + section_.offset, section_.bytes);
  check(parallel_crc32(bytes.span()).value());
  return bytes;
}

void SectionReader::copy_to(std::byte* out) {
  constexpr std::int64_t grain = 1 << 20;
  const Crc32 crc = parallel_reduce(
      section_.bytes, grain, Crc32(),
      [&](std::int64_t begin, std::int64_t end) {
        const std::span<std::byte> part(out + begin, static_cast<std::size_t>(end - begin));
        file_.read(section_.offset + begin, part);
        return Crc32(part);
      },
      [](Crc32 sum, const Crc32& next) {
        sum.join(next);
        return sum;
      });
  check(crc.value());
}

void SectionReader::check(std::uint32_t crc) const {
  if (crc != section_.crc) {
    damaged(where(), "the checksum does not match");
  }
}

void write_sections(const std::string& path, const std::vector<NamedArray>& arrays,
                    const Progress& progress) {
  std::vector<Section> sections;
  for (const auto& [name, array] : arrays) {
    sections.push_back({name, array.type, array.shape, array.bytes.size(),
                        parallel_crc32(array.bytes.span()).value(), 0});
  }
  place_sections(sections);
  AtomicFile file(path);
  file.write(bytes_of(encode_container_header(sections)));
  for (std::size_t i = 0; i < sections.size(); ++i) {
    report(progress, "writing", file.size(), sections.back().offset + sections.back().bytes);
    pad_to(file, sections[i].offset);
    file.write(arrays[i].second.bytes.span());
  }
  file.commit();
}

bool holds_section(const std::string& path, std::string_view name) {
  std::error_code ignored;  // What cannot be looked at has none.
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const InputFile file(path);
  if (!begins_as_container(file)) return false;
  const std::vector<Section> sections = read_container_header(file);
  return std::any_of(sections.begin(), sections.end(),
                     [&](const Section& section) { return section.name == name; });
}

std::string read_text(ArrayReader& array) {
  if (array.type() != type_name<std::uint8_t>()) array.reject("is not a text");
  const SharedArray<std::byte> bytes = array.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(bytes.size())};
}

ExtraArray stored_text(const std::string& text) {
  return stored(SharedArray<std::uint8_t>(std::vector<std::uint8_t>(text.begin(), text.end())));
}

}  // namespace tessera::io
