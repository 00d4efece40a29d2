#include "dist/c10d.h"

#include <cstdlib>

#include <c10/util/Exception.h>
#include <c10/util/Flags.h>
#include <c10/util/Logging.h>

#include "core/process/process.h"
#include "core/text/safe_text.h"

C10_DECLARE_int(caffe2_log_level);

namespace olmo::dist {

void prepare_c10d() {
  static const bool kDone = [] {
    constexpr int kFatal = 3;
    if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) {
      FLAGS_caffe2_log_level = kFatal;
    } else {
      c10::initLogging();
    }
    for (const char* const entries : {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"})
      ::setenv(entries, "0", 1);
    keep_writes_from_killing();  // as one to a rank that has gone would
    return true;
  }();
  static_cast<void>(kDone);
}

std::string reason(const std::exception& error) {
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  return safe_line(of_torch != nullptr ? of_torch->what_without_backtrace() : error.what());
}

}  // namespace olmo::dist
