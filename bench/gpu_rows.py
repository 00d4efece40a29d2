#!/usr/bin/env python3
"""Times our kernels for rows and elements on an NVIDIA GPU, at the sizes of a step of OLMo-1B in bf16, beside what their bytes
take at the bandwidth of a large copy.

Needs: torch with CUDA, whose NVRTC compiles the kernels. No build of olmo-harness.
Run:   python3 bench/gpu_rows.py [--out bench/results/gpu_rows.md]

Each kernel is launched on tensors larger than the cache, as often as fits into a fifth of a second; the median counts. Bytes: each
input read once, each output written once.
"""

import argparse
import ctypes
import pathlib
import statistics
import sys
import time

from trainings import publish

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS, D_MODEL, INNER, HEADS, HALF, VOCABULARY = 8 * 2048, 2048, 8192, 32, 64, 50304  # HEADS: of queries and keys


# ---------------------------------------------------------------- the kernels, compiled and found


def checked(library, call, *arguments):
    code = getattr(library, call)(*arguments)
    if code != 0:
        sys.exit(f"{call} failed with {code}")


def compiled(architecture):
    """The machine code of src/ops/gpu/kernels.cu, by the options of core/compute/gpu_code.cpp."""
    library = next(nvrtc_libraries(), None)
    if library is None:
        sys.exit("NVRTC is not here: neither with torch nor in /usr/local/cuda")
    nvrtc = ctypes.CDLL(str(library))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    source = (ROOT / "src/ops/gpu/kernels.cu").read_bytes()
    checked(nvrtc, "nvrtcCreateProgram", ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    options = [f"--gpu-architecture={architecture}", "--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
               "--device-as-default-execution-space", "-DOLMO_GPU", "-DOLMO_ISA=isa_gpu", f"-I{ROOT}/src/ops/gpu", f"-I{ROOT}/src"]
    array = (ctypes.c_char_p * len(options))(*[each.encode() for each in options])
    if nvrtc.nvrtcCompileProgram(program, len(options), array) != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(log.value.decode())
    checked(nvrtc, "nvrtcGetCUBINSize", program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    checked(nvrtc, "nvrtcGetCUBIN", program, code)
    return code.raw


def nvrtc_libraries():
    folders = [pathlib.Path("/usr/local/cuda/lib64")]
    try:
        import torch
        folders = [*pathlib.Path(torch.__path__[0]).parent.glob("nvidia/*/lib"), *folders]
    except ImportError:
        pass
    for folder in folders:
        yield from (path for path in sorted(folder.glob("libnvrtc.so*")) if "builtins" not in path.name)


class Kernels:
    def __init__(self, code):
        import torch
        torch.zeros(1, device="cuda")  # makes the context
        self.driver, self.module = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        checked(self.driver, "cuModuleLoadData", ctypes.byref(self.module), code)

    def launcher(self, name, blocks, *arguments):
        import torch
        kernel = ctypes.c_void_p()
        checked(self.driver, "cuModuleGetFunction", ctypes.byref(kernel), self.module, name.encode())
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.cast(ctypes.pointer(each), ctypes.c_void_p) for each in arguments])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

        def launch(kept=arguments):
            checked(self.driver, "cuLaunchKernel", kernel, blocks, 1, 1, 256, 1, 1, 0, stream, pointers, None)
        return launch


# ---------------------------------------------------------------- parameters, as src/ops/kernels declares them


def structure(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields)})


I64, F32, POINTER, BOOL = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p, ctypes.c_bool
Numbers = structure("Numbers", ("data", POINTER), ("bf16", BOOL))
Rows = structure("Rows", ("numbers", Numbers), ("stride", I64))
NormForward = structure("NormForward", ("x", Rows), ("y", Rows), ("columns", I64), ("weight", Numbers), ("bias", Numbers), ("eps", F32),
                        ("stats", POINTER))
NormBackward = structure("NormBackward", ("dy", Rows), ("x", Rows), ("dx", Rows), ("rows", I64), ("columns", I64), ("weight", Numbers),
                         ("stats", POINTER), ("dweight", POINTER), ("dbias", POINTER), ("accumulate_dx", BOOL), ("round", BOOL))
Rope = structure("Rope", ("data", POINTER), ("stride", I64), ("heads", I64), ("half", I64), ("length", I64), ("positions", POINTER),
                 ("cos", POINTER), ("sin", POINTER))
Loss = structure("Loss", ("logits", POINTER), ("columns", I64), ("labels", POINTER), ("ce", POINTER), ("lse", POINTER), ("argmax", POINTER),
                 ("gradient", BOOL), ("grad_scale", F32), ("z_multiplier", F32))
Squares = structure("Squares", ("first", I64), ("x", POINTER), ("count", I64))
AdamWStep = structure("AdamWStep", *[(f"n{i}", F32) for i in range(8)], ("selective", BOOL))
AdamW = structure("AdamW", ("first", I64), ("step", AdamWStep), ("grad", POINTER), ("parameter", POINTER), ("exp_avg", POINTER),
                  ("exp_avg_sq", POINTER), ("count", I64))


