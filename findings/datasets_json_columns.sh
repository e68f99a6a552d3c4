#!/usr/bin/env bash
# datasets 5.2.0 with pandas 3.1.1: a column whose values have several types becomes of type Json, and its values change silently.
# Right answers of a data set are such a column as soon as some are numbers and others text.
#   numbers are rounded to ten decimals          3.141592653589793 -> 3.1415926536, 1e-11 -> 0.0
#   texts that look like JSON lose their type    "007" -> 7, "1.50" -> 1.5, "true" -> True, "null" -> None, "[1, 2]" -> [1, 2]
#   a text of 21 digits is read modulo 2**64     "123456789012345678901" -> 12776324570088369205
# Expected: every value comes back as it was given, or an error.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check datasets==5.2.0 pandas==3.1.1 pyarrow==25.0.1
HF_HOME="$folder/hub" HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - "$folder" 2>/dev/null <<'PYTHON'
import json
import sys
from importlib.metadata import version

import datasets

print("datasets", version("datasets"), "pandas", version("pandas"))
SEEN = {  # answer: what version 5.2.0 gives back
    "x + 1": "x + 1",
    3.141592653589793: 3.1415926536,
    1e-11: 0.0,
    "007": 7,
    "1.50": 1.5,
    "true": True,
    "null": None,
    "[1, 2]": [1, 2],
    "123456789012345678901": 12776324570088369205,
}
path = f"{sys.argv[1]}/answers.jsonl"
with open(path, "w") as file:
    file.writelines(json.dumps({"answer": one}) + "\n" for one in SEEN)
loaded = datasets.load_dataset("json", data_files=path, split="train", cache_dir=f"{sys.argv[1]}/cache")
as_written = True
for given, row in zip(SEEN, loaded, strict=True):
    found = row["answer"]
    as_written &= found == SEEN[given] and type(found) is type(SEEN[given])
    print(f"{given!r} comes back as {found!r}; expected {given!r}")
sys.exit(not as_written)
PYTHON
