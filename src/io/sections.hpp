// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/progress.hpp"
#include "tessera/data/dataset.hpp"

#include "io/array.hpp"
#include "io/container_layout.hpp"
#include "io/file.hpp"

/// Reading and writing the sections of a container, whatever they mean.
namespace tessera::io {

/// One section, read by all threads: each checks its part while it is in the cache.
class SectionReader final : public ArrayReader {
 public:
  /// `mapped` is the whole file or empty. All must outlive the reader.
  SectionReader(const InputFile& file, const Section& section, SharedArray<std::byte> mapped = {});

  SharedArray<std::byte> bytes() override;
  void copy_to(std::byte* out) override;

 private:
  void check(std::uint32_t crc) const;

  const InputFile& file_;
  const Section& section_;
  SharedArray<std::byte> mapped_;
};

/// The section that makes a container a checkpoint of training instead of a data set.
inline constexpr std::string_view checkpoint_section = "checkpoint";
/// Those that make it a model of triples, and one of kinds of vertices and relations.
inline constexpr std::string_view triple_model_section = "triple_model";
inline constexpr std::string_view relational_model_section = "relational_model";
/// The one that makes it a bit tensor.
inline constexpr std::string_view bit_tensor_section = "bit_tensor";

/// Writes a container of these sections. The file appears whole or not at all.
void write_sections(const std::string& path, const std::vector<NamedArray>& arrays,
                    const Progress& progress = {});

/// Whether a file, whatever its name, is a container that has a section of this name.
bool holds_section(const std::string& path, std::string_view name);

/// Texts are arrays of bytes.
std::string read_text(ArrayReader& array);
ExtraArray stored_text(const std::string& text);

}  // namespace tessera::io
