#!/usr/bin/env bash
# Fetches into a folder the packages whose APIs, options and flags the registry of names has, for `make names`. Wheels are
# only read, never installed, so any platform will do: those of aarch64 are the smaller ones where there are two.
set -euo pipefail
folder="$1"
mkdir -p "$folder"

fetch() {  # package, version of Python, platform
    "$BIN/pip" download -q --no-deps --only-binary :all: --implementation cp --python-version "$2" --platform "$3" \
        --dest "$folder" "$1"
}

fetch verl==0.9.1 3.11 any
fetch transformers==5.23.0 3.11 any
fetch torchdata==0.11.0 3.11 any
fetch torch==2.9.1 3.11 manylinux_2_28_aarch64
fetch torch-npu==2.14.0 3.11 manylinux_2_28_x86_64
fetch megatron-core==0.19.2 3.12 manylinux_2_28_x86_64
fetch vllm==0.33.0 3.12 manylinux_2_28_aarch64
fetch vllm-ascend==0.23.0 3.11 manylinux_2_34_aarch64
