# What a build needs, for build.sh and build_arm64.sh: Debian packages with the libraries, and the version of LibTorch.
libraries=(libhdf5-dev libsqlite3-dev nlohmann-json3-dev libcli11-dev catch2 libyaml-cpp-dev zlib1g-dev libzstd-dev libssl-dev
           libutf8proc-dev libzip-dev libboost-dev)
torch_version=2.11.0
# The CUDA wheel's CPU library needs these two small libraries and nothing else of CUDA.
torch_cuda_libraries=("nvidia-cuda-runtime==13.0.*" "nvidia-cuda-cupti==13.0.*")
cache=${OLMO_HARNESS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmo-harness}
