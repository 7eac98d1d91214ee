# SPDX-License-Identifier: Apache-2.0
"""The GPU measurements of bench-gpu with PyTorch on the same GPU: matrix products, and eager training steps of two
models."""
import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    print("SKIPPED: PyTorch is not installed here")
    sys.exit(0)
if not torch.cuda.is_available():
    print("SKIPPED: PyTorch sees no GPU here")
    sys.exit(0)

SIDE = int(sys.argv[1]) if len(sys.argv) > 1 else 8192
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def time_of(once, rounds=5, calls=50):
    """Returns the seconds per call of the best round."""
    best = float("inf")
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            once()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def product(dtype):
    a = torch.zeros(SIDE, SIDE, dtype=dtype, device="cuda")
    b = torch.zeros(SIDE, SIDE, dtype=dtype, device="cuda")
    out = torch.empty(SIDE, SIDE, dtype=dtype, device="cuda")
    return 2 * SIDE**3 / time_of(lambda: torch.mm(a, b, out=out), calls=10) / 1e12


def step_of(model, shape, batch):
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    x, y = torch.zeros(batch, *shape, device="cuda"), torch.zeros(batch, dtype=torch.long, device="cuda")

    def step():
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()

    return time_of(step, calls=200)


LENET = nn.Sequential(
    nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(),
    nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 1024), nn.ReLU(), nn.Linear(1024, 10))
MLP = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))

print(f"PyTorch {torch.__version__}: {torch.cuda.get_device_name()}")
print(f"{'float product':44} {product(torch.float32):10.1f} TFLOP/s")
print(f"{'bfloat16 product':44} {product(torch.bfloat16):10.1f} TFLOP/s")
print(f"{'LeNet, batch 256':44} {256 / step_of(LENET, (1, 28, 28), 256):10.1f} images/s")
print(f"{'784-128-10, batch 32':44} {1 / step_of(MLP, (784,), 32):10.1f} steps/s")
