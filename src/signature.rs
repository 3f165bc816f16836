//! An MPI datatype → what it holds.
//!
//! Only the type signature counts here, that is, the sequence of basic types: the two ends of a
//! message must have the same one, while their handles may differ. A type that holds one element only,
//! however it was nested, is ours; anything else is `Other`.

use crate::codec::Element;
use crate::mpi::{Handle, Mpi, Result};
use std::sync::{PoisonError, RwLock};

/// The basic types of a datatype, as far as they concern us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Real(Element),
    /// Pairs of real and imaginary part.
    Complex(Element),
    /// `MPI_BYTE`, which may stand for anything.
    Bytes,
    /// Integers of so many bytes.
    Integer(u8),
    /// Mixtures, long doubles and all else.
    Other,
}

/// What the exchange needs to know of a datatype. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datatype {
    pub handle: Handle,
    pub content: Content,
    /// Bytes that one item sends.
    pub size: usize,
    /// Bytes from one item to the next.
    pub extent: isize,
    /// Items lie in memory as they are sent, without gaps.
    pub dense: bool,
    /// Made by the program, not predefined.
    pub derived: bool,
}

/// The predefined datatypes that were met: their handles stay what they are.
static PREDEFINED: RwLock<Vec<Datatype>> = RwLock::new(Vec::new());

impl Datatype {
    pub fn of(mpi: &Mpi, handle: Handle) -> Result<Self> {
        let known = PREDEFINED.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(datatype) = known.iter().find(|known| known.handle == handle) {
            return Ok(*datatype);
        }
        drop(known);
        let datatype = Self::look(mpi, handle)?;
        if !datatype.derived {
            let mut known = PREDEFINED.write().unwrap_or_else(PoisonError::into_inner);
            known.push(datatype);
        }
        Ok(datatype)
    }

    fn look(mpi: &Mpi, handle: Handle) -> Result<Self> {
        let size = mpi.type_size(handle)?;
        let extent = mpi.type_extent(handle)?.extent;
        let walked = walk(mpi, handle)?;
        Ok(Self {
            handle,
            content: walked.content.unwrap_or(Content::Other),
            size,
            extent,
            dense: walked.dense,
            derived: walked.derived,
        })
    }
}

/// What a walk through a datatype found. `content` is `None` for a type without elements.
struct Walked {
    content: Option<Content>,
    dense: bool,
    /// A reference to it must be given back.
    derived: bool,
}

fn walk(mpi: &Mpi, datatype: Handle) -> Result<Walked> {
    let combiners = &mpi.abi.combiners;
    let envelope = mpi.type_envelope(datatype)?;
    let size = mpi.type_size(datatype)?;
    let combiner = envelope.combiner;
    if combiner == combiners.named {
        let content = predefined(&mpi.type_name(datatype)?, size);
        return Ok(Walked {
            content: Some(content),
            dense: true,
            derived: false,
        });
    }
    if combiner == combiners.f90_real {
        return Ok(Walked {
            content: Some(real(size)),
            dense: true,
            derived: false,
        });
    }
    if combiner == combiners.f90_complex {
        return Ok(Walked {
            content: Some(complex(size)),
            dense: true,
            derived: false,
        });
    }
    if combiner == combiners.f90_integer {
        return Ok(Walked {
            content: Some(integer(size)),
            dense: true,
            derived: false,
        });
    }
    if size == 0 {
        return Ok(Walked {
            content: None,
            dense: true,
            derived: true,
        });
    }

    let contents = mpi.type_contents(datatype, &envelope)?;
    let parts = contents.datatypes.len();
    let mut content = None;
    let mut parts_dense = true;
    for (index, &part) in contents.datatypes.iter().enumerate() {
        let walked = walk(mpi, part)?;
        if walked.derived {
            mpi.type_free(part);
        }
        // A struct's integers are its length and the block lengths; blocks of none are not there.
        let absent = parts > 1 && contents.integers.get(index + 1) == Some(&0);
        if !absent {
            content = join(content, walked.content);
            parts_dense &= walked.dense;
        }
    }
    let in_order = [
        combiners.dup,
        combiners.contiguous,
        combiners.vector,
        combiners.hvector,
        combiners.subarray,
        combiners.resized,
    ]
    .contains(&combiner);
    let dense = in_order && parts_dense && is_gapless(mpi, datatype, size)?;
    Ok(Walked {
        content,
        dense,
        derived: true,
    })
}

