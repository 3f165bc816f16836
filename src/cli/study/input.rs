//! Fields from files: NetCDF, or raw values whose shape the user gives.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::netcdf::NetCdf;
use crate::codec::{Element, Float};

/// One variable, read.
pub struct Field {
    pub name: String,
    pub units: Option<String>,
    /// Names and extents, fastest first.
    pub axes: Vec<(String, usize)>,
    /// Values that the file calls missing.
    pub missing: Vec<f64>,
    pub values: Values,
}

pub enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Field {
    pub fn shape(&self) -> Vec<usize> {
        self.axes.iter().map(|axis| axis.1).collect()
    }
}

/// A file that was opened.
pub enum Source {
    NetCdf(NetCdf),
    Raw(PathBuf, Raw),
}

/// How to read a file that does not say what it holds.
pub struct Raw {
    /// Fastest first.
    shape: Vec<usize>,
    element: Element,
}

/// The first bytes of a NetCDF file: classic in its three versions, and NetCDF-4.
const MAGICS: [&[u8]; 4] = [b"CDF\x01", b"CDF\x02", b"CDF\x05", b"\x89HDF"];

impl Source {
    pub fn open(path: &Path, raw: Option<Raw>) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = File::open(path).map_err(said)?;
        if !file.metadata().map_err(said)?.is_file() {
            return Err(format!("{}: not a file", path.display()));
        }
        let mut head = Vec::new();
        file.by_ref().take(4).read_to_end(&mut head).map_err(said)?;
        match (raw, MAGICS.contains(&head.as_slice())) {
            (None, true) => NetCdf::open(path).map(Self::NetCdf),
            (Some(raw), false) => Ok(Self::Raw(path.into(), raw)),
            (None, false) if head.is_empty() => Err(format!("{}: an empty file", path.display())),
            (None, false) => Err(format!(
                "{}: not a NetCDF file; for raw values give --shape (and --type)",
                path.display()
            )),
            (Some(_), true) => Err(format!(
                "{}: a NetCDF file, which says its shapes itself; --shape and --type are for raw values",
                path.display()
            )),
        }
    }

    pub fn format(&self) -> String {
        match self {
            Self::NetCdf(file) => file.format().into(),
            Self::Raw(_, raw) => format!("raw {}", raw.element.as_str()),
        }
    }

    /// The variables to look at: those named, or all that are worth it.
    pub fn select(&self, names: &[String]) -> Result<Vec<String>, String> {
        match self {
            Self::NetCdf(file) => file.select(names),
            Self::Raw(path, _) => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                Ok(vec![name.to_string_lossy().into_owned()])
            }
        }
    }

    pub fn read(&mut self, name: &str) -> Result<Field, String> {
        match self {
            Self::NetCdf(file) => file.read(name),
            Self::Raw(path, raw) => raw.read(path, name),
        }
    }
}

impl Raw {
    pub fn parse(shape: &str, element: Option<&str>) -> Result<Self, String> {
        let extent = |text: &str| {
            let is_number = text.bytes().all(|b| b.is_ascii_digit());
            text.parse()
                .ok()
                .filter(|&extent: &usize| is_number && extent > 0)
        };
        let extents: Option<Vec<usize>> =
            shape.split(',').map(|text| extent(text.trim())).collect();
        Ok(Self {
            shape: extents.ok_or_else(|| {
                format!(
                    "--shape {shape}: accepted are positive extents, fastest first (256,128,64)"
                )
            })?,
            element: match element {
                None | Some("f32") => Element::F32,
                Some("f64") => Element::F64,
                Some(other) => return Err(format!("--type {other}: accepted is f32 or f64")),
            },
        })
    }

    fn read(&self, path: &Path, name: &str) -> Result<Field, String> {
        let said = |error: std::io::Error| format!("{}: {error}", path.display());
        // Looked at before it is read: a wrong shape need not cost a read of everything.
        let length = path.metadata().map_err(said)?.len();
        self.check(length)
            .map_err(|line| format!("{}: {line}", path.display()))?;
        let bytes = std::fs::read(path).map_err(said)?;
        self.check(bytes.len() as u64)
            .map_err(|line| format!("{}: {line}", path.display()))?;
        let axis_name = |index: usize| match ["x", "y", "z"].get(index) {
            Some(name) => (*name).into(),
            None => format!("axis {}", index + 1),
        };
        let axes = self.shape.iter().enumerate();
        Ok(Field {
            name: name.into(),
            units: None,
            axes: axes
                .map(|(index, &extent)| (axis_name(index), extent))
                .collect(),
            missing: Vec::new(),
            values: match self.element {
                Element::F32 => Values::F32(from_le(bytes.as_chunks().0, |word| {
                    u32::from_le_bytes(word).into()
                })),
                Element::F64 => Values::F64(from_le(bytes.as_chunks().0, u64::from_le_bytes)),
            },
        })
    }

    /// Whether a file of this length has this shape.
    fn check(&self, length: u64) -> Result<(), String> {
        let width = self.element.bytes() as u64;
        let mut extents = self.shape.iter().map(|&extent| extent as u64);
        let needed = extents.try_fold(width, |product, extent| product.checked_mul(extent));
        if needed == Some(length) {
            return Ok(());
        }
        let shape: Vec<_> = self.shape.iter().map(usize::to_string).collect();
        let needs = match needed {
            Some(bytes) => format!("{bytes} bytes"),
            None => "more bytes than can be counted".into(),
        };
        Err(format!(
            "--shape {} of {} needs {needs}, and the file has {length}",
            shape.join(","),
            self.element.as_str()
        ))
    }
}

fn from_le<T: Float, const BYTES: usize>(
    words: &[[u8; BYTES]],
    bits: impl Fn([u8; BYTES]) -> u64,
) -> Vec<T> {
    words.iter().map(|&word| T::from_bits(bits(word))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_types_that_mean_nothing_are_refused() {
        for shape in ["", "0,4", "4,", "-4,4", "4x4", "+4", "99999999999999999999"] {
            assert!(Raw::parse(shape, None).is_err(), "{shape}");
        }
        assert!(Raw::parse("4,4", Some("f16")).is_err());
    }

    #[test]
    fn a_shape_must_make_up_the_length() {
        let raw = |shape: &str| Raw::parse(shape, Some("f64")).unwrap();
        assert_eq!(raw("4, 5").check(160), Ok(()));
        assert!(raw("4,5").check(161).is_err());
        let huge = raw("4294967296,4294967296,16");
        assert!(huge.check(0).unwrap_err().contains("more bytes than"));
    }
}
