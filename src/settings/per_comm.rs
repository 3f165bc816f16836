//! Values that differ from communicator to communicator: `16;rows=8;#2=12`.

/// Picks communicators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// As given with MPI_Comm_set_name; several communicators may bear it.
    Name(String),
    /// As the report numbers them; `#2` as text.
    Number(usize),
}

impl Selector {
    /// `None` where the text is neither. A name with a comma or a semicolon cannot be written: both
    /// stand between entries, and `16,rows=8` is likelier a slip than a name.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(number) = text.strip_prefix('#') {
            let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
            return number.parse().ok().filter(|_| digits).map(Self::Number);
        }
        (!text.is_empty() && !text.contains([',', ';'])).then(|| Self::Name(text.into()))
    }

    pub fn matches(&self, name: &str, number: usize) -> bool {
        match self {
            Self::Name(wanted) => wanted == name,
            Self::Number(wanted) => *wanted == number,
        }
    }
}

/// A value for every communicator, and others for some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerComm<T> {
    default: T,
    overrides: Vec<(Selector, T)>,
}

impl<T: Clone> PerComm<T> {
    /// The same value everywhere.
    pub fn all(default: T) -> Self {
        Self {
            default,
            overrides: Vec::new(),
        }
    }

    /// The value for a communicator. Where its name and its number are both given, the later counts.
    pub fn get(&self, name: &str, number: usize) -> &T {
        self.overrides
            .iter()
            .rev()
            .find(|(selector, _)| selector.matches(name, number))
            .map_or(&self.default, |(_, value)| value)
    }

    /// Each value that some communicator may have.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        let overrides = self.overrides.iter().map(|(_, value)| value);
        std::iter::once(&self.default).chain(overrides)
    }

    /// Entries with `;` between them: a value alone is the default, `name=value` and `#2=value` are
    /// for some communicators. Without a value alone, the default of `self` stays. The error is the
    /// entry that cannot be read, or that repeats an earlier one.
    pub fn read(&self, text: &str, value: impl Fn(&str) -> Option<T>) -> Result<Self, String> {
        let mut default = None;
        let mut overrides: Vec<(Selector, T)> = Vec::new();
        for entry in text.split(';').map(str::trim).filter(|e| !e.is_empty()) {
            let accepted = match entry.rsplit_once('=') {
                // A name may hold '=', a value never does: the last one divides.
                Some((selector, text)) => read_override(selector, text, &value)
                    .filter(|(selector, _)| overrides.iter().all(|(other, _)| other != selector))
                    .map(|pair| overrides.push(pair)),
                None => value(entry)
                    .filter(|_| default.is_none())
                    .map(|value| default = Some(value)),
            };
            if accepted.is_none() {
                return Err(entry.into());
            }
        }
        Ok(Self {
            default: default.unwrap_or_else(|| self.default.clone()),
            overrides,
        })
    }
}

fn read_override<T>(
    selector: &str,
    text: &str,
    value: impl Fn(&str) -> Option<T>,
) -> Option<(Selector, T)> {
    Some((Selector::parse(selector.trim())?, value(text.trim())?))
}
