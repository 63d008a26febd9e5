"""Chains of functions over records: `pipe`.

- `block`: items on their way, and where they came from. `stage`: what to do with them. `parallel`: the same with
  several workers.
- `source`: where they come from, `sink`: where they end. `chain`: the path from source to sink. `summary`: the
  statistics. `pipe`: all of it in one call.

Items go through a stage in lists, with one call of `map`; so a stage costs as much as calling its function. Nothing
here knows what a record is: readers do."""
