// What arrived: how many lines, how long, and whether in order.

export class Tally {
  count = 0;
  // UTF-16 code units of strings, bytes of bytes.
  units = 0;
  // Of all lengths and first units, in order.
  mix = 0;

  line = (line) => {
    this.count += 1;
    this.units += line.length;
    this.mix = (Math.imul(this.mix, 31) + line.length) ^ line.charCodeAt(0);
  };

  answer() {
    return { count: this.count, units: this.units, mix: this.mix >>> 0 };
  }
}
