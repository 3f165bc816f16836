# The steps of a check, and the table. For tests/gpu/check.sh, which sets $folder and $scratch.

# Seconds that all steps have together.
readonly most_seconds=230

# row WHAT RESULT FIGURES: ok, FAILED, or why there is nothing to say.
row() {
  printf '%s\t%s\t%s\n' "$@" | tee -a "$scratch/table" | tr '\t' '|' | sed 's/|/ | /g'
}

# limited NAME SECONDS COMMAND...: what it says goes to $log.
limited() {
  local name=$1 limit=$2 left=$((most_seconds - SECONDS)) started=$SECONDS status
  shift 2
  log=$logs/${name//[^a-z0-9]/-}.log
  ((left > 0)) || { echo "no time left for this" >"$log"; return 124; }
  timeout --kill-after=5 $((limit < left ? limit : left)) "$@" </dev/null >"$log" 2>&1
  status=$?
  echo "-- $name: status $status after $((SECONDS - started)) s"
  ((status == 0)) || tail -n 12 "$log" | cut -c 1-300
  return $status
}

# A line of a log that may tell what went wrong.
last_line() { tail -n 1 "$log" | tr '\t' ' ' | cut -c 1-160; }

# Whether the library had to do without a GPU after all; $said is what it says then.
said_failure() { said=$(grep -m 1 'a GPU failed' "$log"); }

# benchmark NAME SECONDS ARGUMENTS...: the rows of benches/gpu.
benchmark() {
  local name=$1 status
  limited "$1" "$2" "$folder/bin/gpu" "${@:3}"
  status=$?
  while IFS= read -r line; do
    IFS=$'\t' read -r what result figures <<<"$line"
    row "$what" "$result" "$figures"
  done < <(grep -P '^[^\t]+\t(ok|FAILED|met|missed|not here)\t' "$log")
  if said_failure; then
    row "$name" FAILED "$said"
  elif ((status != 0)) && ! grep -q $'\tFAILED\t' "$log"; then
    row "$name" FAILED "status $status: $(last_line)"
  fi
}

info() {
  local status found
  limited info 30 "$folder/bin/transpress" info
  status=$?
  found=$(sed -n 's/^GPU  *//p' "$log")
  if ((status == 0)) && [[ -n $found && $found != none* ]]; then
    row info ok "$found"
  else
    row info FAILED "${found:-$(last_line)}"
  fi
}

# The time the driver takes for our PTX: without its cache, when that is filled, and from there.
loading() {
  local times=() status=0 disabled
  for disabled in 1 0 0; do
    limited "load ${#times[@]}" 30 env CUDA_CACHE_DISABLE=$disabled "$folder/bin/gpu" load || status=1
    times+=("$(grep $'^load the kernels\tok\t' "$log" | cut -f 3)")
  done
  if ((status == 0)); then
    row "load the kernels" ok "${times[0]} without the driver's cache, ${times[2]} from there"
  else
    row "load the kernels" FAILED "$(last_line)"
  fi
}

# All-to-alls of tests/gpu/buffers.c on as many ranks as are said, all on one GPU.
buffers() {
  local ranks=$1 engine=$2 checks failures on_gpu status started=$SECONDS
  limited "buffers $ranks $engine" 40 env TRANSPRESS_ENGINE="$engine" CHECK_F32=1e-3 CHECK_F64=1e-3 \
    "${launcher[@]}" -n "$ranks" "$folder/bin/transpress" run --comms all --layout '*' --report stderr -- \
    "$folder/bin/buffers"
  status=$?
  checks=$(grep -c '^ok ' "$log")
  failures=$(grep -c '^FAIL ' "$log")
  on_gpu=$(sed -n 's/^ *a GPU coded \([0-9]*\).*/\1/p' "$log" | sed -n 1p)
  local figures="$checks checks passed, $failures failed, ${on_gpu:-0} messages coded on the GPU, $((SECONDS - started)) s"
  if ((status != 0 || failures > 0)) || ! grep -q '^done$' "$log"; then
    row "$ranks ranks, $engine" FAILED "$figures, status $status: $(grep -m 1 '^FAIL ' "$log" || last_line)"
  elif said_failure || ((${on_gpu:-0} == 0)); then
    row "$ranks ranks, $engine" FAILED "$figures: $said"
  else
    row "$ranks ranks, $engine" ok "$figures"
  fi
}

# compute-sanitizer: the machine's own, which knows its driver, or else the one that was brought.
find_sanitizer() {
  command -v compute-sanitizer && return
  [[ -e $folder/sanitizer.tar.gz ]] && mkdir "$scratch/sanitizer" &&
    tar -xzf "$folder/sanitizer.tar.gz" -C "$scratch/sanitizer" && echo "$scratch/sanitizer/bin/compute-sanitizer"
}

sanitize() {
  local tool=$1 cases=$2 status summary
  if [[ -z $sanitizer_command ]]; then
    row "$tool" "not here" "no compute-sanitizer"
    return
  fi
  limited "$tool" 60 "$sanitizer_command" --tool "$tool" --error-exitcode 9 --report-api-errors no \
    "$folder/bin/gpu" identity --cases "$cases" --seconds 20 --seed 7
  status=$?
  summary=$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$log" | sed 's/^=* *//' | paste -s -d ' ')
  if grep -q 'Device not supported' "$log"; then
    row "$tool" "not here" "compute-sanitizer does not support the device"
  elif ((status == 0)) && [[ $summary == *SUMMARY:\ 0\ * ]]; then
    row "$tool" ok "$summary"
  else
    row "$tool" FAILED "${summary:-status $status: $(last_line)}"
  fi
}

# The table, and whether all went well.
table() {
  echo
  awk -F '\t' '{ printf "%-24s %-9s %s\n", $1, $2, $3 }' "$scratch/table"
  echo "$(grep -c $'\tok\t' "$scratch/table") ok, $(grep -c $'\tFAILED\t' "$scratch/table") failed, after $SECONDS s"
  ! grep -q $'\tFAILED\t' "$scratch/table"
}

# Where the loader finds no driver, it may lie where containers have it.
find_driver() {
  ldconfig -p 2>/dev/null | grep 'libcuda\.so\.1' >/dev/null && return
  local place
  for place in /usr/local/nvidia/lib64 /usr/lib/wsl/lib /usr/local/cuda/compat; do
    [[ -e $place/libcuda.so.1 ]] && export LD_LIBRARY_PATH=$place${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} && return
  done
  true
}

prepare() {
  [[ -x $folder/bin/gpu ]] || { echo "check: nothing in $folder: tests/gpu/check.sh build" >&2; return 1; }
  folder=$(realpath "$folder")
  logs=${GPU_CHECK_LOGS:-$scratch/logs}
  mkdir -p "$logs" && logs=$(realpath "$logs") || return
  # As the library is by itself, whatever the shell has.
  unset "${!TRANSPRESS_@}"
  export TRANSPRESS_LIBRARY=$folder/lib/libtranspress.so
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  # Shared by all steps: the driver takes its time for the kernels once.
  export CUDA_CACHE_PATH=$scratch/cache
  : >"$scratch/table"
  SECONDS=0
}

check() {
  prepare || return
  find_driver
  export LD_LIBRARY_PATH=$folder/mpi/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  # One machine: what looks for networks is left out.
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,sm,tcp
  launcher=("$folder/mpi/bin/mpirun" --oversubscribe)
  sanitizer_command=$(find_sanitizer)
  info
  loading
  benchmark identity 40 identity --cases 3000
  for ranks in 2 4; do
    for engine in collective pairwise; do buffers "$ranks" "$engine"; done
  done
  benchmark throughput 70 throughput --mib "${GPU_CHECK_MIB:-4096}" --cuzfp "$folder/lib/libcuzfp.so"
  sanitize memcheck 60
  sanitize racecheck 20
  table
}

rehearse() {
  prepare || return
  export LD_LIBRARY_PATH=$folder/driver FAKE_CUDA_KERNELS=$folder/driver/kernels.so
  launcher=(mpirun.openmpi --oversubscribe)
  sanitizer_command=
  info
  loading
  benchmark identity 40 identity --cases 100
  buffers 2 collective
  buffers 4 pairwise
  benchmark throughput 40 throughput --mib 1 --runs 1
  sanitize memcheck 60
  sanitize racecheck 20
  table
}
