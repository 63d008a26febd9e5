// Bundles src/ for ESM, CommonJS and browsers with esbuild, and writes declarations with tsc. Nothing is minified: the
// bundler of the program that uses the package does that, and drops what the program does not use.

import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { build } from "esbuild";

/** Writes the package's files to a folder. `core` is the core as WebAssembly, in base64. */
export async function bundle(folder, core) {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  const define = { MILLSTREAM_VERSION: JSON.stringify(version) };
  const shared = { bundle: true, target: "es2022", legalComments: "none", logLevel: "warning", sourcemap: true };
  const esm = { ...shared, define, format: "esm", plugins: [coreIn("./core-wasm.js")] };
  await Promise.all([
    build({ ...esm, entryPoints: ["src/index.ts"], outfile: `${folder}/index.js`, platform: "node" }),
    build({
      ...shared,
      entryPoints: ["src/index.ts"],
      outfile: `${folder}/index.cjs`,
      format: "cjs",
      platform: "node",
      plugins: [coreIn("./core-wasm.cjs")],
      // The location of the native part: in CommonJS, a module's own location has another name.
      define: { ...define, "import.meta.url": "__filename" },
    }),
    // The browser platform rejects imports of node:, as intended.
    build({ ...esm, entryPoints: ["src/browser.ts"], outfile: `${folder}/browser.js`, platform: "browser" }),
  ]);
  const text = JSON.stringify(core);
  writeFileSync(`${folder}/core-wasm.js`, `export default ${text};\n`);
  writeFileSync(`${folder}/core-wasm.cjs`, `module.exports = ${text};\n`);
  declarations(folder);
}

/** The core is a file of its own: it is large, and programs that do not use it need not load it. */
function coreIn(path) {
  const setup = ({ onResolve }) =>
    onResolve({ filter: /\/core-wasm\.js$/ }, () => ({ path, external: true, sideEffects: false }));
  return { name: "core", setup };
}

function declarations(folder) {
  const tsc = createRequire(import.meta.url)
    .resolve("typescript/package.json")
    .replace("package.json", "bin/tsc");
  const options = ["-p", "scripts/tsconfig.types.json", "--outDir", `${folder}/types`];
  execFileSync(process.execPath, [tsc, ...options], { stdio: "inherit" });
  // The declarations for programs that use require.
  cpSync(`${folder}/types`, `${folder}/types-cjs`, { recursive: true });
  writeFileSync(`${folder}/types-cjs/package.json`, '{ "type": "commonjs" }\n');
}
