/// A floating-point value as it lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    F32,
    F64,
}

/// What a message is made of, as its type signature says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    Float(Element),
    /// Integers, or whatever else, of so many bytes: coded without loss or not at all.
    Word(u8),
}

impl Item {
    pub fn bytes(self) -> usize {
        match self {
            Self::Float(element) => element.bytes(),
            Self::Word(bytes) => bytes.into(),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Float(element) => element.as_str(),
            Self::Word(_) => "any",
        }
    }
}

impl Element {
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}
