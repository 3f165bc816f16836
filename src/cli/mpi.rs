//! The MPI that a program is linked with, as its dynamic loader sees it. The program is not started.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::probe;

/// An MPI library that a program needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Linked {
    /// As the program asks for it: `libmpi.so.40`.
    pub name: String,
    /// The file it gets; `None` where the loader finds none.
    pub file: Option<PathBuf>,
}

/// The MPI libraries among all that the program's loader would load.
pub fn linked(loader: &Path, program: &Path) -> Result<Vec<Linked>, String> {
    let listing = list(loader, program)?;
    Ok(listing
        .lines()
        .filter_map(parse_line)
        .filter(|library| is_mpi(&library.name))
        .collect())
}

/// The loader's own list. glibc's answers to a variable, and so lists missing libraries too; any
/// other loader might not know the variable and run the program, so it gets the option (musl's).
fn list(loader: &Path, program: &Path) -> Result<String, String> {
    const GLIBC: [&str; 2] = ["ld-linux", "ld64.so"];
    let name = loader.file_name().unwrap_or_default().as_encoded_bytes();
    let mut command = Command::new(loader);
    if GLIBC.iter().any(|glibc| name.starts_with(glibc.as_bytes())) {
        command.env("LD_TRACE_LOADED_OBJECTS", "1");
    } else {
        command.arg("--list");
    }
    let output = command
        .arg(program)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", loader.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `name => /path (0x7f...)`, or `name => not found`. Lines without an arrow are the loader itself
/// and libraries asked for by path, as preloads are.
fn parse_line(line: &str) -> Option<Linked> {
    let line = line.trim();
    let (name, file) = line.split_once(" => ").unwrap_or((line, line));
    let file = file
        .rsplit_once(" (0x")
        .map(|(path, _)| PathBuf::from(path));
    let name = name.rsplit_once(" (0x").map_or(name, |(path, _)| path);
    Some(Linked {
        name: Path::new(name).file_name()?.to_str()?.into(),
        file,
    })
}

/// Whether a file name is that of an MPI's C library; its Fortran and C++ bindings are not.
fn is_mpi(name: &str) -> bool {
    const NAMES: [&str; 3] = ["libmpi", "libmpich", "libmpi_abi"];
    /// Cray's libraries bear the compiler's name.
    const CRAY: [&str; 6] = ["cray", "gnu", "intel", "nvidia", "amd", "aocc"];
    let Some((stem, _)) = name.split_once(".so") else {
        return false;
    };
    NAMES.contains(&stem)
        || stem.strip_prefix("libmpi_").is_some_and(|rest| {
            CRAY.iter().any(|compiler| {
                rest.strip_prefix(compiler).is_some_and(|version| {
                    version
                        .bytes()
                        .all(|b| b.is_ascii_digit() || b == b'_' || b == b'.')
                })
            })
        })
}

/// What an MPI library says of itself, made short; `None` where it cannot be loaded or says nothing.
pub fn version(library: &Path) -> Option<String> {
    let text = probe::ask(&["mpi".as_ref(), library.as_os_str()])?;
    let text = shorten(&text);
    (!text.is_empty()).then_some(text)
}

/// The first line, as far as the first comma: MPIs go on with dates, devices and compiler options.
fn shorten(text: &str) -> String {
    let start = text.trim().split(['\n', ',']).next().unwrap_or_default();
    let words = start.split_whitespace();
    words
        .filter(|word| !matches!(*word, "Version:" | "Version" | ":"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The kind of MPI, by its version string, or by its name where it did not say one.
pub fn family(name: &str, version: Option<&str>) -> &'static str {
    const KNOWN: [(&str, &str); 5] = [
        ("Open MPI", "Open MPI"),
        ("Intel", "Intel MPI (MPICH family)"),
        ("CRAY", "Cray MPICH (MPICH family)"),
        ("MVAPICH", "MVAPICH (MPICH family)"),
        ("MPICH", "MPICH (MPICH family)"),
    ];
    if name.starts_with("libmpi_abi") {
        return "MPI 5 standard ABI";
    }
    let said = version.unwrap_or_default();
    if let Some((_, family)) = KNOWN.iter().find(|(mark, _)| said.contains(mark)) {
        return family;
    }
    match name {
        // The MPICH family keeps to number 12 by agreement; Open MPI has had 20 and 40.
        _ if name.ends_with(".so.12") => "MPICH family",
        _ if name.ends_with(".so.40") || name.ends_with(".so.20") => "Open MPI",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_loader() {
        let linked = |name: &str, file: Option<&str>| {
            Some(Linked {
                name: name.into(),
                file: file.map(Into::into),
            })
        };
        for (line, expected) in [
            (
                "\tlibmpi.so.40 => /opt/my mpi/libmpi.so.40 (0x00007f)",
                linked("libmpi.so.40", Some("/opt/my mpi/libmpi.so.40")),
            ),
            ("\tlibmpi.so.12 => not found", linked("libmpi.so.12", None)),
            (
                "\t/opt/libmpich.so.12 (0x00007f)",
                linked("libmpich.so.12", Some("/opt/libmpich.so.12")),
            ),
        ] {
            assert_eq!(parse_line(line), expected);
        }
    }

    #[test]
    fn the_c_libraries_only() {
        for name in [
            "libmpi.so.40",
            "libmpi.so.12",
            "libmpich.so.12",
            "libmpi_abi.so.1",
            "libmpi_cray.so.12",
            "libmpi_gnu_123.so.12",
        ] {
            assert!(is_mpi(name), "{name}");
        }
        for name in [
            "libmpi_mpifh.so.40",
            "libmpi_cxx.so.40",
            "libmpi_usempif08.so.40",
            "libmpichfort.so.12",
            "libmpifort.so.12",
            "libmpi.a",
            "libm.so.6",
        ] {
            assert!(!is_mpi(name), "{name}");
        }
    }

    #[test]
    fn version_strings() {
        for (text, short, known) in [
            (
                "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4",
                "Open MPI v4.1.4",
                "Open MPI",
            ),
            (
                "MPICH Version:\t4.0.2\nMPICH Release date:\tThu\n",
                "MPICH 4.0.2",
                "MPICH (MPICH family)",
            ),
            (
                "Intel(R) MPI Library 2021.11 for Linux* OS\n",
                "Intel(R) MPI Library 2021.11 for Linux* OS",
                "Intel MPI (MPICH family)",
            ),
            (
                "MVAPICH2 Version      :\t2.3.7\n",
                "MVAPICH2 2.3.7",
                "MVAPICH (MPICH family)",
            ),
        ] {
            assert_eq!(shorten(text), short);
            assert_eq!(family("libmpi.so", Some(text)), known);
        }
        assert_eq!(family("libmpi.so.12", None), "MPICH family");
        assert_eq!(family("libmpi.so.40", None), "Open MPI");
        assert_eq!(
            family("libmpi_abi.so.1", Some("MPICH")),
            "MPI 5 standard ABI"
        );
    }
}
