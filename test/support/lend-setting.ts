import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { start } from "../../src/kit/exec.ts";

/**
 * Changes a setting of the machine, a file below /proc/sys, for the time of a test. Resolves to what brings the old value back; when this
 * process is killed, a child brings it back.
 */
export async function lendSetting(file: string, value: string): Promise<() => Promise<void>> {
  const before = readFileSync(file, "utf8").trim();
  // In a session of its own: a signal to this process's group does not end it.
  const script = 'echo ready; cat >/dev/null; echo "$0" >"$1"';
  const child = start({ file: "setsid", args: ["sh", "-c", script, before, file] });
  await once(child.stdout, "data");
  writeFileSync(file, value);
  return async () => {
    child.stdin.end();
    await once(child, "close");
  };
}
