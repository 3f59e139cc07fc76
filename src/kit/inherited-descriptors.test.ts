import assert from "node:assert/strict";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { runOk } from "./exec.ts";

test("a descriptor of the program that started this one is closed; Node's own stay", async () => {
  const url = JSON.stringify(pathToFileURL(join(import.meta.dirname, "inherited-descriptors.ts")));
  const code = `import { readlinkSync } from "node:fs"; import { closeInheritedDescriptors } from ${url};
    closeInheritedDescriptors();
    try { console.log(readlinkSync("/proc/self/fd/200")); } catch ({ code }) { console.log(code); }
    setTimeout(() => fetch("data:,alive").then((reply) => reply.text()).then(console.log), 10);`;
  const node = [process.execPath, "--input-type=module", "-e", code];
  const { stdout } = await runOk({ file: "bash", args: ["-c", 'exec 200</; exec "$0" "$@"', ...node] });
  assert.equal(stdout, "ENOENT\nalive\n");
});
