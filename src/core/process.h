// What every command does first, its streams and signals; and where other programs lie.
#pragma once

#include <optional>
#include <string>

namespace olmo {

/// Opens /dev/null on those of the descriptors 0, 1 and 2 that are closed: otherwise the next file
/// gets the number, and progress is written into it. Results cannot be written to a closed stdout;
/// that stays an error.
void open_standard_streams();

/// Makes two signals errors of the write that causes them. SIGXFSZ: beyond a limit on the size of a
/// file (EFBIG). SIGPIPE: the reader of a pipe is gone (EPIPE), so that a lost terminal or log ends
/// nothing; but a process whose stdout has lost its reader ends as usual, quietly (`| head`). A
/// process started by ours finds both signals as they were.
void keep_writes_from_killing();

/// After this call a stdout without a reader no longer ends the process. A training calls it,
/// because it has work to lose.
void outlive_stdout();

/// Where PATH has the program `name`; a name with a slash is taken as it is. The folders of PATH
/// that are named relative to the current one (`.`, an empty entry) are passed over: what lies
/// there by chance, or by somebody's intent, is not what was meant.
std::optional<std::string> find_program(const std::string& name);

}  // namespace olmo
