//! Writes arrays of numbers as numpy's .npy files, version 1.0.
//!
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>. This does not use a library, because
//! libraries take elements one by one, while the bytes in a document already have numpy's format: gigabytes are copied
//! unchanged.

use millstream::bson::julia::Kind;
use millstream::bson::{Array, Document, Element, ElementType, FromBson, ValueRef, Vector, join_path};
use millstream::{Result, Writer};

use super::{julia, unusable};

/// The subtype of binary values that contain their own number type.
const VECTOR: u8 = 9;

/// Writes the array of numbers in an element.
pub(super) fn write(
    document: Document<'_>,
    element: &Element<'_>,
    keys: &[String],
    memory: u64,
    out: &mut Writer,
) -> Result<()> {
    match element.value()? {
        // The element may be a Julia array, or refer to one.
        ValueRef::Document(_) => write_julia(document, keys, memory, out),
        ValueRef::Array(array) => write_array(&array, keys, out),
        ValueRef::Binary { subtype: VECTOR, .. } => {
            let (dtype, count, bytes) = match element.get()? {
                Vector::Int8(numbers) => ("|i1", numbers.len(), numbers.as_bytes()),
                Vector::Float32(numbers) => ("<f4", numbers.len(), numbers.as_bytes()),
                Vector::PackedBit(_) => {
                    return Err(unusable(
                        format!("a vector of single bits at {}", join_path(keys)),
                        "an array of numbers, or bytes",
                    ));
                }
            };
            out.write(&header(dtype, &[count as u64])?)?;
            out.write(bytes)
        }
        ValueRef::Binary { bytes, .. } => {
            out.write(&header("|u1", &[bytes.len() as u64])?)?;
            out.write(bytes)
        }
        value => Err(no_array(value.kind(), keys)),
    }
}

/// Writes an array of a BSON.jl file, which is in column-major order; .npy allows that.
fn write_julia(document: Document<'_>, keys: &[String], memory: u64, out: &mut Writer) -> Result<()> {
    let graph = julia::read(document, keys, memory)?;
    let no_array = |found: String| unusable(format!("{found} at {}", join_path(keys)), "an array of numbers, or bytes");
    let Kind::Array(array) = graph.root().kind() else { return Err(no_array("no array".into())) };
    let element_type = array.element_type().to_string();
    let dtype = match element_type.as_str() {
        "Bool" => "|b1",
        "Int8" => "|i1",
        "UInt8" => "|u1",
        "Int16" => "<i2",
        "UInt16" => "<u2",
        "Int32" => "<i4",
        "UInt32" => "<u4",
        "Int64" => "<i8",
        "UInt64" => "<u8",
        "Float16" => "<f2",
        "Float32" => "<f4",
        "Float64" => "<f8",
        "Complex{Float32}" => "<c8",
        "Complex{Float64}" => "<c16",
        _ => return Err(no_array(format!("an array of {element_type}"))),
    };
    let Some(payload) = array.payload() else { return Err(no_array(format!("an array of {element_type} in pieces"))) };
    out.write(&header(dtype, array.size())?)?;
    out.write(payload)
}

/// Writes integers if all elements are integers. Otherwise integers must be convertible to doubles without a loss.
/// Every number is checked before any byte is written.
fn write_array(array: &Array<'_>, keys: &[String], out: &mut Writer) -> Result<()> {
    let (mut count, mut integers) = (0, true);
    for element in array {
        let kind = element?.kind();
        if !matches!(kind, ElementType::Double | ElementType::Int32 | ElementType::Int64) {
            return Err(no_array(kind, keys));
        }
        integers &= kind != ElementType::Double;
        count += 1;
    }
    if integers && count > 0 {
        return write_numbers::<i64, 8>("<i8", array, count, i64::to_le_bytes, out);
    }
    write_numbers::<f64, 8>("<f8", array, count, f64::to_le_bytes, out)
}

/// Writes numbers of one type. If an element is not a number of this type, this fails before the header is written.
fn write_numbers<T: for<'a> FromBson<'a>, const N: usize>(
    dtype: &str,
    array: &Array<'_>,
    count: u64,
    to_bytes: fn(T) -> [u8; N],
    out: &mut Writer,
) -> Result<()> {
    for element in array {
        element?.get::<T>()?;
    }
    out.write(&header(dtype, &[count])?)?;
    for element in array {
        out.write(&to_bytes(element?.get::<T>()?))?;
    }
    Ok(())
}

fn no_array(kind: ElementType, keys: &[String]) -> millstream::Error {
    unusable(format!("a value of type {kind} at {}", join_path(keys)), "an array of numbers, or bytes")
}

/// The maximum number of dimensions of a numpy array.
const MOST_DIMENSIONS: usize = 64;

/// Returns the header: magic, version, length in two bytes, and a Python literal, padded so that the data begins at a
/// multiple of 64.
fn header(dtype: &str, shape: &[u64]) -> Result<Vec<u8>> {
    let rank = shape.len();
    let shape: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let mut literal = format!("{{'descr': '{dtype}', 'fortran_order': True, 'shape': ({shape}), }}");
    let len = (10 + literal.len() + 1).next_multiple_of(64) - 10;
    let header_len = match u16::try_from(len) {
        Ok(len) if rank <= MOST_DIMENSIONS => len,
        _ => return Err(unusable(format!("an array of {rank} dimensions"), "at most 64, which is the limit of numpy")),
    };
    literal.push_str(&" ".repeat(len - literal.len() - 1));
    literal.push('\n');
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend(header_len.to_le_bytes());
    bytes.extend(literal.as_bytes());
    Ok(bytes)
}
