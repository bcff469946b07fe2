// SPDX-License-Identifier: Apache-2.0
#include "io/deflate.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "io/checksum.hpp"
#include "io/file.hpp"
#include "io/little_endian.hpp"

namespace tessera::io {
namespace {

constexpr int raw_window_bits = -15;
constexpr int gzip_window_bits = 15 + 16;
constexpr std::int64_t piece_bytes = 1 << 20;
/// On edge lists, a quarter smaller than the fastest level in about its time; the levels above take
/// several times as long.
constexpr int level = 3;
/// zlib counts in 32 bits.
constexpr std::size_t max_step = std::numeric_limits<uInt>::max();

Bytef* zlib_bytes(const std::byte* bytes) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes));
}

[[noreturn]] void out_of_memory(const std::string& where) {
  throw Error(ErrorCode::out_of_memory, "no memory left for zlib", where);
}

struct Piece {
  std::span<const std::byte> raw;
  Buffer<std::byte> packed;
  Crc32 crc;
};

std::vector<Piece> cut(std::span<const std::span<const std::byte>> parts) {
  std::vector<Piece> pieces;
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      const std::size_t length = std::min<std::size_t>(part.size(), piece_bytes);
      pieces.push_back({part.first(length), {}, {}});
      part = part.subspan(length);
    }
  }
  if (pieces.empty()) pieces.emplace_back();
  return pieces;
}

Buffer<std::byte> copy_of(std::span<const std::byte> bytes) {
  Buffer<std::byte> copy(static_cast<std::int64_t>(bytes.size()));
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return copy;
}

/// Every piece but the last ends with a full flush, so that the pieces can be made apart and still
/// follow each other as one stream.
void pack(Piece& piece, bool last) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, raw_window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    out_of_memory("deflate");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, deflateEnd);
  constexpr std::int64_t room_for_flush = 64;
  Buffer<std::byte> scratch(
      static_cast<std::int64_t>(deflateBound(&stream, static_cast<uLong>(piece.raw.size()))) +
      room_for_flush);
  stream.next_in = zlib_bytes(piece.raw.data());
  stream.avail_in = static_cast<uInt>(piece.raw.size());
  stream.next_out = zlib_bytes(scratch.data());
  stream.avail_out = static_cast<uInt>(scratch.size());
  const int result = ::deflate(&stream, last ? Z_FINISH : Z_FULL_FLUSH);
  if (result != (last ? Z_STREAM_END : Z_OK) || stream.avail_in != 0) {
    throw Error(ErrorCode::internal, "zlib did not pack a piece whole", "deflate");
  }
  piece.packed = copy_of(scratch.span().first(stream.total_out));
  piece.crc.add(piece.raw);
}

}  // namespace

struct Inflater::State {
  z_stream stream{};
};

Inflater::Inflater(DeflateFormat format, std::string where)
    : state_(std::make_unique<State>()), where_(std::move(where)) {
  const int bits = format == DeflateFormat::raw ? raw_window_bits : gzip_window_bits;
  if (inflateInit2(&state_->stream, bits) != Z_OK) out_of_memory(where_);
}

Inflater::~Inflater() { inflateEnd(&state_->stream); }

Inflater::Step Inflater::advance(std::span<const std::byte> in, std::span<std::byte> out) {
  z_stream& stream = state_->stream;
  Step step;
  for (;;) {
    const std::size_t in_now = std::min(in.size() - step.consumed, max_step);
    const std::size_t out_now = std::min(out.size() - step.produced, max_step);
    std::byte nowhere{};
    stream.next_in = zlib_bytes(in.data() + step.consumed);
    stream.avail_in = static_cast<uInt>(in_now);
    // zlib refuses a null pointer even where there is no room asked for.
    stream.next_out = zlib_bytes(out.empty() ? &nowhere : out.data() + step.produced);
    stream.avail_out = static_cast<uInt>(out_now);
    const int result = inflate(&stream, Z_NO_FLUSH);
    const std::size_t taken = in_now - stream.avail_in;
    const std::size_t given = out_now - stream.avail_out;
    step.consumed += taken;
    step.produced += given;
    if (result == Z_STREAM_END) {
      step.finished = true;
      return step;
    }
    if (result == Z_MEM_ERROR) out_of_memory(where_);
    if (result != Z_OK && result != Z_BUF_ERROR) {
      const char* const reason = stream.msg != nullptr ? stream.msg : "not a deflate stream";
      damaged(where_, std::string("cannot be unpacked: ") + reason);
    }
    if (taken == 0 && given == 0) return step;
  }
}

void Inflater::restart() { inflateReset(&state_->stream); }

Deflated deflate(std::span<const std::span<const std::byte>> parts) {
  std::vector<Piece> pieces = cut(parts);
  parallel_tasks(std::ssize(pieces), [&](std::int64_t i) {
    pack(pieces[static_cast<std::size_t>(i)], i + 1 == std::ssize(pieces));
  });
  Deflated result;
  Crc32 crc;
  for (Piece& piece : pieces) {
    crc.join(piece.crc);
    result.raw_size += static_cast<std::int64_t>(piece.raw.size());
    result.size += piece.packed.size();
    result.pieces.push_back(std::move(piece.packed));
  }
  result.crc = crc.value();
  return result;
}

bool looks_gzipped(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

std::vector<Buffer<std::byte>> gzip(std::span<const std::span<const std::byte>> parts) {
  Deflated packed = deflate(parts);
  // Magic, deflate, no flags, no time, no particular level, unknown system.
  const std::string header("\x1F\x8B\x08\0\0\0\0\0\0\xFF", 10);
  std::string trailer;
  put_little_endian(trailer, packed.crc, static_cast<std::uint32_t>(packed.raw_size));
  packed.pieces.insert(packed.pieces.begin(), copy_of(bytes_of(header)));
  packed.pieces.push_back(copy_of(bytes_of(trailer)));
  return std::move(packed.pieces);
}

}  // namespace tessera::io
