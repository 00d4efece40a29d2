#pragma once

#include <map>
#include <string>

#include "store/foreign/pickle.h"

namespace olmo::store {

/// Names of parameters by the numbers that a torch optimizer's state goes by: of OLMo's
/// `param_groups`, which have `params` and `param_names`.
std::map<std::string, std::string> names_of_numbers(const PickleValue& param_groups);

}  // namespace olmo::store
