// What becomes of a file that is being written when a signal asks the process to end: it is
// removed, and the process ends with the exit code of a stop.
#pragma once

#include <string>

namespace olmo {

/// While an object lives, something is being written that nobody may see half. A signal that would
/// end the process is noted instead (core/process/process.h), and end_if_asked() throws, which lets
/// the objects on the way remove what they wrote. Objects may be nested; the outermost is the one
/// that errors name. Where a StopSignals lives already, as in a training, its owner decides about
/// signals, and these objects do nothing.
class UnfinishedOutput {
 public:
  /// `name`: what is being written. Throws as end_if_asked() if a signal came after another output
  /// of this process had become whole.
  explicit UnfinishedOutput(std::string name);
  ~UnfinishedOutput();
  UnfinishedOutput(const UnfinishedOutput&) = delete;
  UnfinishedOutput& operator=(const UnfinishedOutput&) = delete;

  /// From here on all of it is given its names: end_if_asked() throws no more until the outermost
  /// object is gone.
  void take_names();
};

/// To be called now and then where an output takes long. Throws Error(kStopped) or
/// Error(kInterrupted) if an UnfinishedOutput lives and a signal has asked; costs nothing else.
void end_if_asked();

}  // namespace olmo
