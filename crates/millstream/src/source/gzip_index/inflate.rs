//! A deflate decoder (RFC 1951) that stops at the end of each block and that can start within a byte.
//!
//! zlib-rs's safe interface can do neither, so this calls the functions that zlib's C interface has for it.

#![allow(unsafe_code)] // the functions of zlib's C interface

use libz_rs_sys::{
    Z_BLOCK, Z_BUF_ERROR, Z_OK, Z_STREAM_END, inflate, inflateEnd, inflateInit2_, inflatePrime, inflateReset2,
    inflateSetDictionary, z_stream, zlibVersion,
};

/// What the bytes are before the first block.
#[derive(Clone, Copy)]
pub(super) enum Header {
    /// The header of a gzip member (RFC 1952).
    Gzip,
    /// Nothing: the bytes are those of deflate blocks.
    Raw,
}

impl Header {
    /// Returns the number that zlib has for it, with the largest window.
    fn window_bits(self) -> i32 {
        match self {
            Header::Gzip => 15 + 16,
            Header::Raw => -15,
        }
    }
}

/// What a call of [`BlockInflate::decode`] did.
pub(super) struct Step {
    /// The number of bytes of the input that were used.
    pub(super) read: usize,
    /// The number of bytes that were decoded.
    pub(super) written: usize,
    pub(super) stop: Stop,
}

/// Why a call returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The input has been used, or the output is full.
    Full,
    /// A block begins here. This number of bits (0 to 7) of the last byte belong to it.
    Block { bits: u8 },
    /// The member has ended.
    End,
}

/// The decoder.
pub(super) struct BlockInflate {
    /// At a fixed address: the decoder's state may refer to it.
    stream: Box<z_stream>,
}

// SAFETY: the stream is used through `&mut` only, and its state is memory that no other value refers to and that belongs
// to no thread.
unsafe impl Send for BlockInflate {}

impl BlockInflate {
    /// Creates a decoder. Returns `None` if there is not enough memory.
    pub(super) fn new(header: Header) -> Option<BlockInflate> {
        let mut stream = Box::new(z_stream::default());
        let size = size_of::<z_stream>() as i32;
        // SAFETY: the stream is valid and has the library's own allocation functions, and the version is the library's.
        let code = unsafe { inflateInit2_(&mut *stream, header.window_bits(), zlibVersion(), size) };
        (code == Z_OK).then_some(BlockInflate { stream })
    }

    /// Forgets everything, and expects this header next.
    pub(super) fn reset(&mut self, header: Header) {
        // SAFETY: `new` has initialised the stream.
        let code = unsafe { inflateReset2(&mut *self.stream, header.window_bits()) };
        assert_eq!(code, Z_OK, "the stream is valid");
    }

    /// Before the first block of raw data: continues with the `bits` (0 to 7) high bits of `byte`, after these decoded
    /// bytes.
    pub(super) fn resume(&mut self, bits: u8, byte: u8, window: &[u8]) {
        assert!(bits < 8);
        let len = u32::try_from(window.len()).expect("a window has 32 KiB");
        // SAFETY: `new` has initialised the stream, and the window is valid for reads of its length.
        let codes = unsafe {
            (
                if bits == 0 {
                    Z_OK
                } else {
                    inflatePrime(&mut *self.stream, bits.into(), i32::from(byte >> (8 - bits)))
                },
                if len == 0 { Z_OK } else { inflateSetDictionary(&mut *self.stream, window.as_ptr(), len) },
            )
        };
        assert_eq!(codes, (Z_OK, Z_OK), "the stream is raw and has not begun");
    }

    /// Decodes until the input is used, the output is full, or a block or the member ends. Returns `None` if the data
    /// is damaged.
    pub(super) fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Option<Step> {
        let stream = &mut *self.stream;
        // Zero-length buffers are passed as dangling, non-null pointers. Longer ones than u32::MAX are used in part.
        (stream.next_in, stream.avail_in) = (input.as_ptr(), u32::try_from(input.len()).unwrap_or(u32::MAX));
        (stream.next_out, stream.avail_out) = (output.as_mut_ptr(), u32::try_from(output.len()).unwrap_or(u32::MAX));
        let (had_in, had_out) = (stream.avail_in, stream.avail_out);
        // SAFETY: `new` has initialised the stream; `next_in` is valid for reads of `avail_in` bytes, and `next_out` for
        // writes of `avail_out` bytes, during this call. zlib does not use them between calls.
        let code = unsafe { inflate(stream, Z_BLOCK) };
        let (read, written) = ((had_in - stream.avail_in) as usize, (had_out - stream.avail_out) as usize);
        let stop = match code {
            Z_STREAM_END => Stop::End,
            // Bit 7: directly after a block or a header. Bit 6: in the last block, after which only the trailer follows.
            Z_OK | Z_BUF_ERROR if stream.data_type & (128 | 64) == 128 => {
                Stop::Block { bits: (stream.data_type & 7) as u8 }
            }
            Z_OK | Z_BUF_ERROR => Stop::Full,
            _ => return None,
        };
        Some(Step { read, written, stop })
    }
}

impl Drop for BlockInflate {
    fn drop(&mut self) {
        // SAFETY: `new` has initialised the stream, and it is not used any more.
        unsafe { inflateEnd(&mut *self.stream) };
    }
}
