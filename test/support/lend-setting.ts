import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { start } from "../../src/kit/exec.ts";

/**
 * Changes a setting of the machine, a file below /proc/sys, during a test. Resolves to a function that restores the old value; when this
 * process is killed, its child restores it.
 */
export async function lendSetting(file: string, value: string): Promise<() => Promise<void>> {
  const before = readFileSync(file, "utf8").trim();
  // The child has its own session, so that a signal to this process group does not end it.
  const script = 'echo ready; cat >/dev/null; echo "$0" >"$1"';
  const child = start({ file: "setsid", args: ["sh", "-c", script, before, file] });
  await once(child.stdout, "data");
  writeFileSync(file, value);
  return async () => {
    child.stdin.end();
    await once(child, "close");
  };
}
