//! Where the time goes: flame graphs out of folded stacks, as interactive SVG and as pictures.
//!
//! Stacks come from Node's profiler ([`cpuprofile`]), from a sampler inside our own programs ([`sample`](millstream_runners::sample)), or from `perf`;
//! [`profile`] runs a runner under whichever fits.

use anyhow::{Context, Result, ensure};
use inferno::flamegraph::{self, Options};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, Tree};

pub mod cpuprofile;
pub mod profile;

/// In pixels.
const WIDTH: usize = 940;

/// The interactive SVG: frames can be pressed to look closer, and searched. The same stacks give the same file.
///
/// # Errors
/// There are no stacks, or they are not lines of `outer;inner COUNT`.
///
/// ```
/// let svg = millstream_bench::flame::svg("main;read 30\nmain;write 10\n", "through2, n = 10", "samples")?;
/// assert!(svg.contains("read (30 samples, 75.00%)"));
/// # Ok::<(), anyhow::Error>(())
/// ```
pub fn svg(folded: &str, title: &str, count: &str) -> Result<String> {
    ensure!(!folded.trim().is_empty(), "there are no stacks: the run may have been too short for a sample");
    let mut options = Options::default();
    options.title = title.to_owned();
    options.count_name = count.to_owned();
    // Of a fixed width: one that follows its window's goes wrong where that is not shown yet, as in a part that is folded.
    options.image_width = Some(WIDTH);
    options.deterministic = true;
    options.hash = true;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, folded.lines(), &mut svg).context("the stacks cannot be drawn")?;
    Ok(String::from_utf8(svg)?)
}

/// The SVG as a PNG, with the fonts of this machine.
///
/// # Errors
/// The text is no SVG.
pub fn png(svg: &str) -> Result<Vec<u8>> {
    let mut options = usvg::Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    // The one that every SVG asks for has no name of its own here.
    let monospaced = fonts.faces().find(|face| face.monospaced).and_then(|face| Some(face.families.first()?.0.clone()));
    if let Some(name) = monospaced {
        fonts.set_monospace_family(name);
    }
    let tree = Tree::from_str(svg, &options)?;
    let size = tree.size().to_int_size();
    let mut picture = Pixmap::new(size.width(), size.height()).context("the picture has no size")?;
    resvg::render(&tree, Transform::identity(), &mut picture.as_mut());
    Ok(picture.encode_png()?)
}
