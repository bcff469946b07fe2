// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/core/memory.hpp"

namespace tessera::io {

/// No deflate stream grows by more than this factor: what a file may claim of its contents is
/// bounded by its size before anything is allocated.
inline constexpr std::int64_t max_deflate_ratio = 1032;

enum class DeflateFormat { raw, gzip };

/// Undoes deflate, piece by piece.
class Inflater {
 public:
  /// `where` names the stream in errors.
  Inflater(DeflateFormat format, std::string where);
  ~Inflater();

  struct Step {
    std::size_t consumed = 0;
    std::size_t produced = 0;
    bool finished = false;  ///< the stream has ended
  };
  /// Goes on until `in` is used up, `out` is full, or the stream ends.
  Step advance(std::span<const std::byte> in, std::span<std::byte> out);
  /// Ready for another stream.
  void restart();

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::string where_;
};

/// A deflate stream in pieces that follow each other, with what headers say about the bytes in it.
struct Deflated {
  std::vector<Buffer<std::byte>> pieces;
  std::int64_t raw_size = 0;
  std::int64_t size = 0;
  std::uint32_t crc = 0;
};

/// Packs the parts, one after the other, into one raw stream. All threads work on it, and the
/// result is the same for any number of them.
Deflated deflate(std::span<const std::span<const std::byte>> parts);

/// A gzip file of the parts, one after the other; in pieces.
std::vector<Buffer<std::byte>> gzip(std::span<const std::span<const std::byte>> parts);

bool looks_gzipped(std::span<const std::byte> bytes) noexcept;

}  // namespace tessera::io
