"""Chains of functions over records: `pipe`.

- `block`: items on their way, and where they came from. `stage`: what is done with them. `parallel`: the same by
  several workers.
- `source`: where they come from, `sink`: where they end. `chain`: the walk from the one to the other. `summary`: what
  it has done. `pipe`: all of it in one call.

Items go through a stage in lists, in one call of `map`; so a stage costs what calling its function costs. Nothing here
knows what a record is: readers do.
"""
