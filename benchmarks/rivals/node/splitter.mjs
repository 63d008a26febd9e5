// Lines out of blocks of text, for those ways whose package brings none.

export class Splitter {
  #rest = "";

  // The lines that this block completes.
  lines(block) {
    const lines = (this.#rest + block).split("\n");
    this.#rest = lines.pop();
    return lines;
  }

  // A last line without its line feed.
  rest() {
    return this.#rest === "" ? [] : [this.#rest];
  }
}
