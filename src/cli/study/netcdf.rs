//! NetCDF files, classic and NetCDF-4, read without a C library.

use std::path::{Path, PathBuf};

use netcdf_reader::{Error, NcFile, NcFormat, NcGroup, NcOpenOptions, NcType, NcVariable};

use super::input::{Field, Values};

/// Variables with fewer values are not looked at unless they are named.
const FEWEST: u64 = 4096;
/// Names in an error message, at most.
const MOST_NAMES: usize = 20;

/// A NetCDF-4 variable that claims more is not read: a few bytes of a damaged file can claim anything.
const MOST_BYTES: usize = 1 << 34;

pub struct NetCdf {
    path: PathBuf,
    file: NcFile,
}

impl NetCdf {
    pub fn open(path: &Path) -> Result<Self, String> {
        let options = NcOpenOptions {
            max_read_bytes: MOST_BYTES,
            ..NcOpenOptions::default()
        };
        let file = NcFile::open_with_options(path, options).map_err(|error| match error {
            Error::Io(error) => format!("{}: {error}", path.display()),
            _ => format!("{}: damaged or cut short: {error}", path.display()),
        })?;
        Ok(Self {
            path: path.into(),
            file,
        })
    }

    pub fn format(&self) -> &'static str {
        match self.file.format() {
            NcFormat::Classic => "NetCDF classic",
            NcFormat::Offset64 => "NetCDF classic, 64-bit offsets",
            NcFormat::Cdf5 => "NetCDF classic, 64-bit data",
            NcFormat::Nc4 | NcFormat::Nc4Classic => "NetCDF-4",
        }
    }

    fn blame(&self, what: impl std::fmt::Display) -> String {
        format!("{}: {what}", self.path.display())
    }

    /// Every variable, with the path of its group before its name.
    fn all(&self) -> Result<Vec<(String, &NcVariable)>, String> {
        fn collect<'a>(group: &'a NcGroup, path: &str, found: &mut Vec<(String, &'a NcVariable)>) {
            let variables = group.variables.iter();
            found.extend(variables.map(|variable| (format!("{path}{}", variable.name), variable)));
            for inner in &group.groups {
                collect(inner, &format!("{path}{}/", inner.name), found);
            }
        }
        let root = self.file.root_group();
        let root =
            root.map_err(|error| self.blame(format_args!("damaged or cut short: {error}")))?;
        let mut found = Vec::new();
        collect(root, "", &mut found);
        Ok(found)
    }

    pub fn select(&self, names: &[String]) -> Result<Vec<String>, String> {
        let all = self.all()?;
        let there_are = || {
            let listed = all.iter().take(MOST_NAMES).map(|(name, variable)| {
                let shape: Vec<_> = variable.shape().iter().map(u64::to_string).collect();
                format!(
                    "{name} ({} {})",
                    type_name(&variable.dtype),
                    shape.join("x")
                )
            });
            let listed: Vec<_> = listed.collect();
            match (listed.is_empty(), all.len() > MOST_NAMES) {
                (true, _) => "it has no variables".into(),
                (_, true) => format!("there are {}, ...", listed.join(", ")),
                (_, false) => format!("there are {}", listed.join(", ")),
            }
        };
        if let Some(missing) = names
            .iter()
            .find(|name| all.iter().all(|(known, _)| known != *name))
        {
            return Err(self.blame(format_args!("no variable {missing}; {}", there_are())));
        }
        if !names.is_empty() {
            return Ok(names.to_vec());
        }
        let is_worth_it = |variable: &NcVariable| {
            is_float(variable) && variable.num_elements().is_ok_and(|count| count >= FEWEST)
        };
        let names: Vec<_> = all
            .iter()
            .filter(|(_, variable)| is_worth_it(variable))
            .map(|(name, _)| name.clone())
            .collect();
        if names.is_empty() {
            return Err(self.blame(format_args!(
                "no floating-point variable of {FEWEST} values or more; {}",
                there_are()
            )));
        }
        Ok(names)
    }

    pub fn read(&self, name: &str) -> Result<Field, String> {
        let blame = |what: &str| self.blame(format_args!("variable {name}: {what}"));
        let all = self.all()?;
        let (_, variable) = all
            .into_iter()
            .find(|(known, _)| known == name)
            .ok_or_else(|| blame("not there"))?;
        if !is_float(variable) {
            return Err(blame(&not_floats(variable)));
        }
        if variable.num_elements().is_ok_and(|count| count == 0) {
            return Err(blame("empty, it has no values"));
        }
        let unreadable = |error: Error| blame(&format!("damaged or cut short: {error}"));
        let values = match variable.dtype {
            NcType::Double => {
                let array = self.file.read_variable(name).map_err(unreadable)?;
                Values::F64(array.into_iter().collect())
            }
            _ => {
                let array = self.file.read_variable(name).map_err(unreadable)?;
                Values::F32(array.into_iter().collect())
            }
        };
        let missing = ["_FillValue", "missing_value"]
            .iter()
            .filter_map(|name| variable.attribute(name)?.value.as_f64_vec());
        let units = variable.attribute("units");
        let axes = variable.dimensions.iter().rev();
        Ok(Field {
            name: name.into(),
            units: units.and_then(|units| units.value.as_string()),
            axes: axes
                .map(|axis| (axis.name.clone(), axis.size as usize))
                .collect(),
            missing: missing.flatten().collect(),
            values,
        })
    }
}

fn is_float(variable: &NcVariable) -> bool {
    matches!(variable.dtype, NcType::Float | NcType::Double)
}

/// Why a variable that is not of floats is not looked at.
fn not_floats(variable: &NcVariable) -> String {
    let is_packed = ["scale_factor", "add_offset"]
        .iter()
        .any(|name| variable.attribute(name).is_some());
    let kind = type_name(&variable.dtype);
    if is_packed {
        format!("packed as {kind} with scale_factor or add_offset; unpack it to floats first")
    } else {
        format!("holds {kind}; accepted are variables of f32 or f64")
    }
}

fn type_name(of: &NcType) -> &'static str {
    match of {
        NcType::Byte => "i8",
        NcType::Char => "char",
        NcType::Short => "i16",
        NcType::Int => "i32",
        NcType::Float => "f32",
        NcType::Double => "f64",
        NcType::UByte => "u8",
        NcType::UShort => "u16",
        NcType::UInt => "u32",
        NcType::Int64 => "i64",
        NcType::UInt64 => "u64",
        NcType::String => "strings",
        NcType::Enum { .. } => "an enumeration",
        _ => "records",
    }
}
