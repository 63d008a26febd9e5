"""Chains of functions that process records: `pipe`.

- `block`: items in transit, and the records that they came from. `stage`: operations on items. `parallel`: stages on
  several workers.
- `source`: the sources of items. `sink`: the sinks. `chain`: the path from source to sink. `summary`: the statistics.
  `pipe`: one call that combines all of them.

Items go through a stage in lists, with one call of `map`, so a stage costs as much as calling its function. This
package does not know what a record is; readers do."""