def cases(kernels):
    """(name, bytes, launch) of each kernel."""
    import torch

    kept = []

    def tensor(*sizes, dtype=torch.bfloat16):
        kept.append(torch.randn(*sizes, device="cuda").to(dtype))
        return kept[-1]

    def at(t):
        return POINTER(t.data_ptr())

    def rows(t):
        return Rows(Numbers(t.data_ptr(), t.dtype == torch.bfloat16), t.shape[1])

    def pieces(columns, piece):
        return -(-ROWS * -(-columns // piece) // 16)

    none = Numbers(None, False)
    x, y, z = (tensor(ROWS, D_MODEL) for _ in range(3))
    u, du, dy, act = tensor(ROWS, 2 * INNER), tensor(ROWS, 2 * INNER), tensor(ROWS, INNER), tensor(ROWS, INNER)
    stats = tensor(ROWS, 2, dtype=torch.float32)
    qkv, table = tensor(ROWS, 3 * D_MODEL), tensor(2, 2048, HALF, dtype=torch.float32)
    hidden, inner = x.nbytes, act.nbytes
    yield "olmo_layer_norm", 2 * hidden, kernels.launcher(
        "olmo_layer_norm", ROWS // 16, NormForward(rows(x), rows(y), D_MODEL, none, none, 1e-5, stats.data_ptr()), I64(ROWS))
    yield "olmo_layer_norm_input", 4 * hidden, kernels.launcher(
        "olmo_layer_norm_input", ROWS // 16,
        NormBackward(rows(y), rows(x), rows(z), ROWS, D_MODEL, none, stats.data_ptr(), None, None, True, False))
    yield "olmo_swiglu_bf16", 3 * inner, kernels.launcher(
        "olmo_swiglu_bf16", pieces(INNER, 512), at(u), at(act), I64(ROWS), I64(INNER))
    yield "olmo_swiglu_backward_bf16", 6 * inner, kernels.launcher(
        "olmo_swiglu_backward_bf16", pieces(INNER, 512), at(dy), at(u), at(du), at(act), I64(ROWS), I64(INNER))
    yield "olmo_rope_bf16", 4 * hidden, kernels.launcher(
        "olmo_rope_bf16", pieces(HEADS, 8), Rope(qkv.data_ptr(), 3 * D_MODEL, HEADS, HALF, 2048, None, table[0].data_ptr(), table[1].data_ptr()),
        F32(1.0), I64(ROWS))
    yield "olmo_add_bf16", 3 * hidden, kernels.launcher("olmo_add_bf16", ROWS * D_MODEL // 1024, at(x), at(y), at(z), I64(x.numel()))
    del u, du, dy, act
    kept.clear()
    chunk = 4096
    logits, labels = tensor(chunk, VOCABULARY), torch.zeros(chunk, dtype=torch.int64, device="cuda")
    sums = tensor(2, chunk, dtype=torch.float32)
    yield "olmo_loss_rows_bf16", 2 * logits.nbytes, kernels.launcher(
        "olmo_loss_rows_bf16", chunk // 16, Loss(logits.data_ptr(), VOCABULARY, labels.data_ptr(), sums[0].data_ptr(), sums[1].data_ptr(), None,
                                                 True, 1e-4, 1e-5), I64(chunk))
    count = 2**28
    of_update = [tensor(count, dtype=torch.float32).abs_() for _ in range(4)]
    part = torch.frombuffer(bytearray(bytes(Squares(0, of_update[0].data_ptr(), count))), dtype=torch.uint8).cuda()
    blocks = tensor(count // 4096, dtype=torch.float32)
    yield "olmo_block_squares", 4 * count, kernels.launcher("olmo_block_squares", count // 4096 // 16, at(part), I64(1), at(blocks), I64(count // 4096))
    step = AdamWStep(1, 0.999, 0.1, 0.95, 0.05, 1, 1e-8, 1e-4, False)
    parts = torch.frombuffer(bytearray(bytes(AdamW(0, step, *[t.data_ptr() for t in of_update], count))), dtype=torch.uint8).cuda()
    yield "olmo_adamw", 28 * count, kernels.launcher("olmo_adamw", count // 1024, at(parts), I64(1))


# ---------------------------------------------------------------- times


def seconds_of(launch):
    import torch

    launch()
    torch.cuda.synchronize()
    times, end = [], time.monotonic() + 0.2
    while time.monotonic() < end or len(times) < 5:
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        launch()
        after.record()
        torch.cuda.synchronize()
        times.append(before.elapsed_time(after) / 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, help="Markdown file to write; the table goes to stdout in any case")
    arguments = parser.parse_args()
    import torch

    code = compiled("sm_" + "".join(map(str, torch.cuda.get_device_capability())))
    large, other = (torch.empty(2**31, dtype=torch.uint8, device="cuda") for _ in range(2))
    bandwidth = 2 * large.nbytes / seconds_of(lambda: other.copy_(large))
    del large, other
    lines = ["# Kernels for rows and elements on a GPU", "",
             f"`python3 {' '.join(sys.argv)}` on {torch.cuda.get_device_name()}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}. A copy "
             f"of 2 GiB moves {bandwidth / 1e12:.2f} TB/s, read and written.", "",
             "| kernel | us | its bytes at that rate, us | share of the rate |", "| --- | ---: | ---: | ---: |"]
    for name, size, launch in cases(Kernels(code)):
        taken, least = seconds_of(launch), size / bandwidth
        lines.append(f"| `{name}` | {taken * 1e6:.0f} | {least * 1e6:.0f} | {100 * least / taken:.0f} % |")
    publish("\n".join([*lines, ""]), arguments.out)


if __name__ == "__main__":
    main()
