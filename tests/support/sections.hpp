// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "io/sections.hpp"

/// Taking containers apart and putting them together again, with checksums that are right.
namespace tessera::test {

inline std::vector<io::NamedArray> read_sections(const std::string& path) {
  const io::InputFile file(path);
  std::vector<io::NamedArray> arrays;
  for (const io::Section& section : io::read_container_header(file)) {
    io::SectionReader array(file, section);
    arrays.emplace_back(section.name, io::read_as_is(array));
  }
  return arrays;
}

inline ExtraArray& find_section(std::vector<io::NamedArray>& arrays, const std::string& name) {
  for (auto& [found, array] : arrays) {
    if (found == name) return array;
  }
  throw std::runtime_error("no section " + name);
}

inline std::string text_of(const ExtraArray& array) {
  return {reinterpret_cast<const char*>(array.bytes.data()),
          static_cast<std::size_t>(array.bytes.size())};
}

/// Replaces the value of the line "name = …" in a section of text.
inline void set_line(std::vector<io::NamedArray>& arrays, const std::string& section,
                     const std::string& name, const std::string& value) {
  ExtraArray& array = find_section(arrays, section);
  std::string text = "\n" + text_of(array);
  const std::size_t place = text.find("\n" + name + " = ");
  if (place == std::string::npos) throw std::runtime_error("no line " + name);
  const std::size_t begin = place + name.size() + 4;
  text.replace(begin, text.find('\n', begin) - begin, value);
  array = io::stored_text(text.substr(1));
}

}  // namespace tessera::test
