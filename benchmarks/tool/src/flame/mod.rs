//! Flame graphs from folded stacks, as interactive SVG and as PNG images. They show where the time is spent.
//!
//! Stacks come from Node's profiler ([`cpuprofile`]), from a sampler inside millstream's benchmark programs
//! ([`sample`](millstream_runners::sample)), or from `perf`; [`profile`] runs a runner under whichever fits.

use anyhow::{Context, Result, ensure};
use inferno::flamegraph::{self, Options};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, Tree};

pub mod cpuprofile;
pub mod profile;

/// In pixels.
const WIDTH: usize = 940;

/// Draws the interactive SVG, in which frames can be zoomed and searched. The same stacks always give the same file.
///
/// # Errors
/// Fails if there are no stacks, or if a line is not of the form `outer;inner COUNT`.
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
    // The width is fixed: an SVG that takes the width of its window is drawn wrong while it is not visible, such as in
    // a collapsed section.
    options.image_width = Some(WIDTH);
    options.deterministic = true;
    options.hash = true;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, folded.lines(), &mut svg).context("the stacks cannot be drawn")?;
    Ok(String::from_utf8(svg)?)
}

/// Renders the SVG as a PNG, with the fonts of this machine.
///
/// # Errors
/// Fails if the text is not an SVG.
pub fn png(svg: &str) -> Result<Vec<u8>> {
    let mut options = usvg::Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    // Every SVG uses the generic monospaced font family, which is set to a monospaced font of this machine.
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
