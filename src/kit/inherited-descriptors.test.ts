import assert from "node:assert/strict";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
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

test("the certificates that a thread of Node reads stay open, so that it closes nobody else's file", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "berth-descriptors-"));
  t.after(() => rm(folder, { recursive: true }));
  // A reader of this pipe waits until its writer closes it.
  const pipe = join(folder, "certificates");
  await runOk({ file: "mkfifo", args: [pipe] });
  const held = await open(pipe, "r+");
  const code = `import "node:tls"; import { readdirSync, readlinkSync } from "node:fs";
    import { closeInheritedDescriptors } from ${url};
    const target = (fd) => { try { return readlinkSync("/proc/self/fd/" + fd); } catch {} };
    const isRead = () => readdirSync("/proc/self/fd").some((fd) => target(fd) === process.env.NODE_EXTRA_CA_CERTS);
    while (!isRead()) await new Promise((resolve) => setTimeout(resolve, 5));
    closeInheritedDescriptors();
    console.log(isRead());`;
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: pipe };
  let said = "";
  const onStdout = (chunk: Buffer) => {
    said += chunk.toString();
    void held.close();
  };
  const node = { file: process.execPath, args: ["--input-type=module", "-e", code] };
  await runOk(node, { env, onStdout });
  assert.equal(said, "true\n");
});
