#include "dist/worker.h"

#include <stdexcept>

#include "support/catch.h"

namespace olmo::dist {
namespace {

TEST_CASE("a worker runs its tasks in their order, and ends them before it goes", "[dist]") {
  std::vector<int> order;
  {
    Worker worker;
    for (int i = 0; i < 5; ++i) worker.run([&order, i] { order.push_back(i); });
  }
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_CASE("what a worker's task throws is thrown to who waits for it", "[dist]") {
  Worker worker;
  auto failed = worker.run([] { throw std::runtime_error("no"); });
  CHECK_THROWS_WITH(failed.get(), "no");
  CHECK_NOTHROW(worker.run([] {}).get());
}

TEST_CASE("a worker that is left alone holds nobody", "[dist]") {
  const auto begun = std::make_shared<std::promise<void>>(),
             end = std::make_shared<std::promise<void>>();
  std::future<void> stuck, dropped;
  {
    Worker worker;
    stuck = worker.run([begun, end] {
      begun->set_value();
      end->get_future().wait();
    });
    dropped = worker.run([] {});
    begun->get_future().wait();
    worker.abandon();
  }
  end->set_value();
  CHECK_NOTHROW(stuck.get());
  CHECK_THROWS_AS(dropped.get(), std::future_error);
}

}  // namespace
}  // namespace olmo::dist
