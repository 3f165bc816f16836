//! Real fields from the Debian package `libncarg-data`, and what stands in for them without it.

use std::path::Path;

pub struct Real {
    pub name: &'static str,
    /// Where it comes from, for people.
    pub origin: String,
    pub extents: [usize; 3],
    pub values: Vec<f32>,
}

/// Raw temperature of a climate model: (time, level, latitude, longitude), both times on top of each other.
pub fn temperature() -> Real {
    load("T", "vinth2p.nc", "T", [128, 64, 36], [2, 2, 2])
}

/// Winds of a storm: (time, latitude, longitude). They change sign.
pub fn wind() -> Real {
    load("wind", "Ustorm.cdf", "u", [36, 33, 64], [6, 4, 2])
}

/// Reads a variable and tiles it `times` along each axis, so that it does not fit in the caches.
fn load(
    name: &'static str,
    file: &str,
    variable: &str,
    extents: [usize; 3],
    times: [usize; 3],
) -> Real {
    let path = Path::new("/usr/share/ncarg/data/cdf").join(file);
    let count = extents.iter().product();
    let (values, source) = match read_variable(&path, variable, count) {
        Some(values) => (values, format!("{variable} of {}", path.display())),
        None => (
            synthetic(extents),
            format!("SYNTHETIC, for want of {}", path.display()),
        ),
    };
    let tiled: [usize; 3] = std::array::from_fn(|axis| extents[axis] * times[axis]);
    let [nx, ny, nz] = extents;
    let mut all = Vec::with_capacity(tiled.iter().product());
    for z in 0..tiled[2] {
        for y in 0..tiled[1] {
            for x in 0..tiled[0] {
                all.push(values[x % nx + nx * (y % ny + ny * (z % nz))]);
            }
        }
    }
    Real {
        name,
        origin: format!("{name}: {source}, tiled to {tiled:?}, x fastest"),
        extents: tiled,
        values: all,
    }
}

fn synthetic([nx, ny, nz]: [usize; 3]) -> Vec<f32> {
    let mut values = Vec::new();
    for z in 0..nz {
        for y in 0..ny {
            for x in 0..nx {
                let (x, y, z) = (x as f32, y as f32, z as f32);
                let waves = (0.05 * x).sin() * 40.0 + (0.11 * y + 0.3 * x).cos() * 3.0;
                values.push(waves + 10.0 * (0.2 * z).sin() + (12.9 * x + 78.2 * y).sin() * 0.05);
            }
        }
    }
    values
}

/// The big-endian floats of a variable without record dimension in a NetCDF classic file.
fn read_variable(path: &Path, variable: &str, count: usize) -> Option<Vec<f32>> {
    let bytes = std::fs::read(path).ok()?;
    let mut header = Header {
        bytes: &bytes,
        at: 8,
    };
    (bytes.get(..4)? == b"CDF\x01").then_some(())?;
    let _dimensions = header.list(|header| {
        header.name()?;
        header.number()
    })?;
    header.attributes()?;
    let variables = header.list(|header| {
        let name = header.name()?;
        let axes = header.number()?;
        header.skip(4 * axes)?;
        header.attributes()?;
        let _kind = header.number()?;
        let _size = header.number()?;
        Some((name, header.number()?))
    })?;
    let (_, begin) = variables.into_iter().find(|(name, _)| name == variable)?;
    let values = bytes.get(begin..begin + 4 * count)?;
    let float = |bytes: &[u8]| f32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    Some(values.chunks_exact(4).map(float).collect())
}

struct Header<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Header<'_> {
    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.at = self.at.checked_add(bytes.next_multiple_of(4))?;
        Some(())
    }

    fn number(&mut self) -> Option<usize> {
        let bytes = self.bytes.get(self.at..self.at + 4)?;
        self.at += 4;
        Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize)
    }

    fn name(&mut self) -> Option<String> {
        let length = self.number()?;
        let name = self.bytes.get(self.at..self.at + length)?;
        let name = String::from_utf8(name.to_vec()).ok();
        self.skip(length)?;
        name
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let _tag = self.number()?;
        let count = self.number()?;
        (0..count).map(|_| item(self)).collect()
    }

    fn attributes(&mut self) -> Option<()> {
        self.list(|header| {
            header.name()?;
            let size = [0, 1, 1, 2, 4, 4, 8].get(header.number()?).copied()?;
            let count = header.number()?;
            header.skip(size * count)
        })?;
        Some(())
    }
}