/// The extents of the axes that a derived datatype lays out, in elements and fastest first: the blocks of
/// a vector, the box of a subarray. Empty for one that has no such axes.
pub fn extents(mpi: &Mpi, datatype: Handle) -> Result<Vec<usize>> {
    let combiners = &mpi.abi.combiners;
    let envelope = mpi.type_envelope(datatype)?;
    let combiner = envelope.combiner;
    let is_wrapper = [combiners.dup, combiners.resized].contains(&combiner);
    let is_row = combiner == combiners.contiguous;
    let is_vector = [combiners.vector, combiners.hvector].contains(&combiner);
    let is_subarray = combiner == combiners.subarray;
    if !(is_wrapper || is_row || is_vector || is_subarray) {
        return Ok(Vec::new());
    }
    let contents = mpi.type_contents(datatype, &envelope)?;
    let mut axes = Vec::new();
    for &part in &contents.datatypes {
        axes = extents(mpi, part)?;
        if walk(mpi, part)?.derived {
            mpi.type_free(part);
        }
    }
    let integers: Vec<usize> = contents
        .integers
        .iter()
        .map(|&n| usize::try_from(n).unwrap_or(0))
        .collect();
    match integers[..] {
        [count] if is_row => axes.push(count),
        [count, length, ..] if is_vector => axes.extend([length, count]),
        [dims, ref rest @ ..] if is_subarray && rest.len() > 3 * dims => {
            let mut sizes = rest[dims..2 * dims].to_vec();
            // The last integer is the order; C's last axis is the fastest.
            if contents.integers.last() == Some(&mpi.abi.order_c) {
                sizes.reverse();
            }
            axes.extend(sizes);
        }
        _ => {}
    }
    Ok(axes)
}

/// Items begin at the buffer, follow each other, and leave nothing out. For the constructors that keep
/// the order of memory this means that the type is a plain array.
fn is_gapless(mpi: &Mpi, datatype: Handle, size: usize) -> Result<bool> {
    let of = mpi.type_extent(datatype)?;
    Ok(of.lower_bound == 0
        && of.true_lower_bound == 0
        && of.extent == size as isize
        && of.true_extent == size as isize)
}

fn join(one: Option<Content>, other: Option<Content>) -> Option<Content> {
    use Content::{Complex, Other, Real};
    match (one, other) {
        (None, content) | (content, None) => content,
        (Some(one), Some(other)) if one == other => Some(one),
        (Some(Real(a) | Complex(a)), Some(Real(b) | Complex(b))) if a == b => Some(Real(a)),
        _ => Some(Other),
    }
}

/// The content of a predefined datatype. Its size decides the precision: compilers can make `REAL`
/// eight bytes, and some platforms' `long double` is a double.
fn predefined(name: &str, size: usize) -> Content {
    match name {
        "MPI_FLOAT"
        | "MPI_DOUBLE"
        | "MPI_LONG_DOUBLE"
        | "MPI_REAL"
        | "MPI_REAL4"
        | "MPI_REAL8"
        | "MPI_DOUBLE_PRECISION" => real(size),
        "MPI_C_COMPLEX"
        | "MPI_C_FLOAT_COMPLEX"
        | "MPI_C_DOUBLE_COMPLEX"
        | "MPI_C_LONG_DOUBLE_COMPLEX"
        | "MPI_CXX_COMPLEX"
        | "MPI_CXX_FLOAT_COMPLEX"
        | "MPI_CXX_DOUBLE_COMPLEX"
        | "MPI_CXX_LONG_DOUBLE_COMPLEX"
        | "MPI_COMPLEX"
        | "MPI_COMPLEX8"
        | "MPI_COMPLEX16"
        | "MPI_DOUBLE_COMPLEX" => complex(size),
        // MPI defines these as two of the basic type.
        "MPI_2REAL" | "MPI_2DOUBLE_PRECISION" => real(size / 2),
        "MPI_2COMPLEX" | "MPI_2DOUBLE_COMPLEX" => complex(size / 2),
        "MPI_BYTE" => Content::Bytes,
        "MPI_INT"
        | "MPI_LONG"
        | "MPI_SHORT"
        | "MPI_UNSIGNED_SHORT"
        | "MPI_UNSIGNED"
        | "MPI_UNSIGNED_LONG"
        | "MPI_LONG_LONG"
        | "MPI_LONG_LONG_INT"
        | "MPI_UNSIGNED_LONG_LONG"
        | "MPI_SIGNED_CHAR"
        | "MPI_UNSIGNED_CHAR"
        | "MPI_INT8_T"
        | "MPI_INT16_T"
        | "MPI_INT32_T"
        | "MPI_INT64_T"
        | "MPI_UINT8_T"
        | "MPI_UINT16_T"
        | "MPI_UINT32_T"
        | "MPI_UINT64_T"
        | "MPI_INTEGER"
        | "MPI_INTEGER1"
        | "MPI_INTEGER2"
        | "MPI_INTEGER4"
        | "MPI_INTEGER8" => integer(size),
        _ => Content::Other,
    }
}

fn real(size: usize) -> Content {
    match size {
        4 => Content::Real(Element::F32),
        8 => Content::Real(Element::F64),
        _ => Content::Other,
    }
}

fn integer(size: usize) -> Content {
    match size {
        1 | 2 | 4 | 8 => Content::Integer(size as u8),
        _ => Content::Other,
    }
}

fn complex(size: usize) -> Content {
    match real(size / 2) {
        Content::Real(element) => Content::Complex(element),
        _ => Content::Other,
    }
}
