// Serves the page on this machine, without a content security policy and with a strict one.
//
//   npm run build && node examples/browser/serve.mjs [PORT]

import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const PAGE = "/examples/browser/";
const POLICY =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

/** The lines that the page fetches, which are generated while they are sent. */
function* sample() {
  for (let block = 0; block < 100; block++) {
    yield Array.from({ length: 1000 }, (_, line) => `${block * 1000 + line} a line that came over the network\n`).join(
      "",
    );
  }
}

/** Starts the server. Returns the `address` of the page, its address with the `strict` policy, and `close`. */
export async function serve(port = 0) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const isStrict = pathname.startsWith("/strict/");
    let path = isStrict ? pathname.slice("/strict".length) : pathname;
    if (path === PAGE) path = `${PAGE}index.html`;
    // `URL` has resolved `..`, and only plain names are served.
    const known = /^\/(dist|examples\/browser)\/[\w.-]+$/.test(path);
    const type = TYPES[extname(path)];
    if (isStrict) response.setHeader("content-security-policy", POLICY);
    response.setHeader("cache-control", "no-store");
    if (path === `${PAGE}sample.txt`) {
      response.setHeader("content-type", "text/plain; charset=utf-8");
      Readable.from(sample(), { objectMode: false }).pipe(response);
    } else if (known && type !== undefined && existsSync(join(root, path))) {
      response.setHeader("content-type", `${type}; charset=utf-8`);
      createReadStream(join(root, path)).pipe(response);
    } else {
      response.writeHead(404).end("not found\n");
    }
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  return {
    address: origin + PAGE,
    strict: `${origin}/strict${PAGE}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { address, strict } = await serve(Number(process.argv[2] ?? 8080));
  console.log(`${address}\n${strict} under a content security policy`);
}
