// libtorch_cuda.so and libtorch_hip.so: their one purpose is to need torch_half.cpp's library,
// which must be loaded once, and the driver.
extern "C" __attribute__((visibility("default"))) int fake_torch_half() { return 0; }
