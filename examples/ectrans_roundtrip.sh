#!/bin/sh
# Builds ectrans_roundtrip.F90, runs it plain and with several codecs, and prints one table of the errors.
#
#   examples/ectrans_roundtrip.sh [PROGRAM OPTIONS] [-- OPTIONS OF transpress run]
#
#   examples/ectrans_roundtrip.sh --round-trips 1
#   examples/ectrans_roundtrip.sh --levels 20 -- --layout '2c,41f,*;2c,40f,*'
#
# The options after -- go to every run but the plain one. From the environment:
#   CODECS      which rows, of plain, fp16, bf16 and zfp-RATE   [plain fp16 zfp-16 zfp-8]
#   RANKS       how many ranks                                  [4]
#   TRANSPRESS  the command                                     [the one that cargo built here, or in PATH]
#   MPIFC, MPIRUN   of Open MPI                                 [mpif90.openmpi, mpirun.openmpi]
#   BUILD       where the program and the logs go               [target/ectrans]
# Debian 12: apt-get install gfortran libopenmpi-dev libectrans-dev libfiat-dev
set -eu

die() { echo "ectrans_roundtrip.sh: $*" >&2; exit 1; }

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../target}
codecs=${CODECS:-plain fp16 zfp-16 zfp-8}
ranks=${RANKS:-4}
mpifc=${MPIFC:-mpif90.openmpi}
mpirun=${MPIRUN:-mpirun.openmpi}
build=${BUILD:-$target/ectrans}
transpress=${TRANSPRESS:-$target/release/transpress}
[ -x "$transpress" ] || transpress=$(command -v "$transpress" || command -v transpress) \
    || die "no transpress command: cargo build --release, or set TRANSPRESS"

# Before --: for the program. After it: for transpress run, which stay in "$@".
program_options=
while [ $# -gt 0 ]; do
    option=$1
    shift
    [ "$option" != -- ] || break
    program_options="$program_options $option"
done

# Debian keeps Fortran modules in a folder named after the compiler's module version, one folder per library,
# and the interfaces of ecTrans as headers.
architecture=$("$mpifc" -print-multiarch)
interfaces=/usr/include/$architecture/ectrans
[ -f "$interfaces/inv_trans.h" ] || die "no ecTrans: apt-get install libectrans-dev"
for modules in /usr/lib/"$architecture"/fortran/gfortran-mod-*; do
    [ ! -f "$modules/fiat/mpl_module.mod" ] || break
done
[ -f "$modules/fiat/mpl_module.mod" ] || die "no fiat: apt-get install libfiat-dev"

mkdir -p "$build"
"$mpifc" -O2 -J"$build" -I"$modules/parkind_sp" -I"$modules/fiat" -I"$interfaces" \
    -o "$build/ectrans_roundtrip" "$here/ectrans_roundtrip.F90" -ltrans_sp -lfiat -lparkind_sp

# In containers the tests run as root, with fewer cores than ranks.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

run() { # CODEC [OPTIONS OF transpress run]
    codec=$1
    shift
    case $codec in
    plain) set -- ;;
    zfp-*) set -- "$transpress" run --comms all --rate "${codec#zfp-}" --report off "$@" -- ;;
    *) set -- "$transpress" run --comms all --codec "$codec" --report off "$@" -- ;;
    esac
    # shellcheck disable=SC2086 # the options hold no spaces
    "$mpirun" --oversubscribe -n "$ranks" "$@" "$build/ectrans_roundtrip" $program_options
}

[ $# -eq 0 ] || echo "transpress run --comms all $*"
heading=yes
for codec in $codecs; do
    log=$build/$codec.log
    run "$codec" "$@" >"$log" 2>&1 || { cat "$log"; die "$codec: failed"; }
    if [ $heading ]; then
        sed -n 1p "$log"
        awk 'NR == 2 {
            printf "%-9s%11s  ", "", "round trips"
            for (i = 1; i <= NF; i++) printf "%14s", $i
            print "  s/round trip"
        }' "$log"
        heading=
    fi
    grep '^transpress' "$log" || true
    awk -v codec="$codec" '
        /^seconds per round trip/ { seconds = $NF }
        / round trips: error / { row[++rows] = $0 }
        END {
            for (r = 1; r <= rows; r++) {
                fields = split(row[r], field)
                printf "%-9s%11d  ", codec, field[1]
                for (i = 5; i <= fields; i++) printf "%14s", field[i]
                print r == 1 ? sprintf("%14.2f", seconds) : ""
            }
        }' "$log"
done
