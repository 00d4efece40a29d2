// What a process of ours settles first, whatever its command is.
#pragma once

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

/// From here on not even a stdout without a reader ends the process: it has something to lose.
void outlive_stdout();

}  // namespace olmo
