// See gloo/algorithm.h. Gloo's exceptions are std::runtime_errors, and caught as such.
#pragma once
