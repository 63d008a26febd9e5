// Tests of readers run in each mode: by TypeScript alone, and by the native part where `tools/node native` has built it.

import { describe, test } from "node:test";
import * as ms from "millstream";

/** `command`, `open` and `fd` in one mode, which is also to be said to programs that tests start. */
export interface Mode {
  native: boolean;
  command<A extends ms.As = "text">(
    file: string,
    args?: readonly string[],
    options?: ms.CommandReaderOptions<A>,
  ): ms.Reader<ms.ItemOf<A>>;
  open<A extends ms.As = "text">(
    path: string | URL,
    options?: ms.OpenOptions<A> & ms.NativeOptions,
  ): ms.Reader<ms.ItemOf<A>>;
  fd<A extends ms.As = "text">(fd: number, options?: ms.OpenOptions<A> & ms.NativeOptions): ms.Reader<ms.ItemOf<A>>;
}

/** Runs these tests in each mode that there is. */
export function inEachMode(tests: (mode: Mode) => void): void {
  for (const native of [false, true]) {
    const mode: Mode = {
      native,
      command: (file, args, options) => ms.command(file, args, { native, ...options }),
      open: (path, options) => ms.open(path, { native, ...options }),
      fd: (fd, options) => ms.fd(fd, { native, ...options }),
    };
    const name = native ? "native" : "TypeScript";
    if (native && !ms.native.available) test(name, { skip: ms.native.reason });
    else describe(name, () => tests(mode));
  }
}
