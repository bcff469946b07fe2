// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/array.hpp"
#include "io/zip.hpp"

namespace tessera::io {

/// What stands before the elements in NumPy's .npy format.
struct NpyHeader {
  std::string type;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Reads the Python dictionary of a header, strictly: the three keys in any order, each once,
/// nothing else, and no expressions.
NpyHeader parse_npy_dictionary(std::string_view text, const std::string& where);

/// Everything before the elements, padded so that they are aligned to 64 bytes.
std::string npy_header(const std::string& type, const std::vector<std::int64_t>& shape);

/// An array inside a .npz file. The constructor reads the header alone, and checks that as many
/// bytes follow as it asks for.
class NpyReader final : public ArrayReader {
 public:
  NpyReader(const InputFile& file, const ZipEntry& entry);

  void copy_to(std::byte* out) override;

 private:
  /// The header has to be read before the base class can be made.
  struct Opened;
  explicit NpyReader(Opened&& opened);

  std::unique_ptr<ZipEntryReader> source_;
  ElementType stored_type_;
  bool fortran_order_ = false;
};

}  // namespace tessera::io
