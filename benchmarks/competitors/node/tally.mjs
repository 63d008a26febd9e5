// The output of a pass: the number of lines, their length, and a checksum of their order.

export class Tally {
  count = 0;
  // UTF-16 code units for strings, bytes for binary data.
  units = 0;
  // A checksum of all lengths and first units, in order.
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
