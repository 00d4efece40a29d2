#include "core/data_position.h"

#include "support/catch.h"

using namespace olmo;

namespace {

/// OLMo's Trainer.fit: batches of an epoch as long as a whole one is left, then the next epoch.
class Walk {
 public:
  Walk(const DataPosition& begin, const DataBatches& batches) : now_(begin), batches_(batches) {}

  /// Where the next step begins.
  DataPosition next() {
    if (now_.instance + batches_.batch_size > batches_.instances) {
      ++now_.epoch;
      now_.instance = 0;
    }
    const DataPosition begins = now_;
    ++now_.step;
    now_.instance += batches_.batch_size;
    return begins;
  }
  [[nodiscard]] const DataPosition& now() const { return now_; }

 private:
  DataPosition now_;
  DataBatches batches_;
};

}  // namespace

TEST_CASE("steps follow each other in the data as a training walks through it", "[core]") {
  for (const std::uint64_t instances : {4, 5, 11, 12})
    for (const std::uint64_t batch_size : {1, 3, 4})
      for (std::uint64_t instance = 0; instance <= instances + 2; ++instance) {
        const DataBatches batches{instances, batch_size};
        const DataPosition begin{.step = 7, .epoch = 2, .instance = instance};
        INFO(instances << " instances, " << batch_size << " a batch, from " << instance);
        Walk walk(begin, batches);
        CHECK(position_after_step(begin, batches, 7) == begin);
        for (std::uint64_t step = 8; step < 30; ++step) {
          CHECK(position_of_step(begin, batches, step) == walk.next());
          CHECK(position_after_step(begin, batches, step) == walk.now());
        }
      }
}

TEST_CASE("a training that began at any step of another goes on through the same data", "[core]") {
  const DataBatches batches{.instances = 11, .batch_size = 2};
  const DataPosition first{.step = 0, .epoch = 1, .instance = 0};
  for (std::uint64_t step = 0; step < 14; ++step) {
    const DataPosition begin = position_after_step(first, batches, step);
    for (std::uint64_t later = step + 1; later < 20; ++later)
      CHECK(position_of_step(begin, batches, later) == position_of_step(first, batches, later));
  }
}

TEST_CASE("epochs end where a training walks out of the last of them", "[core]") {
  const DataBatches batches{.instances = 11, .batch_size = 2};
  CHECK(batches.epochs_of(0) == 0);
  CHECK(batches.epochs_of(5) == 1);
  CHECK(batches.epochs_of(6) == 2);
  for (std::uint64_t instance = 0; instance <= 12; ++instance) {
    const DataPosition begin{.step = 7, .epoch = 1, .instance = instance};
    CHECK(last_step_of_epochs(begin, batches, 1) == 7);
    for (std::uint64_t epochs = 2; epochs < 5; ++epochs) {
      const auto last = last_step_of_epochs(begin, batches, epochs);
      INFO("from " << instance << ", " << epochs << " epochs");
      CHECK(position_of_step(begin, batches, last + 1).epoch == epochs);
      CHECK(position_of_step(begin, batches, last + 1).instance == 0);
    }
  }
}
