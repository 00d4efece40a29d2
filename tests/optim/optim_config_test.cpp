#include "optim/optim_config.h"

#include <cmath>
#include <limits>

#include "support/catch.h"

namespace olmo::optim {
namespace {

OptimizerConfig named(const std::string& name) {
  OptimizerConfig config;
  config.name = name;
  return config;
}

void require(const OptimizerConfig& config) { require_none(problems_of(config)); }

}  // namespace

TEST_CASE("impossible numbers of an optimizer are problems that name the key", "[optim]") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(require(named("adam")), Contains("optimizer.name"));
  OptimizerConfig config = named("adamw");
  config.betas = {0.9, 1.0};
  CHECK_THROWS_WITH(require(config), Contains("optimizer.betas"));
  config = named("adamw");
  for (const double eps : {-1.0, 0.0, 1e-60, std::numeric_limits<double>::infinity()}) {
    config.eps = eps;
    CHECK_THROWS_WITH(require(config), Contains("optimizer.eps"));
  }
  for (const double rate : {0.0, -1.0, 1e-60, std::nan("")}) {
    config = named("adamw");
    config.learning_rate = rate;
    CHECK_THROWS_WITH(require(config), Contains("optimizer.learning_rate"));
  }
  config = named("lionw");
  config.weight_decay = -0.1;
  CHECK_THROWS_WITH(require(config), Contains("optimizer.weight_decay"));
}

TEST_CASE("a limit that is not above 0 is a problem that names the key", "[optim]") {
  using Catch::Matchers::Contains;
  CHECK(problems_of(ClipLimits{}).empty());
  CHECK(problems_of(ClipLimits{.max_grad_norm = 1.0, .max_grad_norm_ratio = 2.0}).empty());
  CHECK_THROWS_WITH(
      require_none(problems_of(ClipLimits{.max_grad_norm = 0.0, .max_grad_norm_ratio = {}})),
      Contains("max_grad_norm"));
  CHECK_THROWS_WITH(
      require_none(problems_of(ClipLimits{.max_grad_norm = {}, .max_grad_norm_ratio = -1.0})),
      Contains("max_grad_norm_ratio"));
}

}  // namespace olmo::optim
