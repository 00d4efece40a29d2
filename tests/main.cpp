#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <csignal>

#include "core/compute/libtorch.h"
#include "core/files/private_folder.h"

int main(int argc, char** argv) {
  // The programs that tests start inherit what is ignored here: SIGHUP under nohup, SIGINT and
  // SIGQUIT in a job that a script has put into the background.
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2})
    std::signal(signal, SIG_DFL);
  // Nor do they write into the user's cache, or depend on what it has.
  const olmo::PrivateFolder cache("olmo-test-cache");
  ::setenv("OLMO_HARNESS_CACHE", cache.path().c_str(), 1);
  olmo::apply_policy(olmo::resolve_policy("portable", "auto", 0));
  Catch::Session session;
#if CATCH_VERSION_MAJOR == 2
  // A name or a tag that no test has is a failure, as it is from Catch2 3 on.
  session.configData().warnings = Catch::WarnAbout::NoTests;
#endif
  return session.run(argc, argv);
}
