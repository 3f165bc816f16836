//! A program as the kernel sees it: where it is, and what starts it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Why a program cannot be started.
#[derive(Debug, PartialEq, Eq)]
pub enum Missing {
    NotFound,
    /// Something of that name is there, but it is a directory, or may not be executed.
    NotExecutable(PathBuf),
}

/// Finds a program as a shell does: a name with a slash is a path, any other is sought on `PATH`.
pub fn find(name: &OsStr) -> Result<PathBuf, Missing> {
    if name.as_bytes().contains(&b'/') {
        return check(PathBuf::from(name));
    }
    let mut result = Err(Missing::NotFound);
    // Without a PATH, execvp looks here.
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    for directory in std::env::split_paths(&path) {
        match check(directory.join(name)) {
            Ok(found) if !name.is_empty() => return Ok(found),
            Err(found @ Missing::NotExecutable(_)) if found.is_file() => result = Err(found),
            _ => {}
        }
    }
    result
}

impl Missing {
    fn is_file(&self) -> bool {
        matches!(self, Self::NotExecutable(path) if path.is_file())
    }
}

fn check(path: PathBuf) -> Result<PathBuf, Missing> {
    if !path.exists() {
        return Err(Missing::NotFound);
    }
    if !path.is_file() || !is_executable(&path) {
        return Err(Missing::NotExecutable(path));
    }
    Ok(path)
}

fn is_executable(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: `path` is a C string that outlives the call.
    unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
}

/// Whether the kernel gives the program rights that this process lacks. The dynamic loader then
/// ignores the preload.
pub fn gains_rights(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else {
        return false;
    };
    // SAFETY: these two calls have no preconditions and cannot fail.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let mode = metadata.mode();
    (mode & libc::S_ISUID != 0 && metadata.uid() != user)
        || (mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0 && metadata.gid() != group)
}

/// What the kernel does with a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Format {
    /// Starts the dynamic loader named in it.
    Dynamic { loader: PathBuf },
    /// Runs it without a loader, so nothing can be preloaded.
    Static,
    /// Starts the interpreter behind its `#!`.
    Script { interpreter: String },
    /// A program, but of another word size or machine.
    Foreign,
    /// Not a program.
    Other,
}

/// Reads the beginning of a file. A truncated program is `Other`.
pub fn format(path: &Path) -> std::io::Result<Format> {
    let file = File::open(path)?;
    let mut start = Vec::new();
    (&file).take(512).read_to_end(&mut start)?;
    if let Some(line) = start.strip_prefix(b"#!") {
        let line = line.split(|&b| b == b'\n').next().unwrap_or_default();
        return Ok(Format::Script {
            interpreter: String::from_utf8_lossy(line).trim().into(),
        });
    }
    Ok(elf(&file, &start).unwrap_or(Format::Other))
}

/// An ELF file of this machine's word size and byte order; see elf(5) for the offsets.
fn elf(file: &File, header: &[u8]) -> Option<Format> {
    const CLASS_64: u8 = 2;
    const DATA: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };
    const PT_INTERP: u32 = 3;
    /// Longest path that Linux takes.
    const PATH_MAX: u64 = 4096;

    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    if header.get(4..6)? != [CLASS_64, DATA] || u16_at(header, 18)? != machine() {
        return Some(Format::Foreign);
    }
    let table = u64_at(header, 32)?;
    let entry_size = u16_at(header, 54)?;
    let entries = u16_at(header, 56)?;
    for index in 0..u64::from(entries) {
        let mut entry = [0; 56];
        let at = table.checked_add(index * u64::from(entry_size))?;
        file.read_exact_at(&mut entry, at).ok()?;
        if u32_at(&entry, 0)? == PT_INTERP {
            let size = u64_at(&entry, 32).filter(|&size| size <= PATH_MAX)?;
            let mut path = vec![0; usize::try_from(size).ok()?];
            file.read_exact_at(&mut path, u64_at(&entry, 8)?).ok()?;
            path.truncate(path.iter().position(|&b| b == 0)?);
            return Some(Format::Dynamic {
                loader: OsString::from_vec(path).into(),
            });
        }
    }
    Some(Format::Static)
}

/// The ELF number of the machine this was built for.
fn machine() -> u16 {
    match std::env::consts::ARCH {
        "x86_64" => 62,
        "aarch64" => 183,
        "riscv64" => 243,
        "powerpc64" => 21,
        _ => 0,
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_like_in_a_shell() {
        assert!(find("sh".as_ref()).unwrap().is_absolute());
        assert_eq!(find("/bin/sh".as_ref()), Ok("/bin/sh".into()));
        assert_eq!(find("no-such-program".as_ref()), Err(Missing::NotFound));
        assert_eq!(find("".as_ref()), Err(Missing::NotFound));
        assert_eq!(find("/no/such".as_ref()), Err(Missing::NotFound));
        for there in ["/etc/passwd", "/etc"] {
            let expected = Err(Missing::NotExecutable(there.into()));
            assert_eq!(find(there.as_ref()), expected);
        }
    }

    #[test]
    fn formats() {
        let of = |bytes: &[u8]| {
            let directory = tempdir();
            let path = directory.join("program");
            std::fs::write(&path, bytes).unwrap();
            let format = format(&path).unwrap();
            std::fs::remove_dir_all(directory).unwrap();
            format
        };
        let script = |interpreter: &str| Format::Script {
            interpreter: interpreter.into(),
        };
        assert_eq!(of(b"#!/bin/sh -e\ntrue\n"), script("/bin/sh -e"));
        assert_eq!(
            of(b"#! /usr/bin/env python3"),
            script("/usr/bin/env python3")
        );
        assert_eq!(of(b"#!"), script(""));
        assert_eq!(of(b""), Format::Other);
        assert_eq!(of(b"print('no program')"), Format::Other);

        let shell = std::fs::read("/bin/sh").unwrap();
        assert!(matches!(of(&shell), Format::Dynamic { loader } if loader.is_file()));
        assert_eq!(of(&shell[..60]), Format::Other);
        let mut small = shell.clone();
        small[4] = 1;
        assert_eq!(of(&small), Format::Foreign);
        // A program header table of no entries: nobody starts a loader.
        let mut still = shell;
        still[56..58].fill(0);
        assert_eq!(of(&still), Format::Static);
    }

    fn tempdir() -> PathBuf {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let path = std::env::temp_dir().join(format!(
            "transpress-program-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        std::fs::create_dir(&path).unwrap();
        path
    }
}
