// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The numbers of the zip format (PKWARE's APPNOTE) that its reader and its writer share.
namespace tessera::io::zip {

inline constexpr std::uint32_t local_header_mark = 0x04034b50;
inline constexpr std::uint32_t directory_entry_mark = 0x02014b50;
inline constexpr std::uint32_t directory_end_mark = 0x06054b50;
inline constexpr std::uint32_t directory_end64_mark = 0x06064b50;
inline constexpr std::uint32_t locator64_mark = 0x07064b50;

inline constexpr std::int64_t local_header_bytes = 30;
inline constexpr std::int64_t directory_entry_bytes = 46;
inline constexpr std::int64_t directory_end_bytes = 22;
inline constexpr std::int64_t directory_end64_bytes = 56;
inline constexpr std::int64_t locator64_bytes = 20;

inline constexpr std::uint16_t extra64_id = 0x0001;
inline constexpr std::uint16_t version_plain = 20;
inline constexpr std::uint16_t version64 = 45;
inline constexpr std::uint16_t name_is_utf8 = 1 << 11;  ///< a flag
/// 1 January 1980, the earliest day the format knows: equal data gives equal files.
inline constexpr std::uint16_t no_date = (1 << 5) | 1;

/// Stand where the real number is in a ZIP64 field.
inline constexpr std::uint16_t see64_short = 0xFFFF;
inline constexpr std::uint32_t see64 = 0xFFFFFFFF;

}  // namespace tessera::io::zip
