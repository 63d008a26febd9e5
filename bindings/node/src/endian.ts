/** The byte order of this machine. */

/** Whether the highest byte of a number is the first one. */
export const IS_BIG_ENDIAN: boolean = /* @__PURE__ */ isBigEndian();

function isBigEndian(): boolean {
  return new Uint8Array(Uint16Array.of(1).buffer)[0] === 0;
}
