#!/usr/bin/env bash
# numba 0.65.0: a function compiled with cache=True computes other last digits in the process that compiles it than in
# every later process, which reads its code from the cache, although both run on one processor with one input.
# Three functions that call each other, with fastmath flags that allow sums in another order: an RMS norm and a product
# of it, as a model's layer has them. A first run of a study therefore differs from its repetition.
# Expected: three processes print one digest.  Seen: the first prints one, the second and third another.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numba==0.65.0 llvmlite==0.47.0 numpy==2.3.5
cat > "$folder/layer.py" <<'PYTHON'
import hashlib

import numba
import numpy as np

compiled = numba.njit(cache=True, fastmath={"reassoc", "contract", "arcp", "nsz"}, error_model="numpy")


@compiled
def square_sums(x, total):
    for column in range(x.shape[1]):
        total[column] = np.float32(0)
    for row in range(x.shape[0]):
        for column in range(x.shape[1]):
            total[column] += x[row, column] * x[row, column]


@compiled
def rms_norm(x, weight, total, y):
    square_sums(x, total)
    for column in range(x.shape[1]):
        total[column] = np.float32(1) / np.sqrt(total[column] / np.float32(x.shape[0]) + np.float32(1e-6))
    for row in range(x.shape[0]):
        for column in range(x.shape[1]):
            y[row, column] = x[row, column] * total[column] * weight[row]


@compiled
def layer(x, weight, total, y, z):
    rms_norm(x, weight, total, y)
    for column in range(x.shape[1]):
        found = np.float32(0)
        for row in range(x.shape[0]):
            found += y[row, column] * x[row, column] * np.float32(0.37) + x[row, column]
        z[column] = found


rng = np.random.default_rng(0)
x, weight = rng.standard_normal((64, 32)).astype("f4"), rng.standard_normal(64).astype("f4")
y, z, total = np.empty_like(x), np.empty(32, "f4"), np.empty(32, "f4")
layer(x, weight, total, y, z)
print(hashlib.sha256(y.tobytes() + z.tobytes()).hexdigest()[:16])
PYTHON
found=()
for number in 1 2 3; do
  found+=("$("$folder/venv/bin/python" "$folder/layer.py")")
  echo "numba 0.65.0, process $number: ${found[-1]}"
done
[ "${found[0]}" != "${found[1]}" ] && [ "${found[1]}" = "${found[2]}" ]
