//! Converts Node's `.cpuprofile` files (the format that the DevTools of browsers also save) to folded stacks.
//!
//! The file contains a tree of calls and, for each sample, the node that was being executed. A sample represents the
//! time until the next sample or until the end.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The relevant parts of the file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    nodes: Vec<Node>,
    /// In microseconds, like all times here.
    start_time: i64,
    end_time: i64,
    samples: Vec<u64>,
    /// The time since the previous sample, or since the start.
    time_deltas: Vec<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    id: u64,
    call_frame: CallFrame,
    #[serde(default)]
    children: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame {
    function_name: String,
    url: String,
    /// Counted from 0; -1 if unknown.
    line_number: i64,
}

/// Returns the folded stacks: lines of `outer;inner MICROSECONDS`, sorted.
///
/// # Errors
/// Fails if the text is not such a profile.
///
/// ```
/// use millstream_bench::flame::cpuprofile::fold;
/// let folded = fold(r#"{
///     "nodes": [
///         { "id": 1, "callFrame": { "functionName": "(root)", "url": "", "lineNumber": -1 }, "children": [2] },
///         { "id": 2, "callFrame": { "functionName": "main", "url": "file:///a/b.mjs", "lineNumber": 6 } }
///     ],
///     "startTime": 1000, "endTime": 1300, "samples": [2, 2], "timeDeltas": [100, 50]
/// }"#)?;
/// assert_eq!(folded, "main b.mjs:7 200\n");
/// # Ok::<(), anyhow::Error>(())
/// ```
pub fn fold(text: &str) -> Result<String> {
    let profile: Profile = serde_json::from_str(text).context("this is no .cpuprofile")?;
    let Profile { nodes, start_time, end_time, samples, time_deltas } = &profile;
    let (count, deltas) = (samples.len(), time_deltas.len());
    ensure!(count == deltas, "this .cpuprofile has {count} samples, and times for {deltas}");
    let by_id: HashMap<u64, &Node> = nodes.iter().map(|node| (node.id, node)).collect();
    let parents: HashMap<u64, u64> =
        nodes.iter().flat_map(|node| node.children.iter().map(|child| (*child, node.id))).collect();

    let mut stacks: BTreeMap<String, i64> = BTreeMap::new();
    let mut time = *start_time;
    for (at, sample) in samples.iter().enumerate() {
        time += time_deltas[at];
        let lasts = time_deltas.get(at + 1).copied().unwrap_or(end_time - time);
        let stack = stack(*sample, &by_id, &parents)?;
        // The clocks of several cores differ: a sample can appear to precede the previous one.
        if lasts > 0 && !stack.is_empty() {
            *stacks.entry(stack).or_default() += lasts;
        }
    }
    Ok(stacks.into_iter().map(|(stack, time)| format!("{stack} {time}\n")).collect())
}

/// Returns the frames from the outermost to this node, without the root.
fn stack(id: u64, nodes: &HashMap<u64, &Node>, parents: &HashMap<u64, u64>) -> Result<String> {
    let mut frames = Vec::new();
    let mut id = id;
    while let Some(parent) = parents.get(&id) {
        let node =
            nodes.get(&id).with_context(|| format!("this .cpuprofile names a node {id} that it does not have"))?;
        frames.push(node.call_frame.name());
        ensure!(frames.len() <= nodes.len(), "the calls of this .cpuprofile go in a circle, at node {id}");
        id = *parent;
    }
    ensure!(nodes.contains_key(&id), "this .cpuprofile names a node {id} that it does not have");
    frames.reverse();
    Ok(frames.join(";"))
}

impl CallFrame {
    /// As `push stages.mjs:17`, with nothing in it that means something in folded stacks.
    fn name(&self) -> String {
        let CallFrame { function_name, url, line_number } = self;
        let function = if function_name.is_empty() { "(anonymous)" } else { function_name };
        let file = url.rsplit('/').next().unwrap_or_default();
        let name = if file.is_empty() { function.to_owned() } else { format!("{function} {file}:{}", line_number + 1) };
        name.replace(';', ",").replace(['\n', '\r'], " ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(nodes: &str, samples: &str, deltas: &str) -> String {
        format!(
            r#"{{"nodes": [{nodes}], "startTime": 0, "endTime": 100, "samples": [{samples}], "timeDeltas": [{deltas}]}}"#
        )
    }

    fn node(id: u64, name: &str, children: &str) -> String {
        let frame = format!(r#"{{ "functionName": "{name}", "url": "node:fs", "lineNumber": 9 }}"#);
        format!(r#"{{ "id": {id}, "callFrame": {frame}, "children": [{children}] }}"#)
    }

    #[test]
    fn a_sample_lasts_until_the_next() {
        let nodes = [node(1, "(root)", "2,4"), node(2, "a", "3"), node(3, "", ""), node(4, "b;c", "")].join(",");
        let folded = fold(&profile(&nodes, "2,3,4,1,3", "10,20,-5,30,15")).unwrap();
        // 2 for 20, 3 for -5 (nothing), 4 for 30, the root for 15 (nothing), 3 to the end at 100.
        assert_eq!(folded, "a node:fs:10 20\na node:fs:10;(anonymous) node:fs:10 30\nb,c node:fs:10 30\n");
    }

    #[test]
    fn what_is_broken_is_said() {
        let root = node(1, "(root)", "2");
        for (text, message) in [
            ("{}".to_owned(), "no .cpuprofile"),
            (profile(&root, "1,1", "1"), "2 samples, and times for 1"),
            (profile(&root, "2", "1"), "a node 2 that it does not have"),
            (profile(&root, "7", "1"), "a node 7 that it does not have"),
            (profile(&[node(1, "", "2"), node(2, "", "1")].join(","), "1", "1"), "in a circle"),
        ] {
            let error = format!("{:#}", fold(&text).unwrap_err());
            assert!(error.contains(message), "{error}");
        }
    }
}
