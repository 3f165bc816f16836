//! The stand-in for CUDA's driver (tests/gpu/fake), built by the system's compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use super::{ROOT, Run, SCRATCH, files_below, modified, one_at_a_time};

/// The driver of CUDA 12.4.
pub const CURRENT: u32 = 12040;

/// The folder with a `libcuda.so.1` of this version: what came later is not in it.
pub fn driver(version: u32) -> PathBuf {
    let folder = Path::new(SCRATCH).join(format!("fake-cuda-{version}"));
    let mut sources = files();
    sources.retain(|path| path.extension().is_some_and(|ending| ending == "cpp"));
    let mut command = Command::new("c++");
    command
        .args("-std=c++17 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -shared -fPIC".split(' '))
        .arg("-Wl,-soname,libcuda.so.1")
        .arg(format!("-DFAKE_CUDA_VERSION={version}"))
        .args(sources)
        .args(["-ldl", "-lpthread"]);
    compile(command, &folder.join("libcuda.so.1"), &files());
    folder
}

/// The kernels for tests of the driver layer.
pub fn kernels() -> PathBuf {
    let object = Path::new(SCRATCH).join("fake-cuda-kernels/kernels.so");
    let mut command = Command::new("cc");
    command
        .args("-std=c11 -O1 -g -Wall -Wextra -Werror -shared -fPIC".split(' '))
        .arg(fake().join("kernels.c"));
    compile(command, &object, &files());
    object
}

/// Has a program that includes "cuda.h" linked with the driver.
pub(super) fn link(command: &mut Command) {
    command.arg("-I").arg(fake()).arg("-L").arg(driver(CURRENT));
    command.arg("-l:libcuda.so.1");
}

impl Run {
    /// With the stand-in for CUDA where the program looks for `libcuda.so.1`.
    pub fn with_fake_cuda(self) -> Self {
        self.env("LD_LIBRARY_PATH", driver(CURRENT).display())
    }
}

/// A name for `FAKE_CUDA_LOG`, where nothing is yet.
pub fn log_file(name: &str) -> PathBuf {
    let name = format!("fake-cuda-{}-{name}.log", std::process::id());
    let file = Path::new(SCRATCH).join(name);
    let _ = fs::remove_file(&file);
    file
}

/// The lines of such a file, of all processes; then it is gone.
pub fn read_log(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let _ = fs::remove_file(file);
    text.lines().map(str::to_owned).collect()
}

fn fake() -> PathBuf {
    Path::new(ROOT).join("tests/gpu/fake")
}

fn files() -> Vec<PathBuf> {
    let mut sources = vec![];
    files_below(&fake(), &mut sources);
    sources
}

/// Runs the compiler where an input is newer than what it is to make.
fn compile(mut command: Command, object: &Path, inputs: &[PathBuf]) {
    static COMPILING: Mutex<()> = Mutex::new(());
    let _one = one_at_a_time(&COMPILING);
    let newest = inputs.iter().filter_map(|path| modified(path)).max();
    if object.exists() && modified(object) >= newest {
        return;
    }
    fs::create_dir_all(object.parent().expect("folder")).expect("scratch folder");
    // Tests run side by side in several processes: nobody may find half an object.
    let part = object.with_extension(format!("part-{}", std::process::id()));
    let output = command.arg("-o").arg(&part).output().expect("compiler");
    assert!(
        output.status.success(),
        "{command:?}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    fs::rename(part, object).expect("the object");
}

/// The kernels of the library, compiled for this machine.
pub fn emulated_kernels() -> PathBuf {
    let object = Path::new(SCRATCH).join("emulated-kernels/kernels.so");
    let source = Path::new(ROOT).join("src/codec/cuda/kernels");
    let emulation = Path::new(ROOT).join("tests/gpu/emulation");
    let mut inputs = vec![];
    files_below(&source, &mut inputs);
    files_below(&emulation, &mut inputs);
    let mut command = Command::new("c++");
    command
        .args("-std=c++14 -O2 -shared -fPIC -ffp-contract=off -Wno-unknown-pragmas".split(' '))
        .arg("-I")
        .arg(source)
        .arg(emulation.join("emulate.cpp"));
    compile(command, &object, &inputs);
    object
}

impl Run {
    /// With the stand-in for CUDA, which runs the library's kernels.
    pub fn with_fake_gpu(self) -> Self {
        let kernels = emulated_kernels();
        self.with_fake_cuda()
            .env("FAKE_CUDA_KERNELS", kernels.display())
    }
}
