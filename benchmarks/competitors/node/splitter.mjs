// Splits blocks of text into lines, for those ways whose package has no splitter.

export class Splitter {
  #rest = "";

  // Returns the lines that this block completes.
  lines(block) {
    const lines = (this.#rest + block).split("\n");
    this.#rest = lines.pop();
    return lines;
  }

  // Returns the last line if it has no line feed.
  rest() {
    return this.#rest === "" ? [] : [this.#rest];
  }
}
