// Declares what c10d's ProcessGroupGloo.hpp takes from Gloo. LibTorch holds Gloo's code but ships
// none of its headers, and those of a system's package are of another version, with other virtual
// functions. The five files in this folder name just what that header names. We make no object of
// these classes and call none of their functions: all goes through c10d.
#pragma once
