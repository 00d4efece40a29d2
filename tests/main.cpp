#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include "core/policy.h"

int main(int argc, char** argv) {
  olmo::apply_policy(olmo::resolve_policy("portable", "auto", 0));
  return Catch::Session().run(argc, argv);
}
