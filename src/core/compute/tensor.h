// LibTorch's tensor type, and the only LibTorch include in headers. <ATen/ATen.h>, which has every
// operation, costs a second in each file that sees it, precompiled or not: what calls an operation
// that is no member of at::Tensor includes <ATen/ops/NAME.h> in its .cpp. Only includes stand here,
// so that our edits never rebuild the precompiled header.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
