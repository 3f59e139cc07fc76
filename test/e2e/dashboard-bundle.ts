import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { runOk, start } from "../../src/kit/exec.ts";
import { eventually } from "../support/eventually.ts";

const checkout = fileURLToPath(new URL("../../", import.meta.url));

const htmlOf = async (api: string) => (await fetch(`${api}/`, { headers: { accept: "text/html" } })).text();

/** Builds the dashboard again and checks that the files are identical to those that the platform serves. */
export async function buildsTheSame(api: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "berth-bundle-"));
  await runOk(
    { file: process.execPath, args: ["src/bundler/main.ts", "build", folder] },
    { cwd: checkout, env: { NODE_ENV: "production" } },
  );
  assert.equal(await readFile(join(folder, "index.html"), "utf8"), await htmlOf(api));
  for (const name of await readdir(join(folder, "assets"))) {
    const served = await fetch(`${api}/assets/${name}`);
    assert.ok(Buffer.from(await served.bytes()).equals(await readFile(join(folder, "assets", name))), name);
  }
  await rm(folder, { recursive: true });
}

/** Returns the compressed size of the scripts that the first load needs, none of which contains the terminal. */
export async function scriptBytes(api: string): Promise<number> {
  let total = 0;
  for (const [, path = ""] of (await htmlOf(api)).matchAll(/(?:src|href)="(\/assets\/[^"]+\.js)"/g)) {
    const script = Buffer.from(await (await fetch(`${api}${path}`)).bytes());
    assert.ok(!script.includes("xterm-"), `${path} contains the terminal`);
    total += gzipSync(script, { level: 9 }).length;
  }
  return total;
}

/** Checks that `npm run dev` prints its address, serves the sources with hot reload, and forwards a sign-in to the platform. */
export async function servesForDevelopment({ api, token }: { readonly api: string; readonly token: string }) {
  const server = start({ file: process.execPath, args: ["src/bundler/main.ts", "dev", api] }, { cwd: checkout });
  let output = "";
  server.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  try {
    const { href, origin } = new URL(
      await eventually(() => /http:\S+/.exec(output)?.[0], "the development server prints its address"),
    );
    assert.match(await (await fetch(href)).text(), /src="\/@vite\/client"/);
    assert.match(await (await fetch(`${origin}/app.tsx`)).text(), /import\.meta\.hot/);
    const headers = { origin, "content-type": "application/json", "x-berth-dashboard": "1" };
    const signedIn = await fetch(`${origin}/session`, { method: "POST", headers, body: JSON.stringify({ token }) });
    assert.equal(signedIn.status, 200);
  } finally {
    const over = once(server, "close");
    server.kill();
    await over;
  }
}
