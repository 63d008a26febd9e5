//! Arrays of numbers as numpy's .npy files, version 1.0.
//!
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>. Written here and not by a library, because
//! those take elements one by one, and what lies in a document is already what numpy wants: gigabytes go through as
//! they are.

use millstream::bson::{Array, Element, ElementType, ValueRef, join_path};
use millstream::{Result, Writer};

use super::unusable;

/// Writes the array of numbers that an element is.
pub(super) fn write(element: &Element<'_>, keys: &[String], out: &mut Writer) -> Result<()> {
    match element.value()? {
        ValueRef::Array(array) => write_array(&array, keys, out),
        ValueRef::Binary { bytes, .. } => {
            out.write(&header("|u1", &[bytes.len() as u64]))?;
            out.write(bytes)
        }
        value => Err(no_array(value.kind(), keys)),
    }
}

/// Integers stay integers where all of them are.
fn write_array(array: &Array<'_>, keys: &[String], out: &mut Writer) -> Result<()> {
    let (mut count, mut integers) = (0, true);
    for element in array.iter() {
        let kind = element?.kind();
        integers &= kind != ElementType::Double;
        if !matches!(kind, ElementType::Double | ElementType::Int32 | ElementType::Int64) {
            return Err(no_array(kind, keys));
        }
        count += 1;
    }
    out.write(&header(if integers && count > 0 { "<i8" } else { "<f8" }, &[count]))?;
    for element in array.iter() {
        let element = element?;
        match integers {
            true => out.write(&element.get::<i64>()?.to_le_bytes())?,
            false => out.write(&element.get::<f64>()?.to_le_bytes())?,
        }
    }
    Ok(())
}

fn no_array(kind: ElementType, keys: &[String]) -> millstream::Error {
    unusable(format!("a value of type {kind} at {}", join_path(keys)), "an array of numbers, or bytes")
}

/// The header: magic, version, length, and a Python literal, padded so that the data begins at a multiple of 64.
fn header(dtype: &str, shape: &[u64]) -> Vec<u8> {
    let shape: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let mut literal = format!("{{'descr': '{dtype}', 'fortran_order': True, 'shape': ({shape}), }}");
    let len = (10 + literal.len() + 1).next_multiple_of(64) - 10;
    literal.push_str(&" ".repeat(len - literal.len() - 1));
    literal.push('\n');
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend((len as u16).to_le_bytes());
    bytes.extend(literal.as_bytes());
    bytes
}
