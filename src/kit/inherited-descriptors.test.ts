import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { runOk } from "./exec.ts";

const url = JSON.stringify(pathToFileURL(join(import.meta.dirname, "inherited-descriptors.ts")));

test("a descriptor of the program that started this one is closed; Node's own stay", async () => {
  const code = `import { readlinkSync } from "node:fs"; import { closeInheritedDescriptors } from ${url};
    closeInheritedDescriptors();
    try { console.log(readlinkSync("/proc/self/fd/200")); } catch ({ code }) { console.log(code); }
    setTimeout(() => fetch("data:,alive").then((reply) => reply.text()).then(console.log), 10);`;
  const node = [process.execPath, "--input-type=module", "-e", code];
  const { stdout } = await runOk({ file: "bash", args: ["-c", 'exec 200</; exec "$0" "$@"', ...node] });
  assert.equal(stdout, "ENOENT\nalive\n");
});

test("berthd closes them before it loads what lets a thread of Node read certificates", async () => {
  const main = await readFile(join(import.meta.dirname, "../daemon/main.ts"), "utf8");
  const imported = [...main.matchAll(/^import .* from "(.*)";$/gm)].map(([, path]) => path);
  assert.deepEqual(imported, ["../kit/inherited-descriptors.ts"]);
  const code = `import ${url}; console.log(process.moduleLoadList.includes("NativeModule tls"));`;
  const { stdout } = await runOk({ file: process.execPath, args: ["--input-type=module", "-e", code] });
  assert.equal(stdout, "false\n");
});
