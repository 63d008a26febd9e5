"""Chains of functions that process records: `pipe`.

- `block`: items in transit, and the records that they came from. `stage`: operations on items. `loop`: runs consecutive
  stages. `parallel`: stages on several workers.
- `source`: the sources of items. `sink`: the sinks. `chain`: the path from source to sink. `summary`: the statistics.
  `pipe`: one call that combines all of them.

Items go through the stages in blocks, with one generated loop for consecutive stages, so a pipe costs as much as a loop
that calls the functions. This package does not know what a record is; readers do."""
