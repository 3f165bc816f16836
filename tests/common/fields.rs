//! Fields as models have them, and how a pencil transpose cuts them into messages.

use netcdf_reader::NcFile;

/// A field of `extents` points, x fastest.
#[derive(Clone)]
pub struct Field {
    pub values: Vec<f32>,
    pub extents: [usize; 3],
}

impl Field {
    pub fn new(extents: [usize; 3], value: impl Fn(usize, usize, usize) -> f64) -> Self {
        let [nx, ny, nz] = extents;
        let mut values = Vec::with_capacity(nx * ny * nz);
        for z in 0..nz {
            for y in 0..ny {
                values.extend((0..nx).map(|x| value(x, y, z) as f32));
            }
        }
        Self { values, extents }
    }

    /// An ocean: temperatures that fall with depth and latitude, with waves and eddies upon them, and what
    /// was measured is a little rough.
    pub fn ocean(extents: [usize; 3]) -> Self {
        Self::new(extents, |x, y, z| {
            let (x, y, z) = (x as f64, y as f64, z as f64);
            let surface = 14.0 + 12.0 * (0.04 * y - 1.5).cos() + 1.5 * (0.11 * x + 0.05 * y).sin();
            let eddies = 0.3 * (0.31 * x - 0.12 * z).sin() * (0.27 * y).cos();
            let rough = (12.9898 * x + 78.233 * y + 37.719 * z).sin() * 43_758.547;
            3.7 + surface * (-0.12 * z).exp() + eddies + 0.02 * (rough - rough.floor())
        })
    }

    /// Land by a coast with bays and islands, the wider the deeper: whether a point is dry.
    pub fn land(extents: [usize; 3]) -> Vec<bool> {
        let dry = Self::new(extents, |x, y, z| {
            let (x, y) = (x as f64, y as f64);
            let height =
                (0.09 * x + 0.3).sin() + (0.13 * y).cos() + 0.6 * (0.45 * x - 0.4 * y).sin();
            f64::from(height + 0.03 * z as f64 > 0.7)
        });
        dry.values.iter().map(|&dry| dry > 0.0).collect()
    }

    /// A variable of a NetCDF classic file; of several time steps the first.
    pub fn of_netcdf(path: &str, variable: &str) -> Self {
        let file = NcFile::open(path).unwrap_or_else(|e| {
            panic!("{path} (libncarg-data and ferret-datasets bring it): {e:?}")
        });
        let array = file
            .read_variable::<f32>(variable)
            .expect("variable of f32");
        let mut extents: Vec<_> = array.shape().iter().rev().copied().collect();
        extents.resize(3.max(extents.len()), 1);
        let extents = [extents[0], extents[1], extents[2]];
        let mut values: Vec<f32> = array.iter().copied().collect();
        values.truncate(extents.iter().product());
        Self { values, extents }
    }
}

/// A transpose of a field that lies on ranks by y and is to lie on them by x.
pub struct Transpose {
    pub ranks: usize,
    /// Values from each rank to each, sender by sender.
    pub table: Vec<usize>,
    /// Where in the field each value of the messages lies.
    indices: Vec<usize>,
    /// Which of them stay where they are.
    own: Vec<bool>,
}

impl Transpose {
    pub fn new(extents: [usize; 3], ranks: usize) -> Self {
        let [nx, ny, nz] = extents;
        let part = |n: usize, rank: usize| n * rank / ranks..n * (rank + 1) / ranks;
        let (mut table, mut indices, mut own) = (vec![], vec![], vec![]);
        for from in 0..ranks {
            for to in 0..ranks {
                let before = indices.len();
                for z in 0..nz {
                    for y in part(ny, from) {
                        indices.extend(part(nx, to).map(|x| (z * ny + y) * nx + x));
                    }
                }
                table.push(indices.len() - before);
                own.resize(indices.len(), from == to);
            }
        }
        Self {
            ranks,
            table,
            indices,
            own,
        }
    }

    /// The messages of a field.
    pub fn cut<T: Copy>(&self, values: &[T]) -> Vec<T> {
        self.indices.iter().map(|&index| values[index]).collect()
    }

    /// Whether each value of the messages goes to another rank.
    pub fn travels(&self) -> impl Iterator<Item = bool> {
        self.own.iter().map(|own| !own)
    }
}
