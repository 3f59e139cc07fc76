import { start, systemPath } from "../../src/kit/exec.ts";

const compileCache = process.env["NODE_COMPILE_CACHE"];

/** The environment of Node processes that a test starts; they share the test's compile cache. */
export const nodeEnv: Readonly<Record<string, string>> = {
  PATH: process.env["PATH"] ?? systemPath,
  ...(compileCache === undefined ? {} : { NODE_COMPILE_CACHE: compileCache }),
};

/** Starts a script in a new Node process. */
export function startNode(args: readonly string[]): ReturnType<typeof start> {
  return start({ file: process.execPath, args }, { env: nodeEnv });
}
