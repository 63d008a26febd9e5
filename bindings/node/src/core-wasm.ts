/** The core as WebAssembly, in base64. The built package has a file with the module here, which bundles omit if no
 * function needs it: see `scripts/bundle.mjs`.
 */

declare const MODULE: string;
export default MODULE;
