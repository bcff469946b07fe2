// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tessera/io/open.hpp"

#include "io/formats.hpp"

/// Files of Python's that only Python can read: they are refused with the command that converts
/// them.
namespace tessera::io {

/// True for the first bytes of what `torch.save` writes.
bool begins_as_torch_file(std::string_view first_bytes);

/// True for a folder that has such files, as PyG's data sets keep them in `processed/`.
bool is_processed_folder(const std::string& folder);

/// True for Planetoid's files (`ind.NAME.x` and its siblings), for a folder that has them, there or
/// in `raw/`, and for any other pickle.
bool is_planetoid_or_pickle(const FirstLook& look);

[[noreturn]] Dataset refuse_torch_file(const std::string& path, const ReadOptions& options);
[[noreturn]] Dataset refuse_pickle(const std::string& path, const ReadOptions& options);

}  // namespace tessera::io
