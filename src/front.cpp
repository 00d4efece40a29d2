// Of the program without LibTorch: it becomes the whole program where a command computes.
#include "cli/compute/compute.h"
#include "core/error.h"
#include "launcher/whole_program.h"

namespace olmo::cli::compute {

using launcher::become_whole_program;

int train(const TrainOptions& /*options*/) { become_whole_program(); }
int evaluate(const EvalOptions& /*options*/) { become_whole_program(); }
int audit(const AuditOptions& /*options*/) { become_whole_program(); }
int doctor(bool /*json*/) { become_whole_program(); }
int inspect_checkpoint(const CheckpointOptions& /*options*/) { become_whole_program(); }
int verify_checkpoint(const CheckpointOptions& /*options*/) { become_whole_program(); }
int diff_checkpoints(const CheckpointOptions& /*options*/) { become_whole_program(); }
int import_checkpoint(const ConvertOptions& /*options*/) { become_whole_program(); }
int export_checkpoint(const ConvertOptions& /*options*/) { become_whole_program(); }
int inspect_data(const InspectOptions& /*options*/) { become_whole_program(); }

bool is_whole() { return false; }

std::optional<std::string> libtorch() {
  try {
    become_whole_program();
  } catch (const Error&) {  // there is none, as the answer says
    return std::nullopt;
  }
}

}  // namespace olmo::cli::compute
